//! Reads live visits from the stores.

use std::sync::OnceLock;

use async_trait::async_trait;
use codes::LinkId;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use links::Record;
use visits::{Subject, VisitId, VisitRow};

use super::{AppError, LiveLink, LiveSource, VisitView};
use crate::{
    LinkService,
    key_names::Names,
    list_visits::{Known, range_of},
};

/// Links whose visits are counted at the same time, so that connections stay free for lists.
const COUNTS_TOGETHER: usize = 2;

#[async_trait]
impl LiveSource for LinkService {
    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, AppError> {
        Ok(self.visits.latest(after, most).await?)
    }

    async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, AppError> {
        Ok(self.views(rows, &mut Known::default()).await?)
    }

    async fn links(&self, ids: &[LinkId]) -> Result<Vec<LiveLink>, AppError> {
        let mut records = Vec::new();
        for piece in links::pieces(&self.store.outlines_of(ids).await?) {
            let ids: Vec<LinkId> = piece.iter().map(|outlined| outlined.id).collect();
            let mut read = self.store.records(&ids).await?;
            read.iter_mut().for_each(shorten);
            records.append(&mut read);
        }
        let names = self.names(&records).await;
        let links = stream::iter(records).map(|record| live_link(self, record, &names));
        let links: Vec<Option<LiveLink>> = links.buffered(COUNTS_TOGETHER).try_collect().await?;
        Ok(links.into_iter().flatten().collect())
    }

    fn now(&self) -> Timestamp {
        self.domain_cache.now()
    }
}

/// Takes away redirect rules, which may be long: only whether there are any is told.
fn shorten(record: &mut Record) {
    if let Some(details) = &mut record.link.details {
        details.rules.truncate(1);
    }
}

/// Returns a link with its counts; `None` for a row that no code leads to, which this program never
/// writes.
async fn live_link(
    service: &LinkService,
    record: Record,
    names: &Names,
) -> Result<Option<LiveLink>, AppError> {
    let Some(name) = service.lookup.name_of(&record.link) else { return Ok(None) };
    // The counters are stored together with the rows, unlike the totals beside the links, which
    // follow later.
    let all_time = range_of(None, None, service.domain_cache.now());
    let visits = service.count_all(Subject::Link(record.link.id), all_time).await?;
    Ok(Some(LiveLink { record, name, names: names.clone(), visits, written: OnceLock::new() }))
}
