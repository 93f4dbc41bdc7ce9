//! Authorisation: scopes and limits of API keys, decided once for all protocols.
//!
//! [`Grant::sees`] in `links/src/api_key.rs` decides which links a key sees.

use links::{api_key::Grant, scope::Scope};
use store::Visible;

use super::AppError;

/// Requires that the key has a scope.
pub fn require(by: &Grant, scope: Scope) -> Result<(), AppError> {
    if by.scopes.allow(scope) { Ok(()) } else { Err(AppError::Forbidden(scope)) }
}

/// Requires a scope, and a key that may use the default domain, which all reserved codes belong to.
pub fn require_default_domain(by: &Grant, scope: Scope) -> Result<(), AppError> {
    require(by, scope)?;
    let is_other = by.limits.domain.is_some_and(|domain| !domain.is_default());
    if is_other { Err(AppError::OneDomainOnly) } else { Ok(()) }
}

/// Requires an administrator's key without limits, for calls that concern all domains and all
/// links.
pub fn require_operator(by: &Grant) -> Result<(), AppError> {
    require(by, Scope::Admin)?;
    if by.limits.hide() { Err(AppError::LimitedKey) } else { Ok(()) }
}

/// Returns the selection of links that a key may know of.
pub fn visible(by: &Grant) -> Visible {
    let created_by = Some(by.id).filter(|_| by.limits.own_links_only);
    Visible { domain: by.limits.domain, created_by }
}
