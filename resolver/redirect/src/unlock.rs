//! `POST /{code}` with the password of a link, from the form in `pages.rs`. No script is needed.

use std::{net::IpAddr, sync::Arc, time::Duration};

use app::passwords::Tried;
use codes::LinkId;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Request, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use links::PasswordHash;
use tokio::time::timeout;
use url::form_urlencoded;
use web::{Answer, TEXT, answer, budgets::BudgetAccount, connection_timeouts::from_client, hold_back};

use crate::{
    Redirector, ThreadContext, Visitor,
    fallback_page::{too_much, unavailable},
    follow::{find, host, lead, not_live},
    pages,
};

/// The maximum size of the form's body in bytes: a password of 256 bytes, each percent-encoded.
const BODY_BYTES: usize = 1_024;
const BODY_TIME: Duration = Duration::from_secs(10);

/// Redirects a visitor who enters the right password.
pub async fn unlock(thread: &ThreadContext, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let mut answer = answer_form(thread, visitor, request).await;
    if answer.status().is_redirection() {
        // The target has to be requested with GET, whatever the status of redirects: with 307 or
        // 308 a browser would send the password to it, also to the target of a link that has
        // expired meanwhile.
        *answer.status_mut() = StatusCode::SEE_OTHER;
    }
    answer
}

async fn answer_form(thread: &ThreadContext, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let redirector = &thread.redirector;
    let (parts, body) = request.into_parts();
    let _held = match redirector.budgets.bodies.take(BudgetAccount::client(visitor.client), BODY_BYTES as u64)
    {
        Ok(held) => held,
        Err(spent) => return too_much(redirector, spent),
    };
    let Some(password) = password(body).await else {
        return answer(StatusCode::BAD_REQUEST, TEXT, "expected a form with the field password\n");
    };
    let request = Request::from_parts(parts, ());
    let found = match find(redirector, visitor.client, request.uri().path(), host(&request)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let now = redirector.domain_cache.now();
    if !found.link.is_live(now) {
        return not_live(redirector, &found, now, request.uri().path());
    }
    if let Some(hash) = found.link.password() {
        match open(redirector, found.link.id, visitor.client, hash, password).await {
            Tried::Opened => {}
            Tried::Wrong => return pages::ask_password(true),
            Tried::TooMany(wait) => return hold_back(pages::too_many_tries(wait)),
            Tried::Busy => return unavailable(redirector),
        }
    }
    lead(thread, visitor, &request, now, &found).await
}

/// Checks a password on the daemon's own runtime: a listener's thread has no other threads for
/// hashing.
async fn open(
    redirector: &Arc<Redirector>,
    link: LinkId,
    client: IpAddr,
    hash: &PasswordHash,
    password: String,
) -> Tried {
    let (shared, hash) = (Arc::clone(redirector), hash.clone());
    let task =
        redirector.runtime.spawn(async move { shared.passwords.open(link, client, &hash, password).await });
    task.await.unwrap_or(Tried::Busy)
}

/// Returns whether a request submits the form.
#[must_use]
pub fn is_form(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    request.uri().path().len() > 1 && kind.starts_with(b"application/x-www-form-urlencoded")
}

async fn password(body: Incoming) -> Option<String> {
    let collected =
        timeout(BODY_TIME, from_client(Limited::new(body, BODY_BYTES).collect())).await.ok()?.ok()?;
    let bytes: Bytes = collected.to_bytes();
    let mut pairs = form_urlencoded::parse(&bytes);
    pairs.find(|(name, _)| name == "password").map(|(_, value)| value.into_owned())
}
