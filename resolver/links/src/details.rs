//! Optional attributes of a link.

use jiff::{Timestamp, fmt::serde::timestamp::millisecond::optional as milliseconds};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api_key::ApiKeyId;

use super::{
    Block, DomainId, Edit, ExternalId, ExtraPath, Invalid, Link, LongUrl, PasswordHash, Preview, Rule, Slug,
    StoredObject as _, Tag, record::set,
};

/// Members that tell which link it is and in which state, or that every change writes. Without one
/// of them a link cannot be changed.
const ESSENTIAL: [&str; 10] =
    ["", "slug", "renamed", "domain", "mark", "deletedAt", "deletedTags", "editedAt", "editedBy", "version"];

/// Members that only a later release can read.
type Others = serde_json::Map<String, Value>;

/// Optional attributes, which few links have; a link with none of them has no details.
///
/// Stored as an object, so that a new field needs no migration. A field that was ever written must
/// stay readable. Times are milliseconds since 1970, which both databases compare as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Slug: a hand-picked code in place of a minted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<Slug>,
    /// Whether the slug is another name than the code of the link's number. That code stays with
    /// the number, and leads nowhere.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renamed: bool,
    /// Whether this is no link: it only keeps its number, whose code another link got as its name,
    /// or the version at which a link left a slug. It is never found as a deleted link.
    #[serde(rename = "_givenUp", skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// Domain of the link; `None` for the default domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Random mark of a link with a hand-picked code. If the COMMIT of its create is not answered,
    /// the creator recognizes its own row by the mark (I4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// Start time: the link does not redirect before it.
    #[serde(skip_serializing_if = "Option::is_none", with = "milliseconds")]
    pub valid_since: Option<Timestamp>,
    /// End time: the link does not redirect at it or later.
    #[serde(skip_serializing_if = "Option::is_none", with = "milliseconds")]
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
    /// What a path behind the name does; `None` for what the domain says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_path: Option<ExtraPath>,
    /// Target of visitors once the link has expired or its visits are used up; `None` for that of
    /// the domain. Releases without it answer such visitors as if there were none.
    #[serde(rename = "_expiredUrl", skip_serializing_if = "Option::is_none")]
    pub expired_url: Option<LongUrl>,
    /// Social preview. Releases without it redirect crawlers like other visitors.
    #[serde(rename = "_preview", skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// Id in the system of the API key that created the link. Releases without it do not show it.
    #[serde(rename = "_externalId", skip_serializing_if = "Option::is_none")]
    pub external_id: Option<ExternalId>,
    /// Hash of the password that visitors have to enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Redirect rules, in the order in which they are tried; the first match decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Time of deletion. The row stays, so that its number is never minted again (I7).
    #[serde(skip_serializing_if = "Option::is_none", with = "milliseconds")]
    pub deleted_at: Option<Timestamp>,
    /// Tags at the time of deletion. The link no longer counts among the links of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted_tags: Vec<Tag>,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none", with = "milliseconds")]
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
    pub others: Others,
}

/// A redirect status: 301, 302, 307 or 308.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct RedirectStatus(u16);

impl TryFrom<u16> for RedirectStatus {
    type Error = Invalid;

    fn try_from(status: u16) -> Result<Self, Invalid> {
        let is_known = matches!(status, 301 | 302 | 307 | 308);
        if is_known { Ok(Self(status)) } else { Err(Invalid::because("expected 301, 302, 307 or 308")) }
    }
}

impl From<RedirectStatus> for u16 {
    fn from(status: RedirectStatus) -> Self {
        status.0
    }
}

/// Whether a link redirects, and if not, why. Of several reasons, the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Deleted.
    Deleted,
    /// Taken down by an operator.
    Blocked,
    /// Disabled by its owner.
    Disabled,
    /// Past its end time.
    Expired,
    /// Before its start time.
    NotYetValid,
    /// Redirects.
    Live,
}

impl LinkState {
    /// Returns whether the link redirects neither now nor later, unless it is edited.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::NotYetValid | Self::Live)
    }
}

