//! What few links have.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api_key::ApiKeyId;

use super::{DomainId, PasswordHash, RedirectStatus, Rule, Slug, Tag};

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
    /// What a later release has written: an edit by this one keeps it.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
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

    /// Whether the link redirects at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.deleted_at.is_none()
            && !self.disabled
            && self.valid_since.is_none_or(|since| since <= now)
            && self.valid_until.is_none_or(|until| now < until)
    }

    /// Whether it redirects everybody alike, whenever they come and from whichever domain: then nobody has to look at a clock, a count
    /// or the visitor.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        let is_timed = self.valid_since.is_some() || self.valid_until.is_some();
        let is_gone = self.deleted_at.is_some() || self.disabled;
        let depends =
            is_timed || self.max_visits.is_some() || self.password.is_some() || !self.rules.is_empty();
        !is_gone && !depends && self.status.is_none() && self.domain.is_none()
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
