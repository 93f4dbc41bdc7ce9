//! The application: one file for each use case, a typed command in, a typed result or [`AppError`]
//! out.
//!
//! 1. Nothing here knows HTTP, gRPC, JSON or the command line. `http/rest`, `http/grpc` and the bulk
//!    call translate; they decide nothing.
//! 2. Authorisation is decided here, once for every way in: each use case names its scope and checks
//!    the limits of the API key ([`authorize`]).
//! 3. A use case that is dropped may have stored its change. Adapters run each to its end, so that
//!    caches hear of the change and a key's turn is not free while the database still works.
//!
//! A field's lexical form (JSON or protobuf) is checked by the adapter, its value here, and both note
//! errors in one [`FieldErrors`], so that an answer names every wrong field.

pub mod audit;
pub mod authorize;
mod block_link;
pub mod budgets;
pub mod clock;
pub mod create_link;
pub mod creator;
mod delete_link;
pub mod domain_cache;
mod domain_of_link;
mod domains;
pub mod edit_link;
pub mod error;
pub mod field;
mod find_existing;
pub mod find_link;
pub mod freshness;
pub mod key_names;
pub mod key_ring;
pub mod keyspaces;
pub mod list_links;
pub mod lookup;
pub mod metrics;
pub mod passwords;
pub mod reservation;
mod reserve_codes;
mod restore_link;
mod tags;
mod target_rules;
pub mod turns;
pub mod unvisited_cleanup;
pub mod url_indexer;
pub mod values;
pub mod visit_limit;
pub mod visits;
#[cfg(test)]
mod world;

use std::{sync::Arc, time::Duration};

use links::Schemes;
use store::LinkStore;

use creator::Creator;
use domain_cache::Directory;
use key_names::KeyNames;
use lookup::Lookup;
use passwords::PasswordGuard;
use reservation::Reserver;
use turns::KeyTurns;

pub use domains::NamedDomain;
pub use error::{AppError, FieldErrors, InvalidField};
pub use field::Field;
pub use reserve_codes::Reserved;

/// The use cases of links and of what belongs to them.
pub struct LinkService {
    /// Links by their code or slug, cached.
    pub lookup: Arc<Lookup>,
    /// Claims numbers and inserts new links.
    pub creator: Creator,
    /// Sets codes aside before their links exist.
    pub reserver: Reserver,
    /// Domains and the rules for targets, cached.
    pub directory: Arc<Directory>,
    /// The database.
    pub store: Arc<dyn LinkStore>,
    /// Names of API keys.
    pub key_names: KeyNames,
    /// Hashes passwords.
    pub passwords: Arc<PasswordGuard>,
    /// Turns of each API key at the database.
    pub turns: KeyTurns,
    /// The operator's rules.
    pub policy: LinkPolicy,
}

/// The operator's rules for links.
#[derive(Clone, Debug)]
pub struct LinkPolicy {
    /// Hosts that long URLs must not lead to: the service's own.
    pub own_hosts: Vec<(url::Host, u16)>,
    /// Schemes that long URLs may have.
    pub schemes: Schemes,
    /// How long `findIfExists` returns the same link without a look at the database.
    pub find_existing_for: Duration,
    /// How long an idempotency key is remembered.
    pub idempotency_for: Duration,
    /// Codes that the open reservations of one API key may hold.
    pub reserved_max: u64,
}
