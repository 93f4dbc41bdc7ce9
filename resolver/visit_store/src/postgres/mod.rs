//! Visits in Postgres: in the database of the links, because a transaction that stores visits also
//! moves its producer's position.
//!
//! 1. A batch has one connection of its own. What fails before COMMIT was surely not stored: the
//!    connection is closed, and the server rolls back. After COMMIT was sent, only the server's
//!    answer decides.
//! 2. Writers, and what merges counters, hold the advisory lock [`LOCK`] in shared mode, and
//!    deletions in exclusive mode. So a deletion sees every batch before it, and every batch after
//!    it sees the deletion.
//! 3. Each query of rows lies within one day, so it touches one partition and plans quickly.

pub(crate) mod apart;
mod chores;
mod copy;
mod gone_tags;
mod link_visits;
mod tags;
pub(crate) mod transfers;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use store::{
    Done, Lane, Operation, Sql, StoreError,
    postgres::{self as links, DatabaseObserver, PoolCount, PostgresSql},
};
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::{Client, IsolationLevel, Transaction, config::TargetSessionAttrs};
use visits::{Day, Slot, VisitRow};

use crate::{
    Batch, MERGED, Producer, Remaining, Result, VisitReader, VisitStore, VisitStoreError, WriteError,
    sql::{
        self, closing, months, old_counters,
        transferred::{NothingTransferred, Transferred},
    },
};

/// The chore whose position is the first day that rows are kept of.
pub(crate) const CHORE: &str = "upkeep of visits";

/// Key of the advisory lock that orders batches and deletions.
pub(crate) const LOCK: i64 = 0x5348_4f52_5456_4953;
/// Key of the advisory lock of the merging of counters.
const MERGER: i64 = 0x5348_4f52_564d_5247;
/// Deadline of a batch, a read or a step of a chore.
const DEADLINE: Duration = Duration::from_secs(60);
/// Limits on the server's side, so that a process that stands still keeps no locks, and waits for
/// no other one for long.
const LIMITS: &str = "SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '50s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// A store of visits in Postgres.
pub struct PostgresVisits {
    address: links::Address,
    pool: links::Connections,
    pub(crate) observer: Arc<dyn DatabaseObserver>,
    /// The connection for batches; `None` before its first use and after an error.
    writer: Mutex<Option<Client>>,
}

impl PostgresVisits {
    /// Prepares connections to the database at a URL. None is opened before it is needed.
    pub fn new(url: &str) -> Result<Self> {
        Self::with_options(url, &links::ConnectOptions::default())
    }

    /// Prepares connections like [`new`](Self::new), as many as the options say.
    pub fn with_options(url: &str, options: &links::ConnectOptions) -> Result<Self> {
        let observer = Arc::clone(&options.observer);
        let mut address = links::Address::parse(url)?;
        address.observer = Arc::clone(&observer);
        let config = &mut address.config;
        config.application_name("shortmint-visits").target_session_attrs(TargetSessionAttrs::ReadWrite);
        let pool = links::pool("visits", &address, options.budget.visits);
        Ok(Self { address, pool, observer, writer: Mutex::new(None) })
    }

    /// Runs an operation on a connection of the pool, within [`DEADLINE`].
    pub(crate) async fn with<T>(&self, operation: impl AsyncFnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let run = async {
            let mut connection = links::check_out(&self.pool).await?;
            operation(&mut connection).await
        };
        let done = timeout(DEADLINE, run).await.unwrap_or(Err(StoreError::TimedOut.into()));
        done.inspect_err(|error| self.note(error))
    }

