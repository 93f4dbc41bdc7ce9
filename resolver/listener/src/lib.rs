//! The public listener, for redirects and the API.
//!
//! Requests arrive in plaintext over HTTP/1.1, usually from a proxy, or with TLS over HTTP/2 and
//! HTTP/1.1 (`secure`).
//!
//! Data flows one way: `accept` accepts on one single-threaded runtime per core, `connection`
//! reads requests, `router` decides what a request is, and the crate `redirect` or `api` answers
//! it. Redirects of links that the thread knows are answered without hyper (`redirect::fast_path`).
//! The listener's threads parse, look into the cache and wait. They poll creates as well, because a
//! create does little more (`web::run_to_end`). Every other call of the API runs on the daemon's
//! own runtime beside them. Stores and their connections belong to that runtime in any case.

mod accept;
mod base_path;
mod connection;
mod router;
mod secure;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use api::Api;
use compat::Facades;
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

pub use accept::{bind, serve};

/// The services behind the public listener, which all its threads share.
pub struct PublicService {
    /// Answers visitors.
    pub redirector: Arc<Redirector>,
    /// The API; `None` on a node that serves visitors only.
    pub api: Option<Arc<Api>>,
    /// The APIs of other shorteners that are answered too.
    pub compat: Facades,
    /// The pages that need the API, and `None` where that is.
    pub pages: Option<Arc<Pages>>,
    /// Renders the pages that visitors see.
    pub renderer: Arc<Renderer>,
    /// Whether the public URL begins with `https:`.
    pub is_https: bool,
    /// Whether visitors are served, and not only the API.
    pub serves_visitors: bool,
    /// Trusted proxies and the limits of each client.
    pub clients: Arc<Clients>,
    /// All connections to the listener, with their limits.
    pub connections: Arc<Connections>,
    /// Whether redirects of known links are answered without hyper.
    pub fast_path: bool,
    /// The durations of requests by route.
    pub durations: Arc<RequestDurations>,
    /// TLS, if connections have to begin with it.
    pub tls: Option<ServerTls>,
    /// Traces of requests, if there is a collector.
    pub traces: Option<Arc<Traces>>,
    /// The requests that are logged.
    pub access_log: Share,
    /// Set while this process asks its clients to connect elsewhere.
    pub draining: AtomicBool,
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

/// The names of routes other than those of the API.
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
