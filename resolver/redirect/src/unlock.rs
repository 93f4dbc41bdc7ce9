//! `POST /{code}` with the password of a link, from the form that asks for it. No script is needed.

use std::{error::Error, net::IpAddr, sync::Arc, time::Duration};

use codes::LinkId;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Request, StatusCode,
    body::{Body, Bytes},
    header::{CONTENT_TYPE, HeaderValue},
};
use limits::{Account, from_client};
use links::PasswordHash;
use lookup::passwords::Tried;
use tokio::time::timeout;
use url::form_urlencoded;
use visits::Outcome;
use web::{Answer, TEXT, answer, hold_back, visitor_page::VisitorPage};

use crate::{
    Redirector, ThreadContext, Visitor,
    asked::Asked,
    fallback_page::{ask_password, refused, too_much, unavailable},
    follow::{check_live, find, lead_visitor},
    request::host,
    visit::{Refusal, Visit, refuse},
};

/// The maximum size of the form's body in bytes: a password of 256 bytes, each percent-encoded.
const BODY_BYTES: usize = 1_024;
const BODY_TIME: Duration = Duration::from_secs(10);

/// The body of a request that submits the form.
pub trait FormBody: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> {}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>> FormBody for B {}

/// Redirects a visitor who enters the right password.
pub async fn unlock<B: FormBody>(thread: &ThreadContext, visitor: Visitor, request: Request<B>) -> Answer {
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, ());
    let answered = answer_form(thread, visitor, &request, body).await;
    let mut answer = answered.unwrap_or_else(|refusal| refuse(thread, visitor, &request, refusal));
    if answer.status().is_redirection() {
        // The target has to be requested with GET, whatever the status of redirects: with 307 or
        // 308 a browser would send the password to it, also to the target of a link that has
        // expired meanwhile.
        *answer.status_mut() = StatusCode::SEE_OTHER;
    }
    answer
}

async fn answer_form<B: FormBody>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<()>,
    body: B,
) -> Result<Answer, Refusal> {
    let redirector = &thread.redirector;
    let _held = match redirector.budgets.bodies.take(Account::client(visitor.client), BODY_BYTES as u64) {
        Ok(held) => held,
        Err(spent) => return Err(too_much(redirector, spent).into()),
    };
    let Some(password) = password(body).await else {
        return Ok(answer(StatusCode::BAD_REQUEST, TEXT, "expected a form with the field password\n"));
    };
    let asked = Asked::name(visitor.client, request.uri().path(), host(request));
    let found = find(redirector, &asked).await?;
    let now = redirector.domain_cache.now();
    check_live(redirector, &found, now, &asked)?;
    if let Some(hash) = found.link.password() {
        match open(redirector, found.link.id, visitor.client, hash, password).await {
            Tried::Opened => {}
            Tried::Wrong => {
                let visit = Visit::of(&found.link, Outcome::WrongPassword);
                return Err(Refusal::new(ask_password(true), visit));
            }
            Tried::TooMany(wait) => return Err(hold_back(refused(VisitorPage::TooManyTries, wait)).into()),
            Tried::Busy => return Err(unavailable(redirector).into()),
        }
    }
    lead_visitor(thread, visitor, request, now, &found).await
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
pub fn is_form<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    request.uri().path().len() > 1 && kind.starts_with(b"application/x-www-form-urlencoded")
}

async fn password(body: impl FormBody) -> Option<String> {
    let collected =
        timeout(BODY_TIME, from_client(Limited::new(body, BODY_BYTES).collect())).await.ok()?.ok()?;
    let bytes: Bytes = collected.to_bytes();
    let mut pairs = form_urlencoded::parse(&bytes);
    pairs.find(|(name, _)| name == "password").map(|(_, value)| value.into_owned())
}
