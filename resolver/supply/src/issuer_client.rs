//! A client that finds the leader among the issuers, and repeats a call until it is executed or
//! refused for certain.
//!
//! FAILED_PRECONDITION with a leader's address means "not executed, go there". UNAVAILABLE,
//! DEADLINE_EXCEEDED and a broken connection mean "unknown": the same call is sent again, to the
//! next issuer. That is safe because every call can be repeated: see the contract in `proto/`.

use std::{
    collections::HashMap,
    error::Error as _,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use daemon::{Contact, reasons, traces};
use holder::Refused;
use hyper_util::rt::TokioIo;
use issuer::{
    embedded::Dialer,
    grpc::{BUSY_KEY, EXHAUSTED_KEY, IN_OTHER_HANDS_KEY, LEADER_KEY},
};
use limits::Seldom;
use proto::issuer::v1::{self as pb, issuer_client::IssuerClient as Stub};
use tls::ClientTls;
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::{
    Code, Request, Response, Status, Streaming,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint, Uri},
};

const TRY: Duration = Duration::from_secs(2);
/// The back-off after an issuer could not answer; it doubles up to the maximum. It is short,
/// because it delays the discovery of a new leader.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// The maximum number of connections kept; when it is reached, all are dropped.
const CHANNELS_MAX: usize = 64;

/// The location of the issuers.
#[derive(Clone)]
pub enum Target {
    /// In this process.
    Embedded(Dialer),
    /// In other processes.
    Remote(Issuers),
}

/// Where issuers are, and how they are reached.
#[derive(Clone, Default)]
pub struct Issuers {
    /// URLs of all issuers.
    pub urls: Vec<String>,
    /// Certificates for URLs that begin with `https`.
    pub tls: Option<ClientTls>,
    /// Whether a leader beyond this machine may be reached in plaintext.
    pub allows_plaintext: bool,
}

/// A client of the issuer that leads.
pub struct IssuerClient {
    target: Target,
    /// A std mutex: it is never held across an await.
    state: Mutex<State>,
    failed: Seldom,
    /// When the leading issuer last answered. Keep-alives ask it every few seconds.
    pub contact: Contact,
    unanswered: AtomicU64,
}

#[derive(Default)]
struct State {
    channels: HashMap<String, Channel>,
    leader: Option<String>,
    /// The count of tries without a known leader. It selects the configured issuer for the next
    /// one.
    turn: usize,
}

/// Calls over a channel, which carry the trace of their caller.
type Calls = Stub<InterceptedService<Channel, fn(Request<()>) -> Result<Request<()>, Status>>>;

fn pass_trace(mut request: Request<()>) -> Result<Request<()>, Status> {
    traces::inject(request.metadata_mut());
    Ok(request)
}

/// The next step after a try.
enum Next {
    Refused(Refused),
    /// Not executed, for certain: the leader is at this address.
    Follow(String),
    /// Not executed, or the outcome is unknown: ask the next issuer.
    Again,
    /// Not executed, for certain, by the leader itself: ask it again. This is not a refusal,
    /// because an earlier try may still be under way, and its seq must not go to another request.
    Busy,
}

impl IssuerClient {
    /// Creates a client that has not connected yet.
    pub fn new(target: Target) -> Self {
        let (state, failed) = (Mutex::new(State::default()), Seldom::default());
        let (contact, unanswered) = (Contact::polled("issuer"), AtomicU64::new(0));
        Self { target, state, failed, contact, unanswered }
    }

    /// Returns how many calls no issuer has executed or refused: there was no connection, no answer
    /// in time, or no leader.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Registers a start of this holder. There is no time limit; the caller bounds the wait by
    /// dropping the future.
    pub async fn register(&self, request: pb::RegisterRequest) -> Result<pb::RegisterResponse, Refused> {
        self.call(|mut stub| {
            let request = request.clone();
            async move { stub.register(request).await }
        })
        .await
    }

