//! Authenticates calls of both APIs by their API key.
//!
//! A wrong key is counted before it is looked up. So a guess is answered no faster than its
//! refusal, and costs no query once there were too many.

use std::{net::IpAddr, sync::Arc};

use app::AppError;
use links::api_key::{Grant, KeyHash};

use crate::{
    Api,
    calls::{Refused, Share},
};

/// Why a call is not authenticated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// The call has no key.
    #[error("Expected one of the following authentication headers, [\"X-Api-Key\"], but none were provided")]
    NoKey,
    /// The key is unknown, revoked or expired.
    #[error("Provided API key does not exist or is invalid.")]
    WrongKey,
    /// The client or the key has called too often.
    #[error("Too many calls were made with this API key or from here. Try again later.")]
    TooManyCalls(Refused),
    /// The key could not be looked up.
    #[error(transparent)]
    App(#[from] AppError),
}

/// Authenticates a call. Returns the grant of its key, and the remaining rate to report. The
/// function may run on any runtime: it queries the store on the daemon's own.
///
/// # Errors
/// Returns [`AuthError`] if the key is missing or wrong, if the client or the key has made too many
/// calls, or if the key cannot be looked up.
pub(crate) async fn authenticate(
    api: &Arc<Api>,
    client: IpAddr,
    key: Option<&[u8]>,
) -> Result<(Grant, Option<Share>), AuthError> {
    let of_client = api.calls.spend_of_client(client).map_err(AuthError::TooManyCalls)?;
    let hash = KeyHash::of(key.filter(|key| !key.is_empty()).ok_or(AuthError::NoKey)?);
    let answered = api.keys.answered(&hash);
    let is_known = matches!(answered, Some(Some(_))) || api.keys.remembers(&hash);
    if !is_known {
        api.calls.spend_of_wrong_keys(client).await.map_err(AuthError::TooManyCalls)?;
    }
    let found = match answered {
        Some(found) => found,
        None => find_key(api, hash).await?,
    };
    let mut grant = found.ok_or(AuthError::WrongKey)?;
    if !is_known {
        api.calls.give_back_wrong_key(client);
    }
    if let Some(domain) = grant.limits.domain {
        // The operator may have made the domain's name that of the default domain.
        grant.limits.domain = Some(api.domain_cache.settled(domain));
    }
    let of_key = api.calls.spend_of_key(&grant).map_err(AuthError::TooManyCalls)?;
    Ok((grant, of_key.or(of_client)))
}

async fn find_key(api: &Arc<Api>, hash: KeyHash) -> Result<Option<Grant>, AppError> {
    let asking = Arc::clone(api);
    let found = api.runtime.spawn(async move { asking.keys.find(&*asking.store, hash).await }).await;
    found.map_err(|_| AppError::Internal)?.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "look up an API key");
        AppError::Unavailable
    })
}
