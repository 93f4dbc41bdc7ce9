//! The query of a statistics page: whose visits, of which period.

use app::{
    FieldErrors,
    find_link::LinkName,
    visit_stats::{StatsRequest, TOP_MAX},
    visit_subjects::VisitsOf,
};
use jiff::{Timestamp, tz::TimeZone};
use url::form_urlencoded;
use visits::{OrphanKind, tally::Dimension};

use super::super::period::Period;
use crate::{addresses, form::Form, locale::Locale};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) of: VisitsOf,
    pub(super) period: Period,
    pub(super) people_only: bool,
}

impl Selection {
    /// Reads a query. What is wrong is recorded.
    pub(super) fn read(query: &Form, wrong: &mut FieldErrors) -> Self {
        let of = subject(query).ok_or_else(|| {
            "neither link with code, tag with tag, domain with domain, all nor orphans".to_owned()
        });
        Self {
            of: wrong.note("of", of).unwrap_or(VisitsOf::Links { domain: None }),
            period: Period::read(query, wrong),
            people_only: query.is_on("people"),
        }
    }

    pub(super) fn request(&self, now: Timestamp, zone: &TimeZone, dimensions: &[Dimension]) -> StatsRequest {
        let (start, end) = self.period.bounds(now, zone);
        // The number of a rule means something among those of its link.
        let is_shown = |one: &Dimension| *one != Dimension::Rule || matches!(self.of, VisitsOf::Link(_));
        StatsRequest {
            of: self.of.clone(),
            start,
            end,
            interval: None,
            zone: zone.clone(),
            people_only: self.people_only,
            dimensions: dimensions.iter().copied().filter(is_shown).collect(),
            top: TOP_MAX,
            compares: !dimensions.is_empty(),
        }
    }

    /// Returns whose visits as a query says it: the field `of`, that of a name, and the domain.
    fn parts(&self) -> (&'static str, Option<(&'static str, &str)>, Option<&str>) {
        let (of, name, domain) = match &self.of {
            VisitsOf::Link(name) => ("link", Some(("code", name.code.as_str())), &name.domain),
            VisitsOf::Tag { tag, domain } => ("tag", Some(("tag", tag.as_str())), domain),
            VisitsOf::Domain(name) => return ("domain", None, Some(name)),
            VisitsOf::Links { domain } => ("all", None, domain),
            VisitsOf::Orphans { domain, .. } => ("orphans", None, domain),
        };
        (of, name, domain.as_deref())
    }

    /// Returns the fields of a query that say whose visits.
    pub(super) fn subject_pairs(&self) -> Vec<(&'static str, String)> {
        let (of, name, domain) = self.parts();
        let named = name.into_iter().chain(domain.map(|domain| ("domain", domain)));
        let mut pairs = vec![("of", of.to_owned())];
        pairs.extend(named.map(|(name, value)| (name, value.to_owned())));
        if let VisitsOf::Orphans { kind: Some(kind), .. } = self.of {
            pairs.push(("kind", kind.as_str().to_owned()));
        }
        pairs
    }

    /// Returns the fields that say which period, and whether bots are left out.
    pub(super) fn period_pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.period.pairs();
        pairs.extend(self.people_only.then(|| ("people", "on".to_owned())));
        pairs
    }

    /// Returns a query that [`Self::read`] reads as this selection.
    pub(super) fn query(&self) -> String {
        query_of(self.subject_pairs().into_iter().chain(self.period_pairs()))
    }

    pub(super) fn title(&self, t: &Locale) -> String {
        let (of, name, domain) = self.parts();
        t.with(&format!("stats-of-{of}"), name.map(|(_, name)| name).or(domain).unwrap_or_default())
    }

    pub(super) fn link_page(&self) -> Option<String> {
        let VisitsOf::Link(name) = &self.of else { return None };
        Some(addresses::link_page(name))
    }

    pub(super) fn is_of_all(&self) -> bool {
        matches!(self.of, VisitsOf::Links { domain: None })
    }

    /// Returns the domain that the title does not name.
    pub(super) fn on_domain(&self) -> Option<&str> {
        self.parts().2.filter(|_| !matches!(self.of, VisitsOf::Domain(_)))
    }
}

