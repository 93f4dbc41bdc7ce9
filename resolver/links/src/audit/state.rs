//! State of a link or a domain for the audit log, with the field names of the API.
//!
//! An entry keeps the state after a write. Under `changed` it has each field that the write
//! changed, with its value before and after. The log is written in a transaction that does not know
//! codes, so it keeps `slug` and `domain` as they are stored. [`separate_name`] separates them from
//! the rest, so that an entry can be shown with the name and the domain that visitors know.
//!
//! A password is never in the log. If a write changed it, the entry has both hashes for an undo,
//! which are never shown: [`separate_name`] and [`without_hashes`] leave them out.

use codes::LinkId;
use serde_json::{Map, Value, json};

use crate::{AppLinks, Authority, Domain, DomainId, Link, PasswordHash, Tag};

/// Field of the link's slug, as it is stored.
pub(super) const SLUG: &str = "slug";
/// Field of the link's domain number, as it is stored.
pub(super) const DOMAIN: &str = "domain";
/// Field with the changes.
pub(super) const CHANGED: &str = "changed";
/// Field with the hashes of a password. Releases before undo leave it out of what they show, too.
const HASHES: &str = "details";
/// Field that a write changes which replaces a password by another one.
pub(super) const PASSWORD: &str = "password";

/// Returns the state of a link as a log entry keeps it. It never contains the password.
pub fn state(link: &Link) -> Value {
    let mut state = named(link.logged());
    state.insert(SLUG.to_owned(), json!(link.slug()));
    state.insert(DOMAIN.to_owned(), json!(link.details().domain));
    state.retain(|_, value| !value.is_null());
    Value::Object(state)
}

/// Returns the state after a write, with the changes under `changed`. `tags` holds the tags before
/// and after, if the write set any.
pub fn change(before: &Link, after: &Link, tags: Option<(&[Tag], &[Tag])>) -> Value {
    let mut changed = differences(&named(before.logged()), &named(after.logged()));
    if before.password() != after.password() && before.password().is_some() == after.password().is_some() {
        changed.insert(PASSWORD.to_owned(), json!("another"));
    }
    if let Some((from, to)) = tags.filter(|(from, to)| from != to) {
        changed.insert("tags".to_owned(), json!({ "from": texts(from), "to": texts(to) }));
    }
    let mut state = state(after);
    state[CHANGED] = Value::Object(changed);
    if before.password() != after.password() {
        state[HASHES] = json!({ PASSWORD: [before.password(), after.password()] });
    }
    state
}

/// Returns the hashes of the password before and after a write that changed it; `None` if the entry
/// does not have them.
pub(super) fn hashes(details: &Value) -> Option<[Option<PasswordHash>; 2]> {
    serde_json::from_value(details.get(HASHES)?.get(PASSWORD)?.clone()).ok()
}

/// Returns the details of an entry without the hashes, for readers.
pub fn without_hashes(mut details: Value) -> Value {
    if let Some(members) = details.as_object_mut() {
        members.remove(HASHES);
    }
    details
}

/// Adds a move between two domains, by their names at the time, to a state with changes.
pub fn note_move(state: &mut Value, from: &str, to: &str) {
    state[CHANGED][DOMAIN] = json!({ "from": from, "to": to });
}

/// Adds another name of a link to a state with changes.
pub fn note_rename(state: &mut Value, from: &str, to: &str) {
    state[CHANGED]["shortCode"] = json!({ "from": from, "to": to });
}

/// Returns each field that differs, with its value before and after.
fn differences(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let differs = |(name, to): (&String, &Value)| {
        let from = before.get(name).filter(|from| *from != to)?;
        Some((name.clone(), json!({ "from": from, "to": to })))
    };
    after.iter().filter_map(differs).collect()
}

pub(super) fn texts(tags: &[Tag]) -> Vec<&str> {
    tags.iter().map(Tag::as_str).collect()
}

pub(super) fn named<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Name of the default domain in the log: its own name is set by `--public-url`.
const DEFAULT: &str = "DEFAULT";

/// Returns the name of a domain in the log.
pub fn domain_name(domain: &Domain) -> &str {
    domain.authority.as_ref().map_or(DEFAULT, Authority::as_str)
}

/// Returns the state of a domain after an edit, with the changes under `changed`.
pub fn domain_change(before: &Domain, after: &Domain) -> Value {
    let mut state = domain_fields(after);
    let changed = differences(&domain_fields(before), &state);
    state.retain(|_, value| !value.is_null());
    state.insert(CHANGED.to_owned(), Value::Object(changed));
    Value::Object(state)
}

fn domain_fields(domain: &Domain) -> Map<String, Value> {
    let (settings, redirects) = (&domain.settings, &domain.settings.redirects);
    // A file may be long, so the log has its digest.
    let logged = |file: &Option<AppLinks>| json!(file.as_ref().map(AppLinks::digest));
    named([
        ("domain", json!(domain_name(domain))),
        ("enabled", json!(!settings.disabled)),
        ("trackVisitors", json!(!settings.untracked)),
        ("protocol", json!(settings.protocol)),
        ("ignoreCase", json!(settings.ignore_case)),
        ("ignoreTrailing", json!(settings.ignore_trailing)),
        ("catchAll", json!(settings.catch_all)),
        ("extraPath", json!(settings.extra_path)),
        ("expiredUrl", json!(settings.expired_url)),
        ("queryTemplate", json!(settings.query_template)),
        ("crossOrigin", json!(settings.cross_origin)),
        ("crawlable", json!(settings.crawlable)),
        ("confirmLimited", json!(settings.confirm_limited)),
        ("appleAppSiteAssociation", logged(&settings.apple_app_site_association)),
        ("assetLinks", logged(&settings.asset_links)),
        ("baseUrlRedirect", json!(redirects.base_url)),
        ("regular404Redirect", json!(redirects.regular_404)),
        ("invalidShortUrlRedirect", json!(redirects.invalid_short_url)),
    ])
}

