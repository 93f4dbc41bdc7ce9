//! Reads live visits from the stores.

use std::sync::OnceLock;

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::Record;
use visits::{VisitId, VisitRow};

use super::{AppError, LiveLink, LiveSource, VisitView};
use crate::{
    LinkService,
    list_visits::{Known, range_of},
};

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
        // The counters are stored together with the rows, unlike the totals beside the links, which
        // follow later.
        let all_time = range_of(None, None, self.domain_cache.now()).days();
        let visits = self.visits.link_totals(ids, all_time).await?;
        let live_link = |record: Record| {
            // This program never writes a row that no code leads to.
            let name = self.lookup.name_of(&record.link)?;
            let visits = visits.get(&record.link.id).copied().unwrap_or_default();
            Some(LiveLink { record, name, names: names.clone(), visits, written: OnceLock::new() })
        };
        Ok(records.into_iter().filter_map(live_link).collect())
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
