//! The subscribe half of a Mercure hub (draft 7), so that Shlink's clients are told of visits: its
//! address and token, and the hub itself.
//!
//! 1. The token names the API key that asked for it (`token.rs`). A stream shows what that key may
//!    see, and ends with it or with its secret. (In Shlink every token shows all visits.)
//! 2. The topics are Shlink's (`topics.rs`). A visit is sent once to each stream, even if several
//!    topics match.
//! 3. Shlink's client answers every failure with another attempt, at once and without end. So
//!    refusals are held back.
//! 4. Shlink's web client subscribes anew after each message. What comes meanwhile is kept for it,
//!    as far as it reaches the same process, and each page has a token of its own
//!    (`app/src/visits/live/state.rs`).
//! 5. The token is part of the URL, which this server does not log.
//!
//! Rejected: the specification's draft 8, which Shlink's clients do not speak.

mod token;
mod topics;

use std::{net::IpAddr, sync::Arc, time::Duration};

use app::{
    AppError,
    authorize::require,
    live::{LiveFilter, LiveVisits, Start},
};
use daemon::traces::in_current;
use futures_util::future::BoxFuture;
use hyper::{
    HeaderMap, Request,
    body::Incoming,
    header::{ALLOW, AUTHORIZATION, COOKIE, HeaderValue, ORIGIN},
};
use jiff::{SignedDuration, Timestamp};
use url::form_urlencoded;
use visits::VisitId;

use super::{
    finish,
    json::atom,
    live::{LAST_EVENT_ID, last_event_id, message::Dialect, stream, visit_id},
    prelude::*,
};
use crate::{
    Api, Task,
    authenticate::{AuthError, find_grant},
};
use web::{TEXT, answer, cors, hold_back};

/// The path of the hub.
pub const HUB: &str = "/.well-known/mercure";
/// How long a token is valid, as in Shlink.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(24);
const NO_TOKEN: &str = "no token: take one from /rest/v3/mercure-info, and send it in the header Authorization or as \
    the parameter authorization";
const NO_KEY: &str = "the API key of the token is revoked, has expired or was rotated: ask for another token";
const TOKEN_COOKIE: &str = "mercureAuthorization";
/// The value of [`LAST_EVENT_ID`] if that is not known, or to ask for all that is kept.
const EARLIEST: &str = "earliest";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/rest/v3/mercure-info", keyed!(Scope::Read, mercure_info))
            .document("mercureInfo", Topic::Service, "Find the Mercure hub")
            .text(
                "The hub and a token for it. The stream shows the visits that the key may see, and ends when the key is revoked. \
                 The key needs the scope `visits` too. While visits are not stored, the answer is that of Shlink without a hub.",
            )
            .answers::<dto::MercureInfo>("The hub and a token.")
            .fails(&[Kind::NoMercure]),
    ]
}

async fn mercure_info(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let live = call.api.live.as_ref().ok_or(Problem::NoMercure)?;
    require(by, Scope::Visits)?;
    let now = call.api.domain_cache.now();
    let expires_at = now.checked_add(TOKEN_LIFE).unwrap_or(Timestamp::MAX);
    let token = token::sign(secret(&call.api, live).await?, by, now, expires_at);
    let mercure_hub_url = format!("{}{HUB}", call.api.public_url);
    Ok(json(&dto::MercureInfo { mercure_hub_url, token, jwt_expiration: atom(expires_at) }))
}

async fn secret<'a>(api: &Api, live: &'a LiveVisits) -> Result<&'a app::live::TokenSecret, Problem> {
    live.secret.get_or_try_init(|| api.links.visits.token_secret()).await.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "read the secret of tokens");
        Problem::App(AppError::Unavailable)
    })
}

#[derive(Debug)]
enum HubError {
    Refused(StatusCode, String),
    Call(Problem),
}

impl From<Problem> for HubError {
    fn from(problem: Problem) -> Self {
        Self::Call(problem)
    }
}

impl HubError {
    fn unauthorized(reason: impl ToString) -> Self {
        Self::Refused(StatusCode::UNAUTHORIZED, reason.to_string())
    }

    fn into_answer(self) -> Answer {
        let (status, reason) = match self {
            Self::Refused(status, reason) => (status, reason),
            Self::Call(problem) => return hold_back(problem.into_answer()),
        };
        let mut refused = answer(status, TEXT, format!("{reason}\n"));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        }
        hold_back(refused)
    }
}

/// Answers a request to the hub. The future is in a box, so that it is compiled here once.
pub fn hub(api: &Arc<Api>, client: IpAddr, request: Request<Incoming>) -> BoxFuture<'_, Answer> {
    Box::pin(async move {
        let (head, _unread) = request.into_parts();
        if head.method == Method::OPTIONS {
            return cors::preflight(&head.headers, cors::ALL_METHODS);
        }
        let is_cross_origin = head.headers.contains_key(ORIGIN);
        let call = Call::new(api, client, head);
        // Away from the listener's thread, because keys are looked up in the database.
        let task: Task<Answer> =
            Box::pin(async move { answer_hub(&call).await.unwrap_or_else(HubError::into_answer) });
        let answer = api.runtime.spawn(in_current(task)).await;
        finish(api, answer.unwrap_or_else(|_| Problem::INTERNAL.into_answer()), is_cross_origin)
    })
}

