//! Checks of long URLs, domains, slugs, prefixes and times. Each check returns the typed value, or
//! a phrase that says what is wrong. `link_fields.rs` has the checks of a link's other fields.

use jiff::{Timestamp, tz::TimeZone};
use links::{
    Authority, Base, DomainEdit, DomainId, Link, LongUrl, LongUrlError, Slug, TimeError,
    check_fallback_target, is_given_to,
};

use crate::{AppError, Field, FieldErrors, LinkService};

/// A checked value, or a phrase that says what is wrong.
pub type Checked<T> = Result<T, String>;

const DENIED: &str = "the target rules of this service do not allow links to this host";

impl LinkService {
    /// Checks a long URL: its form, its scheme, and that the target rules allow its host.
    pub fn check_long_url(&self, text: &str) -> Checked<LongUrl> {
        let policy = &self.policy;
        let url =
            LongUrl::parse(text, &policy.own_addresses, &policy.schemes).map_err(|error| match error {
                LongUrlError::Scheme => {
                    format!("expected one of the schemes {} (--allowed-schemes)", policy.schemes)
                }
                error => error.to_string(),
            })?;
        if self.domain_cache.entries().targets.allow(url.as_str(), None) {
            Ok(url)
        } else {
            Err(DENIED.to_owned())
        }
    }

    /// Rejects a slug, or the beginning of slugs, at a path that another API is answered at.
    pub(crate) fn check_given(&self, slug: &str) -> Checked<()> {
        let mut given = self.policy.given_paths.iter();
        match given.find(|path| is_given_to(path, slug)) {
            Some(path) => {
                Err(format!("expected another word: another API is answered at /{path} (--compat)"))
            }
            None => Ok(()),
        }
    }

    /// Checks a fallback target: its form, and that it shows its host. An empty one removes the
    /// target.
    pub fn check_fallback_target(text: &str) -> Checked<Option<String>> {
        let text = text.trim();
        check_fallback_target(text).map_err(|error| error.to_string())?;
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// Rejects fallback targets that the target rules deny. They belong to the domain with this
    /// name.
    pub(crate) fn check_fallback_hosts(&self, name: &str, edit: &DomainEdit) -> Result<(), AppError> {
        let (entries, base) = (self.domain_cache.entries(), Base::new(name));
        let mut wrong = FieldErrors::default();
        for (field, target) in [
            ("baseUrlRedirect", &edit.base_url),
            ("regular404Redirect", &edit.regular_404),
            ("invalidShortUrlRedirect", &edit.invalid_short_url),
        ] {
            let target = target.as_ref().and_then(Option::as_deref);
            let is_allowed = target.is_none_or(|target| entries.targets.allow(target, base.as_ref()));
            wrong.note(field, if is_allowed { Ok(()) } else { Err(DENIED.to_owned()) });
        }
        wrong.finish()
    }

    /// Rejects a link that is about to redirect again although the target rules deny one of its
    /// long URLs. The error names this field.
    pub(crate) fn check_targets<'a>(
        &self,
        field: &str,
        mut targets: impl Iterator<Item = &'a LongUrl>,
    ) -> Result<(), AppError> {
        let entries = self.domain_cache.entries();
        let is_allowed = targets.all(|url| entries.targets.allow(url.as_str(), None));
        if is_allowed { Ok(()) } else { Err(AppError::invalid(field, DENIED)) }
    }

    /// Returns the slug of a new link as its domain keeps it: a code of a keyspace as it is minted,
    /// and any slug in small letters, if case is ignored there.
    pub(crate) async fn slug_on(&self, domain: DomainId, slug: &Slug) -> Result<Slug, AppError> {
        let slug = slug.clone().as_minted(&self.lookup.mint);
        if slug.clone().to_lowercase() == slug || !self.ignores_case(domain).await? {
            return Ok(slug);
        }
        let kept = self.pick_small(slug.as_str());
        kept.map_err(|expected| AppError::invalid(Field::CustomSlug.name(), expected))
    }

