//! What both APIs, REST and gRPC, work with.

use std::sync::{Arc, OnceLock};

use app::{LinkService, domain_cache::Directory, key_ring::KeyRing, lookup::Lookup, metrics::Metrics};
use hyper::body::Bytes;
use jiff::tz::TimeZone;
use links::Redirects;
use store::Store;
use tokio::runtime;
use web::{
    budgets::{Budgets, ConnectionLimits},
    client_limits::Clients,
};

use super::{Calls, Router};

/// What both APIs, REST and gRPC, work with.
pub(crate) struct Api {
    /// The use cases.
    pub(crate) links: LinkService,
    /// Links by their code or slug, cached.
    pub(crate) lookup: Arc<Lookup>,
    /// Domains and the rules for targets, cached.
    pub(crate) directory: Arc<Directory>,
    /// API keys.
    pub(crate) keys: Arc<KeyRing>,
    /// The database, for health and keys.
    pub(crate) store: Arc<dyn Store>,
    /// What each client takes.
    pub(crate) clients: Arc<Clients>,
    /// How often keys and clients call.
    pub(crate) calls: Calls,
    /// What clients, keys and the process may hold.
    pub(crate) budgets: Arc<Budgets>,
    /// Connections that there may be.
    pub(crate) connections: ConnectionLimits,
    /// What an operator sees.
    pub(crate) metrics: Arc<Metrics>,
    /// What the API is, in OpenAPI's words; written when it is first asked for.
    pub(crate) openapi: OnceLock<Bytes>,
    /// Where visitors go whose request matches no link, on domains that say nothing of their own.
    pub(crate) fallback_redirects: Redirects,
    /// What short links of the default domain begin with, without a slash at the end.
    pub(crate) public_url: String,
    /// The calls of the REST API.
    pub(crate) router: Router,
    /// Where times are meant that come without an offset.
    pub(crate) time_zone: TimeZone,
    /// Where everything runs that is not a redirect.
    pub(crate) runtime: runtime::Handle,
}
