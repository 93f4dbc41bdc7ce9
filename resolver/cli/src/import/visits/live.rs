//! Single visits of a running server with Shlink's API.
//!
//! The server lists the latest visits first, so a visit moves to other pages as new ones arrive.
//! The number of older visits does not change, so it identifies a visit here.

use std::{ops::RangeInclusive, time::Duration};

use daemon::Exit;
use indicatif::ProgressBar;
use serde_json::Value;
use tokio::time::sleep;
use transfer::read_visit;
use url::form_urlencoded;
use visit_store::{Producer, SpoolId};

use super::{FoundLink, Session, SourceServer, failed, imported, source_id};
use crate::{Error, import::live::LivePages, link::path_of, output::progress_bar};

/// The number of visits on a page, which are stored in one transaction.
const PAGE: u64 = 1_000;
/// Maximum number of requests for a page with fewer visits than the server reports. The missing
/// ones may be about to be stored.
const TRIES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A link of the other server.
struct SourceLink {
    code: String,
    domain: Option<String>,
    /// The number of its visits, if the server reports it.
    visits: Option<u64>,
}

impl SourceLink {
    /// Reads an item of a list of links. Returns `None` for one that is no link.
    fn read(item: &Value) -> Option<Self> {
        Some(Self {
            code: item["shortCode"].as_str()?.to_owned(),
            domain: item["domain"].as_str().map(str::to_owned),
            visits: item["visitsSummary"]["total"].as_u64().or_else(|| item["visitsCount"].as_u64()),
        })
    }
}

/// A page of visits, the latest first.
struct Page {
    number: u64,
    /// The number of visits on all pages.
    total: u64,
    visits: Vec<Value>,
}

impl Page {
    fn read(number: u64, mut answer: Value) -> Option<Self> {
        let total = answer.pointer("/visits/pagination/totalItems").and_then(Value::as_u64)?;
        let Some(Value::Array(visits)) = answer.pointer_mut("/visits/data").map(Value::take) else {
            return None;
        };
        Some(Self { number, total, visits })
    }

    /// Returns the number of the page that has a visit, if there are so many visits in all.
    fn of(visit: u64, total: u64) -> u64 {
        total.saturating_sub(visit + 1) / PAGE + 1
    }

    /// Returns the visits that the page should have, counted from the oldest one, which is 0;
    /// `None` if it should have none.
    fn range(&self) -> Option<RangeInclusive<u64>> {
        let last = self.total.checked_sub((self.number - 1) * PAGE + 1)?;
        Some(last.saturating_sub(PAGE - 1)..=last)
    }

    /// Returns whether no visit is missing.
    fn is_whole(&self) -> bool {
        let count = self.range().map_or(0, |range| range.end() - range.start() + 1);
        self.visits.len() as u64 == count
    }
}

impl SourceServer {
    fn id_of(&self, link: &SourceLink) -> SpoolId {
        let (url, domain) = (self.url.as_str().trim_end_matches('/'), link.domain.as_deref());
        source_id(&["visits of a link", url, domain.unwrap_or_default(), &link.code])
    }

    /// Returns the number of visits of all links, if the server reports it.
    async fn total(&self) -> Result<Option<u64>, Error> {
        let (asked, path) = ("the number of visits".to_owned(), "/rest/v3/visits".to_owned());
        let read = |answer: Value| answer.pointer("/visits/nonOrphanVisits/total").and_then(Value::as_u64);
        self.get(asked, path, move |answer| Some(read(answer))).await
    }

    /// Returns a page of the visits of a link.
    async fn visits(&self, link: &SourceLink, number: u64) -> Result<Page, Error> {
        let asked = format!("page {number} of the visits of {}", link.code);
        let mut path = format!("/rest/v3/{}/visits?page={number}&itemsPerPage={PAGE}", path_of(&link.code)?);
        if let Some(domain) = &link.domain {
            path.push_str("&domain=");
            path.extend(form_urlencoded::byte_serialize(domain.as_bytes()));
        }
        for _ in 0..TRIES {
            let read = move |answer| Page::read(number, answer);
            let page = self.get(asked.clone(), path.clone(), read).await?;
            if page.is_whole() {
                return Ok(page);
            }
            sleep(RETRY_AFTER).await;
        }
        let reason = "its number of visits says that there are more".to_owned();
        Err(self.error(asked, reason, Exit::Unavailable).into())
    }
}

