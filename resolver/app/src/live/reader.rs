//! Reads live visits from the stores.

use std::sync::Arc;

use async_trait::async_trait;
use codes::LinkId;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use links::Record;
use store::{Catalog, Keys};
use visit_store::{Columns, Days, TokenSecret, VisitStore};
use visits::{Day, Subject, VisitId, VisitRow};

use super::{LiveError, LiveLink, LiveSource, VisitView};
use crate::{
    clock::DatabaseClock,
    key_names::{KeyNames, Names},
    lookup::Lookup,
};

/// Links whose visits are counted at the same time, so that connections stay free for lists.
const COUNTS_TOGETHER: usize = 2;

/// Turns rows into visits: reads the texts that they refer to.
#[async_trait]
pub trait VisitViews: Send + Sync + 'static {
    /// Returns the visits of rows, one for each row, in their order.
    async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, LiveError>;
}

/// The stores that live visits are read from.
pub struct LiveReader {
    /// Visits and their counters.
    pub visits: Arc<dyn VisitStore>,
    /// The texts of visits.
    pub views: Arc<dyn VisitViews>,
    /// Links, with their tags.
    pub catalog: Arc<dyn Catalog>,
    /// API keys.
    pub keys: Arc<dyn Keys>,
    /// Names of API keys, cached.
    pub key_names: KeyNames,
    /// Names of links.
    pub lookup: Arc<Lookup>,
    /// The clock of the database.
    pub clock: Arc<DatabaseClock>,
}

#[async_trait]
impl LiveSource for LiveReader {
    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, LiveError> {
        Ok(self.visits.latest(after, most).await?)
    }

    async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, LiveError> {
        self.views.views(rows).await
    }

    async fn links(&self, ids: &[LinkId]) -> Result<Vec<LiveLink>, LiveError> {
        let records = self.catalog.records(ids).await?;
        let names = self.key_names.of_links(&*self.keys, records.iter().map(|record| &record.link)).await?;
        let links = stream::iter(records).map(|record| self.link(record, &names));
        let links: Vec<Option<LiveLink>> = links.buffered(COUNTS_TOGETHER).try_collect().await?;
        Ok(links.into_iter().flatten().collect())
    }

    async fn token_secret(&self) -> Result<TokenSecret, LiveError> {
        Ok(self.visits.token_secret().await?)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl LiveReader {
    /// Returns a link with its counts; `None` for a row that no code leads to, which this program
    /// never writes.
    async fn link(&self, record: Record, names: &Names) -> Result<Option<LiveLink>, LiveError> {
        let Some(name) = self.lookup.name_of(&record.link) else { return Ok(None) };
        let counts = self.count(record.link.id).await?;
        Ok(Some(LiveLink::new(record, name, names.clone(), counts)))
    }

    /// Counts the visits of a link: all, and those of bots. The counters are stored together with the
    /// rows, unlike the totals beside the links, which follow later.
    async fn count(&self, link: LinkId) -> Result<(u64, u64), LiveError> {
        let (first, last) = (VisitId::from_stored(0), self.clock.now().as_microsecond());
        // Clocks of resolvers differ.
        let days = Days { first: Day::of(first.micros()), end: Day::of(last).next().next() };
        let spans = self.visits.spans(Subject::Link(link), days, Columns::default()).await?;
        let sum = |counts: &mut dyn Iterator<Item = i64>| {
            u64::try_from(counts.fold(0_i64, i64::saturating_add)).unwrap_or(0)
        };
        Ok((sum(&mut spans.iter().map(|span| span.total)), sum(&mut spans.iter().map(|span| span.bots))))
    }
}
