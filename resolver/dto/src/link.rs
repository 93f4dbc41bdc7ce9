//! The fields of a link: those that a caller sets, and those of answers.
//!
//! [`LinkFields`] is the one definition for creates, edits, bulk calls, fills of reservations, the
//! command line and the document. [`ShortUrl`] is a link as Shlink shows it.

mod bodies;
mod preview;

use links::{
    Authority, Block, CODE_LEN_MAX, DESCRIPTION_BYTES, ExternalId, ExtraPath, LongUrl, PasswordHash,
    RedirectStatus, Slug, TAGS_MAX, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{DateTime, Flag, Number, Patch, Time, VisitsSummary, page::Page, values::inline_schema};
pub use bodies::{BatchItem, FillItem, NewScheduledEdit, NewShortUrl, ShortUrlEdit};
pub use preview::{NewSocialPreview, SocialPreview};

/// The fields of a link that a caller sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LinkFields {
    /// The target: an absolute URL with a scheme that the operator allows, by default http, https,
    /// mailto or tel. It has no user name or password, is not a short link of this service, and the
    /// target rules allow its host. An edit with null leaves it unchanged.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = LongUrl::MAX_LEN))]
    #[schemars(extend("format" = "iri", "examples" = ["https://example.com/page"]))]
    pub long_url: Patch<String>,
    /// All tags of the link. Spaces become dashes, and letters lower case. An edit with null leaves
    /// them unchanged; one with an empty array removes them.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "Patch<Vec<TagName>>", length(max = TAGS_MAX))]
    pub tags: Patch<Vec<String>>,
    /// The name of the link for people. A longer one is cut after 512 bytes.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub title: Patch<String>,
    /// Whether crawlers may follow the link.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub crawlable: Patch<Flag>,
    /// Whether the visitor's query is merged into the target.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub forward_query: Patch<Flag>,
    /// The visit limit: how many visits are redirected.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(range(max = i64::MAX))]
    pub max_visits: Patch<Number>,
    /// The link does not redirect before this time. RFC 3339, a date, which means its beginning, or
    /// seconds since 1970. Without an offset it is in the server's time zone, UTC unless the
    /// operator configured another one.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub valid_since: Patch<Time>,
    /// The link does not redirect from this time on. Written like `validSince`.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub valid_until: Patch<Time>,
    /// A description for people.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = DESCRIPTION_BYTES), extend("x-addition" = true))]
    pub description: Patch<String>,
    /// Whether the link redirects.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("x-addition" = true))]
    pub enabled: Patch<Flag>,
    /// The status of the link's redirects; null for the server's default.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "StatusNumber", extend("x-addition" = true))]
    pub redirect_status: Patch<Number>,
    /// What a path behind the link's name does: `refuse` as if the link were not there, `ignore`,
    /// `append` to the path of the long URL, or `fill` the placeholders `{1}` to `{9}` with its
    /// segments and `{rest}` with what is left. Without all segments the long URL ends before the
    /// first placeholder that is left. `fill` needs a placeholder behind the host of each long URL.
    /// Null for what the domain says.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "ExtraPathOrNull", extend("x-addition" = true))]
    pub extra_path: Patch<String>,
    /// Where visitors are led once the link has expired or its visits are used up, as it is written
    /// and with status 302: an absolute URL like `longUrl`. Null for what the domain says.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = LongUrl::MAX_LEN))]
    #[schemars(extend("format" = "iri", "x-addition" = true))]
    pub expired_url: Patch<String>,
    /// The preview that crawlers of chats and social networks get instead of the target's own. An
    /// edit replaces it as a whole. An empty one removes it.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("x-addition" = true))]
    pub preview: Patch<NewSocialPreview>,
    /// The password that visitors are asked for, without control characters. Only its hash is
    /// stored, and no answer contains it.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(min = 1, max = PasswordHash::MAX_LEN))]
    #[schemars(extend("format" = "password", "x-addition" = true))]
    pub password: Patch<String>,
    /// A slug chosen by the caller, possibly of several segments. Spaces become dashes, and slashes
    /// at its ends are dropped. It takes precedence over the other fields of the code.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Slug::MAX_LEN), extend("format" = "slug"))]
    pub custom_slug: Patch<String>,
    /// A prefix of the code. Spaces become dashes. So do slashes, unless the prefix ends in one:
    /// then it consists of segments. The rest of the code is a digest of the long URL.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Slug::MAX_LEN), extend("format" = "path-prefix"))]
    pub path_prefix: Patch<String>,
    /// The length of the code. The code comes from the keyspace of that length. Without one, codes
    /// of up to 8 characters are digests, and longer ones are random. Digests have 8 characters by
    /// default.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(range(max = CODE_LEN_MAX))]
    pub short_code_length: Patch<Number>,
    /// How the code is chosen: `sequence` takes the next number of a keyspace, `hash` a digest of
    /// the long URL.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "StrategyName", extend("x-addition" = true))]
    pub strategy: Patch<String>,
    /// The name of the code's keyspace. It cannot be combined with the strategy `hash` or a prefix.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("format" = "keyspace", "x-addition" = true))]
    pub keyspace: Patch<String>,
    /// Whether a link that exists already for the long URL is returned: one with the given tags,
    /// limits, domain, status, extra path, expired URL and code, and the oldest if there are
    /// several. Title, description and the other flags are not compared. It cannot be combined with
    /// a password.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("default" = false))]
    pub find_if_exists: Patch<Flag>,
    /// Whether to take the title from the page at the long URL, unless the link has a title. It is
    /// fetched soon after the create. The link stays without one if the page does not answer in
    /// time, or too many titles are waiting to be fetched.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("default" = false, "x-addition" = true))]
    pub fetch_title: Patch<Flag>,
    /// The caller's own id of the link. Surrounding spaces are removed. If an earlier call with the
    /// same API key has used the id, and its link is not deleted, the call edits that link instead
    /// of creating another one: absent fields stay unchanged, and the domain and the fields of the
    /// code have no effect. Requires the scope `edit` as well, and cannot be combined with a
    /// password or `findIfExists`.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(min = 1, max = ExternalId::MAX_LEN))]
    #[schemars(extend("format" = "external-id", "x-addition" = true))]
    pub external_id: Patch<String>,
    /// The domain, as a host name with or without a port; without it, and with `DEFAULT`, the
    /// default one. An unknown domain is added, which needs the scope `domains`. Keys of one domain
    /// create links on that domain only.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Authority::MAX_LEN))]
    #[schemars(extend("format" = "authority", "examples" = ["sho.rt"]))]
    pub domain: Patch<String>,
    /// One of the reservation's codes.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub short_code: Patch<String>,
}

