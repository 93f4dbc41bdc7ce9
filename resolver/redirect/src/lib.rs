//! Where short links lead: redirects, and what visitors see in their place.
//!
//! 1. A link that the thread knows ([`thread_cache`]) is answered at once: [`follow_cached`] waits
//!    for nothing, and takes its request from the fast path or from hyper alike
//!    ([`fast_path::RequestHead`]).
//! 2. Every other visitor is answered by [`follow()`], which asks the cache of all threads and then
//!    the database.
//! 3. Not found is answered only when the store, or arithmetic, says that there is no link (I8).
//!    What cannot be looked up is answered 503.
//! 4. No redirect waits for the issuer or for etcd (I9), and none writes.
//!
//! Deliberately absent: routes and connections, which belong to the listener, and the API.

pub mod fallback_page;
mod follow;
pub mod geoip;
mod pages;
pub mod picture;
pub mod robots;
pub mod thread_cache;
pub mod unlock;

use std::{net::IpAddr, sync::Arc};

use app::{
    domain_cache::Directory,
    lookup::Lookup,
    metrics::Metrics,
    passwords::PasswordGuard,
    visit_limit::Admission,
    visits::{VisitBuffer, Visits},
};
use fallback_page::FallbackTargets;
use geoip::GeoIp;
use hyper::StatusCode;
use picture::Pictures;
use robots::Robots;
use store::Store;
use thread_cache::ThreadCache;
use tokio::runtime;
use web::{budgets::Budgets, client_limits::Clients};

pub use follow::{answer_cached, cache_control, follow, follow_cached, host};

/// What redirects on all threads share.
pub struct Redirector {
    /// Links by their code or slug, cached.
    pub lookup: Arc<Lookup>,
    /// Domains and the rules for targets, cached.
    pub directory: Arc<Directory>,
    /// Passwords of links.
    pub passwords: Arc<PasswordGuard>,
    /// Visits of links with a limit.
    pub admission: Admission,
    /// What becomes of visits.
    pub visits: Visits,
    /// The database, which only [`robots`] lists links from.
    pub store: Arc<dyn Store>,
    /// What each client takes.
    pub clients: Arc<Clients>,
    /// What clients and the process may hold.
    pub budgets: Arc<Budgets>,
    /// What an operator sees.
    pub metrics: Arc<Metrics>,
    /// Where visitors' addresses are located.
    pub geoip: GeoIp,
    /// Where visitors go whose request matches no link.
    pub fallbacks: FallbackTargets,
    /// Whether visitors of links that lead nowhere any more are told so (410), and not that there
    /// is no such link (404).
    pub tells_gone: bool,
    /// The status of redirects whose link has none of its own.
    pub status: StatusCode,
    /// QR codes under way.
    pub pictures: Pictures,
    /// What crawlers are told.
    pub robots: Robots,
    /// Where everything runs that takes longer than a redirect.
    pub runtime: runtime::Handle,
}

/// What redirects on one listener's thread work with.
pub struct ThreadContext {
    redirector: Arc<Redirector>,
    cache: ThreadCache,
    visits: VisitBuffer,
}

impl ThreadContext {
    /// Creates the context of a thread, with nothing in its cache.
    #[must_use]
    pub fn new(redirector: Arc<Redirector>) -> Self {
        Self { cache: ThreadCache::new(), visits: redirector.visits.buffer(), redirector }
    }

    /// Hands visits and counts of this thread over to the others.
    pub fn flush(&self) {
        self.visits.flush();
        self.cache.report_hits(&self.redirector.lookup);
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Visitor {
    /// Whose connection it is.
    pub peer: IpAddr,
    /// Whom it speaks for.
    pub client: IpAddr,
}
