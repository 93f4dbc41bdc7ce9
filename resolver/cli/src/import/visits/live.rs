//! Single visits of a running server with Shlink's API.
//!
//! The server lists visits from the latest on, so the page on which one is changes as visits come.
//! What does not change is how many are older: by that number visits are counted here.

use std::{ops::RangeInclusive, time::Duration};

use serde_json::Value;
use tokio::time::sleep;
use transfer::read_visit;
use visit_store::{Producer, SpoolId};

use super::{FoundLink, Session, failed, imported, source_id};
use crate::{
    Error,
    args::ServerArgs,
    client::{Call, Query, Server, maybe},
    link::path_of,
    output::progress_bar,
};

/// Visits of a page, which are stored in one transaction.
const PAGE: u64 = 1_000;
/// Links of a page.
const LINKS: u64 = 100;
/// How often a page is asked for that has fewer visits than its server says: one may be on its way.
const TRIES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Live {
    server: Server,
    url: String,
}

/// A link of the other server.
struct SourceLink {
    code: String,
    domain: Option<String>,
    /// Its visits, if the server tells.
    visits: Option<u64>,
}

/// A page of visits, the latest first.
struct Page {
    number: u64,
    /// The visits on all pages.
    total: u64,
    visits: Vec<Value>,
}

impl Page {
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

impl Live {
    pub(super) fn new(url: &str, key: &str) -> Result<Self, Error> {
        let server = Server::new(&ServerArgs { server: url.to_owned(), api_key: key.to_owned() })?;
        Ok(Self { server, url: url.trim_end_matches('/').to_owned() })
    }

    fn id_of(&self, link: &SourceLink) -> SpoolId {
        let domain = link.domain.as_deref().unwrap_or_default();
        source_id(&["visits of a link", &self.url, domain, &link.code])
    }

    /// Returns how many visits all links have, if the server tells.
    async fn total(&self) -> Result<Option<u64>, Error> {
        let answer = self.server.ask(Call::read("visits".to_owned(), Query::new())).await?;
        Ok(answer.pointer("/visits/nonOrphanVisits/total").and_then(Value::as_u64))
    }

    /// Returns a page of links, the oldest first, and whether others follow.
    async fn links(&self, page: u64) -> Result<(Vec<SourceLink>, bool), Error> {
        let query = vec![
            ("page", page.to_string()),
            ("itemsPerPage", LINKS.to_string()),
            ("orderBy", "dateCreated-ASC".to_owned()),
        ];
        let answer = self.server.ask(Call::read("short-urls".to_owned(), query)).await?;
        let found = answer.pointer("/shortUrls/data").and_then(Value::as_array);
        let pages = answer.pointer("/shortUrls/pagination/pagesCount").and_then(Value::as_u64);
        let (Some(found), Some(pages)) = (found, pages) else { return Err(self.server.foreign().into()) };
        let link = |link: &Value| {
            Some(SourceLink {
                code: link["shortCode"].as_str()?.to_owned(),
                domain: link["domain"].as_str().map(str::to_owned),
                visits: link["visitsSummary"]["total"].as_u64().or_else(|| link["visitsCount"].as_u64()),
            })
        };
        let links: Option<Vec<SourceLink>> = found.iter().map(link).collect();
        let links = links.ok_or_else(|| self.server.foreign())?;
        // A server that counts pages without end would be asked without end.
        let has_more = page < pages && !links.is_empty();
        Ok((links, has_more))
    }

    /// Returns a page of the visits of a link.
    async fn visits(&self, link: &SourceLink, number: u64) -> Result<Page, Error> {
        let path = format!("{}/visits", path_of(&link.code)?);
        let mut query = maybe("domain", link.domain.as_ref());
        query.extend([("page", number.to_string()), ("itemsPerPage", PAGE.to_string())]);
        for _ in 0..TRIES {
            let mut answer = self.server.ask(Call::read(path.clone(), query.clone())).await?;
            let total = answer.pointer("/visits/pagination/totalItems").and_then(Value::as_u64);
            let visits = answer.pointer_mut("/visits/data").map(Value::take);
            let (Some(total), Some(Value::Array(visits))) = (total, visits) else { break };
            let page = Page { number, total, visits };
            if page.is_whole() {
                return Ok(page);
            }
            sleep(RETRY_AFTER).await;
        }
        Err(self.server.foreign().into())
    }
}

impl Session {
    /// Imports the visits of all links of a server.
    pub(super) async fn import_all(&mut self, live: &Live) -> Result<(), Error> {
        self.bar = progress_bar(live.total().await?, "{pos}/{len} visits");
        let mut number = 1;
        loop {
            let (links, has_more) = live.links(number).await?;
            for link in links.iter().filter(|link| link.visits != Some(0)) {
                self.import_link(live, link).await?;
            }
            if !has_more {
                return Ok(());
            }
            number += 1;
        }
    }

    async fn import_link(&mut self, live: &Live, link: &SourceLink) -> Result<(), Error> {
        let found = match path_of(&link.code) {
            Ok(_) => self.links.find(link.domain.as_deref(), &link.code).await?,
            // Its visits could not be asked for.
            Err(_) => None,
        };
        let Some(place) = found else {
            let domain = link.domain.as_deref().unwrap_or("the default domain");
            let reason = format!("{}: no link of this code on {domain} here", link.code);
            self.report.refuse(link.visits.unwrap_or(1), &reason);
            return Ok(());
        };
        let mut producer = self.import.open(live.id_of(link)).await.map_err(failed)?;
        let taken = self.take_link(live, link, place, &mut producer).await;
        let closed = self.import.close(&producer).await;
        taken?;
        closed.map_err(failed)
    }

    /// Takes the visits of a link that were there at the beginning, from the oldest one on that no
    /// earlier run has taken.
    async fn take_link(
        &mut self,
        live: &Live,
        link: &SourceLink,
        place: FoundLink,
        producer: &mut Producer,
    ) -> Result<(), Error> {
        let mut page = live.visits(link, 1).await?;
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
                return Err(live.server.foreign().into());
            } else {
                // The visits that have come meanwhile may move the wanted one to the next page.
                page = live.visits(link, wanted).await?;
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
