//! The fields of a link that a caller sets: their names, the values that they take, and the command
//! that creates and edits share.
//!
//! The names are those of Shlink's REST API where it has the field. Every match on [`Field`] is
//! exhaustive: the compiler lists the places that a new field needs.

use jiff::Timestamp;
use links::{
    CODE_LEN_MAX, DESCRIPTION_BYTES, DetailsEdit, Edit, ExternalId, ExtraPath, Precondition, RedirectStatus,
    TAGS_MAX, TITLE_BYTES, Tag,
};

use crate::{FieldErrors, LinkService, PreviewFields, values::Checked};

codes::named_values! {
    /// A field of a link that a create or an edit may set, with its name in requests.
    pub enum Field {
        /// The long URL, absolute.
        LongUrl => "longUrl",
        /// A title for people.
        Title => "title",
        /// A description for people.
        Description => "description",
        /// Tags, at most a hundred.
        Tags => "tags",
        /// The time before which the link does not redirect.
        ValidSince => "validSince",
        /// The time from which the link no longer redirects.
        ValidUntil => "validUntil",
        /// The number of visits after which the link no longer redirects.
        MaxVisits => "maxVisits",
        /// Whether robots may follow the link.
        Crawlable => "crawlable",
        /// Whether a redirect passes on the visitor's query.
        ForwardQuery => "forwardQuery",
        /// Whether the link redirects.
        Enabled => "enabled",
        /// The status of redirects: 301, 302, 307 or 308.
        RedirectStatus => "redirectStatus",
        /// What a path behind the link's name does.
        ExtraPath => "extraPath",
        /// The URL for visitors once the link has expired or its visits are used up.
        ExpiredUrl => "expiredUrl",
        /// The social preview.
        Preview => "preview",
        /// The password that visitors have to enter.
        Password => "password",
        /// A slug of the caller's choice.
        CustomSlug => "customSlug",
        /// A prefix of the generated code.
        PathPrefix => "pathPrefix",
        /// The length of the generated code, in characters.
        ShortCodeLength => "shortCodeLength",
        /// The name of the keyspace that the code is minted from.
        Keyspace => "keyspace",
        /// How the code is generated: `sequence` or `hash`.
        Strategy => "strategy",
        /// The link's domain.
        Domain => "domain",
        /// Whether an existing link for the URL may be returned.
        FindIfExists => "findIfExists",
        /// Whether the title is taken from the page that the long URL leads to.
        FetchTitle => "fetchTitle",
        /// The caller's own id of the link.
        ExternalId => "externalId",
    }
}

impl Field {
    /// Returns the field's name in requests.
    pub const fn name(self) -> &'static str {
        self.as_str()
    }

    /// Describes the values that the field takes.
    pub fn expected(self) -> String {
        match self {
            Self::LongUrl => "expected a string with an absolute URL".to_owned(),
            Self::Title => "expected a string without NUL, or null".to_owned(),
            Self::Description => {
                format!("expected a string of at most {DESCRIPTION_BYTES} bytes without NUL, or null")
            }
            Self::Tags => format!("expected an array of at most {TAGS_MAX} strings"),
            Self::ValidSince | Self::ValidUntil => {
                "expected a time such as 2026-11-22T10:00:00+00:00, a date, or seconds since 1970; \
                 without an offset or a zone such as [Europe/Berlin] they are in the server's time zone"
                    .to_owned()
            }
            Self::MaxVisits => "expected a whole number from 1, or null".to_owned(),
            Self::Crawlable | Self::ForwardQuery | Self::Enabled | Self::FindIfExists | Self::FetchTitle => {
                "expected true, false or null".to_owned()
            }
            Self::RedirectStatus => "expected 301, 302, 307, 308 or null".to_owned(),
            Self::ExtraPath => "expected refuse, ignore, append, fill or null".to_owned(),
            Self::ExpiredUrl => "expected a string with an absolute URL, or null".to_owned(),
            Self::Preview => {
                "expected an object with title, description and image, each a string or null; or null"
                    .to_owned()
            }
            Self::Password | Self::CustomSlug | Self::PathPrefix | Self::Domain => {
                "expected a string, or null".to_owned()
            }
            Self::ShortCodeLength => format!("expected a number from 1 to {CODE_LEN_MAX}, or null"),
            Self::Keyspace => "expected the name of a keyspace that codes are minted of".to_owned(),
            Self::Strategy => "expected sequence, hash or null".to_owned(),
            Self::ExternalId => {
                let most = ExternalId::MAX_LEN;
                format!("expected a string of 1 to {most} bytes without control characters, or null")
            }
        }
    }
}

impl FieldErrors {
    /// Like [`FieldErrors::note`], for a field of a link.
    pub fn check<T>(&mut self, field: Field, read: Result<T, String>) -> Option<T> {
        self.note(field.name(), read)
    }
}

/// The new value of a field: `None` leaves it unchanged, `Some(None)` clears it.
pub type Change<T> = Option<Option<T>>;

