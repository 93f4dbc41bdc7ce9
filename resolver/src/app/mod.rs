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

pub(crate) mod audit;
pub(crate) mod authorize;
mod block_link;
pub(crate) mod create_link;
mod delete_link;
mod domain_of_link;
mod domains;
pub(crate) mod edit_link;
pub(crate) mod error;
pub(crate) mod field;
mod find_existing;
pub(crate) mod find_link;
pub(crate) mod list_links;
mod reservations;
mod restore_link;
mod tags;
mod target_rules;
pub(crate) mod values;

use std::{sync::Arc, time::Duration};

use links::Schemes;
use store::LinkStore;

use crate::{
    create::Creator, directory::Directory, key_names::KeyNames, lookup::Lookup, passwords::PasswordGuard,
    reservation::Reserver, turns::KeyTurns,
};

pub(crate) use domains::NamedDomain;
pub(crate) use error::{AppError, FieldErrors, InvalidField};
pub(crate) use field::Field;
pub(crate) use reservations::Reserved;

/// The use cases of links and of what belongs to them.
pub struct LinkService {
    pub(crate) lookup: Arc<Lookup>,
    pub(crate) creator: Creator,
    pub(crate) reserver: Reserver,
    pub(crate) directory: Arc<Directory>,
    pub(crate) store: Arc<dyn LinkStore>,
    pub(crate) key_names: KeyNames,
    pub(crate) passwords: PasswordGuard,
    pub(crate) turns: KeyTurns,
    pub(crate) policy: LinkPolicy,
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