/// An entry about a link, prepared to be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEntry {
    /// Slug of the link. Without one, its code follows from its id.
    pub slug: Option<String>,
    /// Link id; `None` if the entry's subject is not a number.
    pub id: Option<LinkId>,
    /// Domain of the link.
    pub domain: DomainId,
    /// Remaining fields, named as in the API.
    pub fields: Value,
}

/// Separates the stored name of a link from the other fields of an entry about it.
pub fn separate_name(subject: &str, details: Option<&Value>) -> LinkEntry {
    let mut state = details.and_then(Value::as_object).cloned().unwrap_or_default();
    let slug = state.remove(SLUG).and_then(|slug| slug.as_str().map(str::to_owned));
    let domain = state.remove(DOMAIN).and_then(|domain| serde_json::from_value(domain).ok());
    // Early releases kept all details there, as they were stored, with the hash of a password.
    state.remove(HASHES);
    let id = subject.parse().ok().map(LinkId::from_stored);
    LinkEntry { slug, id, domain: domain.unwrap_or(DomainId::DEFAULT), fields: Value::Object(state) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Details, DomainEdit, DomainSettings, ExtraPath, LongUrl, QueryTemplate, Slug};

    fn link(details: Details) -> Link {
        Link { title: Some("T".to_owned()), ..Link::sample(details) }
    }

    #[test]
    fn a_change_says_what_was_before_and_after_and_never_a_password() {
        let slug = Slug::parse("x").ok();
        let hash = || PasswordHash::of("hush").ok();
        let before =
            Details { slug: slug.clone(), password: hash(), max_visits: Some(3), ..Details::default() };
        let after = Details { slug, password: hash(), disabled: true, version: 1, ..Details::default() };
        let change = change(&link(before), &link(after), Some((&[], &[Tag::from_stored("a")])));
        let entry = separate_name("5", Some(&change));
        for shown in [entry.fields.clone(), without_hashes(change)] {
            assert!(!shown.to_string().contains("argon2"), "{shown}");
        }
        assert_eq!(
            (entry.slug.as_deref(), entry.id, entry.domain),
            (Some("x"), Some(LinkId::from_stored(5)), DomainId::DEFAULT)
        );
        let expected = json!({
            "enabled": { "from": true, "to": false }, "maxVisits": { "from": 3, "to": null }, "password": "another",
            "tags": { "from": [], "to": ["a"] }, "version": { "from": 0, "to": 1 },
        });
        assert_eq!(entry.fields[CHANGED], expected);
        assert_eq!(entry.fields["title"], "T");
        assert!(entry.fields.get(SLUG).is_none());
    }

    #[test]
    fn an_entry_without_a_name_has_none_and_an_early_one_shows_no_hash() {
        let none = separate_name("an odd subject", None);
        assert_eq!((none.id, none.slug, none.fields), (None, None, json!({})));
        let early = json!({ "title": "T", "details": { "password": "$argon2id$x" } });
        assert_eq!(separate_name("5", Some(&early)).fields, json!({ "title": "T" }));
    }

    #[test]
    fn a_change_says_what_a_domain_was_before_and_after() {
        let name = |text| Some(Authority::from_stored(text));
        let settings = DomainSettings::default();
        let before = Domain { id: DomainId::from_stored(3), authority: name("old.example"), settings };
        let edit = DomainEdit {
            disabled: Some(true),
            untracked: Some(true),
            base_url: Some(Some("https://e.test/".into())),
            ignore_case: Some(true),
            extra_path: Some(Some(ExtraPath::Append)),
            expired_url: Some(Some(LongUrl::from_stored("https://e.test/over"))),
            cross_origin: Some(true),
            crawlable: Some(true),
            query_template: Some(QueryTemplate::parse("utm_source={domain}").ok()),
            ..DomainEdit::default()
        };
        let settings = edit.apply(before.settings.clone());
        let after = Domain { authority: name("new.example"), settings, ..before };
        let expected = json!({
            "domain": "new.example", "enabled": false, "trackVisitors": false,
            "baseUrlRedirect": "https://e.test/", "ignoreCase": true, "ignoreTrailing": false,
            "catchAll": false, "extraPath": "append", "expiredUrl": "https://e.test/over",
            "queryTemplate": "utm_source={domain}",
            "crossOrigin": true, "crawlable": true, "confirmLimited": false, "changed": {
                "domain": { "from": "old.example", "to": "new.example" }, "enabled": { "from": true, "to": false },
                "trackVisitors": { "from": true, "to": false },
                "baseUrlRedirect": { "from": null, "to": "https://e.test/" },
                "ignoreCase": { "from": false, "to": true }, "extraPath": { "from": null, "to": "append" },
                "expiredUrl": { "from": null, "to": "https://e.test/over" },
                "queryTemplate": { "from": null, "to": "utm_source={domain}" },
                "crossOrigin": { "from": false, "to": true }, "crawlable": { "from": false, "to": true },
            },
        });
        assert_eq!(domain_change(&before, &after), expected);
        let default = Domain { id: DomainId::DEFAULT, authority: None, ..before };
        assert_eq!(domain_change(&default, &default)["changed"], json!({}));
        assert_eq!(domain_name(&default), "DEFAULT");
    }
}
