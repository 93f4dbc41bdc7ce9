//! Which link a visitor's name stands for, and what else a redirect needs of the database: the
//! caches of links and of the settings, which redirects and the API share.
//!
//! This crate knows neither HTTP nor use cases, and the crate `redirect` needs no use case.

pub mod clock;
pub mod domain_cache;
pub mod freshness;
pub mod keyspaces;
mod lookup;
pub mod metrics;
pub mod passwords;
pub mod visit_limit;

pub use self::lookup::{CachedTarget, Lookup, LookupConfig, LookupError, LookupKey, ThreadCache};
