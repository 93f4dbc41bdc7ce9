//! The result of a lookup.

use std::sync::Arc;

use links::Link;

/// The reason why it is unknown whether a link exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The store did not answer, or not in time.
    #[error("the database does not answer at the moment")]
    NoStore,
    /// Too many lookups are waiting.
    #[error("too many lookups are waiting")]
    Overloaded,
}

/// A link, its absence, or the reason why neither is known.
pub(super) type Found = Result<Option<Arc<Link>>, LookupError>;