    /// Asks for a block.
    pub async fn allocate(
        &self,
        request: pb::AllocateBlockRequest,
    ) -> Result<pb::AllocateBlockResponse, Refused> {
        self.call(|mut stub| {
            let request = request.clone();
            async move { stub.allocate_block(request).await }
        })
        .await
    }

    /// Returns blocks.
    pub async fn return_blocks(
        &self,
        request: pb::ReturnBlocksRequest,
    ) -> Result<pb::ReturnBlocksResponse, Refused> {
        self.call(|mut stub| {
            let request = request.clone();
            async move { stub.return_blocks(request).await }
        })
        .await
    }

    /// Returns the status of the issuer.
    pub async fn status(&self) -> Result<pb::GetStatusResponse, Refused> {
        self.call(|mut stub| async move { stub.get_status(pb::GetStatusRequest {}).await }).await
    }

    /// Opens a stream of beats and returns the answers. `make` creates the beats anew for each try.
    pub async fn keep_alive<S>(
        &self,
        make: impl Fn() -> S,
    ) -> Result<Streaming<pb::KeepAliveResponse>, Refused>
    where
        S: Stream<Item = pb::KeepAliveRequest> + Send + 'static,
    {
        self.call(|mut stub| {
            let beats = make();
            async move { stub.keep_alive(beats).await }
        })
        .await
    }

