//! The gRPC service in front of the core, and how its calls ask the core.

use std::{sync::Arc, time::Duration};

use limits::{Seldom, grpc::Guest};
use numbers::HolderId;
use proto::issuer::v1::issuer_server::IssuerServer;
use tokio::time::timeout;
use tonic::{Extensions, Status};

use super::status::status_of;
use crate::{
    core::{Answer, Refusal, Request},
    driver::Handle,
    observer::Observer,
};

/// Maximum size of a request, in bytes. Valid ones are small, larger ones are not decoded.
const DECODE_LIMIT: usize = 16 * 1024;
/// Maximum time that a call waits for its transaction, unless its own deadline is shorter.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The gRPC service in front of the core.
#[derive(Clone)]
pub struct IssuerService {
    pub(super) handle: Handle,
    pub(super) advertise: Arc<str>,
    pub(super) holder_ttl_ms: u64,
    /// Names of the certificates that may take numbers; all if empty.
    clients: Arc<[String]>,
    /// Calls of other holders than their certificates name.
    refused: Arc<Seldom>,
    pub(super) observer: Arc<Observer>,
}

impl IssuerService {
    /// Creates the tonic service that passes calls to the core.
    pub fn server(
        handle: Handle,
        advertise: String,
        holder_ttl_ms: u64,
        clients: &[String],
        observer: Arc<Observer>,
    ) -> IssuerServer<Self> {
        let (refused, clients) = (Arc::default(), clients.into());
        let advertise = advertise.into();
        let service = Self { handle, advertise, holder_ttl_ms, clients, refused, observer };
        IssuerServer::new(service).max_decoding_message_size(DECODE_LIMIT)
    }

    /// Asks the core, if the client may act as the holder: else UNAUTHENTICATED.
    pub(super) async fn ask(&self, client: &Extensions, request: Request) -> Result<Answer, Status> {
        self.check_holder(client, request.holder())?;
        let asked = timeout(CALL_DEADLINE, self.handle.call(request)).await;
        // The outcome is unknown: the transaction may still apply.
        asked.unwrap_or(Err(Refusal::Unknown)).map_err(|refusal| status_of(&refusal))
    }

    /// Checks the holder of a call against the certificate of its connection. A connection without
    /// one may act as any holder: it is in plaintext, or in this process. A reservation
    /// belongs to no resolver: any of them may fill it.
    fn check_holder(&self, client: &Extensions, holder: Option<&HolderId>) -> Result<(), Status> {
        let identity = client.get::<Guest>().and_then(|guest| guest.identity.as_ref());
        let (Some(identity), Some(holder)) = (identity, holder) else { return Ok(()) };
        let is_client = self.clients.is_empty() || identity.has_one_of(&self.clients);
        if is_client && (holder.is_reservation() || identity.may_act_as(holder.as_str())) {
            return Ok(());
        }
        if let Some(times) = self.refused.happened() {
            tracing::warn!(%holder, certificate = %identity, times, "call of another holder refused");
        }
        let reason = format!("the certificate is for {identity}, and the call is of holder {holder}");
        Err(Status::unauthenticated(reason))
    }
}

/// Returns the error for an answer that does not fit the request. The core answers each request
/// with its own variant, so this does not happen.
pub(super) fn mismatch() -> Status {
    Status::internal("the answer does not fit the request")
}