async fn answer_hub(call: &Call) -> Result<Answer, HubError> {
    let refused = |status, reason: &str| HubError::Refused(status, reason.to_owned());
    let no_hub = || refused(StatusCode::NOT_FOUND, "visits are not stored: there are no updates");
    let live = call.api.live.as_ref().ok_or_else(no_hub)?;
    if !matches!(call.method, Method::GET | Method::HEAD) {
        let reason = "updates are not published here: use GET";
        return Err(refused(StatusCode::METHOD_NOT_ALLOWED, reason));
    }
    let (by, open_for, token) = authorize(call, live).await?;
    let topics = topics::read(parameters(call.uri.query(), "topic"))
        .map_err(|reason| HubError::Refused(StatusCode::BAD_REQUEST, reason))?;
    if call.method == Method::HEAD {
        return Ok(stream::head());
    }
    let resumption = Some(live.resumption(&token, &topics));
    let filter = LiveFilter { by, topics, link: None, tag: None, domain: None };
    let asked = given_event_id(call);
    let read = |id: &str| if id == EARLIEST { Some(VisitId::from_stored(0)) } else { visit_id(id) };
    let since = asked.as_deref().and_then(read);
    let start = Start { since, resumption };
    let (mut answer, is_complete) = stream::open(call, live, Dialect::Mercure, filter, start, open_for)?;
    if let Some(asked) = asked {
        let known = Some(asked).filter(|_| is_complete && since.is_some());
        let before = known.and_then(|id| HeaderValue::try_from(id).ok());
        let earliest = HeaderValue::from_static(EARLIEST);
        answer.headers_mut().insert(LAST_EVENT_ID, before.unwrap_or(earliest));
    }
    Ok(answer)
}

/// Checks the token and its key. Returns the key, how long the token is valid, and the token.
async fn authorize(call: &Call, live: &LiveVisits) -> Result<(Grant, Duration, String), HubError> {
    let api = &call.api;
    let refused = |refused| Problem::from(AuthError::TooManyCalls(refused));
    api.calls.spend_of_client(call.client).map_err(refused)?;
    let token = token_of(&call.headers, call.uri.query());
    let token = token.ok_or_else(|| HubError::unauthorized(NO_TOKEN))?;
    let now = api.domain_cache.now();
    let claims =
        token::verify(secret(&call.api, live).await?, &token, now).map_err(HubError::unauthorized)?;
    let (key, number) = claims.key();
    let found = find_grant(api, key, number).await.map_err(Problem::from)?;
    let by = found.ok_or_else(|| HubError::unauthorized(NO_KEY))?;
    let required = [Scope::Read, Scope::Visits].into_iter().try_for_each(|scope| require(&by, scope));
    required.map_err(Problem::from)?;
    api.calls.spend_of_key(&by).map_err(refused)?;
    let left = claims.expires_at().duration_since(now);
    Ok((by, Duration::try_from(left).unwrap_or_default(), token))
}

/// Returns the id of the event that the client has received last, as it gives it.
fn given_event_id(call: &Call) -> Option<String> {
    if let Some(id) = last_event_id(&call.headers) {
        return Some(id.get().to_string());
    }
    // The first is the specification's, the second that of the polyfill of older clients.
    let query = call.uri.query();
    ["lastEventID", "lastEventId"].into_iter().find_map(|name| parameters(query, name).next())
}

fn parameters<'a>(query: Option<&'a str>, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let pairs = form_urlencoded::parse(query.unwrap_or("").as_bytes());
    pairs.filter(move |(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Returns the token of a request: in its header, its query or its cookie, in this order.
fn token_of(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned());
    }
    parameters(query, "authorization").next().or_else(|| {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.split_once('='));
        cookies.find(|(name, _)| name.trim() == TOKEN_COOKIE).map(|(_, token)| token.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn headers(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_token_is_taken_from_the_header_then_the_query_then_the_cookie() {
        let header = (AUTHORIZATION, "bearer a.b.c");
        let cookie = (COOKIE, "x=1; mercureAuthorization=g.h.i; y=2");
        let query = Some("topic=x&authorization=d.e.f");
        for (lines, query, token) in [
            (&[header.clone(), cookie.clone()][..], query, Some("a.b.c")),
            (std::slice::from_ref(&cookie), query, Some("d.e.f")),
            (std::slice::from_ref(&cookie), None, Some("g.h.i")),
            (&[(AUTHORIZATION, "Basic YTpi")], query, None),
            (&[], Some("topic=x"), None),
        ] {
            assert_eq!(token_of(&headers(lines), query).as_deref(), token, "{lines:?} {query:?}");
        }
    }

    #[test]
    fn refusals_are_held_back_and_have_their_status() {
        for (error, status) in [
            (HubError::Refused(StatusCode::METHOD_NOT_ALLOWED, String::new()), 405),
            (HubError::unauthorized(token::EXPIRED), 401),
            (HubError::Call(Problem::App(AppError::Unavailable)), 503),
        ] {
            let answer = error.into_answer();
            assert!(answer.status() == status && web::is_held_back(&answer), "{status}");
        }
    }
}
