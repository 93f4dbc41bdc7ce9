//! Rows of visits in ClickHouse; counters, texts and positions in Postgres.
//!
//! 1. Statistics come from the counters, so they are the same code and answers as without
//!    ClickHouse. The engine takes the rows, which outgrow one database first, and answers pages.
//! 2. A batch is stored in two steps: [`store`](VisitStore::store) in Postgres, and then
//!    [`store_rows`](VisitStore::store_rows) here, which is idempotent. The writer keeps a record
//!    of the rows until they are stored ([`RowsRecord`](crate::RowsRecord)). In between, the latest
//!    visits are counted and not listed.
//! 3. A call goes to one server, and to another if that one fails. A replica may lack the latest
//!    rows for a moment.
//! 4. Rows of deletions and of erasures go in steps (`delete.rs`).

mod address;
mod delete;
mod rows;
mod schema;
mod servers;

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use codes::LinkId;
use delete::Turns;
use store::{VisitTotals, postgres::PoolCount};
use tokio::sync::{Mutex, OnceCell};
use visits::{AddressSecret, Day, DaySecret, Subject, TextKey, VisitId, VisitRow};

pub use address::ClickhouseAddress;
use rows::Selection;
use schema::Table;
use servers::Servers;

use crate::{
    Batch, Changes, Columns, DayCounters, Days, DeletionStep, Erased, Erasure, ErasureId, PostgresVisits,
    Producer, Result, RowQuery, RowsRecord, SpoolId, Standing, StoredText, TextRef, TokenSecret, VisitReader,
    VisitStore, WriteError, postgres::apart,
};

/// A store of visits whose rows are in ClickHouse.
pub struct ClickhouseVisits {
    address: ClickhouseAddress,
    servers: Servers,
    counters: PostgresVisits,
    texts: OnceCell<TextKey>,
    turns: Mutex<Turns>,
}

impl ClickhouseVisits {
    /// Prepares a store. No connection is opened before it is needed.
    pub fn new(address: ClickhouseAddress, counters: PostgresVisits) -> Self {
        Self {
            servers: Servers::new(&address, Arc::clone(&counters.observer)),
            address,
            counters,
            texts: OnceCell::new(),
            turns: Mutex::default(),
        }
    }

    fn database(&self) -> &str {
        &self.address.database
    }

    async fn text_key(&self) -> Result<TextKey> {
        let key = self.texts.get_or_try_init(async || Ok(self.counters.secrets().await?.0)).await;
        key.cloned()
    }

    /// Waits until a replica has everything that is stored so far.
    async fn sync(&self, table: Table) -> Result<()> {
        match self.address.cluster {
            None => Ok(()),
            Some(_) => self.servers.sync(&table.of(self.database())).await,
        }
    }

    /// Returns the rows of a query of a table from a server that has all rows stored so far.
    async fn fetch_latest<T>(&self, table: Table, query: &str) -> Result<Vec<T>>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        match self.address.cluster {
            None => self.servers.fetch(query).await,
            Some(_) => self.servers.fetch_synced(&table.of(self.database()), query).await,
        }
    }

    async fn select(&self, query: &RowQuery) -> Result<Selection> {
        let links = match query.subject {
            Subject::Tag(tag, _) => {
                self.counters.with(async |client| apart::links_of_tag(client, tag).await).await?
            }
            _ => Vec::new(),
        };
        Ok(Selection::new(self.database(), query, &links))
    }
}

#[async_trait]
impl VisitReader for ClickhouseVisits {
    async fn days(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        self.counters.days(subject, days, columns).await
    }

    async fn spans(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        self.counters.spans(subject, days, columns).await
    }

    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>> {
        self.select(query).await?.rows(&self.servers, query.skip, query.most).await
    }

    async fn count_rows(&self, query: &RowQuery) -> Result<u64> {
        self.select(query).await?.count(&self.servers).await
    }

    async fn rows_from(&self) -> Result<Option<Day>> {
        self.counters.rows_from().await
    }
}

#[async_trait]
impl VisitStore for ClickhouseVisits {
    async fn migrate(&self) -> Result<()> {
        self.counters.migrate().await?;
        schema::migrate(&self.servers, &self.address).await
    }

    fn pools(&self) -> Vec<PoolCount> {
        self.counters.pools()
    }

    async fn slots(&self) -> Result<Option<(u32, u32)>> {
        self.counters.slots().await
    }

    async fn ping_rows(&self) -> Result<()> {
        self.servers.run("SELECT 1").await
    }

    async fn register(&self, spool: SpoolId, holder: &str) -> Result<Producer> {
        self.counters.register(spool, holder).await
    }

    async fn standing(&self, producer: &Producer) -> Result<Standing> {
        self.counters.standing(producer).await
    }

    async fn release(&self, producer: &Producer) -> Result<()> {
        self.counters.release(producer).await
    }

    async fn store(&self, producer: &Producer, batch: &Batch, known: i64) -> Result<(), WriteError> {
        self.counters.write(producer, batch, known, &[]).await
    }

    fn keeps_rows_apart(&self) -> bool {
        true
    }

    async fn store_rows(&self, record: &RowsRecord) -> Result<()> {
        rows::store(&self.servers, self.database(), record).await?;
        self.counters.with(async |client| apart::reopen(client, record).await).await
    }

    async fn changes(&self, after: i64) -> Result<Changes> {
        self.counters.changes(after).await
    }

    async fn tags_of(&self, links: &[LinkId]) -> Result<HashMap<LinkId, Vec<i64>>> {
        self.counters.tags_of(links).await
    }

    async fn secrets(&self) -> Result<(TextKey, AddressSecret)> {
        self.counters.secrets().await
    }

    async fn token_secret(&self) -> Result<TokenSecret> {
        self.counters.token_secret().await
    }

    async fn day_secret(&self, day: Day) -> Result<Option<DaySecret>> {
        self.counters.day_secret(day).await
    }

    async fn link_totals(&self, links: &[LinkId], days: Days) -> Result<HashMap<LinkId, VisitTotals>> {
        self.counters.link_totals(links, days).await
    }

    async fn ping(&self) -> Result<()> {
        let (counters, rows) = tokio::join!(self.counters.ping(), self.ping_rows());
        counters.and(rows)
    }

    async fn texts(&self, texts: &[TextRef]) -> Result<Vec<StoredText>> {
        self.counters.texts(texts).await
    }

    async fn delete(&self, subject: Subject, before: VisitId) -> Result<u64> {
        self.counters.delete(subject, before).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<Option<ErasureId>> {
        self.counters.erase(erasure).await
    }

    async fn erased(&self, id: ErasureId) -> Result<Erased> {
        self.counters.erased(id).await
    }

    async fn delete_rows(&self) -> Result<DeletionStep> {
        delete::step(self).await
    }

    async fn keep(&self, rows_from: Day) -> Result<()> {
        self.counters.keep(rows_from).await?;
        schema::drop_old(&self.servers, self.database(), rows_from).await
    }

    async fn merge(&self) -> Result<bool> {
        self.counters.merge().await
    }

    async fn fold_link_visits(&self) -> Result<bool> {
        self.counters.fold_link_visits().await
    }

    async fn follow_tags(&self) -> Result<bool> {
        self.counters.follow_tags().await
    }

    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>> {
        rows::latest(&self.servers, self.database(), after, most).await
    }
}
