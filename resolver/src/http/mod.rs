//! The public listener, for redirects and the API.
//!
//! Requests arrive in plaintext over HTTP/1.1, usually from a proxy, or with TLS over HTTP/2 and
//! HTTP/1.1 (`secure`).
//!
//! Data flows one way: `listener` accepts on one single-threaded runtime per core, `connection`
//! reads requests, `router` decides what a request is, and the crate `redirect` or `api` answers
//! it. Redirects of links that the thread knows are answered without hyper (`redirect::fast_path`).
//! The listener's threads parse, look into the cache and wait. They poll creates as well, because a
//! create does little more (`web::run_to_end`). Every other call of the API runs on the daemon's
//! own runtime beside them. Stores and their connections belong to that runtime in any case.

mod connection;
mod listener;
mod router;
mod secure;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use api::Api;
use daemon::{Share, traces::Traces};
use limits::Connections;
use pages::{Pages, Renderer};
use redirect::{
    Redirector, ThreadContext, cache_control,
    fast_path::{Buffers, ProxyHeaders},
};
use tls::ServerTls;
use web::{
    client_limits::Clients,
    request_durations::{RequestDurations, RouteName, ThreadDurations},
    wakeups::Wakeups,
};

pub use listener::bind;
pub(crate) use listener::serve;

/// The services behind the public listener, which all its threads share.
pub(crate) struct PublicService {
    pub(crate) redirector: Arc<Redirector>,
    /// The API; `None` on a node that serves visitors only.
    pub(crate) api: Option<Arc<Api>>,
    /// The pages that need the API, and `None` where that is.
    pub(crate) pages: Option<Arc<Pages>>,
    pub(crate) renderer: Arc<Renderer>,
    pub(crate) is_https: bool,
    pub(crate) serves_visitors: bool,
    /// Trusted proxies and the limits of each client.
    pub(crate) clients: Arc<Clients>,
    pub(crate) connections: Arc<Connections>,
    /// Whether redirects of known links are answered without hyper.
    pub(crate) fast_path: bool,
    pub(crate) durations: Arc<RequestDurations>,
    /// TLS, if connections have to begin with it.
    pub(crate) tls: Option<ServerTls>,
    /// Traces of requests, if there is a collector.
    pub(crate) traces: Option<Arc<Traces>>,
    /// The requests that are logged.
    pub(crate) access_log: Share,
    /// Set while this process asks its clients to connect elsewhere.
    pub(crate) draining: AtomicBool,
}

impl PublicService {
    fn is_draining(&self) -> bool {
        // A request that reads the old value is served as well; only its connection stays open a
        // little longer.
        self.draining.load(Ordering::Relaxed)
    }

    /// Returns whether connections end with the request in progress.
    fn is_stopping(&self) -> bool {
        self.is_draining() || self.connections.is_closing()
    }
}

/// The state that all connections of a listener's thread share.
struct ListenerThread {
    service: Arc<PublicService>,
    redirects: ThreadContext,
    /// Buffers for the connection that is being read and answered. The lock is never contended.
    buffers: Mutex<Buffers>,
    /// Requests of this thread that other threads wake.
    wakeups: Arc<Wakeups>,
    durations: Arc<ThreadDurations>,
    names: RouteNames,
}

struct RouteNames {
    redirect: RouteName,
    page: RouteName,
    other: RouteName,
}

impl ListenerThread {
    /// Creates the state of the current thread, which is the listener's thread with this index.
    fn new(service: Arc<PublicService>, index: usize) -> Self {
        let (status, clients) = (service.redirector.status, &service.clients);
        let proxy_headers = ProxyHeaders {
            client: clients.list_header().as_str().into(),
            country: clients.limits.country_header.as_ref().map(|name| name.as_str().into()),
        };
        let buffers = Buffers::new(status, cache_control(status), proxy_headers);
        Self {
            redirects: ThreadContext::new(Arc::clone(&service.redirector), index),
            buffers: Mutex::new(buffers),
            wakeups: Wakeups::of_this_thread(),
            durations: service.durations.thread(status),
            names: RouteNames {
                redirect: RouteName::new(RequestDurations::REDIRECT),
                page: RouteName::new("page"),
                other: RouteName::new("other"),
            },
            service,
        }
    }
}
