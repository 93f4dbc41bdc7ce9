//! Creates, rotates and revokes API keys. For operators.
//!
//! 1. A secret is shown once, in the answer to the form that made it.
//! 2. Each form asks again for the key of the session, with its current secret. An unattended
//!    browser, or a script that sends forms, cannot make a key that outlives the session, and
//!    neither can a secret that is about to end.
//! 3. A form that replaces a secret names the one that its page showed, so that a form that is sent
//!    twice does not end the secret that it has just made.
//! 4. The audit log names the key that did it.

use std::{sync::Arc, time::Duration};

use app::{
    AppError,
    api_keys::{ApiKeys, CreateKey, KeyDomain, KeyError, ListedKey},
};
use askama::Template;
use hyper::StatusCode;
use jiff::Timestamp;
use links::{
    REMOVED,
    api_key::{ApiKey, ApiKeyRecord, Grant, SecretNumber},
    scope::{Scope, Scopes},
};
use web::{Answer, hold_back};

use super::paged::{Paged, address, is_stored, stored_address};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    home::shown_time,
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// The address of the page.
pub(super) const PATH: &str = "/manage/keys";
/// Seconds of a day.
const DAY: u64 = 24 * 3600;
/// Maximum number of days until a key expires.
const DAYS_MAX: u64 = 36_500;
/// How many hours an old secret may stay valid.
const KEEP_HOURS: [u64; 4] = [0, 1, 24, 168];

/// The table of keys.
#[derive(Template)]
#[template(path = "manage/keys.html")]
struct KeysPage<'a> {
    frame: Frame<'a>,
    keys: Vec<ShownKey>,
    paged: Paged,
    /// Where the forms are sent to.
    action: String,
    /// The names of the scopes, with what they allow.
    scopes: Vec<(&'static str, String)>,
    domains: Vec<String>,
    keep_hours: [u64; 4],
    /// What was typed for a key that was refused.
    typed: Form,
    /// Whether the form of a new key was refused.
    is_wrong: bool,
    is_stored: bool,
    /// A new secret, with the name of its key.
    secret: Option<(String, String)>,
    /// Why a form was refused.
    refused: Option<String>,
}

/// A key in the table.
struct ShownKey {
    name: String,
    scopes: String,
    /// What the key is limited to, in words.
    limits: Vec<String>,
    created: String,
    last_used: Option<String>,
    expires: Option<String>,
    /// The number of its secret.
    secret: i64,
    is_revoked: bool,
    is_expired: bool,
}

/// Why a form was refused.
enum Refusal {
    /// The form lacks the key of the session, or has a former secret of it.
    NotConfirmed,
    /// A field is wrong: the name of the text that says what is expected.
    Expected(&'static str),
    Key(KeyError),
}

impl KeysPage<'_> {
    fn value(&self, name: &str) -> &str {
        self.typed.get(name).unwrap_or("")
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.typed.all(name).any(|has| has == value)
    }
}

impl ShownKey {
    fn new(pages: &Pages, key: &ListedKey, t: &Locale) -> Self {
        let (record, limits) = (&key.record, &key.record.limits);
        let time = |time: Option<Timestamp>| time.map(|time| shown_time(pages, time));
        let domain = limits.domain.map(|id| match (&key.domain_name, id.is_default()) {
            (Some(name), _) => name.clone(),
            (None, true) => pages.api.domain_cache.default_name().to_owned(),
            (None, false) => REMOVED.to_owned(),
        });
        let calls = limits.calls_per_minute.map(|calls| match calls {
            0 => t.text("keys-any-calls"),
            calls => t.with("keys-calls", t.number(&u64::from(calls))),
        });
        let own = limits.own_links_only.then(|| t.text("keys-own-links"));
        let orphans = limits.no_orphan_visits.then(|| t.text("keys-no-orphans"));
        Self {
            name: record.name.clone(),
            scopes: scopes(record, t),
            secret: record.secret.0,
            limits: domain.into_iter().chain(own).chain(orphans).chain(calls).collect(),
            created: shown_time(pages, record.created_at),
            last_used: time(record.last_used_at),
            expires: time(record.expires_at),
            is_revoked: record.revoked_at.is_some(),
            is_expired: record.expires_at.is_some_and(|at| at <= pages.api.domain_cache.now()),
        }
    }
}

