//! Values of a link's fields: each check returns the typed value, or says what was expected.

use jiff::Timestamp;
use links::{Authority, LongUrl, LongUrlError, RedirectStatus, Slug, TAGS_MAX, Tag};

use super::{
    LinkService,
    error::{AppError, FieldErrors},
    field::{CODE_LEN_MAX, DESCRIPTION_BYTES, Field, TITLE_BYTES},
};

/// A checked value, or a phrase that begins with "expected".
pub type Checked<T> = Result<T, String>;

const DENIED: &str = "expected a URL whose host links may lead to";

impl LinkService {
    /// Checks a target: its form, its scheme, and that links may lead to its host.
    pub fn check_long_url(&self, text: &str) -> Checked<LongUrl> {
        let policy = &self.policy;
        let url =
            LongUrl::parse_allowed(text, &policy.own_hosts, &policy.schemes).map_err(
                |error| match error {
                    LongUrlError::Scheme => format!("expected one of the schemes {}", policy.schemes),
                    error => error.to_string(),
                },
            )?;
        if self.directory.entries().targets().allow_url(&url) { Ok(url) } else { Err(DENIED.to_owned()) }
    }

    /// Refuses a link that would begin to redirect again although a rule denies one of its targets
    /// by now.
    pub(super) fn check_targets<'a>(
        &self,
        field: Field,
        mut targets: impl Iterator<Item = &'a LongUrl>,
    ) -> Result<(), AppError> {
        let entries = self.directory.entries();
        let is_allowed = targets.all(|url| entries.targets().allow_url(url));
        if is_allowed { Ok(()) } else { Err(AppError::invalid(field.name(), DENIED)) }
    }

    /// Checks the name of a domain; `None` for the default one.
    pub fn check_domain(&self, name: &str) -> Checked<Option<Authority>> {
        if name == "DEFAULT" || self.directory.is_default_name(name) {
            return Ok(None);
        }
        Authority::parse(name).map(Some).map_err(|error| error.to_string())
    }
}

/// Trims a title and cuts it after [`TITLE_BYTES`]; `None` for an empty one.
pub(super) fn title(text: &str) -> Checked<Option<String>> {
    if text.contains('\0') {
        return Err(Field::Title.expected());
    }
    let text = text.trim();
    let end = (0..=TITLE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Ok(Some(text[..end].to_owned()).filter(|title| !title.is_empty()))
}

/// Trims a description; `None` for an empty one.
pub(super) fn description(text: &str) -> Checked<Option<String>> {
    if text.len() > DESCRIPTION_BYTES || text.contains('\0') {
        return Err(Field::Description.expected());
    }
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Parses tags and drops repetitions.
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

/// Checks a visit limit. Both databases store it with a sign.
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

/// Parses a custom slug behind its prefix.
pub(super) fn custom_slug(text: &str, prefix: Option<&str>) -> Checked<Slug> {
    let read = |text: &str| Slug::pick(text).map_err(|error| error.to_string());
    let slug = read(text)?;
    match prefix {
        Some(prefix) => read(&format!("{prefix}{slug}")),
        None => Ok(slug),
    }
}

/// Parses a prefix of codes; `None` for an empty one. A prefix that ends in a slash consists of path
/// segments and keeps them. Any other is the beginning of a word: its slashes become dashes as its
/// spaces do, as in Shlink unless its slugs have several segments.
pub(super) fn path_prefix(text: &str) -> Checked<Option<String>> {
    let mut prefix = text.trim().trim_start_matches('/').replace(' ', "-");
    if !prefix.ends_with('/') {
        prefix = prefix.replace('/', "-");
    }
    // With any code behind it, the prefix has to make a slug.
    Slug::pick(&format!("{prefix}00000000")).map_err(|error| error.to_string())?;
    Ok(Some(prefix).filter(|prefix| !prefix.is_empty()))
}

/// Refuses a link that could never redirect. A link whose time has passed already is accepted, as in
/// Shlink, whose own tests ask for it; imported lists have such links.
pub(super) fn window(since: Option<Timestamp>, until: Option<Timestamp>, wrong: &mut FieldErrors) {
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        wrong.check::<()>(Field::ValidUntil, Err("expected a time after validSince".to_owned()));
    }
}
