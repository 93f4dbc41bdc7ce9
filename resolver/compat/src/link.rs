//! Links as all the APIs show them, and what their calls share.

use app::{
    AppError, FieldErrors, LinkFields,
    create_link::CreateLink,
    find_link::LinkName,
    list_links::ListLinks,
    visit_stats::{StatsRequest, TOP, VisitStats},
    visit_subjects::VisitsOf,
};
use hyper::StatusCode;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use links::{Record, Tag, requested_authority};
use serde_json::Value;
use store::VisitTotals;
use visits::{series::Interval, tally::Dimension};
use web::{Answer, answer};

use crate::{
    call::{Call, decoded},
    failure::Failure,
};

/// A link for an answer. A key without the scope `read` gets its name, and what it sent itself.
pub(crate) struct Shown<'a> {
    pub(crate) record: &'a Record,
    pub(crate) name: String,
    pub(crate) short_url: String,
    pub(crate) long_url: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) tags: Vec<&'a str>,
}

impl Call {
    /// Prepares a link for an answer; `sent` is the long URL of the call, if it has one.
    pub(crate) fn shown<'a>(&self, record: &'a Record, sent: Option<&'a str>) -> Result<Shown<'a>, Failure> {
        let (link, may_read) = (&record.link, self.by()?.may_read());
        let name = self.api().lookup.name_of(link).ok_or(AppError::Internal)?;
        let tags = record.tags.iter().filter(|_| may_read).map(Tag::as_str).collect();
        Ok(Shown {
            record,
            short_url: format!("{}/{name}", self.api().base(link.domain())),
            name,
            long_url: if may_read { link.long_url.as_str() } else { sent.unwrap_or_default() },
            title: link.title.as_deref().filter(|_| may_read),
            description: link.details().description.as_deref().filter(|_| may_read),
            tags,
        })
    }

    /// Returns the name in a short URL without its scheme.
    pub(crate) fn name_of_short_url(&self, text: &str) -> Option<LinkName> {
        let (domain, path) = split_short_url(text)?;
        let path = self.api().domain_cache.path_below(&domain, path);
        Some(LinkName { code: decoded(path.strip_prefix('/').unwrap_or(path)), domain: Some(domain) })
    }

    /// Creates a link. With `find_if_exists`, one that is found for the long URL is returned
    /// instead.
    pub(crate) async fn create(
        &self,
        request: CreateLink,
        wrong: FieldErrors,
    ) -> Result<(StatusCode, Record), Failure> {
        let (service, by) = (&self.api().links, self.by()?);
        if request.find_if_exists {
            let long_url = request.fields.long_url.clone().flatten().map(Some);
            let fields = LinkFields { long_url, ..LinkFields::default() };
            let domain = request.domain.clone();
            let wanted = CreateLink { fields, domain, find_if_exists: true, ..CreateLink::default() };
            if let Some(found) = service.find_for_create(wanted, by).await? {
                return Ok((StatusCode::OK, found));
            }
        }
        // The same call may have been sent at the same time, or again. A link with a slug or a
        // password is never found.
        let is_plain = request.custom_slug.is_none() && request.fields.password.is_none();
        let request = CreateLink { find_if_exists: request.find_if_exists && is_plain, ..request };
        let record = service.create_link(request, None, wrong, by).await?;
        Ok((StatusCode::CREATED, record))
    }

