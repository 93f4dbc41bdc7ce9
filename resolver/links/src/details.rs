//! What few links have.

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api_key::ApiKeyId;

use super::{Block, DomainId, PasswordHash, RedirectStatus, Rule, Slug, Tag};

/// What few links have; a link without any of it has no details. Stored as an object: a field that is added here needs no migration,
/// and one that was written once is read for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// What a person picked instead of a minted code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<Slug>,
    /// The domain that it belongs to, if that is not the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Drawn for a hand-picked code: by it a create whose COMMIT was not answered finds out whether the row is its own (I4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// Before this it does not redirect.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub valid_since: Option<Timestamp>,
    /// From this time on it does not redirect any more.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub valid_until: Option<Timestamp>,
    /// How often it redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<u64>,
    /// What a person says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it leads nowhere for now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Who took it down, and why: only an operator brings it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Block>,
    /// The status of its redirects, if it is not that of all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RedirectStatus>,
    /// The hash of the password that visitors are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Other places that it leads to, and when; the first that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// When somebody deleted it. The row stays: its number is never minted again (I7).
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub deleted_at: Option<Timestamp>,
    /// The tags that it had when it was deleted: no tag counts it any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted_tags: Vec<Tag>,
    /// When it was last edited, and with whose key.
    #[serde(skip_serializing_if = "Option::is_none", with = "millis")]
    pub edited_at: Option<Timestamp>,
    /// Whose key edited it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<ApiKeyId>,
    /// Grows with each edit; 0 for a link that was never edited.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: u64,
    /// Facts that came along with an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
    /// What a later release has written: an edit by this one keeps it.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

/// Facts of an imported link that this deployment cannot know by itself. They are kept so that a later export tells them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// Whether its code was minted there, and is a slug here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub minted: bool,
    /// Visits that were counted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<u64>,
    /// The name of the API key that created it, if no key here has that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Box<str>>,
    /// The name of the API key that took it down, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Box<str>>,
    /// The name of the API key that edited it last before the import, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Box<str>>,
}

impl Origin {
    /// The facts, if there are any.
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
    /// Whether there is anything in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What it takes in memory, about. Never much less: as text it is a little shorter than its strings and lists are here.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let mut text = Length(0);
        // What cannot be written was not read either.
        let _ = serde_json::to_writer(&mut text, self);
        size_of::<Self>() + 2 * text.0
    }

    /// Whether the link redirects at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.deleted_at.is_none()
            && !self.disabled
            && self.blocked.is_none()
            && self.valid_since.is_none_or(|since| since <= now)
            && self.valid_until.is_none_or(|until| now < until)
    }

    /// Whether the link redirects neither at this time nor at a later one, unless somebody changes it.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let is_gone = self.deleted_at.is_some() || self.disabled || self.blocked.is_some();
        is_gone || self.valid_until.is_some_and(|until| until <= now)
    }

    /// Whether it redirects everybody alike, whenever they come and from whichever domain: then nobody has to look at a clock, a count
    /// or the visitor.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        let is_timed = self.valid_since.is_some() || self.valid_until.is_some();
        let is_gone = self.deleted_at.is_some() || self.disabled || self.blocked.is_some();
        let depends =
            is_timed || self.max_visits.is_some() || self.password.is_some() || !self.rules.is_empty();
        !is_gone && !depends && self.status.is_none() && self.domain.is_none()
    }
}

/// Counts what is written.
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

/// Times as milliseconds since 1970: both databases compare them as numbers.
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
        assert!(details.is_live(Timestamp::from_millisecond(1_700_000_000_122).unwrap()));
        assert!(!details.is_live(time));
    }
}
