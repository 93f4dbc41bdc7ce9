//! The public listener: redirects and the REST API; and the links API over gRPC.
//!
//! [`listener`] accepts connections on one single-threaded runtime per core. [`express`] answers
//! redirects of links that the thread has cached. All other requests go through hyper: [`router`]
//! routes them, [`redirect`] and [`rest`] answer them. The listener's threads parse, read the cache
//! and wait. They also poll creates, because a create does little more ([`run_to_end`]). Every
//! other call of the API runs on the daemon's own runtime beside them. Stores and their connections
//! belong to that runtime in any case.

mod authenticate;
mod body;
mod budgets;
mod calls;
mod express;
pub(crate) mod grpc;
mod limits;
mod listener;
mod pages;
mod picture;
mod pulse;
mod redirect;
mod request_id;
mod rest;
mod robots;
mod router;
mod run_to_end;
mod stray;
mod unlock;
mod wakeups;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use app::{
    LinkService,
    domain_cache::Directory,
    key_ring::KeyRing,
    lookup::Lookup,
    metrics::Metrics,
    visit_limit::Admission,
    visits::{VisitBuffer, Visits},
};
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use jiff::tz::TimeZone;
use store::Store;
use tokio::{runtime, sync::Semaphore, time::Instant};

use crate::{hot::HotLinks, places::Atlas};

pub(crate) use body::{Body, BrokenOff, Piece};
pub(crate) use budgets::Budgets;
pub use budgets::ConnectionLimits;
pub use calls::CallLimits;
pub(crate) use calls::Calls;
use express::Buffers;
pub use limits::ClientLimits;
pub(crate) use limits::Clients;
pub use listener::{Phase, PublicListeners, bind, serve};
/// The maximum number of QR codes that are drawn at a time.
pub const PICTURES_MAX: usize = 2;
pub(crate) use rest::Router;
pub(crate) use robots::Robots;
pub use stray::StrayTargets;
use wakeups::Wakeups;

/// The type of all answers.
pub(crate) type Answer = Response<Body>;

/// The state that all handlers share.
pub struct App {
    /// The use cases.
    pub links: LinkService,
    /// The lookup of links by code or slug.
    pub lookup: Arc<Lookup>,
    /// The cache of API keys.
    pub keys: Arc<KeyRing>,
    /// The limits per client.
    pub(crate) clients: Arc<Clients>,
    /// The call limits of the API.
    pub(crate) calls: Calls,
    /// The permits for drawing QR codes, [`PICTURES_MAX`] of them.
    pub pictures: Arc<Semaphore>,
    /// The budgets of clients, keys and the process.
    pub(crate) budgets: Budgets,
    /// The origin of the clock that rates use.
    pub(crate) started: Instant,
    /// The maximum numbers of connections.
    pub connections: ConnectionLimits,
    /// The visit limits of links.
    pub admission: Admission,
    /// The pipeline of visits.
    pub visits: Visits,
    /// The store, for health checks and API keys.
    pub store: Arc<dyn Store>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The cache of domains and target rules.
    pub directory: Arc<Directory>,
    /// The GeoIP database.
    pub places: Atlas,
    /// The fallback targets of requests that match no link.
    pub stray_targets: StrayTargets,
    /// Whether a link that is no longer live is answered with 410 instead of 404.
    pub tells_gone: bool,
    /// The OpenAPI document, built at the first request for it.
    pub(crate) openapi: OnceLock<Bytes>,
    /// The calls of the REST API.
    pub(crate) router: Router,
    /// The cached texts of `robots.txt`.
    pub(crate) robots: Robots,
    /// The beginning of short URLs of the default domain, without a trailing slash.
    pub public_url: String,
    /// The time zone of times without an offset.
    pub time_zone: TimeZone,
    /// The default status of redirects.
    pub redirect_status: StatusCode,
    /// Whether redirects of cached links are answered without hyper.
    pub fast_path: bool,
    /// The daemon's runtime, for everything but redirects and creates.
    pub runtime: runtime::Handle,
    /// Whether the process is draining, so that answers close their connections.
    pub draining: AtomicBool,
}

impl App {
    pub(crate) fn is_draining(&self) -> bool {
        // A request that reads the old value is served as well; its connection only stays open a
        // little longer.
        self.draining.load(Ordering::Relaxed)
    }
}

/// The state of the handlers on one listener's thread.
struct Desk {
    app: Arc<App>,
    hot: HotLinks,
    visits: VisitBuffer,
    /// The fast path's buffers, used by one connection of the thread at a time. The lock is never
    /// contended.
    buffers: Mutex<Buffers>,
    /// The wake-ups of this thread's requests by other threads.
    wakeups: Arc<Wakeups>,
}

impl Desk {
    /// Creates the state for the current thread.
    fn new(app: Arc<App>) -> Self {
        Self {
            hot: HotLinks::new(),
            visits: app.visits.buffer(),
            buffers: Mutex::new(Buffers::new(app.redirect_status)),
            wakeups: Wakeups::of_this_thread(),
            app,
        }
    }

    /// Hands over the visits and counts of this thread.
    fn flush(&self) {
        self.visits.flush();
        self.hot.tell_hits(&self.app.lookup);
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    /// The address at the other end of the connection.
    peer: IpAddr,
    /// The client: the peer, or the address that a trusted proxy names.
    client: IpAddr,
}

/// Builds an answer with a body.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::whole(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Builds an answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// The delay of a refusal. A client that is refused promptly would retry at once, and take the core
/// from others.
const HELD_BACK: Duration = Duration::from_secs(1);

/// Marks an answer whose sending is delayed.
#[derive(Clone, Copy)]
struct HeldBack;

/// Delays a refusal by [`HELD_BACK`]. Meanwhile it holds no resources, and its connection may be
/// ended to make room for another.
fn hold_back(mut answer: Answer) -> Answer {
    answer.extensions_mut().insert(HeldBack);
    answer
}

/// Adds `Retry-After: 1` to an answer.
pub(crate) fn retry_later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