inline_schema!(struct StrategyName, json_schema!({ "enum": ["sequence", "hash", null] }));

/// The domain that a link moves to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["domain"]))]
pub struct MoveShortUrl {
    /// The name of the domain, or `DEFAULT`.
    #[schemars(with = "String", length(min = 1, max = Authority::MAX_LEN))]
    #[schemars(extend("format" = "authority", "examples" = ["sho.rt"]))]
    pub domain: Option<String>,
}

/// Why an operator takes a link down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["reason"]))]
pub struct NewTakedown {
    /// The reason, shown to the link's owner.
    #[schemars(with = "String", length(min = 1, max = Block::REASON_BYTES))]
    #[schemars(extend("format" = "reason"))]
    pub reason: Option<String>,
}

/// A link as Shlink shows it. All fields are always present, in this order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortUrl<'a> {
    /// The URL that visitors open.
    pub short_url: String,
    /// The code, or the slug chosen by a person.
    pub short_code: String,
    /// The target, as it was written.
    pub long_url: &'a str,
    /// When the link was created.
    pub date_created: DateTime,
    /// The tags.
    pub tags: Vec<&'a str>,
    /// When and how often the link redirects.
    pub meta: LinkLimits,
    /// The domain; null for the default one, `(removed)` for one that was removed.
    pub domain: Option<String>,
    /// The name of the link for people.
    pub title: Option<&'a str>,
    /// Whether crawlers may follow the link.
    pub crawlable: bool,
    /// Whether the visitor's query is merged into the target.
    pub forward_query: bool,
    /// Counts of visits.
    pub visits_summary: VisitsSummary,
    /// Whether redirect rules lead some visitors elsewhere.
    pub has_redirect_rules: bool,
    /// A description for people.
    #[schemars(extend("x-addition" = true))]
    pub description: Option<&'a str>,
    /// Whether the link redirects.
    #[schemars(extend("x-addition" = true))]
    pub enabled: bool,
    /// The status of the link's redirects; null for the server's default.
    #[schemars(with = "StatusOrNull", extend("x-addition" = true))]
    pub redirect_status: Option<RedirectStatus>,
    /// What a path behind the link's name does; null for what its domain says.
    #[schemars(with = "ExtraPathOrNull", extend("x-addition" = true))]
    pub extra_path: Option<&'static str>,
    /// Where visitors are led once the link has expired or its visits are used up; null for what
    /// its domain says.
    #[schemars(extend("x-addition" = true))]
    pub expired_url: Option<&'a str>,
    /// The preview for crawlers of chats and social networks; null for the target's own.
    #[schemars(extend("x-addition" = true))]
    pub preview: Option<SocialPreview<'a>>,
    /// Whether visitors are asked for a password.
    #[schemars(extend("x-addition" = true))]
    pub has_password: bool,
    /// The name of the API key that created the link; null for the operator's command line.
    #[schemars(extend("x-addition" = true))]
    pub created_by: Option<&'a str>,
    /// The name of the API key that last edited the link; null also if it was never edited.
    #[schemars(extend("x-addition" = true))]
    pub edited_by: Option<&'a str>,
    /// When the link was last edited.
    #[schemars(extend("x-addition" = true))]
    pub edited_at: Option<DateTime>,
    /// The version, which grows with each edit; it is also in `ETag`.
    #[schemars(extend("x-addition" = true))]
    pub version: u64,
    /// When the link was deleted; null for a link that is not deleted.
    #[schemars(extend("x-addition" = true))]
    pub deleted_at: Option<DateTime>,
    /// Why an operator took the link down; null for a link that was not taken down.
    #[schemars(extend("x-addition" = true))]
    pub blocked: Option<Takedown<'a>>,
    /// When the link was last visited; null if it never was.
    #[schemars(extend("x-addition" = true))]
    pub last_visit: Option<DateTime>,
    /// The caller's own id of the link, unique for the API key that created it; null for none.
    #[schemars(extend("x-addition" = true))]
    pub external_id: Option<&'a str>,
}

