//! The gRPC service in front of the core, and how its calls ask the core.

use std::{sync::Arc, time::Duration};

use proto::issuer::v1::issuer_server::IssuerServer;
use tokio::{sync::watch, time::timeout};
use tonic::Status;

use super::status::status_of;
use crate::{
    core::{Answer, Refusal, Request},
    driver::{DriverState, Handle},
};

/// Maximum size of a request, in bytes. Every valid call is small; a larger one is refused before
/// it is decoded.
const DECODE_LIMIT: usize = 16 * 1024;
/// Maximum time that a call waits for its transaction, unless its own deadline is shorter.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The gRPC service in front of the core.
#[derive(Clone)]
pub struct IssuerService {
    handle: Handle,
    pub(super) standing: watch::Receiver<DriverState>,
    pub(super) advertise: Arc<str>,
    pub(super) holder_ttl: Duration,
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

    pub(super) async fn ask(&self, request: Request) -> Result<Answer, Status> {
        let asked = timeout(CALL_DEADLINE, self.handle.call(request)).await;
        // The outcome is unknown: the transaction may still apply.
        asked.unwrap_or(Err(Refusal::Unknown)).map_err(|refusal| status_of(&refusal))
    }

    pub(super) fn holder_ttl_ms(&self) -> u64 {
        u64::try_from(self.holder_ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the error for an answer that does not fit the request. The core answers each request
/// with its own variant, so this does not happen.
pub(super) fn mismatch() -> Status {
    Status::internal("the answer does not fit the request")
}
