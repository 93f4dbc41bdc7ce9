//! The public listener: redirects and the API.
//!
//! [`listener`] accepts on one single-threaded runtime per core. The crate `fast_path` answers
//! redirects of links that the thread knows. All else goes through hyper: [`router`] decides what a request is,
//! [`redirect`] and [`rest`] answer it. The listener's threads parse, look into the cache and wait.
//! They poll creates as well, because a create does little more ([`run_to_end`]). Every other call
//! of the API runs on the daemon's own runtime beside them. Stores and their connections belong to
//! that runtime in any case.

mod authenticate;
mod body;
mod budgets;
mod calls;
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
use store::LinkStore;
use tokio::{runtime, sync::Semaphore, time::Instant};

use crate::{hot::HotLinks, places::Atlas};

pub(crate) use body::{Body, BrokenOff, Piece};
pub(crate) use budgets::Budgets;
pub use budgets::ConnectionLimits;
pub use calls::CallLimits;
pub(crate) use calls::Calls;
use fast_path::Buffers;
pub use limits::ClientLimits;
pub(crate) use limits::Clients;
pub use listener::{Phase, PublicListeners, bind, serve};
/// QR codes that are drawn at a time.
pub const PICTURES_MAX: usize = 2;
pub(crate) use robots::Robots;
pub use stray::StrayTargets;
use wakeups::Wakeups;

/// What every answer is.
pub(crate) type Answer = Response<Body>;

/// What the handlers work with.
pub struct App {
    /// The use cases.
    pub links: LinkService,
    /// Codes to links.
    pub lookup: Arc<Lookup>,
    /// API keys.
    pub keys: Arc<KeyRing>,
    /// What each client takes.
    pub(crate) clients: Arc<Clients>,
    /// Calls of the API.
    pub(crate) calls: Calls,
    /// QR codes that are drawn at a time.
    pub pictures: Arc<Semaphore>,
    /// What clients, keys and the process may hold.
    pub(crate) budgets: Budgets,
    /// When budgets began to grow.
    pub(crate) started: Instant,
    /// Connections that there may be.
    pub connections: ConnectionLimits,
    /// Visits of links with a limit.
    pub admission: Admission,
    /// What becomes of visits.
    pub visits: Visits,
    /// For health and keys.
    pub store: Arc<dyn LinkStore>,
    /// What an operator sees.
    pub metrics: Arc<Metrics>,
    /// Domains, and where links may lead to.
    pub directory: Arc<Directory>,
    /// Where visitors' addresses are located.
    pub places: Atlas,
    /// Where visitors go that no link leads on.
    pub stray_targets: StrayTargets,
    /// Whether visitors of links that lead nowhere any more are told so (410), and not that there is no such link (404).
    pub tells_gone: bool,
    /// What the API is, in OpenAPI's words; written when it is first asked for.
    pub(crate) openapi: OnceLock<Bytes>,
    /// What crawlers are told.
    pub(crate) robots: Robots,
    /// What short links of the default domain begin with, without a slash at the end.
    pub public_url: String,
    /// Whether links are created by opening an address that has the key in it.
    pub single_step_create: bool,
    /// Where times are meant that come without an offset.
    pub time_zone: TimeZone,
    /// The status of redirects.
    pub redirect_status: StatusCode,
    /// Whether redirects of known links are answered without hyper.
    pub fast_path: bool,
    /// Where everything runs that is not a redirect.
    pub runtime: runtime::Handle,
    /// Set while this process wants its clients to go elsewhere.
    pub draining: AtomicBool,
}

impl App {
    pub(crate) fn is_draining(&self) -> bool {
        // A request that reads the old value is served as well; only its connection stays open a little longer.
        self.draining.load(Ordering::Relaxed)
    }
}

/// What the handlers on one listener's thread work with.
struct Desk {
    app: Arc<App>,
    hot: HotLinks,
    visits: VisitBuffer,
    /// Of this thread's connections, for as long as one of them is read and answered: nobody waits for this lock.
    buffers: Mutex<Buffers>,
    /// Its requests that other threads wake.
    wakeups: Arc<Wakeups>,
}

impl Desk {
    /// What the handlers on this thread work with.
    fn new(app: Arc<App>) -> Self {
        Self {
            hot: HotLinks::new(),
            visits: app.visits.buffer(),
            buffers: Mutex::new(Buffers::new(
                app.redirect_status,
                redirect::cache_control(app.redirect_status),
            )),
            wakeups: Wakeups::of_this_thread(),
            app,
        }
    }

    /// Tells the others what this thread has noted.
    fn flush(&self) {
        self.visits.flush();
        self.hot.tell_hits(&self.app.lookup);
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    /// Whose connection it is.
    peer: IpAddr,
    /// Whom it speaks for.
    client: IpAddr,
}

/// An answer with a body.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::whole(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// How long a refusal is held back: a prompt one would be asked for again at once, and take the core from others.
const HELD_BACK: Duration = Duration::from_secs(1);

/// Marks an answer that is held back.
#[derive(Clone, Copy)]
struct HeldBack;

/// Has a refusal held back. Nothing is kept for it meanwhile, and its connection may be ended to make room for another.
fn hold_back(mut answer: Answer) -> Answer {
    answer.extensions_mut().insert(HeldBack);
    answer
}

/// Asks the client to come back in a second.
pub(crate) fn retry_later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
