//! What an API key may do: scopes and limits, decided once for every way in.
//!
//! Which links a key sees stands in `links/src/api_key.rs` ([`Grant::sees`]).

use links::{api_key::Grant, scope::Scope};
use store::Visible;

use super::AppError;

/// # Errors
/// Returns [`AppError::Forbidden`] if the key lacks the scope.
pub fn require(by: &Grant, scope: Scope) -> Result<(), AppError> {
    if by.scopes.allow(scope) { Ok(()) } else { Err(AppError::Forbidden { scope }) }
}

/// Requires an administrator's key without limits, for what concerns all domains and all links.
///
/// # Errors
/// Returns [`AppError::Forbidden`] or [`AppError::LimitedKey`].
pub fn require_operator(by: &Grant) -> Result<(), AppError> {
    require(by, Scope::Admin)?;
    if by.limits.hides_links() { Err(AppError::LimitedKey) } else { Ok(()) }
}

/// Returns the links that a key may know of.
pub fn visible(by: &Grant) -> Visible {
    let created_by = Some(by.id).filter(|_| by.limits.own_links_only);
    Visible { domain: by.limits.domain, created_by }
}
