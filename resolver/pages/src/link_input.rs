//! Values of links as people write them in forms.

use api::Api;
use app::{
    Field, FieldErrors, LinkFields, LinkService, authorize::require_operator, create_link::CreateLink,
    values::read_time,
};
use links::{
    Tag,
    api_key::{Grant, random_hex},
};

/// Maximum number of tags that a form offers. Others are typed, or found by a search.
const TAGS_MAX: usize = 300;

/// Reads a create from the texts of its fields; what is wrong is recorded. A long URL without a
/// scheme is one of the web. `split` separates tags.
pub(crate) fn read_create<'a>(
    api: &Api,
    value: impl Fn(Field) -> Option<&'a str>,
    split: fn(&str) -> Vec<String>,
    wrong: &mut FieldErrors,
) -> CreateLink {
    let owned = |field| value(field).map(str::to_owned);
    let mut number = |field: Field| {
        let read = value(field)?.parse().map_err(|_| field.expected());
        wrong.check(field, read)
    };
    let (max_visits, short_code_length) = (number(Field::MaxVisits), number(Field::ShortCodeLength));
    let mut time = |field: Field| wrong.check(field, read_time(value(field)?, &api.time_zone));
    let (valid_since, valid_until) = (time(Field::ValidSince), time(Field::ValidUntil));
    CreateLink {
        fields: LinkFields {
            long_url: value(Field::LongUrl).map(|url| Some(with_scheme(&api.links, url))),
            title: owned(Field::Title).map(Some),
            tags: value(Field::Tags).map(|text| Some(split(text))),
            valid_since: valid_since.map(Some),
            valid_until: valid_until.map(Some),
            max_visits: max_visits.map(Some),
            ..LinkFields::default()
        },
        custom_slug: owned(Field::CustomSlug),
        short_code_length,
        domain: owned(Field::Domain),
        ..CreateLink::default()
    }
}

pub(crate) fn tags(text: &str) -> Vec<String> {
    text.split([',', '，']).map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

/// Adds `https://` to a long URL that is none without it, as a browser's address field does.
fn with_scheme(links: &LinkService, url: &str) -> String {
    let is_accepted = |url: &str| links.check_long_url(url).is_ok();
    let with_scheme = format!("https://{url}");
    let is_needed = begins_with_host(url) && !is_accepted(url) && is_accepted(&with_scheme);
    if is_needed { with_scheme } else { url.to_owned() }
}

/// Returns whether a text begins with a host name that has a dot, or with a host and a port. A
/// misspelled scheme (`htp:/page`) is no host.
fn begins_with_host(url: &str) -> bool {
    let host = url.split(['/', '?', '#']).next().unwrap_or_default();
    match host.split_once(':') {
        None => host.contains('.'),
        Some((_, port)) => !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

/// The domains that a form for a new link offers.
#[derive(Debug, Default)]
pub(crate) struct DomainChoices {
    /// The names, that of the domain without a choice first.
    pub(crate) names: Vec<String>,
    /// Whether they are all that the key may use. Otherwise names are typed too.
    pub(crate) are_all: bool,
}

impl DomainChoices {
    /// Lists the domains that a key may use. Those that it does not see are typed, like all of them
    /// while the database does not answer.
    pub(crate) async fn of(links: &LinkService, by: &Grant) -> Self {
        let Ok(domains) = links.domains(true, by).await else { return Self::default() };
        let sees_all = require_operator(by).is_ok() || by.limits.domain.is_some();
        let names: Vec<String> = domains.into_iter().map(|domain| domain.name).collect();
        Self { are_all: sees_all && !names.is_empty(), names }
    }
}

/// Lists the tags that a form offers; none while the database does not answer.
pub(crate) async fn offered_tags(links: &LinkService, by: &Grant) -> Vec<Tag> {
    links.tag_names(TAGS_MAX, by).await.unwrap_or_default()
}

/// Draws the mark of a form, which becomes the idempotency key of its creates: a form that is sent
/// twice makes its links once.
pub(crate) fn mark() -> String {
    // Without one, a form that is sent twice makes two links.
    random_hex::<16>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_gets_a_scheme() {
        for url in ["e.org", "e.org/a:b", "www.e.org?q=a:b", "intranet:8080/page", "例子.测试/页"] {
            assert!(begins_with_host(url), "{url}");
        }
        for url in ["htp:/x", "htp://e.org", "https//e.org", "https:e.org", "page", "/e.org", ""] {
            assert!(!begins_with_host(url), "{url}");
        }
    }

    #[test]
    fn tags_are_split_at_commas_of_both_languages() {
        assert_eq!(tags(" a, b c，d ,,"), ["a", "b c", "d"]);
    }
}