    /// Runs an operation in a transaction, and commits it.
    pub(crate) async fn transact<T>(
        &self,
        operation: impl AsyncFnOnce(&mut PostgresSql<'_, Transaction<'_>>) -> Result<T>,
    ) -> Result<T> {
        self.with(async |client| {
            let transaction = client.transaction().await?;
            transaction.batch_execute(LIMITS).await?;
            let done = operation(&mut PostgresSql(&transaction)).await?;
            transaction.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Runs a step of the merging of counters in a transaction, beside batches and not beside
    /// deletions. Returns `None` if another process is at it.
    pub(crate) async fn in_turn<T>(
        &self,
        step: impl AsyncFnOnce(&mut PostgresSql<'_, Transaction<'_>>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.transact(async |sql| {
            if !try_lock(sql, MERGER).await? {
                return Ok(None);
            }
            sql.query(&format!("SELECT 1 FROM pg_advisory_xact_lock_shared({LOCK})"), &[]).await?;
            step(sql).await.map(Some)
        })
        .await
    }

    /// Runs questions that are all answered as of one instant.
    pub(crate) async fn snapshot<T>(
        &self,
        questions: impl AsyncFnOnce(&mut PostgresSql<'_, Transaction<'_>>) -> Result<T>,
    ) -> Result<T> {
        self.with(async |client| {
            let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
            let transaction = snapshot.read_only(true).start().await?;
            let answers = questions(&mut PostgresSql(&transaction)).await?;
            transaction.commit().await?;
            Ok(answers)
        })
        .await
    }

    /// Lets the counters of tags follow, with those of links that were transferred.
    pub(crate) async fn follow(&self, transferred: &dyn Transferred) -> Result<bool> {
        if self.with(async |client| gone_tags::remove(client, transferred).await).await? {
            return Ok(true);
        }
        self.transact(async |sql| tags::follow(sql, transferred).await).await
    }

    /// Counts an error of the connection or the server.
    fn note(&self, error: &VisitStoreError) {
        if let VisitStoreError::Database(error) = error {
            self.address.note_error(error);
        }
    }

    async fn connect(&self) -> Result<Client> {
        let (client, connection) = self.address.connect().await?;
        // It ends with the client; an error shows at the client's next call.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Stores a batch with these rows: its own, or none if they go to another database.
    pub(crate) async fn write(
        &self,
        producer: &Producer,
        batch: &Batch,
        known: i64,
        rows: &[VisitRow],
    ) -> Result<(), WriteError> {
        let mut writer = self.writer.lock().await;
        let mut client = match writer.take() {
            Some(client) if !client.is_closed() => client,
            _ => self.connect().await.inspect_err(|error| self.note(error)).map_err(WriteError::Failed)?,
        };
        let outcome = write::write(&mut client, producer, batch, known, rows).await;
        // A connection whose transaction failed is closed, which ends the transaction.
        match &outcome {
            Ok(()) => *writer = Some(client),
            Err(WriteError::Failed(error) | WriteError::Unknown(error)) => self.note(error),
            Err(WriteError::Fenced | WriteError::Outdated) => {}
        }
        outcome
    }
}

/// Takes an advisory lock until the transaction ends, unless another process has it. Returns
/// whether it did.
async fn try_lock(sql: &mut dyn Sql, key: i64) -> Result<bool> {
    let taken = sql.first(&format!("SELECT pg_try_advisory_xact_lock({key})"), &[]).await?;
    Ok(taken.map(|row| row.flag(0)).transpose()?.unwrap_or(false))
}

#[async_trait]
impl VisitReader for PostgresVisits {
    async fn run(&self, lane: Lane, operation: Operation<VisitStoreError>) -> Result<Done> {
        match lane {
            Lane::Write | Lane::LongWrite => self.transact(async |sql| operation.run(sql).await).await,
            Lane::Read | Lane::List | Lane::Authenticate => {
                self.with(async |client| operation.run(&mut PostgresSql(&*client)).await).await
            }
        }
    }
}

#[async_trait]
impl VisitStore for PostgresVisits {
    async fn migrate(&self) -> Result<()> {
        // The schema is that of the links' database.
        Ok(())
    }

    fn pools(&self) -> Vec<PoolCount> {
        vec![self.pool.count()]
    }

    async fn slots(&self) -> Result<Option<(u32, u32)>> {
        let used =
            self.with(async |client| sql::producers::slots_used(&mut PostgresSql(&*client)).await).await?;
        Ok(Some((used, Slot::COUNT.into())))
    }

    async fn store(&self, producer: &Producer, batch: &Batch, known: i64) -> Result<(), WriteError> {
        self.write(producer, batch, known, &batch.rows).await
    }

    async fn delete_rows(&self) -> Result<Option<u64>> {
        match self.with(async |client| sql::deletion::delete_rows(&mut PostgresSql(&*client)).await).await? {
            deleted @ Some(_) => Ok(deleted),
            None => self.transact(async |sql| sql::erasures::delete_rows(sql).await).await,
        }
    }

    async fn keep(&self, rows_from: Day) -> Result<()> {
        self.with(async |client| chores::keep(client, rows_from).await).await
    }

    async fn rebuild_index(&self, rows_from: Day) -> Result<bool> {
        // Without a deadline: the index of a day may have a billion rows.
        let client = links::check_out(&self.pool).await?;
        chores::rebuild_index(&client, rows_from).await.inspect_err(|error| self.note(error))
    }

    async fn merge(&self) -> Result<Remaining> {
        // Closed days are committed before anything else: a deletion waits for a step at most.
        match self.in_turn(async |sql| closing::close(sql, MERGED).await).await?.unwrap_or(Remaining::Held) {
            Remaining::Nothing => {}
            remaining @ (Remaining::Something | Remaining::Held) => return Ok(remaining),
        }
        let months = self.transact(async |sql| months::outdated(sql).await).await?;
        let mut merged = 0;
        for month in &months {
            match self.in_turn(async |sql| months::merge(sql, month).await).await? {
                Some(is_merged) => merged += usize::from(is_merged),
                None => return Ok(Remaining::Held),
            }
        }
        Ok(Remaining::from(merged > 0 && months.len() == months::STEP))
    }

    async fn remove_old_counters(&self, counts_from: Day) -> Result<Remaining> {
        let more = self.in_turn(async |sql| old_counters::remove(sql, counts_from).await).await?;
        Ok(more.map_or(Remaining::Held, Remaining::from))
    }

    async fn fold_link_visits(&self) -> Result<bool> {
        self.transact(async |sql| link_visits::fold(sql).await).await
    }

    async fn follow_tags(&self) -> Result<bool> {
        self.follow(&NothingTransferred).await
    }
}
