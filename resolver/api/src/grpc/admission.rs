//! Checks the key of a call before its message is read, as the REST API does. tonic decodes a
//! message, and so holds it in memory, before the called method runs.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use app::AppError;
use hyper::{Request, Response};
use limits::{
    Account, Held,
    grpc::{keep_until_sent, peer_of},
};
use links::api_key::Grant;
use tokio::time::{Instant, sleep};
use tonic::{Code, Extensions, Status, body::Body, codegen::Service, server::NamedService};

use super::{MESSAGE_BYTES, status::of_app};
use crate::{
    Api,
    authenticate::{AuthError, authenticate},
    calls::Refused,
};
use web::{HELD_BACK, client_limits::Clients};

/// The methods of the links API, for metrics.
const METHODS: [&str; 6] = ["CreateLink", "CreateLinks", "GetLink", "EditLink", "DeleteLink", "ListLinks"];

/// A service behind the check of API keys. It adds [`Admitted`] to the extensions of the request.
#[derive(Clone)]
pub(super) struct Admission<S> {
    pub(super) api: Arc<Api>,
    pub(super) service: S,
}

impl<S: NamedService> NamedService for Admission<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Calls go to a clone of the service. Clones of tonic's services are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (api, mut service) = (Arc::clone(&self.api), self.service.clone());
        let (begun, method) = (Instant::now(), method_of(request.uri().path()));
        Box::pin(async move {
            let metrics = Arc::clone(&api.metrics);
            let key = request.headers().get("x-api-key").map(|key| key.as_bytes().into());
            let caller = Caller { client: client_of(&api.clients, &request), key };
            let admitted = async {
                let grant = caller.authenticate(&api).await?;
                // The bytes of a message, for as long as one may be read.
                let held = api.budgets.messages.take(Account::Key(grant.id.0), MESSAGE_BYTES as u64);
                let held = held.map_err(AppError::from)?;
                Ok::<_, AuthError>((grant, Arc::new(held)))
            };
            let answer = match admitted.await {
                Ok((grant, held)) => {
                    let admitted = Admitted { grant, caller, since: Instant::now(), held: Arc::clone(&held) };
                    request.extensions_mut().insert(admitted);
                    let mut answer = service.call(request).await?;
                    // The reservation of an answer that is longer than its message's share.
                    let long = answer.extensions_mut().remove::<Arc<Held>>();
                    keep_until_sent(answer, (held, long))
                }
                Err(error) => {
                    // The answer to too many wrong keys is delayed, so all that it does not need is
                    // released first: the message, and the key, which may have 8 KiB.
                    drop((request, caller));
                    if let AuthError::TooManyCalls(Refused { share: None, .. }) = &error {
                        sleep(HELD_BACK).await;
                    }
                    Status::from(error).into_http()
                }
            };
            metrics.record_grpc(method, code_of(&answer), begun.elapsed());
            Ok(answer)
        })
    }
}

/// Returns the method of a path, as metrics name it. Names that are none of ours come from clients,
/// who could invent any number of them.
fn method_of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    METHODS.iter().find(|method| **method == name).copied().unwrap_or("other")
}

/// Returns the code of an answer. An error has it in the head; an answer with content has it at its
/// end, where it is OK, unless the content broke off.
fn code_of(answer: &Response<Body>) -> Code {
    answer.headers().get("grpc-status").map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes()))
}

#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) grant: Grant,
    pub(super) caller: Caller,
    /// When the key was checked.
    pub(super) since: Instant,
    #[expect(dead_code, reason = "its drop releases the reservation")]
    held: Arc<Held>,
}

impl Admitted {
    pub(super) fn of(extensions: &Extensions) -> Result<&Self, Status> {
        // Every service of the API is behind the check, so the extension is present.
        extensions.get().ok_or_else(|| of_app(&AppError::Internal))
    }
}

#[derive(Clone)]
pub(super) struct Caller {
    client: IpAddr,
    key: Option<Arc<[u8]>>,
}

impl Caller {
    pub(super) async fn authenticate(&self, api: &Arc<Api>) -> Result<Grant, AuthError> {
        authenticate(api, self.client, self.key.as_deref()).await.map(|(grant, _)| grant)
    }
}

/// Returns the client of a request: the peer of the connection, or the client that a trusted proxy
/// names.
pub(super) fn client_of(clients: &Clients, request: &Request<Body>) -> IpAddr {
    clients.client_of(peer_of(request), request.headers())
}