/// Returns what a key may do, in words.
fn scopes(record: &ApiKeyRecord, t: &Locale) -> String {
    let names = record.scopes.to_string();
    let words = names.split(',').map(|name| t.try_text(&format!("scope-{name}")).unwrap_or(name.to_owned()));
    words.collect::<Vec<_>>().join(", ")
}

/// Shows a page of the keys.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let shown = shown(pages, request, session).await?;
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Makes a key, replaces its secret or revokes it, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (form, keys) = (&request.form, pages.api.links.api_keys(&session.grant)?);
    let is_new = form.get("do") == Some("create");
    let known = keys.list().await.map_err(AppError::from)?;
    let done = if is_confirmed(pages, request, session, &known).await? {
        apply(pages, &keys, form, &known).await
    } else {
        Err(Refusal::NotConfirmed)
    };
    let (status, secret, refused) = match done {
        Ok(None) => return Ok(redirect(StatusCode::SEE_OTHER, &stored_address(PATH, &request.query))),
        Ok(Some(key)) => {
            let name = form.filled("name").unwrap_or_default().to_owned();
            (StatusCode::OK, Some((name, key.reveal().to_owned())), None)
        }
        Err(refusal) => {
            let t = request.preferences.locale;
            let status = match refusal {
                Refusal::NotConfirmed => StatusCode::FORBIDDEN,
                _ => StatusCode::BAD_REQUEST,
            };
            (status, None, Some(t.text(reason(refusal)?)))
        }
    };
    let mut shown = shown(pages, request, session).await?;
    if refused.is_some() && is_new {
        // What was typed stays in the form, but for the key.
        shown.typed = form.only(&["name", "scope", "domain", "ownLinks", "noOrphans", "days", "calls"]);
        shown.is_wrong = true;
    }
    let holds_back = status == StatusCode::FORBIDDEN;
    (shown.secret, shown.refused, shown.is_stored) = (secret, refused, false);
    let answer = page(request.renderer, status, Forms::Stay, &shown);
    Ok(if holds_back { hold_back(answer) } else { answer })
}

