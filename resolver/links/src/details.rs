//! Optional attributes of a link.

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api_key::ApiKeyId;

use super::{
    Block, DomainId, Edit, PasswordHash, RedirectStatus, Rule, Slug, StoredObject, Tag, update::set,
};

/// Members that tell which link it is and in which state, or that every change writes. Without one
/// of them a link cannot be changed.
const ESSENTIAL: [&str; 9] =
    ["", "slug", "domain", "mark", "deletedAt", "deletedTags", "editedAt", "editedBy", "version"];

/// Optional attributes, which few links have; a link with none of them has no details.
///
/// Stored as an object, so that a new field needs no migration. A field that was ever written must
/// stay readable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Slug: a hand-picked code in place of a minted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<Slug>,
    /// Domain of the link; `None` for the default domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Random mark of a link with a hand-picked code. If the COMMIT of its create is not answered,
    /// the creator recognizes its own row by the mark (I4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// Start time: the link does not redirect before it.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub valid_since: Option<Timestamp>,
    /// End time: the link does not redirect at it or later.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub valid_until: Option<Timestamp>,
    /// Visit limit: the number of redirects after which the link stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<u64>,
    /// Description, written by the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the link is disabled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Takedown, which only an operator can lift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Block>,
    /// Redirect status; `None` for the deployment's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RedirectStatus>,
    /// Hash of the password that visitors have to enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Redirect rules, in the order in which they are tried; the first match decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Time of deletion. The row stays, so that its number is never minted again (I7).
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub deleted_at: Option<Timestamp>,
    /// Tags at the time of deletion. The link no longer counts among the links of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted_tags: Vec<Tag>,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub edited_at: Option<Timestamp>,
    /// API key of the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<ApiKeyId>,
    /// Version: grows with each edit, and is 0 for a link that was never edited.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: u64,
    /// Facts from an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
    /// Members that only a later release can read. An edit by this release keeps them.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

impl StoredObject for Details {
    fn unknown(&self) -> &serde_json::Map<String, serde_json::Value> {
        &self.others
    }

    fn unknown_mut(&mut self) -> &mut serde_json::Map<String, serde_json::Value> {
        &mut self.others
    }
}

/// A partial update of [`Details`]; `None` leaves an attribute unchanged, and `Some(None)` removes
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailsEdit {
    /// Start time: the link does not redirect before it.
    pub valid_since: Option<Option<Timestamp>>,
    /// End time: the link does not redirect at it or later.
    pub valid_until: Option<Option<Timestamp>>,
    /// Visit limit: the number of redirects after which the link stops.
    pub max_visits: Option<Option<u64>>,
    /// Description, written by the owner.
    pub description: Option<Option<String>>,
    /// Whether the link is disabled.
    pub disabled: Option<bool>,
    /// Redirect status.
    pub status: Option<Option<RedirectStatus>>,
    /// Hash of the password that visitors have to enter.
    pub password: Option<Option<PasswordHash>>,
    /// Redirect rules, replaced as a whole.
    pub rules: Option<Vec<Rule>>,
}

impl DetailsEdit {
    /// Sets the attributes that the edit has values for.
    pub(super) fn apply_to(&self, details: &mut Details) {
        // The pattern names every attribute, so that the compiler notices a forgotten one.
        let Self { valid_since, valid_until, max_visits, description, disabled, status, password, rules } =
            self;
        set(&mut details.valid_since, valid_since.as_ref());
        set(&mut details.valid_until, valid_until.as_ref());
        set(&mut details.max_visits, max_visits.as_ref());
        set(&mut details.description, description.as_ref());
        set(&mut details.disabled, disabled.as_ref());
        set(&mut details.status, status.as_ref());
        set(&mut details.password, password.as_ref());
        set(&mut details.rules, rules.as_ref());
    }

    /// Returns `true` if the edit would replace a value that only a later release can read.
    fn replaces_unknown(&self, details: &Details) -> bool {
        let Self { valid_since, valid_until, max_visits, description, disabled, status, password, rules } =
            self;
        let sets = [
            ("validSince", valid_since.is_some()),
            ("validUntil", valid_until.is_some()),
            ("maxVisits", max_visits.is_some()),
            ("description", description.is_some()),
            ("disabled", disabled.is_some()),
            ("status", status.is_some()),
            ("password", password.is_some()),
            ("rules", rules.is_some()),
        ];
        let is_unknown = |(name, is_set): (&str, bool)| is_set && details.others.contains_key(name);
        let has_unknown_rule = details.rules.iter().any(Rule::is_of_later_release);
        sets.into_iter().any(is_unknown) || (rules.is_some() && has_unknown_rule)
    }
}

