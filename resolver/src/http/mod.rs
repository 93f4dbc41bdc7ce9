//! The public listener, and the API behind it.
//!
//! Data flows one way: `listener` accepts on one single-threaded runtime per core, `connection`
//! reads requests, `router` decides what a request is, and the crate `redirect` or `rest` answers
//! it. Redirects of links that the thread knows are answered without hyper (the crate `fast_path`).
//! The listener's threads parse, look into the cache and wait. They poll creates as well, because a
//! create does little more (`web::run_to_end`). Every other call of the API runs on the daemon's
//! own runtime beside them. Stores and their connections belong to that runtime in any case.

mod api;
mod authenticate;
mod calls;
mod connection;
pub(crate) mod grpc;
mod listener;
mod rest;
mod router;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use app::metrics::Metrics;
use fast_path::Buffers;
use redirect::{Redirector, ThreadContext, cache_control};
use web::{client_limits::Clients, wakeups::Wakeups};
// What the API takes from the crate `web`.
use web::{
    Answer, Body, BrokenOff, HELD_BACK, Piece, answer, budgets, client_limits, connection_timeouts, empty,
    hold_back, retry_later, run_to_end,
};

pub(crate) use api::Api;
/// What the handlers of the API work with.
use api::Api as App;
pub use calls::CallLimits;
pub(crate) use calls::Calls;
pub(crate) use listener::serve;
pub use listener::{Phase, PublicListeners, bind};
pub(crate) use rest::Router;

/// What the public listener serves, on all its threads.
pub(crate) struct PublicService {
    /// Redirects.
    pub(crate) redirector: Arc<Redirector>,
    /// The API.
    pub(crate) api: Arc<Api>,
    /// What each client takes.
    pub(crate) clients: Arc<Clients>,
    /// Connections that there may be.
    pub(crate) connections_max: usize,
    /// What an operator sees.
    pub(crate) metrics: Arc<Metrics>,
    /// Whether redirects of known links are answered without hyper.
    pub(crate) fast_path: bool,
    /// Set while this process wants its clients to go elsewhere.
    pub(crate) draining: AtomicBool,
}

impl PublicService {
    fn is_draining(&self) -> bool {
        // A request that reads the old value is served as well; only its connection stays open a
        // little longer.
        self.draining.load(Ordering::Relaxed)
    }
}

/// What the connections of one listener's thread share.
struct ListenerThread {
    service: Arc<PublicService>,
    redirects: ThreadContext,
    /// Of this thread's connections, for as long as one of them is read and answered: nobody waits
    /// for this lock.
    buffers: Mutex<Buffers>,
    /// Its requests that other threads wake.
    wakeups: Arc<Wakeups>,
}

impl ListenerThread {
    /// Creates what the connections of this thread share.
    fn new(service: Arc<PublicService>) -> Self {
        let status = service.redirector.status;
        Self {
            redirects: ThreadContext::new(Arc::clone(&service.redirector)),
            buffers: Mutex::new(Buffers::new(status, cache_control(status))),
            wakeups: Wakeups::of_this_thread(),
            service,
        }
    }

    /// Tells the others what this thread has noted.
    fn flush(&self) {
        self.redirects.flush();
    }
}