    /// Repeats a call until there is a definite answer.
    async fn call<T, F>(&self, make: impl Fn(Calls) -> F) -> Result<T, Refused>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        let (mut pause, mut hops) = (PAUSE_MIN, 0);
        loop {
            let (url, channel) = self.choose();
            let made = make(Stub::with_interceptor(channel, pass_trace as fn(_) -> _));
            let tried = timeout(TRY, traces::call("issuer", made)).await;
            let status = match tried {
                Ok(Ok(response)) => {
                    self.remember(url);
                    self.contact.succeeded();
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("no answer in time"),
            };
            self.note_failure(&url, &status);
            match next(&status) {
                Next::Refused(refused) => {
                    // The issuers are there: another alert tells of refusals.
                    self.contact.succeeded();
                    return Err(refused);
                }
                Next::Follow(leader) if hops < 3 => {
                    hops += 1;
                    self.remember(leader);
                    continue;
                }
                Next::Follow(_) | Next::Again => {
                    self.unanswered.fetch_add(1, Ordering::Relaxed);
                    self.state().leader = None;
                }
                Next::Busy => self.contact.succeeded(),
            }
            hops = 0;
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Returns the leader if it is known, else the next issuer in turn.
    fn choose(&self) -> (String, Channel) {
        let mut state = self.state();
        let url = match (&self.target, state.leader.clone()) {
            (Target::Embedded(_), _) => "http://embedded".to_owned(),
            (Target::Remote(_), Some(leader)) => leader,
            (Target::Remote(issuers), None) => {
                state.turn += 1;
                issuers.urls[state.turn % issuers.urls.len()].clone()
            }
        };
        if let Some(channel) = state.channels.get(&url) {
            return (url, channel.clone());
        }
        let channel = self.connect(&url);
        if state.channels.len() >= CHANNELS_MAX {
            state.channels.clear();
        }
        state.channels.insert(url.clone(), channel.clone());
        (url, channel)
    }

    fn connect(&self, url: &str) -> Channel {
        // A follower's hint is checked when it is remembered, and addresses from flags at the
        // start.
        let endpoint = Endpoint::from_shared(url.to_owned())
            .unwrap_or_else(|_| Endpoint::from_static("http://malformed.invalid"))
            .connect_timeout(Duration::from_secs(1))
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(2))
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        match &self.target {
            Target::Remote(issuers) => daemon::channel(&endpoint, issuers.tls.as_ref()),
            Target::Embedded(dialer) => {
                let dialer = dialer.clone();
                let connector = tower::service_fn(move |_: Uri| {
                    let dialer = dialer.clone();
                    async move { dialer.dial().await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector_lazy(connector)
            }
        }
    }

    /// Logs why a call reached no issuer, such as an expired certificate.
    fn note_failure(&self, url: &str, status: &Status) {
        tracing::debug!(url, code = ?status.code(), message = status.message(), "call to the issuer");
        let Some(error) = status.source() else { return };
        if let Some(times) = self.failed.happened() {
            tracing::warn!(url, error = reasons(error), times, "no connection to the issuer");
        }
    }

    fn remember(&self, url: String) {
        let may_follow = match &self.target {
            Target::Embedded(_) => true,
            Target::Remote(issuers) => {
                let is_safe =
                    || issuers.allows_plaintext || url.starts_with("https://") || daemon::is_local(&url);
                issuers.urls.contains(&url) || (url.parse::<Uri>().is_ok() && is_safe())
            }
        };
        self.state().leader = may_follow.then_some(url);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

fn next(status: &Status) -> Next {
    let message = || status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition => match status.metadata().get(LEADER_KEY).map(|value| value.to_str()) {
            Some(Ok(leader)) if !leader.is_empty() => Next::Follow(leader.to_owned()),
            Some(_) => Next::Again,
            None => Next::Refused(Refused::NotRegistered(message())),
        },
        Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Cancelled | Code::Internal => {
            Next::Again
        }
        // The ledger has forgotten calls that it had answered. A new registration returns the last
        // seq.
        Code::OutOfRange => Next::Refused(Refused::NotRegistered(message())),
        Code::PermissionDenied => Next::Refused(Refused::Superseded(message())),
        Code::ResourceExhausted if status.metadata().contains_key(EXHAUSTED_KEY) => {
            Next::Refused(Refused::Exhausted)
        }
        Code::ResourceExhausted if status.metadata().contains_key(IN_OTHER_HANDS_KEY) => {
            Next::Refused(Refused::InOtherHands)
        }
        Code::ResourceExhausted if status.metadata().contains_key(BUSY_KEY) => Next::Busy,
        code => Next::Refused(Refused::Other(format!("({code:?}): {}", status.message()))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{sync::mpsc, time::timeout};

    use super::*;

    #[test]
    fn a_follower_cannot_send_a_resolver_beyond_this_machine_in_plaintext() {
        let client = |allows_plaintext| {
            let urls = vec!["https://issuer-0:7070".to_owned()];
            IssuerClient::new(Target::Remote(Issuers { urls, tls: None, allows_plaintext }))
        };
        let followed = |allows_plaintext, hint: &str| {
            let client = client(allows_plaintext);
            client.remember(hint.to_owned());
            client.state().leader.is_some()
        };
        for hint in ["https://issuer-1:7070", "http://127.0.0.1:7070"] {
            assert!(followed(false, hint), "{hint}");
        }
        assert!(!followed(false, "http://issuer-1:7070") && followed(true, "http://issuer-1:7070"));
        assert!(!followed(true, "not a URL"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_refuses_has_answered() {
        const LONG: Duration = Duration::from_secs(9);
        let client = IssuerClient::new(Target::Embedded(Dialer(mpsc::channel(1).0)));
        let call =
            |status: Status| client.call(move |_| std::future::ready(Err::<Response<()>, _>(status.clone())));
        assert!(timeout(LONG, call(Status::unavailable("no leader"))).await.is_err(), "it is asked again");
        assert!(client.contact.age() >= LONG && client.unanswered() > 1);
        let unanswered = client.unanswered();
        let refused = call(Status::permission_denied("a later start")).await;
        assert!(matches!(refused, Err(Refused::Superseded(_))), "{refused:?}");
        assert!(client.contact.age() < Duration::from_secs(1));
        assert_eq!(client.unanswered(), unanswered);
    }
}