/// A partial update of [`Details`]: `None` leaves an attribute, and `Some(None)` removes it.
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
    /// What a path behind the name does.
    pub extra_path: Option<Option<ExtraPath>>,
    /// Target of visitors once the link has expired or its visits are used up.
    pub expired_url: Option<Option<LongUrl>>,
    /// Social preview.
    pub preview: Option<Option<Preview>>,
    /// Hash of the password that visitors have to enter.
    pub password: Option<Option<PasswordHash>>,
    /// Redirect rules, replaced as a whole.
    pub rules: Option<Vec<Rule>>,
}

impl DetailsEdit {
    /// Sets the attributes that the edit has values for. Returns `true` if that replaces a value
    /// that only a later release can read.
    pub(super) fn apply_to(&self, details: &mut Details) -> bool {
        // The pattern names every attribute, so that the compiler notices a forgotten one.
        let Self {
            valid_since,
            valid_until,
            max_visits,
            description,
            disabled,
            status,
            extra_path,
            expired_url,
            preview,
            password,
            rules,
        } = self;
        let others = &details.others;
        let has_unknown_rule = rules.is_some() && details.rules.iter().any(Rule::is_of_later_release);
        let replaced = [
            replace("validSince", &mut details.valid_since, valid_since, others),
            replace("validUntil", &mut details.valid_until, valid_until, others),
            replace("maxVisits", &mut details.max_visits, max_visits, others),
            replace("description", &mut details.description, description, others),
            replace("disabled", &mut details.disabled, disabled, others),
            replace("status", &mut details.status, status, others),
            replace("extraPath", &mut details.extra_path, extra_path, others),
            replace("_expiredUrl", &mut details.expired_url, expired_url, others),
            replace("_preview", &mut details.preview, preview, others),
            replace("password", &mut details.password, password, others),
            replace("rules", &mut details.rules, rules, others),
        ];
        has_unknown_rule || replaced.contains(&true)
    }
}

/// Overwrites an attribute if a value is given. Returns whether it replaces an unknown one.
fn replace<T: Clone>(name: &str, attribute: &mut T, value: &Option<T>, others: &Others) -> bool {
    set(attribute, value.as_ref());
    value.is_some() && others.contains_key(name)
}

impl Edit {
    /// Returns `true` if the edit would replace a value that only a later release can read.
    pub fn replaces_unknown(&self, details: &Details) -> bool {
        let blocks = self.block.is_some() && details.others.contains_key("blocked");
        blocks || self.details.apply_to(&mut details.clone())
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
    /// Name of the API key of the last edit before the import, if no key here has that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<Box<str>>,
}

impl Origin {
    /// Boxes the facts, or returns `None` if there are none.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(version: &u64) -> bool {
    *version == 0
}

impl Details {
    /// Stored names of attributes that may be long. Lists that only name links are read without
    /// them.
    pub const LONG: [&str; 4] = ["rules", "description", "_expiredUrl", "_preview"];

    /// Returns `true` if no attribute is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if this release cannot tell which link it is, or in which state.
    pub fn is_opaque(&self) -> bool {
        ESSENTIAL.iter().any(|name| self.others.contains_key(*name))
    }

    /// Returns the approximate size in memory, in bytes. It is hardly ever too low: the JSON text
    /// is only a little shorter than the strings and lists in memory, and is counted twice.
    pub fn bytes(&self) -> usize {
        // Details that cannot be serialized could not have been read either.
        size_of::<Self>() + 2 * serde_json::to_string(self).map_or(0, |text| text.len())
    }

    /// Returns whether the link redirects at `now`, and if not, why.
    pub fn state(&self, now: Timestamp) -> LinkState {
        if self.deleted_at.is_some() {
            LinkState::Deleted
        } else if self.blocked.is_some() {
            LinkState::Blocked
        } else if self.disabled {
            LinkState::Disabled
        } else if self.valid_until.is_some_and(|until| until <= now) {
            LinkState::Expired
        } else if self.valid_since.is_some_and(|since| now < since) {
            LinkState::NotYetValid
        } else {
            LinkState::Live
        }
    }

