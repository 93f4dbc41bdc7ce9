//! The HTTP and gRPC APIs for links: translation between their messages and the application.
//!
//! 1. [`rest`] speaks Shlink's REST API v3 with additions, [`grpc`] the service of
//!    `proto/shortmint/links/v1`. Both call the same use cases of the crate `app`, so they accept
//!    and refuse the same requests.
//! 2. Both authenticate in `authenticate.rs` and limit the number of calls in `calls.rs`.
//!    Permissions are checked in `app::authorize`.
//! 3. The crate opens no listener. The binary passes requests of the public listener to
//!    [`rest::route`], and a bound listener to [`grpc::serve`].

mod authenticate;
mod calls;
pub mod grpc;
mod kind;
pub mod qr_pack;
pub mod rest;
pub mod streamed;

use std::{
    borrow::Cow,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use app::{LinkService, key_ring::KeyRing, live::LiveVisits};
use hyper::body::Bytes;
use jiff::tz::TimeZone;
use limits::{Budgets, ConnectionLimits};
use links::{DomainId, Redirects};
use lookup::{Lookup, domain_cache::DomainCache, metrics::Metrics};
use store::Store;
use tokio::{runtime, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use web::client_limits::Clients;

pub use authenticate::{AT_ONCE, AuthError, find_session, is_still_granted, sign_in};
pub use calls::{CallLimits, Calls, Refused};
pub use rest::{HealthCheck, Router};

/// The state that both APIs share.
pub struct Api {
    /// The use cases of links.
    pub links: Arc<LinkService>,
    /// Links by code or slug, cached.
    pub lookup: Arc<Lookup>,
    /// Domains and the rules for targets, cached.
    pub domain_cache: Arc<DomainCache>,
    /// Visits as they are stored; `None` if they are not.
    pub live: Option<Arc<LiveVisits>>,
    /// API keys, cached.
    pub keys: Arc<KeyRing>,
    /// The database.
    pub store: Arc<dyn Store>,
    /// The last check of the database for callers without a key.
    pub health: HealthCheck,
    /// Trusted proxies and the limits of each client.
    pub clients: Arc<Clients>,
    /// Limits on the number of calls per minute.
    pub calls: Calls,
    /// Amounts that clients, keys and the process may hold.
    pub budgets: Arc<Budgets>,
    /// Turns of packs of QR codes, [`qr_pack::AT_ONCE`] of them.
    pub packs: Semaphore,
    /// Maximum numbers of connections.
    pub connections: ConnectionLimits,
    /// Counters of the resolver.
    pub metrics: Arc<Metrics>,
    /// The OpenAPI document, written when it is first requested.
    pub openapi: OnceLock<Bytes>,
    /// Redirects for requests that match no link, on domains without redirects of their own.
    pub fallback_redirects: Redirects,
    /// The beginning of short links on the default domain, without a slash at the end.
    pub public_url: String,
    /// The routes of the REST API.
    pub router: Router,
    /// The time zone of times without an offset.
    pub time_zone: TimeZone,
    /// Cancelled when the process stops: calls with an endless body end with what they have.
    pub stop: CancellationToken,
    /// The runtime for calls that may take longer than a redirect.
    pub runtime: runtime::Handle,
}

/// A future that is spawned. It is boxed, so that the code of a task is generated once for each
/// output, and not for each call.
pub(crate) type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Api {
    /// Returns the beginning of a domain's short URLs.
    pub fn base(&self, domain: DomainId) -> Cow<'_, str> {
        if domain.is_default() {
            self.public_url.as_str().into()
        } else {
            self.domain_cache.base(domain).into()
        }
    }
}
