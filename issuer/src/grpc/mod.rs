//! The gRPC service: validates calls, passes them to the core, and returns its answers.

mod beats;
mod convert;
mod status;

use std::{sync::Arc, time::Duration};

use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, GetStatusRequest, GetStatusResponse, KeepAliveRequest,
    RegisterRequest, RegisterResponse, ReturnBlocksRequest, ReturnBlocksResponse,
    issuer_server::{self, IssuerServer},
};
use tokio::{sync::watch, time::timeout};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    core::{Answer, Refusal, Request as CoreRequest},
    driver::{DriverState, Handle},
};
use beats::Answers;
use status::status_of;
pub use status::{BUSY_KEY, EPOCH_KEY, EXHAUSTED_KEY, IN_OTHER_HANDS_KEY, LEADER_KEY};

/// Maximum size of a request, in bytes. Every valid call is small; a larger one is refused before
/// it is decoded.
const DECODE_LIMIT: usize = 16 * 1024;
/// Maximum time that a call waits for its transaction, unless its own deadline is shorter.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The gRPC service in front of the core.
#[derive(Clone)]
pub struct IssuerService {
    handle: Handle,
    standing: watch::Receiver<DriverState>,
    advertise: Arc<str>,
    holder_ttl: Duration,
}

impl IssuerService {
    /// Creates the tonic service that passes calls to the core.
    #[must_use]
    pub fn server(
        handle: Handle,
        standing: watch::Receiver<DriverState>,
        advertise: String,
        holder_ttl: Duration,
    ) -> IssuerServer<Self> {
        let service = Self { handle, standing, advertise: advertise.into(), holder_ttl };
        IssuerServer::new(service).max_decoding_message_size(DECODE_LIMIT)
    }

    async fn ask(&self, request: CoreRequest) -> Result<Answer, Status> {
        let asked = timeout(CALL_DEADLINE, self.handle.call(request)).await;
        // The outcome is unknown: the transaction may still apply.
        asked.unwrap_or(Err(Refusal::Unknown)).map_err(|refusal| status_of(&refusal))
    }

    async fn allocate(&self, request: AllocateBlockRequest) -> Result<AllocateBlockResponse, Status> {
        match self.ask(convert::allocate(request)?).await? {
            Answer::Allocated { block, epoch, leaked, store } => Ok(AllocateBlockResponse {
                block: Some(convert::block_out(&block)),
                epoch: epoch.0,
                leaked_generation: leaked.map_or(0, |generation| generation.0),
                store_epoch: store.to_string(),
            }),
            _ => Err(mismatch()),
        }
    }

    fn holder_ttl_ms(&self) -> u64 {
        u64::try_from(self.holder_ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the error for an answer that does not fit the request. The core answers each request
/// with its own variant, so this does not happen.
fn mismatch() -> Status {
    Status::internal("the answer does not fit the request")
}

#[tonic::async_trait]
impl issuer_server::Issuer for IssuerService {
    async fn register(
        &self,
        request: Request<RegisterRequest>,
    ) -> Result<Response<RegisterResponse>, Status> {
        match self.ask(convert::register(request.into_inner())?).await? {
            Answer::Registered { incarnation, epoch, last_seq, ledger, mark } => {
                Ok(Response::new(RegisterResponse {
                    incarnation: incarnation.0,
                    epoch: epoch.0,
                    last_seq: last_seq.0,
                    holder_ttl_ms: self.holder_ttl_ms(),
                    ledger: ledger.map_or_else(String::new, |ledger| ledger.to_string()),
                    mark: mark.0,
                }))
            }
            _ => Err(mismatch()),
        }
    }

    async fn allocate_block(
        &self,
        request: Request<AllocateBlockRequest>,
    ) -> Result<Response<AllocateBlockResponse>, Status> {
        self.allocate(request.into_inner()).await.map(Response::new)
    }

    type KeepAliveStream = Answers;

    async fn keep_alive(
        &self,
        request: Request<Streaming<KeepAliveRequest>>,
    ) -> Result<Response<Self::KeepAliveStream>, Status> {
        beats::keep_alive(self.clone(), request.into_inner()).await
    }

    async fn return_blocks(
        &self,
        request: Request<ReturnBlocksRequest>,
    ) -> Result<Response<ReturnBlocksResponse>, Status> {
        match self.ask(convert::return_blocks(request.into_inner())?).await? {
            Answer::Closed { blocks } => Ok(Response::new(ReturnBlocksResponse { closed: blocks })),
            _ => Err(mismatch()),
        }
    }

    async fn get_status(
        &self,
        _request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        match self.ask(CoreRequest::Status).await? {
            Answer::Status(report) => Ok(Response::new(convert::status_out(&self.advertise, *report))),
            _ => Err(mismatch()),
        }
    }
}