/// Returns whether the form has the key that is signed in, in its current secret.
async fn is_confirmed(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    known: &[ListedKey],
) -> Result<bool, PageError> {
    let typed = request.form.get("apiKey").unwrap_or("").trim().to_owned();
    let is_current = |grant: &Grant| {
        let own = known.iter().find(|key| key.record.id == grant.id);
        own.is_some_and(|own| own.record.secret == grant.secret)
    };
    match api::sign_in(&pages.api, request.client, typed.as_bytes()).await {
        Ok(grant) => Ok(grant.id == session.grant.id && is_current(&grant)),
        Err(api::SignInError::WrongKey) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Does what the form asks for. Returns the new secret, if there is one.
async fn apply(
    pages: &Pages,
    keys: &ApiKeys,
    form: &Form,
    known: &[ListedKey],
) -> Result<Option<ApiKey>, Refusal> {
    let name = form.filled("name").unwrap_or_default();
    match form.get("do") {
        Some("create") => {
            let wish = read(pages, form).await.map_err(Refusal::Expected)?;
            keys.create(wish).await.map(Some).map_err(Refusal::Key)
        }
        Some("rotate") => {
            let shown = form.filled("secret").and_then(|number| number.parse().ok()).map(SecretNumber);
            let is_as_shown = |key: &ListedKey| key.record.name == name && Some(key.record.secret) == shown;
            if !known.iter().any(is_as_shown) {
                return Err(Refusal::Expected("keys-changed"));
            }
            let hours = form.filled("keep").and_then(|hours| hours.parse().ok());
            let hours = hours.filter(|hours| KEEP_HOURS.contains(hours));
            let keep = Duration::from_secs(3600 * hours.ok_or(Refusal::Expected("keys-expected-keep"))?);
            keys.rotate(name, keep).await.map(Some).map_err(Refusal::Key)
        }
        Some("revoke") => keys.revoke(name).await.map(|()| None).map_err(Refusal::Key),
        _ => Err(Refusal::Expected("chosen-expected-action")),
    }
}

/// Reads the form of a new key; the name of a text if a field is wrong.
async fn read(pages: &Pages, form: &Form) -> Result<CreateKey, &'static str> {
    let names: Vec<&str> = form.all("scope").collect();
    let scopes: Scopes = names.join(",").parse().map_err(|_| "keys-expected-scopes")?;
    let number = |name: &str| form.filled(name).map(str::parse::<u64>).transpose();
    let days = number("days").map_err(|_| "keys-expected-days")?;
    if days.is_some_and(|days| days == 0 || days > DAYS_MAX) {
        return Err("keys-expected-days");
    }
    let calls = number("calls").map_err(|_| "keys-expected-calls")?.map(u32::try_from).transpose();
    let domain = match form.filled("domain") {
        None => None,
        Some(name) => {
            let named = pages.api.links.check_domain(name).map_err(|_| "expected-domain")?;
            // The page offers domains that exist. On the command line others are added.
            if !matches!(pages.api.domain_cache.find(name).await, Ok(Some(_))) {
                return Err("expected-domain");
            }
            Some(named.map_or(KeyDomain::Default, KeyDomain::Named))
        }
    };
    Ok(CreateKey {
        name: form.filled("name").unwrap_or_default().to_owned(),
        scopes,
        expires_in: days.map(|days| Duration::from_secs(days * DAY)),
        domain,
        own_links_only: form.is_on("ownLinks"),
        no_orphan_visits: form.is_on("noOrphans"),
        calls_per_minute: calls.map_err(|_| "keys-expected-calls")?,
    })
}

/// Returns the name of the text that says why a form was refused.
///
/// # Errors
/// Returns the error of the page if it was not the form's fault.
fn reason(refusal: Refusal) -> Result<&'static str, AppError> {
    Ok(match refusal {
        Refusal::NotConfirmed => "keys-not-confirmed",
        Refusal::Expected(text) => text,
        Refusal::Key(KeyError::Name(_)) => "keys-expected-name",
        Refusal::Key(KeyError::NameTaken) => "keys-taken",
        Refusal::Key(KeyError::NoKey) => "keys-absent",
        Refusal::Key(KeyError::BeyondOwn) => "keys-beyond-own",
        Refusal::Key(KeyError::LastOperator) => "keys-last-operator",
        Refusal::Key(KeyError::Random(_)) => return Err(AppError::Internal),
        Refusal::Key(KeyError::Store(error)) => return Err(error.into()),
    })
}

/// Reads the page of the keys that the query asks for, the newest first.
async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<KeysPage<'a>, PageError> {
    let (query, by, t) = (&request.query, &session.grant, request.preferences.locale);
    let mut keys = pages.api.links.api_keys(by)?.list().await.map_err(AppError::from)?;
    keys.reverse();
    let (paged, keys) = Paged::cut(keys, PATH, query);
    let scope = |scope: Scope| (scope.as_str(), t.text(&format!("scope-{scope}")));
    Ok(KeysPage {
        frame: Frame::new(request, Some(session), Place::Keys),
        keys: keys.iter().map(|key| ShownKey::new(pages, key, t)).collect(),
        paged,
        action: address(PATH, query),
        scopes: Scope::ALL.map(scope).to_vec(),
        domains: pages.api.links.domains(true, by).await?.into_iter().map(|domain| domain.name).collect(),
        keep_hours: KEEP_HOURS,
        typed: Form::default(),
        is_wrong: false,
        is_stored: is_stored(query),
        secret: None,
        refused: None,
    })
}