    /// Lists links from a position on, each as `show` shows it. The second value counts all.
    pub(crate) async fn list(
        &self,
        request: &ListLinks,
        (skip, limit): (u64, u64),
        show: impl Fn(&Record, VisitTotals) -> Result<Value, Failure> + Send,
    ) -> Result<(Vec<Value>, u64), Failure> {
        let (service, by) = (&self.api().links, self.by()?);
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut cut = usize::try_from(skip % limit).unwrap_or(usize::MAX);
        let (mut shown, mut total) = (Vec::new(), 0);
        // A list has pages. What does not begin with one is the end of a page and the beginning of
        // the next.
        let first = (skip / limit).saturating_add(1);
        let pages = [Some(first), (cut > 0).then_some(first.saturating_add(1))];
        for page in pages.into_iter().flatten() {
            let mut request = request.clone();
            (request.filter.page, request.filter.per_page) = (page, Some(limit));
            let listed = service.list_links(request, FieldErrors::default(), by).await?;
            total = total.max(listed.total_of_pages());
            let entries = listed.entries.get(cut..).unwrap_or_default();
            let entries = &entries[..entries.len().min(most.saturating_sub(shown.len()))];
            cut = 0;
            for piece in links::pieces(entries) {
                let records = service.read_piece(&listed, piece, by).await?;
                let ids: Vec<_> = records.iter().map(|record| record.link.id).collect();
                let visits = service.visit_totals(&ids, by).await?;
                for record in &records {
                    shown.push(show(record, visits.get(&record.link.id).copied().unwrap_or_default())?);
                }
            }
        }
        Ok((shown, total))
    }

    /// Returns how often a link was visited, for the answer to a call that created, found or
    /// changed it; zero for a key without the scope `read`.
    pub(crate) async fn visits_of(&self, record: &Record) -> Result<VisitTotals, Failure> {
        if !self.by()?.may_read() {
            return Ok(VisitTotals::default());
        }
        Ok(self.api().links.visit_totals_of(record).await)
    }

    /// Counts the visits of a link by people, as series and by dimensions.
    pub(crate) async fn stats(
        &self,
        name: &LinkName,
        (start, end): (Option<Timestamp>, Option<Timestamp>),
        interval: Interval,
        dimensions: &[Dimension],
    ) -> Result<VisitStats, Failure> {
        let request = StatsRequest {
            of: VisitsOf::Link(name.clone()),
            start,
            end,
            interval: Some(interval),
            zone: TimeZone::UTC,
            people_only: true,
            dimensions: dimensions.to_vec(),
            top: TOP,
            compares: false,
        };
        Ok(self.api().links.visit_stats(request, FieldErrors::default(), self.by()?).await?)
    }
}

/// Returns the time so many hours before another; the beginning of times if there is none.
pub(crate) fn hours_before(time: Timestamp, hours: i64) -> Timestamp {
    time.checked_sub(SignedDuration::from_secs(hours.saturating_mul(3_600))).unwrap_or(Timestamp::MIN)
}

/// Splits a short URL without its scheme, such as `sho.rt/promo`, into its domain and its path.
fn split_short_url(text: &str) -> Option<(String, &str)> {
    let (host, path) = text.split_at(text.find('/')?);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    Some((requested_authority(host).into_owned(), path))
}

/// Adds a scheme to a long URL that has none, as YOURLS and Kutt do.
pub(crate) fn with_scheme(url: &str) -> String {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_word = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let has_scheme = !scheme.is_empty() && scheme.chars().all(is_word);
    if has_scheme || url.starts_with("//") { url.to_owned() } else { format!("http://{url}") }
}

pub(crate) fn json(status: StatusCode, body: &Value) -> Answer {
    answer(status, "application/json; charset=utf-8", body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_urls_are_taken_apart_and_long_ones_completed() {
        assert_eq!(split_short_url("Sho.rt:443/a/b?x=1"), Some(("sho.rt".to_owned(), "/a/b")));
        assert_eq!(split_short_url("127.0.0.1:8080/%C3%BC"), Some(("127.0.0.1:8080".to_owned(), "/%C3%BC")));
        assert_eq!(split_short_url("promo"), None);
        for (text, url) in [
            ("example.com/x", "http://example.com/x"),
            ("example.com:8080/x", "http://example.com:8080/x"),
            ("mailto:a@b.c", "mailto:a@b.c"),
            ("https://a.b", "https://a.b"),
        ] {
            assert_eq!(with_scheme(text), url);
        }
    }
}
