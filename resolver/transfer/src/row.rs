//! A link as exported by another system, its columns in our own formats, and the errors of reading
//! one.

use std::fmt;

use jiff::Timestamp;
use links::{Details, Preview};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Value, json};

use super::{item::Item, table::Layout};

/// A link as exported by another system, not yet checked against the rules for links. Optional
/// texts are never empty: an empty text is `None`. Exports have the fields under the serialized
/// names and in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The item's position in the input, counted from 1. Unreadable items count too; header lines
    /// do not.
    #[serde(skip)]
    pub place: u64,
    /// The code or slug: the path of the short URL.
    #[serde(rename = "shortCode")]
    pub code: Option<String>,
    /// The redirect target.
    pub long_url: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The tags in the order of the input; none is blank.
    pub tags: Vec<String>,
    /// The host of the short URL, with its port if it has one. `None` if the input does not name
    /// the domain, or marks it as the default domain.
    pub domain: Option<String>,
    /// The time of creation.
    pub created_at: Option<Timestamp>,
    /// The start of validity; before it the link does not redirect.
    pub valid_since: Option<Timestamp>,
    /// The end of validity; from it on the link does not redirect.
    pub valid_until: Option<Timestamp>,
    /// The visit limit: the maximum number of redirects.
    pub max_visits: Option<u64>,
    /// Whether robots may crawl the link.
    pub crawlable: Option<bool>,
    /// Whether the visitor's query is forwarded to the target.
    pub forward_query: Option<bool>,
    /// The number of visits counted by the other system.
    pub visits: Option<u64>,
    /// The number of redirects used up out of `max_visits`.
    pub uses: Option<u64>,
    /// Whether the link is enabled; a disabled link does not redirect.
    pub enabled: Option<bool>,
    /// The HTTP status of the link's redirects.
    pub redirect_status: Option<u64>,
    /// What a path behind the code does.
    pub extra_path: Option<String>,
    /// The redirect target once the link has expired or its visits are used up.
    pub expired_url: Option<String>,
    /// The title of the social preview.
    pub preview_title: Option<String>,
    /// The description of the social preview.
    pub preview_description: Option<String>,
    /// The URL of the social preview's picture.
    pub preview_image: Option<String>,
    /// The id in the system of the API key that created the link.
    pub external_id: Option<String>,
    /// Whether the code was minted rather than picked by a person.
    pub minted: Option<bool>,
    /// The Argon2 hash of the password, in PHC string format.
    pub password_hash: Option<Secret>,
    /// The redirect rules, as the text of a JSON list.
    #[serde(serialize_with = "as_list")]
    pub redirect_rules: Option<String>,
    /// The name of the API key that created the link.
    pub created_by: Option<String>,
    /// The time of the last edit.
    pub edited_at: Option<Timestamp>,
    /// The name of the API key of the last edit.
    pub edited_by: Option<String>,
    /// The number of edits.
    pub version: Option<u64>,
    /// The reason for a takedown by an operator.
    pub blocked: Option<String>,
    /// The time of the takedown.
    pub blocked_at: Option<Timestamp>,
    /// The name of the API key of the takedown.
    pub blocked_by: Option<String>,
    /// The time of deletion. A deleted link's code is not given to other links.
    pub deleted_at: Option<Timestamp>,
    /// Properties of the link that are not transferred. The import warns of them.
    pub left_out: Vec<LeftOut>,
    /// The other names of the link: the domain and the code of each. Reading ends with a row for
    /// each of them, so rows that were read have none.
    #[serde(skip)]
    pub other_names: Vec<(Option<String>, String)>,
}

/// The number of columns that are written: the first ones of [`LAYOUT`].
pub(super) const WRITTEN: usize = 31;

/// Fields that only the JSON form has.
pub(super) const JSON_ONLY: [&str; 2] = ["passwordHash", "deletedAt"];

