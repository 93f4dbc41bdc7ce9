//! The public listener: redirects and the API.
//!
//! [`listener`] accepts on one single-threaded runtime per core. The crate `fast_path` answers
//! redirects of links that the thread knows. All else goes through hyper: [`router`] decides what a request is,
//! [`redirect`] and [`rest`] answer it. The listener's threads parse, look into the cache and wait.
//! They poll creates as well, because a create does little more ([`run_to_end`]). Every other call
//! of the API runs on the daemon's own runtime beside them. Stores and their connections belong to
//! that runtime in any case.

mod authenticate;
mod calls;
pub(crate) mod grpc;
mod listener;
mod pages;
mod picture;
mod redirect;
mod rest;
mod robots;
mod router;
mod stray;
mod unlock;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
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
use hyper::{StatusCode, body::Bytes};
use jiff::tz::TimeZone;
use store::LinkStore;
use tokio::runtime;
use web::{
    Answer, Body, BrokenOff, HELD_BACK, Piece, answer,
    budgets::{self, Budgets, ConnectionLimits},
    client_limits::{self, Clients},
    connection_timeouts, empty, hold_back, retry_later, run_to_end,
    wakeups::Wakeups,
};

use crate::{hot::HotLinks, places::Atlas};

pub use calls::CallLimits;
pub(crate) use calls::Calls;
use fast_path::Buffers;
pub use listener::{Phase, PublicListeners, bind, serve};
pub(crate) use picture::Pictures;
pub(crate) use robots::Robots;
pub use stray::StrayTargets;

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
    /// QR codes under way.
    pub pictures: Pictures,
    /// What clients, keys and the process may hold.
    pub(crate) budgets: Budgets,
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
