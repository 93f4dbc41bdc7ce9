//! The gRPC service: validates calls, passes them to the core, and returns its answers.

mod beats;
mod convert;
mod service;
mod status;

use proto::issuer::v1::{
    AllocateBlockRequest, AllocateBlockResponse, GetStatusRequest, GetStatusResponse, KeepAliveRequest,
    RegisterRequest, RegisterResponse, ReturnBlocksRequest, ReturnBlocksResponse, issuer_server,
};
use tonic::{Request, Response, Status, Streaming};

use crate::core::{Answer, Request as CoreRequest};
use beats::Answers;
use convert::malformed;
pub use service::IssuerService;
use service::mismatch;
pub use status::{BUSY_KEY, EXHAUSTED_KEY, IN_OTHER_HANDS_KEY, LEADER_KEY};

type Reply<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl issuer_server::Issuer for IssuerService {
    async fn register(&self, request: Request<RegisterRequest>) -> Reply<RegisterResponse> {
        let (_, client, request) = request.into_parts();
        match self.ask(&client, convert::register(request).map_err(malformed)?).await? {
            Answer::Registered { incarnation, epoch, last_seq, ledger, mark } => {
                Ok(Response::new(RegisterResponse {
                    incarnation: incarnation.0,
                    epoch: epoch.0,
                    last_seq: last_seq.0,
                    holder_ttl_ms: self.holder_ttl_ms,
                    ledger: ledger.map_or_else(String::new, |ledger| ledger.to_string()),
                    mark: mark.0,
                }))
            }
            _ => Err(mismatch()),
        }
    }

    async fn allocate_block(&self, request: Request<AllocateBlockRequest>) -> Reply<AllocateBlockResponse> {
        let (_, client, request) = request.into_parts();
        match self.ask(&client, convert::allocate(request).map_err(malformed)?).await? {
            Answer::Allocated { block, epoch, leaked, store, is_reclaimed, .. } => {
                if is_reclaimed {
                    self.observer.notes().note_reclaimed(&block.namespace, block.span.len());
                }
                Ok(Response::new(AllocateBlockResponse {
                    block: Some(convert::block_out(&block)),
                    epoch: epoch.0,
                    leaked_generation: leaked.map_or(0, |generation| generation.0),
                    store_epoch: store.to_string(),
                }))
            }
            _ => Err(mismatch()),
        }
    }

    type KeepAliveStream = Answers;

    async fn keep_alive(
        &self,
        request: Request<Streaming<KeepAliveRequest>>,
    ) -> Reply<Self::KeepAliveStream> {
        let (_, client, beats) = request.into_parts();
        beats::keep_alive(self.clone(), client, beats).await
    }

    async fn return_blocks(&self, request: Request<ReturnBlocksRequest>) -> Reply<ReturnBlocksResponse> {
        let (_, client, request) = request.into_parts();
        match self.ask(&client, convert::return_blocks(request).map_err(malformed)?).await? {
            Answer::Closed { blocks } => Ok(Response::new(ReturnBlocksResponse { closed: blocks })),
            _ => Err(mismatch()),
        }
    }

    async fn get_status(&self, request: Request<GetStatusRequest>) -> Reply<GetStatusResponse> {
        match self.ask(request.extensions(), CoreRequest::Status).await? {
            Answer::Status(report) => {
                let answer = convert::status_out(&self.advertise, *report);
                Ok(Response::new(self.observer.notes().complete(answer)))
            }
            _ => Err(mismatch()),
        }
    }
}