/// The columns with their aliases: the names that other systems and people give them. Case, spaces,
/// dashes and underscores do not count.
pub(super) const LAYOUT: Layout = Layout {
    columns: &[
        "shortCode code slug customSlug keyword slashtag backHalf alias address",
        "longUrl url target destination originalUrl longLink",
        "title",
        "description",
        "tags",
        "domain domain.fullName domainName",
        "createdAt created dateCreated timestamp",
        "validSince",
        "validUntil expiresAt",
        "maxVisits",
        "crawlable",
        "forwardQuery",
        "visits clicks hits visitCount visitsCount",
        "uses",
        "enabled",
        "redirectStatus",
        "extraPath",
        "expiredUrl",
        "previewTitle",
        "previewDescription",
        "previewImage",
        "externalId",
        "minted",
        "createdBy",
        "editedAt",
        "editedBy",
        "version",
        "blocked",
        "blockedAt",
        "blockedBy",
        "leftOut",
        // As JSON. Exports have rules in their other form alone.
        "redirectRules",
        "shortUrl shortLink bitlink",
        // Columns that other systems export in addition. They are not kept.
        "id",
        "ip",
        "updatedAt",
    ],
    needed: &["longUrl"],
    is_closed: true,
    unnamed: None,
};

/// Returns the code and the domain. What has no column of its own is taken from the short URL.
fn name(item: &Item) -> Result<(Option<String>, Option<String>), RowError> {
    let (code, domain) = (item.text("shortCode")?, item.text("domain")?);
    let Some(short) = item.short_url("shortUrl")? else { return Ok((code, domain)) };
    Ok((code.or(short.code), domain.or(Some(short.domain))))
}

/// Serializes rules as a list, and not as its text.
fn as_list<S: Serializer>(rules: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    let list: Option<Value> =
        rules.as_deref().map(serde_json::from_str).transpose().map_err(S::Error::custom)?;
    list.serialize(to)
}

/// A string whose `Debug` output hides its content, so that it never appears in logs.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Row {
    /// Takes the details that have a field of the same name in a row. The pattern names every field
    /// of the details, so that a new field cannot be left out of exports by oversight: protection
    /// against visitors must be exported.
    pub fn of_details(details: Details) -> Self {
        let Details {
            slug: _,
            renamed: _,
            given_up: _,
            domain: _,
            mark: _,
            valid_since,
            valid_until,
            max_visits,
            description,
            disabled: _,
            status,
            extra_path,
            expired_url,
            preview,
            external_id,
            password,
            rules,
            deleted_at,
            deleted_tags: _,
            edited_at,
            edited_by: _,
            version,
            origin: _,
            others: _,
            blocked,
        } = details;
        let Preview { title, description: preview_description, image } = preview.unwrap_or_default();
        Self {
            description,
            valid_since,
            valid_until,
            max_visits,
            redirect_status: status.map(|status| u64::from(u16::from(status))),
            extra_path: extra_path.map(|extra_path| extra_path.as_str().to_owned()),
            expired_url: expired_url.map(|url| url.as_str().to_owned()),
            preview_title: title,
            preview_description,
            preview_image: image.map(|url| url.as_str().to_owned()),
            external_id: external_id.map(|id| id.as_str().to_owned()),
            password_hash: password.map(|hash| Secret(hash.phc().to_owned())),
            redirect_rules: (!rules.is_empty()).then(|| json!(rules).to_string()),
            edited_at,
            version: Some(version).filter(|version| *version > 0),
            deleted_at,
            blocked_at: blocked.as_ref().map(|block| block.at),
            blocked: blocked.map(|block| block.reason),
            ..Self::default()
        }
    }

    /// Reads the fields that have their names of the API in our own formats and in its answers.
    pub(super) fn read_named(item: &Item) -> Result<Self, RowError> {
        Ok(Self {
            place: item.place,
            title: item.text("title")?,
            description: item.text("description")?,
            crawlable: item.flag("crawlable")?,
            forward_query: item.flag("forwardQuery")?,
            enabled: item.flag("enabled")?,
            redirect_status: item.count("redirectStatus")?,
            extra_path: item.text("extraPath")?,
            expired_url: item.text("expiredUrl")?,
            // Responses of the API have an object with all three.
            preview_title: item.text("previewTitle")?.or(item.text("preview.title")?),
            preview_description: item.text("previewDescription")?.or(item.text("preview.description")?),
            preview_image: item.text("previewImage")?.or(item.text("preview.image")?),
            ..Self::default()
        })
    }

    /// Reads the fields that the table and the JSON form share.
    pub(super) fn read(item: &Item, tags: Vec<String>, left_out: &[String]) -> Result<Self, RowError> {
        let (code, domain) = name(item)?;
        // A name of a later version is never taken for harmless.
        let known = |name: &String| LeftOut::parse(name.trim()).unwrap_or(LeftOut::Unknown);
        Ok(Self {
            code,
            domain,
            long_url: item.needed("longUrl")?,
            tags,
            created_at: item.time("createdAt")?,
            valid_since: item.time("validSince")?,
            valid_until: item.time("validUntil")?,
            max_visits: item.count("maxVisits")?,
            visits: item.count("visits")?,
            uses: item.count("uses")?,
            external_id: item.text("externalId")?,
            minted: item.flag("minted")?,
            created_by: item.text("createdBy")?,
            edited_at: item.time("editedAt")?,
            edited_by: item.text("editedBy")?,
            version: item.count("version")?,
            blocked: item.text("blocked")?,
            blocked_at: item.time("blockedAt")?,
            blocked_by: item.text("blockedBy")?,
            left_out: left_out.iter().map(known).collect(),
            ..Self::read_named(item)?
        })
    }

    /// Returns the approximate size of the row in bytes.
    pub fn weight(&self) -> usize {
        let Self { code, domain, title, description, expired_url, redirect_rules, .. } = self;
        let others = [&self.preview_title, &self.preview_description, &self.preview_image, &self.external_id];
        let texts = [code, domain, title, description, expired_url, redirect_rules].into_iter().chain(others);
        let tags = self.tags.iter().map(|tag| tag.len() + size_of::<String>());
        let texts = texts.flatten().map(String::len);
        size_of::<Self>() + self.long_url.len() + texts.sum::<usize>() + tags.sum::<usize>()
    }

    /// Returns the properties that a table does not carry, and those in `left_out`.
    pub fn left_out_of_table(&self) -> Vec<LeftOut> {
        let mut left_out = self.left_out.clone();
        left_out.extend(self.password_hash.is_some().then_some(LeftOut::Password));
        left_out.extend(self.redirect_rules.is_some().then_some(LeftOut::RedirectRules));
        left_out.sort_unstable();
        left_out.dedup();
        left_out
    }
}