impl Session {
    /// Imports the visits of all links of a server.
    pub(super) async fn import_all(&mut self, source: &SourceServer) -> Result<(), Error> {
        let mut pages = LivePages::open_once(source.clone()).await?;
        // The bar shows visits instead of links.
        pages.bar = ProgressBar::hidden();
        self.bar = progress_bar(source.total().await?, "{pos}/{len} visits");
        loop {
            let (back, page) = pages.turn().await?;
            pages = back;
            let Some(items) = page else { return Ok(()) };
            for item in &items {
                let nameless = || source.error("a link".to_owned(), "no shortCode".to_owned(), Exit::Config);
                let link = SourceLink::read(item).ok_or_else(nameless)?;
                if link.visits != Some(0) {
                    self.import_link(source, &link).await?;
                }
            }
        }
    }

    async fn import_link(&mut self, source: &SourceServer, link: &SourceLink) -> Result<(), Error> {
        let found = match path_of(&link.code) {
            Ok(_) => self.links.find(link.domain.as_deref(), &link.code).await?,
            // Its visits could not be requested.
            Err(_) => None,
        };
        let Some(place) = found else {
            let domain = link.domain.as_deref().unwrap_or("the default domain");
            let reason = format!("{}: no link of this code on {domain} here", link.code);
            self.report.refuse(link.visits.unwrap_or(1), &reason);
            return Ok(());
        };
        let mut producer = self.import.open(source.id_of(link)).await.map_err(failed)?;
        let taken = self.take_link(source, link, place, &mut producer).await;
        let closed = self.import.close(&producer).await;
        taken?;
        closed.map_err(failed)
    }

    /// Takes the visits that a link had at the beginning and that no earlier run has taken, the
    /// oldest first.
    async fn take_link(
        &mut self,
        source: &SourceServer,
        link: &SourceLink,
        place: FoundLink,
        producer: &mut Producer,
    ) -> Result<(), Error> {
        let mut page = source.visits(link, 1).await?;
        let until = page.total;
        let before = producer.position.min(until);
        self.report.before += before;
        self.bar.inc(before);
        let mut misses = 0;
        while producer.position < until.min(page.total) {
            let wanted = Page::of(producer.position, page.total);
            if page.number == wanted {
                self.take_page(link, place, &page, producer).await?;
                misses = 0;
            } else if misses == TRIES {
                let reason = "its pages move on without end".to_owned();
                let asked = format!("page {wanted} of the visits of {}", link.code);
                return Err(source.error(asked, reason, Exit::Unavailable).into());
            } else {
                // The visits that have come meanwhile may move the wanted one to the next page.
                page = source.visits(link, wanted).await?;
                misses += 1;
            }
        }
        Ok(())
    }

    /// Takes the visits of a page from the producer's position on.
    async fn take_page(
        &mut self,
        link: &SourceLink,
        place: FoundLink,
        page: &Page,
        producer: &mut Producer,
    ) -> Result<(), Error> {
        let Some(range) = page.range() else { return Ok(()) };
        let mut visits = Vec::new();
        for (number, visit) in range.clone().zip(page.visits.iter().rev()) {
            if number < producer.position {
                continue;
            }
            match read_visit(number + 1, visit.clone()) {
                Ok(visit) => visits.push(imported(visit, place)),
                Err(error) => self.report.refuse(1, &format!("{}: {error}", link.code)),
            }
        }
        let name = |number: u64| format!("{}: item {number}", link.code);
        self.bar.inc(range.end() + 1 - producer.position);
        self.store(producer, &visits, range.end() + 1, name).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visit_is_on_the_page_whose_range_has_it_however_many_there_are() {
        for total in [1, 2, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 500] {
            for visit in [0, 1, PAGE - 1, PAGE, total - 1].into_iter().filter(|visit| *visit < total) {
                let page = Page { number: Page::of(visit, total), total, visits: Vec::new() };
                let range = page.range().unwrap();
                assert!(range.contains(&visit), "{visit} of {total}: {range:?}");
                assert!(range.end() - range.start() < PAGE && *range.end() < total);
            }
        }
        let none = Page { number: 1, total: 0, visits: Vec::new() };
        assert!(none.range().is_none() && none.is_whole());
        let behind = Page { number: 3, total: 2 * PAGE, visits: Vec::new() };
        assert!(behind.range().is_none() && behind.is_whole());
        let short = Page { number: 1, total: 2, visits: vec![Value::Null] };
        assert!(!short.is_whole());
    }
}
