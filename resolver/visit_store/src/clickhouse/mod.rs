//! Visits in ClickHouse: rows, and counters of past days. Positions, texts and the counters of the
//! last days are in Postgres.
//!
//! 1. A visit is counted in the transaction that moves its producer's position, which only Postgres
//!    has. Counters of past days leave for ClickHouse in transfers (`counters.rs`), so that the
//!    database of the links does not grow with the visits. Statistics add up both.
//! 2. A batch is stored in two steps: [`store`](VisitStore::store) in Postgres, and then
//!    [`store_rows`](VisitStore::store_rows) here, which is idempotent. The writer keeps a record
//!    of the rows until they are stored ([`RowsRecord`](crate::RowsRecord)). In between, the latest
//!    visits are counted and not listed.
//! 3. A call goes to one server, and to another if that one fails. A replica may lack the latest
//!    rows for a moment.
//! 4. Rows of deletions and of erasures go in steps (`delete.rs`).

mod address;
mod counters;
mod delete;
mod rows;
mod schema;
mod servers;

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use codes::LinkId;
use delete::Turns;
use store::{Done, Lane, Operation, VisitTotals, postgres::PoolCount};
use tokio::sync::{Mutex, OnceCell};
use visits::{Day, Subject, VisitId, VisitRow};

pub use address::ClickhouseAddress;
use schema::Table;
use servers::Servers;

use crate::{
    Batch, Columns, DayCounters, Days, PostgresVisits, Producer, Remaining, Result, RowQuery, RowsRecord,
    VisitReader, VisitStore, VisitStoreError, WriteError, postgres::apart, sql::deletion,
};

/// A store of visits in ClickHouse and Postgres.
pub struct ClickhouseVisits {
    address: ClickhouseAddress,
    servers: Servers,
    counters: PostgresVisits,
    turns: Mutex<Turns>,
    has_tables: OnceCell<()>,
}

impl ClickhouseVisits {
    /// Prepares a store. No connection is opened before it is needed.
    pub fn new(address: ClickhouseAddress, counters: PostgresVisits) -> Self {
        Self {
            servers: Servers::new(&address, Arc::clone(&counters.observer)),
            address,
            counters,
            turns: Mutex::default(),
            has_tables: OnceCell::new(),
        }
    }

    fn database(&self) -> &str {
        &self.address.database
    }

    async fn selected(&self, query: &RowQuery) -> Result<String> {
        let links = match query.subject {
            Subject::Tag(tag, _) => {
                self.counters.with(async |client| apart::links_of_tag(client, tag).await).await?
            }
            _ => Vec::new(),
        };
        Ok(rows::selected(self.database(), query, &links))
    }
}

#[async_trait]
impl VisitReader for ClickhouseVisits {
    async fn run(&self, lane: Lane, operation: Operation<VisitStoreError>) -> Result<Done> {
        self.counters.run(lane, operation).await
    }

    async fn days(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        counters::days(self, subject, days, columns).await
    }

    async fn spans(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        counters::days(self, subject, days, columns).await
    }

    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>> {
        let RowQuery { skip, most, .. } = query;
        let selected = self.selected(query).await?;
        rows::fetch(&self.servers, &format!("{selected} ORDER BY id DESC LIMIT {skip}, {most}")).await
    }

    async fn count_rows(&self, query: &RowQuery) -> Result<u64> {
        self.servers.count(&self.selected(query).await?).await
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

    async fn ping(&self) -> Result<()> {
        let (counters, rows) = tokio::join!(self.counters.ping(), self.ping_rows());
        counters.and(rows)
    }

    async fn delete_rows(&self) -> Result<Option<u64>> {
        delete::step(self).await
    }

    async fn keep(&self, rows_from: Day) -> Result<()> {
        self.counters.keep(rows_from).await?;
        schema::drop_old(&self.servers, self.database(), rows_from).await
    }

    async fn merge(&self) -> Result<Remaining> {
        counters::transfer(self).await
    }

    async fn remove_old_counters(&self, counts_from: Day) -> Result<Remaining> {
        let remaining = self.counters.remove_old_counters(counts_from).await?;
        if remaining == Remaining::Nothing {
            schema::drop_old_counters(&self.servers, self.database(), counts_from).await?;
        }
        Ok(remaining)
    }

    async fn link_totals(&self, links: &[LinkId], days: Days) -> Result<HashMap<LinkId, VisitTotals>> {
        counters::link_totals(self, links, days).await
    }

    async fn delete(&self, subject: Subject, before: VisitId) -> Result<u64> {
        self.fetch_counters().await?;
        self.counters.transact(async |sql| deletion::delete(sql, subject, before, self, None).await).await
    }

    async fn fold_link_visits(&self) -> Result<bool> {
        self.counters.fold_link_visits().await
    }

    async fn follow_tags(&self) -> Result<bool> {
        let has_changes = "SELECT 1 FROM tag_change LIMIT 1";
        let has_changes = self
            .counters
            .with(async |client| Ok(!client.query_typed(has_changes, &[]).await?.is_empty()))
            .await?;
        if has_changes {
            self.fetch_counters().await?;
        }
        self.counters.follow(self).await
    }

    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>> {
        let (table, after) = (Table::ByTime.of(self.database()), after.get());
        rows::fetch(&self.servers, &format!("{table} WHERE id > {after} ORDER BY id DESC LIMIT {most}")).await
    }
}