codes::named_values! {
    /// A property of a link that is not transferred, with its name in exports and summaries.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LeftOut {
        /// The password. Without it the link is open to every visitor.
        Password => "password",
        /// Redirect rules or URLs for devices, which redirected some visitors elsewhere.
        RedirectRules => "redirect-rules",
        /// The disabled state of the link's whole domain.
        DisabledDomain => "disabled-domain",
        /// Limits, times and states that the format cannot express, if the link had any.
        Limits => "limits",
        /// A property of a later version, which may protect the link.
        Unknown => "unknown",
    }
}

impl LeftOut {
    /// Returns whether its loss opens the link to visitors who were kept out.
    pub fn is_protection(self) -> bool {
        match self {
            Self::Password | Self::DisabledDomain | Self::Unknown => true,
            // As a protection, `Limits` would disable every link of such a table. It is reported
            // once instead.
            Self::RedirectRules | Self::Limits => false,
        }
    }
}

/// An error about one item, or about the rest of the input.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct RowError {
    /// The position of the item at fault; `None` for an error between items.
    pub place: Option<u64>,
    /// Whether reading ends with this error, so that the rest of the input is lost.
    pub is_final: bool,
    text: String,
}

impl RowError {
    /// An item is invalid; reading continues with the next one.
    pub(super) fn item(place: u64, problem: impl fmt::Display) -> Self {
        Self { place: Some(place), is_final: false, text: format!("item {place}: {problem}") }
    }

    /// A document has no list of links, for example an error response; reading continues with the
    /// next document.
    pub(super) fn document(after: u64, path: &str) -> Self {
        let path = path.replace(' ', " or ");
        let text = format!("after item {after}: the document has no list of links in {path}");
        Self { place: None, is_final: false, text }
    }

    /// The input is malformed, or cannot be read any further.
    pub(super) fn broken(after: u64, problem: impl fmt::Display) -> Self {
        Self::form(format!("after item {after}: {problem}"))
    }

    /// The input is in no form that is read.
    pub(super) fn form(text: String) -> Self {
        Self { place: None, is_final: true, text }
    }
}
