//! The application: its use cases, each of which takes a typed command and returns a typed result
//! or [`AppError`]. A use case has a file of its own, or shares the file of its noun.
//!
//! 1. This crate knows neither HTTP, gRPC, JSON nor the command line. `api/rest`, `api/grpc` and
//!    the bulk call translate; they decide nothing.
//! 2. Authorisation is decided here, once for all protocols: each use case names its scope and
//!    checks the limits of the API key ([`authorize`]). Those of [`api_keys`] and [`import_links`]
//!    are for operators, whose authorisation is access to the database itself.
//! 3. A use case that is dropped may have stored its change. Adapters run each use case to its end,
//!    so that caches are invalidated and the key's permit is held while the database still works.
//!
//! The adapter checks a field's lexical form (JSON or protobuf), and this crate checks its value.
//! Both record errors in one [`FieldErrors`], so that an answer names every wrong field: the
//! argument `wrong` of a use case holds the fields that the adapter could not read.

pub mod audit;
pub mod authorize;
mod chore;
pub mod cluster;
pub mod creator;
pub mod database_metrics;
pub mod error;
pub mod key_permits;
mod keys;
mod links;
pub mod visits;
pub mod webhooks;

use std::{sync::Arc, time::Duration};

use ::links::{OwnAddress, Schemes};
use ::visits::AddressMode;
use ::webhooks::Policy;
use futures_util::future::BoxFuture;
use store::Store;
use visit_store::VisitStore;

use ::lookup::{Lookup, domain_cache::DomainCache, passwords::PasswordGuard};
use cluster::SpoolGauge;
use creator::Creator;
use explain_link::Explainer;
use fetch_titles::TitleQueue;
use icons::Icons;
use key_names::KeyNames;
use key_permits::DatabasePermits;

pub use self::{
    error::{AppError, FieldErrors, InvalidField},
    keys::{api_keys, key_names, key_ring},
    links::{
        change_many, create_link, create_many,
        domains::NamedDomain,
        edit_link, explain_link, fetch_titles, find_link, icons, import_links, link_fields,
        link_fields::{Change, Field, LinkFields},
        link_indexer, list_links,
        preview_fields::PreviewFields,
        qr_pack, redirect_rules, reservation, reserve_codes,
        reserve_codes::Reserved,
        scheduled_edits, unvisited_cleanup, values,
    },
    visits::{delete_visits, list_visits, live, visit_stats, visit_subjects, visit_totals},
};

/// The answer of a use case.
///
/// Use cases that call the stores several times, and that more than one crate calls, return their
/// future in a box. It is compiled here once; that of an `async fn` would be compiled again in each
/// crate that awaits it.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, AppError>>;

/// The use cases of links and of what belongs to them.
pub struct LinkService {
    /// Lookup of links by code or slug, cached.
    pub lookup: Arc<Lookup>,
    /// Creation of links, and reservation of codes before their links exist.
    pub creator: Arc<Creator>,
    /// Domains and target rules, cached.
    pub domain_cache: Arc<DomainCache>,
    /// Links and all that is stored with them, but for visits.
    pub store: Arc<dyn Store>,
    /// Visits and their counters.
    pub visits: Arc<dyn VisitStore>,
    /// Backlog of spooled visits; `None` if this process records none.
    pub backlog: Option<SpoolGauge>,
    /// Names of API keys, cached.
    pub key_names: KeyNames,
    /// Password hashing and verification, rate-limited.
    pub passwords: Arc<PasswordGuard>,
    /// New links whose titles are to be fetched.
    pub titles: TitleQueue,
    /// Icons of hosts that links lead to; `None` unless the operator wants them.
    pub icons: Option<Icons>,
    /// The addresses that webhooks may reach.
    pub webhook_policy: Policy,
    /// Permits that limit the concurrent database calls of each API key.
    pub turns: DatabasePermits,
    /// Spaces deletions of visits out.
    pub deletions: delete_visits::DeletionPace,
    /// The decision of redirects about an example of a visitor.
    pub explainer: Explainer,
    /// The operator's rules.
    pub policy: LinkPolicy,
}

/// The operator's rules for links.
#[derive(Clone, Debug)]
pub struct LinkPolicy {
    /// Addresses whose short links no long URL may lead to: the service's own.
    pub own_addresses: Vec<OwnAddress>,
    /// Schemes that long URLs may have.
    pub schemes: Schemes,
    /// Paths, without their first slash, that other APIs are answered at. No new slug is at or
    /// below them.
    pub given_paths: Vec<&'static str>,
    /// How long `findIfExists` returns the same link without a search of the database.
    pub find_existing_for: Duration,
    /// How long an idempotency key is remembered.
    pub idempotency_for: Duration,
    /// Maximum number of codes in the open reservations of one API key.
    pub reserved_max: u64,
    /// How much of visitors' addresses is kept.
    pub addresses: AddressMode,
}