/// The answer to a change of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ChangedShortUrl<'a> {
    /// The link, for a key that may read it.
    Whole(Box<ShortUrl<'a>>),
    /// The link's name, for any other key.
    Name(ShortUrlName),
}

/// The name of a link, which is all that a key without the scope `read` learns of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct ShortUrlName {
    /// The URL that visitors open.
    pub short_url: String,
    /// The code, or the slug chosen by a person.
    pub short_code: String,
}

/// Why and when an operator took a link down. The key that did it is in the log, which tenants do
/// not read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct Takedown<'a> {
    /// The reason, in the operator's words.
    pub reason: &'a str,
    /// When the link was taken down.
    pub date: DateTime,
}

/// When and how often a link redirects.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkLimits {
    /// The link does not redirect before this time.
    pub valid_since: Option<DateTime>,
    /// The link does not redirect from this time on.
    pub valid_until: Option<DateTime>,
    /// How many visits are redirected.
    #[schemars(range(min = 1))]
    pub max_visits: Option<u64>,
}

/// A page of links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortUrlPage<'a> {
    /// The page.
    pub short_urls: Page<ShortUrl<'a>>,
}

inline_schema!(struct ExtraPathOrNull, {
    let names = ExtraPath::NAMES.into_iter().map(Some).chain([None]);
    json_schema!({ "enum": names.collect::<Vec<_>>() })
});

inline_schema!(struct StatusOrNull, {
    let statuses = (300..400_u16).filter(|status| RedirectStatus::try_from(*status).is_ok());
    let all: Vec<Option<u16>> = statuses.map(Some).chain([None]).collect();
    json_schema!({ "enum": all })
});

inline_schema!(
    struct TagName,
    json_schema!({ "type": "string", "format": "tag", "minLength": 1, "maxLength": Tag::MAX_LEN })
);

inline_schema!(struct StatusNumber, {
    let statuses = (300..400_u16).filter(|status| RedirectStatus::try_from(*status).is_ok());
    let both = statuses.flat_map(|status| [json!(status), json!(status.to_string())]);
    json_schema!({ "enum": both.chain([Value::Null]).collect::<Vec<_>>() })
});
