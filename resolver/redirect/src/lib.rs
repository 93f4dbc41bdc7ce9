//! Redirects of short links, and the answers in place of a redirect: fallback pages, password
//! forms, QR codes, tracking pixels, `robots.txt` and files of app links.
//!
//! 1. A link in the thread's own cache ([`ThreadCache`]) is answered at once. [`follow_cached`]
//!    never waits, and takes requests from the fast path and from hyper alike
//!    ([`fast_path::RequestHead`]).
//! 2. [`follow()`] answers all other visitors. It asks the cache that all threads share, and then
//!    the database.
//! 3. A 404 is answered only when the store, or arithmetic, says that there is no link (I8). A
//!    failed lookup is answered 503.
//! 4. What becomes of a request is recorded as a visit (`visit`), before its answer leaves.
//! 5. An explanation ([`Redirector::explain`]) makes the same decision and notes its steps. Those
//!    of redirects are not even made.
//! 6. No redirect waits for the issuer or for etcd (I9). Only a visit of a link with a visit limit
//!    waits for a write to the database.
//!
//! Deliberately absent: routes and connections, which belong to the listener, and the API.

mod added_query;
pub mod app_links;
mod asked;
mod explain;
pub mod fallback_page;
pub mod fast_path;
mod follow;
mod other_methods;
pub mod pixel;
mod preview;
pub mod qr_code;
mod request;
pub mod robots;
#[cfg(test)]
mod site;
mod social_preview;
mod steps;
pub mod unlock;
mod visit;

use std::{net::IpAddr, sync::Arc};

use fallback_page::FallbackTargets;
use geoip::GeoIp;
use hyper::StatusCode;
use limits::Budgets;
use lookup::{
    Lookup, ThreadCache, domain_cache::DomainCache, metrics::Metrics, passwords::PasswordGuard,
    visit_limit::VisitLimiter,
};
use qr::Logo;
use qr_code::QrCodeLimits;
use recorder::{Recorder, VisitBuffer};
use robots::Robots;
use store::Catalog;
use tokio::runtime;
use web::client_limits::Clients;

pub use follow::{answer_cached, cache_control, follow, follow_cached};
pub use links::Protocol;
pub use other_methods::forward;
pub use request::{host, path_before};

/// The state that redirects on all threads share.
#[derive(Clone)]
pub struct Redirector {
    /// The lookup of links by code or slug, with its cache.
    pub lookup: Arc<Lookup>,
    /// The cached domains and target rules.
    pub domain_cache: Arc<DomainCache>,
    /// The check of links' passwords.
    pub passwords: Arc<PasswordGuard>,
    /// The limiter of visits to links with a visit limit.
    pub visit_limiter: Arc<VisitLimiter>,
    /// The recorder of visits.
    pub visits: Arc<Recorder>,
    /// The lists of links, from which [`robots`] reads the crawlable ones.
    pub catalog: Arc<dyn Catalog>,
    /// The limits and the connections of each client.
    pub clients: Arc<Clients>,
    /// The budgets of clients and of the process.
    pub budgets: Arc<Budgets>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// The GeoIP files, which locate visitors' addresses.
    pub geoip: GeoIp,
    /// The fallback targets for requests that match no link.
    pub fallbacks: FallbackTargets,
    /// Whether links that no longer redirect are answered 410 instead of 404.
    pub tells_gone: bool,
    /// The status of redirects whose link has none of its own.
    pub status: StatusCode,
    /// The limits of QR codes, with those under way.
    pub qr_codes: Arc<QrCodeLimits>,
    /// The logo that QR codes may have in their middle.
    pub logo: Option<Arc<Logo>>,
    /// The cached rules for crawlers.
    pub robots: Arc<Robots>,
    /// The daemon's runtime, for work that takes longer than a redirect.
    pub runtime: runtime::Handle,
}

/// The state of redirects on one listener's thread.
pub struct ThreadContext {
    redirector: Arc<Redirector>,
    cache: ThreadCache,
    visits: Arc<VisitBuffer>,
}

impl ThreadContext {
    /// Creates the context of the listener's thread with this index, with an empty cache.
    pub fn new(redirector: Arc<Redirector>, index: usize) -> Self {
        Self { cache: ThreadCache::default(), visits: redirector.visits.buffer(index), redirector }
    }

    /// Writes the visits recorded so far, if they are written each turn. Called before the answers
    /// to their requests leave.
    #[inline]
    pub fn commit(&self) {
        self.visits.commit();
    }

    /// Hands over the visits of this thread, and adds its counts to the shared ones.
    pub fn flush(&self) {
        self.visits.flush();
        self.cache.report_hits(&self.redirector.lookup);
    }
}

/// The visitor who sent a request.
#[derive(Clone, Copy, Debug)]
pub struct Visitor {
    /// The address of the connection's peer.
    pub peer: IpAddr,
    /// The address of the client: the peer's own, or the one that a trusted proxy names.
    pub client: IpAddr,
    /// The client's country as a trusted proxy names it, in two capital letters.
    pub country: Option<[u8; 2]>,
    /// The scheme of the connection, or the one that a trusted proxy names.
    pub scheme: Protocol,
}

/// Reads a country as a proxy names it; `None` if that is not two letters.
pub fn country_code(text: &[u8]) -> Option<[u8; 2]> {
    let letters: [u8; 2] = text.try_into().ok()?;
    letters.iter().all(u8::is_ascii_alphabetic).then(|| letters.map(|letter| letter.to_ascii_uppercase()))
}