/// The fields that a create or an edit sets, unchecked. A create treats a cleared field as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFields {
    /// The target: an absolute URL.
    pub long_url: Change<String>,
    /// The name of the link for people.
    pub title: Change<String>,
    /// A description for people.
    pub description: Change<String>,
    /// Tags, at most [`TAGS_MAX`].
    pub tags: Change<Vec<String>>,
    /// The link does not redirect before this time.
    pub valid_since: Change<Timestamp>,
    /// The link does not redirect from this time on.
    pub valid_until: Change<Timestamp>,
    /// The visit limit: how many visits are redirected.
    pub max_visits: Change<u64>,
    /// Whether crawlers may follow the link; `false` by default.
    pub crawlable: Change<bool>,
    /// Whether the visitor's query is merged into the target; `true` by default.
    pub forward_query: Change<bool>,
    /// Whether the link redirects; `true` by default.
    pub enabled: Change<bool>,
    /// The status of redirects: 301, 302, 307 or 308.
    pub redirect_status: Change<u64>,
    /// What a path behind the link's name does: a name of [`ExtraPath`].
    pub extra_path: Change<String>,
    /// The target once the link has expired or its visits are used up: an absolute URL.
    pub expired_url: Change<String>,
    /// The social preview, replaced as a whole.
    pub preview: Change<PreviewFields>,
    /// The password that visitors are asked for.
    pub password: Change<String>,
}

impl LinkService {
    /// Checks the fields of a create or an edit, all but the password, which takes time to hash.
    /// A wrong value is recorded in `wrong`.
    pub(crate) fn check_fields(&self, fields: LinkFields, wrong: &mut FieldErrors) -> Edit {
        // The pattern and the details name every field, so that the compiler notices a forgotten
        // one.
        let LinkFields {
            long_url,
            title,
            description,
            tags,
            valid_since,
            valid_until,
            max_visits,
            crawlable,
            forward_query,
            enabled,
            redirect_status,
            extra_path,
            expired_url,
            preview,
            password: _,
        } = fields;
        let long_url = long_url.flatten();
        Edit {
            long_url: long_url.and_then(|url| wrong.check(Field::LongUrl, self.check_long_url(&url))),
            title: check(wrong, Field::Title, title, |text| check_title(&text)),
            tags: tags.flatten().and_then(|tags| wrong.check(Field::Tags, check_tags(&tags))),
            crawlable: crawlable.flatten(),
            forward_query: forward_query.flatten(),
            details: DetailsEdit {
                description: check(wrong, Field::Description, description, |text| check_description(&text)),
                valid_since,
                valid_until,
                max_visits: check(wrong, Field::MaxVisits, max_visits, check_max_visits),
                disabled: enabled.flatten().map(|enabled| !enabled),
                status: check(wrong, Field::RedirectStatus, redirect_status, |status| {
                    check_redirect_status(status).map(Some)
                }),
                extra_path: check(wrong, Field::ExtraPath, extra_path, |name| {
                    check_extra_path(&name).map(Some)
                }),
                expired_url: check(wrong, Field::ExpiredUrl, expired_url, |url| {
                    self.check_long_url(&url).map(Some)
                }),
                preview: check(wrong, Field::Preview, preview, |preview| self.check_preview(preview)),
                password: None,
                rules: None,
            },
            block: None,
            relocation: None,
            precondition: Precondition::default(),
        }
    }
}

/// Checks a value that may be cleared. A wrong value is recorded and counts as cleared.
fn check<T, R>(
    wrong: &mut FieldErrors,
    field: Field,
    change: Change<T>,
    read: impl FnOnce(T) -> Checked<Option<R>>,
) -> Change<R> {
    change.map(|value| value.and_then(|value| wrong.check(field, read(value)).flatten()))
}

/// Trims a title and truncates it to [`TITLE_BYTES`]. Returns `None` for an empty title.
fn check_title(text: &str) -> Checked<Option<String>> {
    if text.contains('\0') {
        return Err(Field::Title.expected());
    }
    Ok(Some(cut_title(text.trim()).to_owned()).filter(|title| !title.is_empty()))
}

pub(crate) fn cut_title(text: &str) -> &str {
    &text[..text.floor_char_boundary(TITLE_BYTES)]
}

fn check_description(text: &str) -> Checked<Option<String>> {
    if text.len() > DESCRIPTION_BYTES || text.contains('\0') {
        return Err(Field::Description.expected());
    }
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

pub(crate) fn check_tags(items: &[String]) -> Checked<Vec<Tag>> {
    if items.len() > TAGS_MAX {
        return Err(Field::Tags.expected());
    }
    let mut tags = Vec::with_capacity(items.len());
    for item in items {
        let tag = Tag::parse(item).map_err(|error| error.to_string())?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// Checks a visit limit. The upper bound is that of a signed 64-bit integer, as both databases
/// store.
fn check_max_visits(count: u64) -> Checked<Option<u64>> {
    if (1..=i64::MAX as u64).contains(&count) { Ok(Some(count)) } else { Err(Field::MaxVisits.expected()) }
}

pub(crate) fn check_redirect_status(status: u64) -> Checked<RedirectStatus> {
    let status = u16::try_from(status).ok().and_then(|status| RedirectStatus::try_from(status).ok());
    status.ok_or_else(|| Field::RedirectStatus.expected())
}

pub(crate) fn check_extra_path(name: &str) -> Checked<ExtraPath> {
    ExtraPath::parse(name).ok_or_else(|| Field::ExtraPath.expected())
}

pub(crate) fn check_code_len(len: u64) -> Checked<usize> {
    let len = usize::try_from(len).ok().filter(|len| (1..=CODE_LEN_MAX).contains(len));
    len.ok_or_else(|| Field::ShortCodeLength.expected())
}

/// Rejects a link that could never redirect, because it ends before it begins. An end in the past
/// is accepted, as in Shlink, whose own tests require it; imported lists have such links.
pub(crate) fn check_window(since: Option<Timestamp>, until: Option<Timestamp>, wrong: &mut FieldErrors) {
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        wrong.add(Field::ValidUntil.name(), "expected a time after validSince");
    }
}
