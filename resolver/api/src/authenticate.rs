//! Authenticates calls of both APIs by their API key.
//!
//! A wrong key is counted before it is looked up. So a guess is answered no faster than its
//! refusal, and costs no query once there were too many.

use std::{net::IpAddr, sync::Arc, time::Duration};

use app::AppError;
use links::{
    SessionHash,
    api_key::{ApiKeyId, Grant, KeyHash, SecretNumber},
};
use store::StoreError;
use tokio::time::Instant;

use crate::{
    Api,
    calls::{Refused, Share},
};

/// Time within which a request has to arrive for the answer about its key or session to count. With
/// the time for which an answer is cached it is less than the second within which a key ends
/// everywhere.
pub const AT_ONCE: Duration = Duration::from_millis(100);

/// Why a call is not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
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
pub(crate) async fn authenticate(
    api: &Arc<Api>,
    client: IpAddr,
    key: Option<&[u8]>,
) -> Result<(Grant, Option<Share>), AuthError> {
    let of_client = api.calls.spend_of_client(client).map_err(AuthError::TooManyCalls)?;
    let hash = KeyHash::of(key.filter(|key| !key.is_empty()).ok_or(AuthError::NoKey)?);
    let answered = api.keys.secrets.answered(&hash);
    let is_known = matches!(answered, Some(Some(_))) || api.keys.secrets.remembers(&hash);
    if !is_known {
        api.calls.spend_of_wrong_keys(client).await.map_err(AuthError::TooManyCalls)?;
    }
    let found = match answered {
        Some(found) => found,
        None => {
            let asking = Arc::clone(api);
            let found = api.runtime.spawn(async move { asking.keys.find(&*asking.store, hash).await }).await;
            found.map_err(|_| AppError::Internal)?.map_err(|_| AppError::Unavailable)?
        }
    };
    let grant = found.ok_or(AuthError::WrongKey)?;
    if !is_known {
        api.calls.give_back_wrong_key(client);
    }
    let grant = settled(api, grant);
    let of_key = api.calls.spend_of_key(&grant).map_err(AuthError::TooManyCalls)?;
    Ok((grant, of_key.or(of_client)))
}

/// Checks the API key of a person who signs in, within the same limits as that of a call.
pub async fn sign_in(api: &Arc<Api>, client: IpAddr, key: &[u8]) -> Result<Grant, AuthError> {
    authenticate(api, client, Some(key)).await.map(|(grant, _)| grant)
}

/// Returns the grant of a session's key, and counts the request as a call of the key; `None` if the
/// session has ended.
pub async fn find_session(
    api: &Arc<Api>,
    client: IpAddr,
    session: SessionHash,
) -> Result<Option<Grant>, AuthError> {
    api.calls.spend_of_client(client).map_err(AuthError::TooManyCalls)?;
    let is_known = api.keys.sessions.remembers(&session);
    if !is_known {
        // A token cannot be guessed, but each attempt costs a query.
        api.calls.spend_of_wrong_keys(client).await.map_err(AuthError::TooManyCalls)?;
    }
    let found = api.keys.find_session(&*api.store, session).await.map_err(AppError::from)?;
    let Some(grant) = found.map(|grant| settled(api, grant)) else { return Ok(None) };
    if !is_known {
        api.calls.give_back_wrong_key(client);
    }
    api.calls.spend_of_key(&grant).map_err(AuthError::TooManyCalls)?;
    Ok(Some(grant))
}

/// Returns the grant of a key as calls with this secret have it; `None` if it was revoked, has
/// expired or has another secret by now.
pub(crate) async fn find_grant(
    api: &Api,
    id: ApiKeyId,
    secret: SecretNumber,
) -> Result<Option<Grant>, StoreError> {
    let found = api.keys.find_by_id(&*api.store, id, secret).await?;
    Ok(found.map(|grant| settled(api, grant)))
}

/// Returns a grant with the domain that its limit means by now: the operator may have made the
/// domain's name that of the default domain.
fn settled(api: &Api, mut grant: Grant) -> Grant {
    grant.limits.domain = grant.limits.domain.map(|domain| api.domain_cache.settled(domain));
    grant
}

/// Returns whether a key is still what it was when a call with it began. For calls that take long.
pub async fn is_still_granted(api: &Api, by: &Grant) -> Result<bool, StoreError> {
    Ok(find_grant(api, by.id, by.secret).await?.is_some_and(|grant| grant == *by))
}

/// Checks a key again when the rest of its request has arrived, unless that took no time: a body
/// that trickles in would otherwise outlive its key. `since` is when the key was checked first. The
/// function may run on any runtime.
pub(crate) async fn check_again(api: &Arc<Api>, by: &Grant, since: Instant) -> Result<(), AuthError> {
    if since.elapsed() < AT_ONCE {
        return Ok(());
    }
    let (asking, grant) = (Arc::clone(api), by.clone());
    let asked = api.runtime.spawn(async move { is_still_granted(&asking, &grant).await });
    match asked.await.map_err(|_| AppError::Internal)?.map_err(AppError::from)? {
        true => Ok(()),
        false => Err(AuthError::WrongKey),
    }
}
