//! The gRPC face of the core: calls are checked for form, asked of the core, and answered.

mod convert;
mod status;

use std::{pin::Pin, time::Duration};

use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, GetStatusRequest, GetStatusResponse, KeepAliveRequest,
    KeepAliveResponse, RegisterRequest, RegisterResponse, ReturnBlocksRequest, ReturnBlocksResponse,
    issuer_server::{self, IssuerServer},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    core::{Answer, Refusal, Request as CoreRequest},
    driver::{Handle, Standing},
    tokens::Epoch,
};
use status::status_of;
pub use status::{BUSY_KEY, EPOCH_KEY, EXHAUSTED_KEY, LEADER_KEY};

/// Every call is small; what is not is refused before it is decoded.
const DECODE_LIMIT: usize = 16 * 1024;
/// How long a call may wait for its transaction, unless its own deadline is shorter.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The service.
#[derive(Clone)]
pub struct IssuerService {
    handle: Handle,
    standing: watch::Receiver<Standing>,
    advertise: String,
    holder_ttl: Duration,
}

impl IssuerService {
    /// Wraps a way to the core as a tonic service.
    #[must_use]
    pub fn server(
        handle: Handle,
        standing: watch::Receiver<Standing>,
        advertise: String,
        holder_ttl: Duration,
    ) -> IssuerServer<Self> {
        let service = Self { handle, standing, advertise, holder_ttl };
        IssuerServer::new(service).max_decoding_message_size(DECODE_LIMIT)
    }

    async fn ask(&self, request: CoreRequest) -> Result<Answer, Status> {
        let asked = timeout(CALL_DEADLINE, self.handle.call(request)).await;
        // Nobody knows what became of it: the transaction may still apply.
        asked.unwrap_or(Err(Refusal::Unknown)).map_err(|refusal| status_of(&refusal))
    }

    fn holder_ttl_ms(&self) -> u64 {
        u64::try_from(self.holder_ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The core answers each request with its own kind of answer.
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
            Answer::Registered { incarnation, epoch, last_seq } => Ok(Response::new(RegisterResponse {
                incarnation: incarnation.0,
                epoch: epoch.0,
                last_seq: last_seq.0,
                holder_ttl_ms: self.holder_ttl_ms(),
            })),
            _ => Err(mismatch()),
        }
    }

    async fn allocate_block(
        &self,
        request: Request<AllocateBlockRequest>,
    ) -> Result<Response<AllocateBlockResponse>, Status> {
        match self.ask(convert::allocate(request.into_inner())?).await? {
            Answer::Allocated { block, epoch, leaked } => Ok(Response::new(AllocateBlockResponse {
                block: Some(convert::block_out(&block)),
                epoch: epoch.0,
                leaked_generation: leaked.map_or(0, |generation| generation.0),
            })),
            _ => Err(mismatch()),
        }
    }

    type KeepAliveStream = Pin<Box<dyn Stream<Item = Result<KeepAliveResponse, Status>> + Send>>;

    async fn keep_alive(
        &self,
        request: Request<Streaming<KeepAliveRequest>>,
    ) -> Result<Response<Self::KeepAliveStream>, Status> {
        let mut beats = request.into_inner();
        // The first beat is asked before the stream is accepted, so that a follower's refusal, with the leader's address, is
        // the answer to the call itself: a stream that opens looks like a leader to the caller.
        let first = self.next_beat(&mut beats).await.ok_or_else(|| Status::cancelled("no beat came"))??;
        let (answers, out) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            let mut standing = service.standing.clone();
            let epoch = Some(Epoch(first.epoch));
            let mut answer = Ok(first);
            loop {
                let ends = answer.is_err();
                if answers.send(answer).await.is_err() || ends {
                    return;
                }
                tokio::select! {
                    next = service.next_beat(&mut beats) => match next {
                        Some(next) => answer = next,
                        None => return,
                    },
                    // The holder hears at once that it has to look for another leader.
                    _ = standing.wait_for(|standing| standing.serving != epoch) => {
                        answer = Err(status_of(&Refusal::NotLeader(None)));
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(out))))
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

impl IssuerService {
    /// Waits for a beat and answers it. None when the holder has hung up, or was silent for its whole TTL: then it counts as
    /// gone, and so does its stream.
    async fn next_beat(
        &self,
        beats: &mut Streaming<KeepAliveRequest>,
    ) -> Option<Result<KeepAliveResponse, Status>> {
        match timeout(self.holder_ttl, beats.next()).await {
            Ok(Some(Ok(beat))) => Some(self.beat(beat).await),
            Ok(Some(Err(_)) | None) | Err(_) => None,
        }
    }

    async fn beat(&self, beat: KeepAliveRequest) -> Result<KeepAliveResponse, Status> {
        match self.ask(convert::keep_alive(beat)?).await? {
            Answer::Alive { epoch, ceilings } => Ok(KeepAliveResponse {
                epoch: epoch.0,
                holder_ttl_ms: self.holder_ttl_ms(),
                ceilings: ceilings.into_iter().map(convert::ceiling_out).collect(),
            }),
            _ => Err(mismatch()),
        }
    }
}
