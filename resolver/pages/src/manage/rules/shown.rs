//! Rules, their forms and the example visitor, as the page shows them.

use hyper::{
    HeaderMap,
    header::{ACCEPT_LANGUAGE, HeaderName, HeaderValue, USER_AGENT},
};
use links::{Buckets, Condition, Link};

use super::{
    change::TypedIn,
    example::{self, Lead, NONE, OWN, Own, browsers},
};
use crate::{context::Context, form::Form, locale::Locale};

/// The id of the form for another rule. Those of other forms are the numbers of their rules.
pub(super) const NEW_RULE: &str = "new";

/// A form that was refused: where it is, what was typed, and which of its fields are wrong.
pub(super) struct RefusedForm {
    pub(super) typed_in: TypedIn,
    pub(super) typed: Form,
    pub(super) wrong: Vec<String>,
}

pub(super) struct TypedForm<'a> {
    pub(super) id: String,
    /// The typed text if the form was refused, so that it is shown unfolded.
    pub(super) refused: Option<&'a RefusedForm>,
}

/// The form of the example visitor, and where the visitor is led.
pub(super) struct ShownExample {
    typed: Form,
    pub(super) browsers: Vec<(&'static str, String)>,
    /// Where the visitor is led, or the names of wrong fields.
    pub(super) lead: Result<Lead, Vec<&'static str>>,
    pub(super) is_live: bool,
}

impl TypedForm<'_> {
    pub(super) fn value(&self, field: &str) -> &str {
        self.refused.and_then(|form| form.typed.filled(field)).unwrap_or_default()
    }

    pub(super) fn is_wrong(&self, field: &str) -> bool {
        self.refused.is_some_and(|form| form.wrong.iter().any(|wrong| wrong == field))
    }

    /// Returns whether the form is for a rule, which may have no condition.
    pub(super) fn is_of_rule(&self) -> bool {
        self.id == NEW_RULE
    }
}

impl ShownExample {
    /// Reads the example from the query, and decides where a link leads it.
    pub(super) fn new(context: &Context<'_>, link: &Link) -> Self {
        let (t, headers, api) = (context.t, &context.request.head.headers, &context.pages.api);
        let own = Own {
            user_agent: header(headers, &USER_AGENT),
            language: header(headers, &ACCEPT_LANGUAGE),
            ip: context.request.client,
            now: api.domain_cache.now(),
            buckets: Buckets::new(api.lookup.mint.bucket_key(), link.id),
        };
        let typed = example::typed(context.query, &own);
        let allows = |url: &_| api.lookup.allows(url);
        let (rules, forwards, zone) = (link.rules(), link.forward_query, &api.time_zone);
        let lead = example::lead(&typed, &own, zone, rules, &link.long_url, forwards, allows);
        let own_browser = [(OWN, t.text("rules-browser-own"))].into_iter();
        let common = browsers().map(|(value, name, _)| (value, name.to_owned()));
        let none = [(NONE, t.text("rules-browser-none"))];
        let browsers = own_browser.chain(common).chain(none).collect();
        let is_live = lead.as_ref().is_ok_and(|lead| link.is_live(lead.now));
        Self { typed, browsers, lead, is_live }
    }

    pub(super) fn value(&self, field: &str) -> &str {
        self.typed.filled(field).unwrap_or_default()
    }

    /// Says which fields are wrong.
    pub(super) fn refused(&self, t: &Locale) -> Option<String> {
        let told = |field: &&str| t.text(&format!("rules-wrong-{field}"));
        let wrong = self.lead.as_ref().err()?;
        Some(wrong.iter().map(told).collect::<Vec<_>>().join(" "))
    }

    pub(super) fn is_wrong(&self, field: &str) -> bool {
        self.lead.as_ref().is_err_and(|wrong| wrong.contains(&field))
    }
}

pub(super) fn condition_text(condition: &Condition, t: &Locale) -> String {
    let (kind, key, value) = condition.parts();
    let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
    if let Condition::Unknown(_) = condition {
        // A later release has the words for it.
        return format!("{kind} {key} {value}");
    }
    t.with_two(&format!("rules-condition-{kind}"), key, value)
}

/// Returns a header as redirects read it: one that is no text counts as absent.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    std::str::from_utf8(headers.get(name).map_or(&b""[..], HeaderValue::as_bytes)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::english;

    #[test]
    fn conditions_are_told_with_their_keys_and_values() {
        let t = english();
        let told = |kind: &str, key: Option<&str>, value: Option<&str>| {
            condition_text(&Condition::parse(kind, key, value).unwrap(), t)
        };
        let exact = told("query-param", Some("utm_source"), Some("mail"));
        assert!(exact.contains("utm_source") && exact.contains("mail"), "{exact}");
        assert!(told("any-value-query-param", Some("utm_source"), None).contains("utm_source"));
        assert!(told("geolocation-city-name", None, Some("São Paulo")).contains("São Paulo"));
    }
}
