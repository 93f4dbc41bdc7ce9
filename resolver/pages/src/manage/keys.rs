//! Creates, rotates and revokes API keys. For operators.
//!
//! 1. A secret is shown once, in the answer to the form that made it.
//! 2. Each form asks again for the key of the session, with its current secret. An unattended
//!    browser, or a script that sends forms, cannot make a key that outlives the session, and
//!    neither can a secret that is about to end.
//! 3. A form that replaces a secret names the one that its page showed, so that a form that is sent
//!    twice does not end the secret that it has just made.
//! 4. The audit log names the key that did it.

use std::time::Duration;

use app::{
    AppError,
    api_keys::{ApiKeys, CreateKey, KeyDomain, KeyError, ListedKey},
};
use askama::Template;
use hyper::StatusCode;
use links::{
    REMOVED,
    api_key::{ApiKey, ApiKeyRecord, Grant, SecretNumber},
    scope::{Scope, Scopes},
};
use web::{Answer, hold_back};

use super::{
    notices::{Notices, Refusal, stored},
    paged::Paged,
};
use crate::{context::Context, error::PageError, form::Form, frame::Frame, locale::Locale};

pub(super) const PATH: &str = "/manage/keys";
const DAY: u64 = 24 * 3600;
const DAYS_MAX: u64 = 36_500;
const FIELDS: [&str; 7] = ["name", "scope", "domain", "ownLinks", "noOrphans", "days", "calls"];
/// How many hours an old secret may stay valid.
const KEEP_HOURS: [u64; 4] = [0, 1, 24, 168];

#[derive(Template)]
#[template(path = "manage/keys.html")]
struct KeysPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    keys: Vec<ListedKey>,
    paged: Paged,
    notices: Notices,
    scopes: Vec<(&'static str, String)>,
    domains: Vec<String>,
    typed: Form,
    is_wrong: bool,
    secret: Option<(String, String)>,
}

enum Refused {
    /// A field is wrong: the name of the text that says what is expected.
    Expected(&'static str),
    Key(KeyError),
}

impl KeysPage<'_> {
    fn is_expired(&self, key: &ApiKeyRecord) -> bool {
        key.expires_at.is_some_and(|at| at <= self.context.pages.api.domain_cache.now())
    }

    /// Returns what a key is limited to, in words.
    fn limits(&self, key: &ListedKey) -> Vec<String> {
        let (limits, t) = (&key.record.limits, self.frame.t);
        let domain = limits.domain.map(|id| match (&key.domain_name, id.is_default()) {
            (Some(name), _) => name.clone(),
            (None, true) => self.context.pages.api.domain_cache.default_name().to_owned(),
            (None, false) => REMOVED.to_owned(),
        });
        let calls = limits.calls_per_minute.map(|calls| match calls {
            0 => t.text("keys-any-calls"),
            calls => t.with("keys-calls", t.number(&u64::from(calls))),
        });
        let own = limits.own_links_only.then(|| t.text("keys-own-links"));
        let orphans = limits.no_orphan_visits.then(|| t.text("keys-no-orphans"));
        domain.into_iter().chain(own).chain(orphans).chain(calls).collect()
    }
}

/// Returns what a key may do, in words.
fn scopes(record: &ApiKeyRecord, t: &Locale) -> String {
    let names = record.scopes.to_string();
    let words = names.split(',').map(|name| t.try_text(&format!("scope-{name}")).unwrap_or(name.to_owned()));
    words.collect::<Vec<_>>().join(", ")
}

pub(super) async fn change(context: &Context<'_>) -> Result<Answer, PageError> {
    let keys = context.links.api_keys(context.by)?;
    let known = keys.list().await.map_err(AppError::from)?;
    if !is_confirmed(context, &known).await? {
        let text = context.t.text("keys-not-confirmed");
        let refusal = Refusal { status: StatusCode::FORBIDDEN, ..Refusal::of_page(text) };
        return Ok(hold_back(answer(context, None, Some(refusal)).await?));
    }
    match apply(context, &keys, &known).await {
        Ok(None) => Ok(stored(context, PATH)),
        Ok(Some(key)) => {
            let name = context.form.owned("name").unwrap_or_default();
            answer(context, Some((name, key.reveal().to_owned())), None).await
        }
        Err(refused) => {
            let refusal = Refusal::of_page(context.t.text(reason(refused)?));
            answer(context, None, Some(refusal)).await
        }
    }
}

