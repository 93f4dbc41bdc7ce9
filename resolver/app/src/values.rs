//! Checks of a link's fields. Each check returns the typed value, or a phrase that says what was
//! expected.

use jiff::Timestamp;
use links::{
    Authority, CODE_LEN_MAX, DESCRIPTION_BYTES, LongUrl, LongUrlError, RedirectStatus, Slug, TAGS_MAX,
    TITLE_BYTES, Tag,
};

use super::{
    LinkService,
    error::{AppError, FieldErrors},
    link_fields::Field,
};

/// A checked value, or a phrase that begins with "expected".
pub type Checked<T> = Result<T, String>;

const DENIED: &str = "expected a URL whose host links may lead to";

impl LinkService {
    /// Checks a long URL: its form, its scheme, and that the target rules allow its host.
    pub fn check_long_url(&self, text: &str) -> Checked<LongUrl> {
        let policy = &self.policy;
        let url =
            LongUrl::parse_allowed(text, &policy.own_hosts, &policy.schemes).map_err(
                |error| match error {
                    LongUrlError::Scheme => format!("expected one of the schemes {}", policy.schemes),
                    error => error.to_string(),
                },
            )?;
        if self.domain_cache.entries().targets().allow_url(&url) { Ok(url) } else { Err(DENIED.to_owned()) }
    }

    /// Rejects a link that is about to redirect again although the target rules deny one of its
    /// long URLs.
    pub(super) fn check_targets<'a>(
        &self,
        field: Field,
        mut targets: impl Iterator<Item = &'a LongUrl>,
    ) -> Result<(), AppError> {
        let entries = self.domain_cache.entries();
        let is_allowed = targets.all(|url| entries.targets().allow_url(url));
        if is_allowed { Ok(()) } else { Err(AppError::invalid(field.name(), DENIED)) }
    }

    /// Checks the name of a domain. Returns `None` for the default domain.
    pub fn check_domain(&self, name: &str) -> Checked<Option<Authority>> {
        if name == "DEFAULT" || self.domain_cache.is_default_name(name) {
            return Ok(None);
        }
        Authority::parse(name).map(Some).map_err(|error| error.to_string())
    }
}

/// Trims a title and truncates it to [`TITLE_BYTES`]. Returns `None` for an empty title.
pub(super) fn title(text: &str) -> Checked<Option<String>> {
    if text.contains('\0') {
        return Err(Field::Title.expected());
    }
    let text = text.trim();
    let end = (0..=TITLE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Ok(Some(text[..end].to_owned()).filter(|title| !title.is_empty()))
}

/// Trims a description. Returns `None` for an empty one.
pub(super) fn description(text: &str) -> Checked<Option<String>> {
    if text.len() > DESCRIPTION_BYTES || text.contains('\0') {
        return Err(Field::Description.expected());
    }
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Parses tags and removes duplicates.
pub(super) fn tags(items: &[String]) -> Checked<Vec<Tag>> {
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
pub(super) fn max_visits(count: u64) -> Checked<u64> {
    if (1..=i64::MAX as u64).contains(&count) { Ok(count) } else { Err(Field::MaxVisits.expected()) }
}

/// Checks the status of a link's redirects.
pub(super) fn redirect_status(status: u64) -> Checked<RedirectStatus> {
    let status = u16::try_from(status).ok().and_then(|status| RedirectStatus::try_from(status).ok());
    status.ok_or_else(|| Field::RedirectStatus.expected())
}

/// Checks the length of a code.
pub(super) fn code_len(len: u64) -> Checked<usize> {
    let len = usize::try_from(len).ok().filter(|len| (1..=CODE_LEN_MAX).contains(len));
    len.ok_or_else(|| Field::ShortCodeLength.expected())
}

/// Parses a custom slug and prepends the prefix.
pub(super) fn custom_slug(text: &str, prefix: Option<&str>) -> Checked<Slug> {
    let read = |text: &str| Slug::pick(text).map_err(|error| error.to_string());
    let slug = read(text)?;
    match prefix {
        Some(prefix) => read(&format!("{prefix}{slug}")),
        None => Ok(slug),
    }
}

/// Parses a prefix of codes. Returns `None` for an empty prefix.
///
/// Spaces become dashes. A prefix that ends in a slash consists of path segments and keeps its
/// slashes. Any other prefix is the beginning of a word: its slashes become dashes too, as in
/// Shlink unless multi-segment slugs are enabled there.
pub(super) fn path_prefix(text: &str) -> Checked<Option<String>> {
    let mut prefix = text.trim().trim_start_matches('/').replace(' ', "-");
    if !prefix.ends_with('/') {
        prefix = prefix.replace('/', "-");
    }
    // The prefix must form a valid slug with any code behind it.
    Slug::pick(&format!("{prefix}00000000")).map_err(|error| error.to_string())?;
    Ok(Some(prefix).filter(|prefix| !prefix.is_empty()))
}

/// Rejects a link that could never redirect, because it ends before it begins. An end in the past
/// is accepted, as in Shlink, whose own tests require it; imported lists have such links.
pub(super) fn window(since: Option<Timestamp>, until: Option<Timestamp>, wrong: &mut FieldErrors) {
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        wrong.check::<()>(Field::ValidUntil, Err("expected a time after validSince".to_owned()));
    }
}