    /// Returns a prefix of codes of this length as [`LinkService::slug_on`] does a slug.
    pub(crate) async fn prefix_on(
        &self,
        domain: DomainId,
        prefix: &str,
        len: usize,
    ) -> Result<String, AppError> {
        let small = prefix.to_lowercase();
        if small == prefix || !self.ignores_case(domain).await? {
            return Ok(prefix.to_owned());
        }
        let checked = self.pick_small(&format!("{small}{}", "0".repeat(len)));
        checked.map_err(|expected| AppError::invalid(Field::PathPrefix.name(), expected))?;
        Ok(small)
    }

    /// Returns whether a domain ignores case. A slug that was kept in capitals there would never be
    /// found in others.
    async fn ignores_case(&self, domain: DomainId) -> Result<bool, AppError> {
        if !self.domain_cache.is_fresh() {
            Box::pin(self.domain_cache.refresh()).await?;
        }
        let entries = self.domain_cache.entries();
        Ok(entries.domain(domain).is_some_and(|domain| domain.settings.ignore_case))
    }

    /// Returns a slug in small letters, in which it may be a path of the service.
    fn pick_small(&self, text: &str) -> Checked<Slug> {
        let small = Slug::parse(text).map(Slug::to_lowercase);
        let small = small.and_then(|small| Slug::pick(small.as_str())).map_err(|error| error.to_string())?;
        self.check_given(small.as_str()).map(|()| small)
    }

    /// Checks the name of a domain. Returns `None` for the default domain.
    pub fn check_domain(&self, name: &str) -> Checked<Option<Authority>> {
        if name == "DEFAULT" || self.domain_cache.is_default_name(name) {
            return Ok(None);
        }
        Authority::parse(name).map(Some).map_err(|error| error.to_string())
    }
}

/// Reads a time of a request, which is in `zone` without an offset of its own
/// ([`links::read_time`]).
pub fn read_time(text: &str, zone: &TimeZone) -> Checked<Timestamp> {
    let time = links::read_time(text, zone).map_err(|error| match error {
        TimeError::Form => expected_time(text),
        error => error.to_string(),
    })?;
    // In the resolution of the store, so that the stored time equals the requested one.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| expected_time(text))
}

/// Says what a time is, and which text was none, cut to a line.
fn expected_time(text: &str) -> String {
    let got: String = text.chars().take(40).collect();
    format!("{}; got {got:?}", Field::ValidUntil.expected())
}

/// Rejects a link whose slug is reserved by now: the slug may be older than the rule.
pub(crate) fn check_kept_slug(link: &Link) -> Result<(), AppError> {
    let checked = link.slug().map_or(Ok(()), Slug::check_meaning);
    checked.map_err(|error| AppError::invalid("shortCode", error.to_string()))
}

pub(crate) fn custom_slug(text: &str, prefix: Option<&str>) -> Checked<Slug> {
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
pub(crate) fn path_prefix(text: &str) -> Checked<Option<String>> {
    let mut prefix = text.trim().trim_start_matches('/').replace(' ', "-");
    if !prefix.ends_with('/') {
        prefix = prefix.replace('/', "-");
    }
    // The prefix must form a valid slug with any code behind it.
    Slug::pick(&format!("{prefix}00000000")).map_err(|error| error.to_string())?;
    Ok(Some(prefix).filter(|prefix| !prefix.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_the_milliseconds_of_the_store() {
        let time = read_time("2031-01-01T10:00:00.123999", &TimeZone::UTC);
        assert_eq!(time, Ok("2031-01-01T10:00:00.123Z".parse().unwrap()));
    }

    #[test]
    fn a_text_that_is_no_time_is_told() {
        let (long, cut) = ("+2h\n".repeat(30), "+2h\\n".repeat(10));
        for (text, got) in [("tomorrow", "; got \"tomorrow\""), (&*long, &*cut)] {
            let refused = read_time(text, &TimeZone::UTC).unwrap_err();
            assert!(refused.starts_with("expected a time such as ") && refused.contains(got), "{refused}");
            assert!(refused.len() < 300 && !refused.contains('\n'), "{refused}");
        }
    }
}