/// Lets statistics of a link begin with its creation, if that is within their period. With the time
/// before nothing can be compared.
pub(super) fn begin_with(created: Timestamp, request: &mut StatsRequest, now: Timestamp) {
    // The database's clock may be ahead.
    let created = created.min(now);
    let is_younger = request.start.is_some_and(|start| start < created);
    if is_younger && request.end.is_none_or(|end| created <= end) {
        (request.start, request.compares) = (Some(created), false);
    }
}

pub(super) fn query_of(pairs: impl IntoIterator<Item = (&'static str, String)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Reads whose visits a query asks for; `None` if it does not say so completely.
fn subject(query: &Form) -> Option<VisitsOf> {
    let domain = query.owned("domain");
    match query.owned("of").as_deref() {
        None | Some("all") => Some(VisitsOf::Links { domain }),
        Some("link") => Some(VisitsOf::Link(LinkName { code: query.owned("code")?, domain })),
        Some("tag") => Some(VisitsOf::Tag { tag: query.owned("tag")?, domain }),
        Some("domain") => domain.map(VisitsOf::Domain),
        Some("orphans") => {
            let kind = match query.owned("kind") {
                Some(name) => Some(OrphanKind::parse(&name)?),
                None => None,
            };
            Some(VisitsOf::Orphans { kind, domain })
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> (Selection, bool) {
        let mut wrong = FieldErrors::default();
        let selection = Selection::read(&Form::parse(query.as_bytes()), &mut wrong);
        (selection, wrong.finish().is_ok())
    }

    #[test]
    fn a_selection_is_read_from_its_own_query() {
        for (query, of) in [
            ("", VisitsOf::Links { domain: None }),
            ("of=all&domain=s.test", VisitsOf::Links { domain: Some("s.test".to_owned()) }),
            ("of=orphans&people=on", VisitsOf::Orphans { kind: None, domain: None }),
            (
                "of=orphans&kind=invalid_short_url",
                VisitsOf::Orphans { kind: Some(OrphanKind::InvalidShortUrl), domain: None },
            ),
            ("of=tag&tag=a%26b%3D&domain=", VisitsOf::Tag { tag: "a&b=".to_owned(), domain: None }),
            ("of=domain&domain=s.test:80", VisitsOf::Domain("s.test:80".to_owned())),
            (
                "of=link&code=a%2Fb+c&range=today",
                VisitsOf::Link(LinkName { code: "a/b c".to_owned(), domain: None }),
            ),
        ] {
            let (selection, is_right) = read(query);
            assert!(is_right && selection.of == of, "{query}: {selection:?}");
            assert_eq!(read(&selection.query()), (selection, true), "{query}");
        }
    }

    #[test]
    fn a_query_that_does_not_say_whose_visits_is_wrong() {
        for query in ["of=link", "of=tag&tag=+", "of=domain&code=a", "of=some", "of=orphans&kind=x"] {
            assert!(!read(query).1, "{query}");
        }
    }

    #[test]
    fn a_period_begins_with_its_link_and_one_before_the_link_stays() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-25T12:00:00Z");
        for (query, created, start, compares) in [
            ("range=7d", "2026-11-24T08:00:00Z", Some("2026-11-24T08:00:00Z"), false),
            ("range=7d", "2026-11-25T12:00:01Z", Some("2026-11-25T12:00:00Z"), false),
            ("range=7d", "2026-11-01T08:00:00Z", Some("2026-11-19T00:00:00Z"), true),
            ("range=last-month", "2026-11-24T08:00:00Z", Some("2026-10-01T00:00:00Z"), true),
            ("range=all", "2026-11-24T08:00:00Z", None, true),
        ] {
            let mut request = read(query).0.request(now, &TimeZone::UTC, &[Dimension::Country]);
            begin_with(at(created), &mut request, now);
            assert_eq!((request.start, request.compares), (start.map(at), compares), "{query} {created}");
        }
    }

    #[test]
    fn bots_are_left_out_if_the_box_is_checked() {
        let request = |query: &str| read(query).0.request(Timestamp::UNIX_EPOCH, &TimeZone::UTC, &[]);
        assert!(request("people=on").people_only && !request("").people_only);
    }
}