/// Returns whether the form has the key that is signed in, in its current secret.
async fn is_confirmed(context: &Context<'_>, known: &[ListedKey]) -> Result<bool, PageError> {
    let typed = context.form.value("apiKey").trim();
    let is_current = |grant: &Grant| {
        let own = known.iter().find(|key| key.record.id == grant.id);
        own.is_some_and(|own| own.record.secret == grant.secret)
    };
    match api::sign_in(&context.pages.api, context.request.client, typed.as_bytes()).await {
        Ok(grant) => Ok(grant.id == context.by.id && is_current(&grant)),
        Err(api::AuthError::NoKey | api::AuthError::WrongKey) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Does what the form asks for. Returns the new secret, if there is one.
async fn apply(
    context: &Context<'_>,
    keys: &ApiKeys,
    known: &[ListedKey],
) -> Result<Option<ApiKey>, Refused> {
    let form = context.form;
    let name = form.filled("name").unwrap_or_default();
    match form.get("do") {
        Some("create") => {
            let key = read_new_key(context).await.map_err(Refused::Expected)?;
            keys.create(key).await.map(Some).map_err(Refused::Key)
        }
        Some("rotate") => {
            let shown = form.filled("secret").and_then(|number| number.parse().ok()).map(SecretNumber);
            let is_as_shown = |key: &ListedKey| key.record.name == name && Some(key.record.secret) == shown;
            if !known.iter().any(is_as_shown) {
                return Err(Refused::Expected("keys-changed"));
            }
            let hours = form.filled("keep").and_then(|hours| hours.parse().ok());
            let hours = hours.filter(|hours| KEEP_HOURS.contains(hours));
            let keep = Duration::from_secs(3600 * hours.ok_or(Refused::Expected("keys-expected-keep"))?);
            keys.rotate(name, keep).await.map(Some).map_err(Refused::Key)
        }
        Some("revoke") => keys.revoke(name).await.map(|()| None).map_err(Refused::Key),
        _ => Err(Refused::Expected("chosen-expected-action")),
    }
}

async fn read_new_key(context: &Context<'_>) -> Result<CreateKey, &'static str> {
    let form = context.form;
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
            let named = context.links.check_domain(name).map_err(|_| "expected-domain")?;
            // The page offers domains that exist. On the command line others are added.
            if !matches!(context.pages.api.domain_cache.find(name).await, Ok(Some(_))) {
                return Err("expected-domain");
            }
            Some(named.map_or(KeyDomain::Default, KeyDomain::Named))
        }
    };
    Ok(CreateKey {
        name: form.owned("name").unwrap_or_default(),
        scopes,
        expires_in: days.map(|days| Duration::from_secs(days * DAY)),
        domain,
        own_links_only: form.is_on("ownLinks"),
        no_orphan_visits: form.is_on("noOrphans"),
        calls_per_minute: calls.map_err(|_| "keys-expected-calls")?,
    })
}

/// Returns the name of the text that says why; an error if it was not the form's fault.
fn reason(refused: Refused) -> Result<&'static str, AppError> {
    Ok(match refused {
        Refused::Expected(text) => text,
        Refused::Key(KeyError::Name(_)) => "keys-expected-name",
        Refused::Key(KeyError::NameTaken) => "keys-taken",
        Refused::Key(KeyError::NoKey) => "keys-absent",
        Refused::Key(KeyError::BeyondOwn) => "keys-beyond-own",
        Refused::Key(KeyError::LastOperator) => "keys-last-operator",
        Refused::Key(KeyError::Random(_)) => return Err(AppError::Internal),
        Refused::Key(KeyError::Store(error)) => return Err(error.into()),
    })
}

/// Answers with the keys, the newest first. `secret` is a new secret with the name of its key.
pub(super) async fn answer(
    context: &Context<'_>,
    secret: Option<(String, String)>,
    refusal: Option<Refusal>,
) -> Result<Answer, PageError> {
    let (links, by, t) = (context.links, context.by, context.t);
    let mut keys = links.api_keys(by)?.list().await.map_err(AppError::from)?;
    keys.reverse();
    let (paged, keys) = Paged::cut(keys, PATH, context.query);
    let is_wrong = refusal.is_some() && context.form.get("do") == Some("create");
    // The typed text stays in the form, but for the key.
    let kept: &[&str] = if is_wrong { &FIELDS } else { &[] };
    let scope = |scope: Scope| (scope.as_str(), t.text(&format!("scope-{scope}")));
    let page = KeysPage {
        frame: context.frame(PATH),
        context: *context,
        keys,
        scopes: Scope::ALL.map(scope).to_vec(),
        domains: links.domains(true, by).await?.into_iter().map(|domain| domain.name).collect(),
        typed: context.form.only(kept),
        is_wrong,
        notices: Notices::new(context.query, refusal),
        secret,
        paged,
    };
    Ok(context.page(page.notices.status(), &page))
}