impl Edit {
    /// Returns `true` if the edit would replace a value of these details that only a later release
    /// can read.
    #[must_use]
    pub fn replaces_unknown(&self, details: &Details) -> bool {
        let blocks = self.block.is_some() && details.others.contains_key("blocked");
        blocks || self.details.replaces_unknown(details)
    }
}

/// Facts of an imported link that this deployment does not know by itself, kept so that a later
/// export includes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// Whether the source minted the code, which is a slug here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub minted: bool,
    /// Name of the API key that created the link, if no key here has that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Box<str>>,
    /// Name of the API key that took the link down, if no key here has that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Box<str>>,
    /// Name of the API key that last edited the link before the import, if no key here has that
    /// name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Box<str>>,
}

impl Origin {
    /// Boxes the facts, or returns `None` if there are none.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(version: &u64) -> bool {
    *version == 0
}

impl Details {
    /// Returns `true` if no attribute is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if this release cannot tell which link it is, or in which state.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        ESSENTIAL.iter().any(|name| self.others.contains_key(*name))
    }

    /// Returns the approximate size in memory, in bytes. It is hardly ever too low: the JSON text
    /// is only a little shorter than the strings and lists in memory, and is counted twice.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let mut text = Length(0);
        // Details that cannot be serialized could not have been read either.
        let _ = serde_json::to_writer(&mut text, self);
        size_of::<Self>() + 2 * text.0
    }

    /// Returns `true` if the link redirects at `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.deleted_at.is_none()
            && !self.disabled
            && self.blocked.is_none()
            && self.valid_since.is_none_or(|since| since <= now)
            && self.valid_until.is_none_or(|until| now < until)
    }

    /// Returns `true` if the link redirects neither at `now` nor later, unless it is edited.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let is_gone = self.deleted_at.is_some() || self.disabled || self.blocked.is_some();
        is_gone || self.valid_until.is_some_and(|until| until <= now)
    }

    /// Returns `true` if the link redirects every visitor alike, at any time, with the default
    /// status, on the default domain. Then the redirect needs no clock, no visit count and no
    /// property of the visitor.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        let is_timed = self.valid_since.is_some() || self.valid_until.is_some();
        let is_gone = self.deleted_at.is_some() || self.disabled || self.blocked.is_some();
        let depends =
            is_timed || self.max_visits.is_some() || self.password.is_some() || !self.rules.is_empty();
        let is_known = !self.is_of_later_release();
        !is_gone && !depends && is_known && self.status.is_none() && self.domain.is_none()
    }
}

/// Writer that counts the bytes and drops them.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serialization of times as milliseconds since 1970, which both databases compare as numbers.
mod millis {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.serialize_i64(time.as_millisecond()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let milliseconds: Option<i64> = Option::deserialize(from)?;
        milliseconds.map(Timestamp::from_millisecond).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_memory_is_weighed() {
        let plain = Details::default().bytes();
        let described = Details { description: Some("x".repeat(10_000)), ..Details::default() };
        assert!(described.bytes() >= plain + 10_000);
        let conditions = r#"[{"type":"query-param","matchKey":"k","matchValue":"v"}]"#;
        let rule =
            format!(r#"{{"longUrl":"https://example.com/{}","conditions":{conditions}}}"#, "x".repeat(1_000));
        let rules = format!(r#"{{"rules":[{}]}}"#, vec![rule; 100].join(","));
        let ruled: Details = serde_json::from_str(&rules).unwrap();
        assert!(ruled.rules.len() == 100 && ruled.bytes() >= 100 * 1_000);
    }

    #[test]
    fn details_read_back_as_they_were_written_and_unknown_fields_stay() {
        let time = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        let details = Details {
            slug: Some(Slug::parse("my/slug").unwrap()),
            valid_until: Some(time),
            edited_by: Some(ApiKeyId(3)),
            version: 2,
            ..Details::default()
        };
        let text = serde_json::to_string(&details).unwrap();
        assert_eq!(text, r#"{"slug":"my/slug","validUntil":1700000000123,"editedBy":3,"version":2}"#);
        assert_eq!(serde_json::from_str::<Details>(&text).unwrap(), details);
        let later: Details = serde_json::from_str(r#"{"later":1}"#).unwrap();
        assert_eq!(serde_json::to_string(&later).unwrap(), r#"{"later":1}"#);
        assert!(!later.is_simple());
        assert!(details.is_live(Timestamp::from_millisecond(1_700_000_000_122).unwrap()));
        assert!(!details.is_live(time));
    }
}