    /// Returns `true` if the link redirects every visitor alike, at any time, with the default
    /// status, on the default domain, under the code of its number if it has one. Then the redirect
    /// needs no clock, no visit count and no property of the visitor.
    pub fn is_simple(&self) -> bool {
        let is_timed = self.valid_since.is_some() || self.valid_until.is_some();
        let is_gone = self.deleted_at.is_some() || self.disabled || self.blocked.is_some();
        let is_for_some = !self.rules.is_empty() || self.preview.is_some();
        let depends = is_timed || self.max_visits.is_some() || self.password.is_some() || is_for_some;
        let is_known = !self.is_of_later_release();
        let is_whole = self.extra_path != Some(ExtraPath::Fill);
        let is_elsewhere = self.domain.is_some() || self.renamed;
        !is_gone && !depends && is_known && is_whole && self.status.is_none() && !is_elsewhere
    }
}

impl Link {
    /// Returns the fields that the audit log keeps, named as in the API; `null` for one without a
    /// value. It never contains the password.
    pub(crate) fn logged(&self) -> [(&'static str, Value); 18] {
        let details = self.details();
        [
            ("longUrl", json!(self.long_url)),
            ("title", json!(self.title)),
            ("description", json!(details.description)),
            ("crawlable", json!(self.crawlable)),
            ("forwardQuery", json!(self.forward_query)),
            ("enabled", json!(!details.disabled)),
            ("hasPassword", json!(details.password.is_some())),
            ("redirectStatus", json!(details.status)),
            ("extraPath", json!(details.extra_path)),
            ("expiredUrl", json!(details.expired_url)),
            ("preview", json!(details.preview)),
            ("validSince", json!(details.valid_since)),
            ("validUntil", json!(details.valid_until)),
            ("maxVisits", json!(details.max_visits)),
            ("redirectRules", json!(Some(&details.rules).filter(|rules| !rules.is_empty()))),
            ("blocked", json!(details.blocked.as_ref().map(|block| &block.reason))),
            ("deletedAt", json!(details.deleted_at)),
            ("version", json!(details.version)),
        ]
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
            blocked: Some(Block { reason: "phishing".to_owned(), by: ApiKeyId(3), at: time }),
            edited_by: Some(ApiKeyId(3)),
            version: 2,
            ..Details::default()
        };
        let text = serde_json::to_string(&details).unwrap();
        let blocked = r#"{"reason":"phishing","by":3,"at":1700000000123}"#;
        let expected = format!(
            r#"{{"slug":"my/slug","validUntil":1700000000123,"blocked":{blocked},"editedBy":3,"version":2}}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Details>(&text).unwrap(), details);
        let later: Details = serde_json::from_str(r#"{"later":1}"#).unwrap();
        assert_eq!(serde_json::to_string(&later).unwrap(), r#"{"later":1}"#);
        assert!(!later.is_simple());
        // Releases without this member may ignore it.
        let expired_url = Some(LongUrl::from_stored("https://x.y/"));
        let details = Details { expired_url, ..Details::default() };
        assert_eq!(serde_json::to_string(&details).unwrap(), r#"{"_expiredUrl":"https://x.y/"}"#);
        assert!(details.is_simple(), "it matters only with a limit");
        let preview = Preview { title: Some("T".to_owned()), ..Preview::default() };
        let details = Details { preview: Some(preview), ..Details::default() };
        assert_eq!(serde_json::to_string(&details).unwrap(), r#"{"_preview":{"title":"T"}}"#);
        assert!(!details.is_simple(), "crawlers are answered otherwise");
    }

    #[test]
    fn a_link_has_one_state_and_the_lasting_reason_counts() {
        let [past, now, future] = [1, 2, 3].map(|second| Timestamp::from_second(second).unwrap());
        let block = Block { reason: "x".to_owned(), by: ApiKeyId(1), at: past };
        let early = Details { valid_since: Some(future), ..Details::default() };
        let expired = Details { valid_until: Some(now), ..early.clone() };
        let disabled = Details { disabled: true, ..expired.clone() };
        let blocked = Details { blocked: Some(block), ..disabled.clone() };
        let deleted = Details { deleted_at: Some(past), ..blocked.clone() };
        let live = Details { valid_since: Some(now), valid_until: Some(future), ..Details::default() };
        for (details, state, is_over) in [
            (live, LinkState::Live, false),
            (early, LinkState::NotYetValid, false),
            (expired, LinkState::Expired, true),
            (disabled, LinkState::Disabled, true),
            (blocked, LinkState::Blocked, true),
            (deleted, LinkState::Deleted, true),
        ] {
            assert_eq!((details.state(now), state.is_over()), (state, is_over));
        }
    }
}
