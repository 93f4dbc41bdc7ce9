//! A dedicated connection with one prepared statement, reopened when it breaks.
//!
//! 1. I6: a write is reported as done only after the answer to its COMMIT. A single statement
//!    commits at `Sync`, whose answer [`Client::query`] waits for. COPY does not:
//!    `CopyInSink::finish` returns at `CommandComplete`, before the commit. So rows are copied
//!    inside a transaction of their own, and its COMMIT is awaited.
//! 2. I4: once a COMMIT may have reached the server, only the server's own answer to it decides.
//!    Anything else leaves the outcome in doubt.
//! 3. The history of the database is checked inside the transaction that writes. After a fail-over,
//!    a new connection leads to another server, so an earlier answer proves nothing.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt as _,
    future::{join, try_join, try_join_all, try_join3},
};
use jiff::Timestamp;
use numbers::StoreEpoch;
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::{
    Client, CopyInSink, Row, Statement,
    error::{Severity, SqlState},
    types::{ToSql, Type},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    admin::{COMPARED_EPOCH, NOTE_SERVER},
    budget::PoolCount,
    connect::{Address, end_with_client},
    replica::{Position, REPLAYED, Replayed},
    statements::{COPY, IDENTITY, READ_SPAN},
    transaction,
};
use crate::{InsertError, Result, StoreError};

/// A dedicated connection that runs one statement at a time.
pub(super) struct Line {
    address: Address,
    sql: &'static str,
    /// The first statement of a new connection.
    first: Option<&'static str>,
    /// Who the server has to be, by [`IDENTITY`]; `None` if any will do.
    server: Option<Arc<str>>,
    /// The open connection; `None` before its first use and after an error. The lock is tokio's,
    /// because it is held while the statement runs: that serializes the statements.
    open: Mutex<Option<Open>>,
}

struct Open {
    client: Client,
    statement: Statement,
    /// Statements for COPY, prepared at their first use.
    copy: Option<Copying>,
    /// The query for a replica's replay position, prepared at its first use.
    replayed: Option<Statement>,
    /// Without this, the connection of a caller that gave up would stay open until the server
    /// answers.
    _connection: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Copying {
    now: Statement,
    copy: Statement,
}

impl Line {
    /// Creates a connection for a statement that writes, and checks the database's history. A role
    /// that only reads may lack the right to ask for the server's identity.
    pub(super) fn writer(address: Address, sql: &'static str) -> Self {
        Self { first: Some(&NOTE_SERVER), ..Self::reader(address, sql) }
    }

    /// Creates a connection for the statement of slugs.
    ///
    /// It gives up a lock before its caller gives up, so that its outcome is known; while it waits,
    /// others wait for their turn. Its plan is kept until the tables are analysed, and looks into
    /// indexes only: one made while the table was small would otherwise read the whole table. A new
    /// plan each time costs 0.3 ms (2026-11-29).
    pub(super) fn slugs(address: Address, sql: &'static str) -> Self {
        let first =
            "SET lock_timeout = '1s'; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
        Self { first: Some(first), ..Self::reader(address, sql) }
    }

    /// Creates a connection for a read-only statement whose plan looks into indexes only, and is
    /// kept, as with [`slugs`](Self::slugs).
    pub(super) fn index_reader(address: Address, sql: &'static str) -> Self {
        let first = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
        Self { first: Some(first), ..Self::reader(address, sql) }
    }

    /// Creates a connection for a read-only statement.
    pub(super) fn reader(address: Address, sql: &'static str) -> Self {
        Self { address, sql, first: None, server: None, open: Mutex::new(None) }
    }

    /// Creates a connection for batches of links to a node of a distributed database. If that is
    /// not the server that it has to be, as after a restart, nothing is written.
    pub(super) fn node_writer(address: Address, sql: &'static str, server: Arc<str>) -> Self {
        Self { server: Some(server), ..Self::reader(address, sql) }
    }

    /// Returns a free connection of several, or else the next one in turn.
    pub(super) fn free<'a>(lines: &'a [Self], turn: &AtomicUsize) -> &'a Self {
        let turn = turn.fetch_add(1, Ordering::Relaxed) % lines.len();
        let free = lines.iter().find(|line| line.open.try_lock().is_ok());
        free.unwrap_or(&lines[turn])
    }

    pub(super) fn count(pool: &'static str, lines: &[Self]) -> PoolCount {
        let mut count = PoolCount { pool, busy: 0, idle: 0, max: 0 };
        for line in lines {
            count.max += 1;
            match line.open.try_lock() {
                Ok(open) => count.idle += u32::from(open.is_some()),
                Err(_) => count.busy += 1,
            }
        }
        count
    }

    /// Runs the statement. After any error the connection is dropped.
    ///
    /// `deadline` applies to each phase by itself: waiting for the turn, connecting, and the
    /// statement.
    pub(super) async fn query(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, InsertError> {
        self.call(deadline, async |open| {
            match timeout(deadline, open.client.query(&open.statement, params)).await {
                Ok(answer) => answer.map_err(failed),
                Err(_) => Err(InsertError::Unknown(StoreError::TimedOut)),
            }
        })
        .await
    }

    /// Waits for the turn, and makes a call on the open connection, or on a new one. After any
    /// error the connection is dropped. A caller that times out before the call has sent nothing.
    async fn call<T>(
        &self,
        deadline: Duration,
        call: impl AsyncFnOnce(&mut Open) -> Result<T, InsertError>,
    ) -> Result<T, InsertError> {
        let run = async {
            let late = |_| InsertError::Failed(StoreError::TimedOut);
            let mut slot = timeout(deadline, self.open.lock()).await.map_err(late)?;
            let mut open = match slot.take().filter(|open| !open.client.is_closed()) {
                Some(open) => open,
                None => {
                    let connected = timeout(deadline, self.connect()).await.map_err(late)?;
                    connected.map_err(InsertError::Failed)?
                }
            };
            let done = call(&mut open).await?;
            *slot = Some(open);
            Ok(done)
        };
        run.await.inspect_err(|error| {
            let (InsertError::Failed(error) | InsertError::Unknown(error)) = error;
            self.address.note_error(error);
        })
    }

    /// Runs a read-only statement, which is safe to repeat whatever the outcome of the first
    /// attempt. It is repeated once, because the connection may lead to a server that has restarted
    /// since.
    pub(super) async fn read(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, InsertError> {
        match self.query(deadline, params).await {
            Err(InsertError::Unknown(_)) => self.query(deadline, params).await,
            answer => answer,
        }
    }

    /// Reads the links from one id to another, as [`read`](Self::read) does.
    pub(super) async fn read_span(
        &self,
        deadline: Duration,
        first: i64,
        last: i64,
    ) -> Result<Vec<Row>, InsertError> {
        let read = || {
            self.call(deadline, async |open| {
                let span: [(&(dyn ToSql + Sync), Type); 2] = [(&first, Type::INT8), (&last, Type::INT8)];
                match timeout(deadline, open.client.query_typed(READ_SPAN, &span)).await {
                    Ok(answer) => answer.map_err(failed),
                    Err(_) => Err(InsertError::Failed(StoreError::TimedOut)),
                }
            })
        };
        match read().await {
            Err(InsertError::Unknown(_)) => read().await,
            answer => answer,
        }
    }

    /// Runs a read-only statement for each of some lists of ids, one after the other in one flight.
    pub(super) async fn read_each(
        &self,
        deadline: Duration,
        ids: &[Vec<i64>],
    ) -> Result<Vec<Row>, InsertError> {
        self.call(deadline, async |open| {
            let reads = ids.iter().map(async |ids| open.client.query(&open.statement, &[ids]).await);
            match timeout(deadline, try_join_all(reads)).await {
                Ok(answers) => Ok(answers.map_err(failed)?.into_iter().flatten().collect()),
                Err(_) => Err(InsertError::Failed(StoreError::TimedOut)),
            }
        })
        .await
    }

    /// Runs a read-only statement on any server. Returns how far that had replayed the log before
    /// the read, and the rows.
    pub(super) async fn read_replica(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Replayed, Vec<Row>), InsertError> {
        self.call(deadline, async |open| {
            let read = timeout(deadline, open.read_replica(params)).await;
            read.unwrap_or(Err(StoreError::TimedOut)).map_err(InsertError::Unknown)
        })
        .await
    }

    /// Closes the connection. The next one leads to the next server of the URL, if there is one.
    pub(super) async fn leave(&self) {
        self.open.lock().await.take();
        self.address.skip();
    }

    /// Copies rows in and commits them. Returns their creation time by the database's clock. If the
    /// database's history is not the given one, no row is sent.
    ///
    /// BEGIN, the query for time and history, and the head of COPY are pipelined in one flight; the
    /// rows and COMMIT follow in a second.
    pub(super) async fn copy_in(
        &self,
        history: Option<&StoreEpoch>,
        deadline: Duration,
        rows: impl FnOnce(Timestamp) -> Bytes,
    ) -> Result<Timestamp, InsertError> {
        self.call(deadline, async |open| {
            let begun =
                timeout(deadline, open.begin_copy(history)).await.unwrap_or(Err(StoreError::TimedOut));
            let (now, sink) = begun.map_err(InsertError::Failed)?;
            let committed = timeout(deadline, commit_copy(&open.client, sink, rows(now))).await;
            committed.unwrap_or(Err(InsertError::Unknown(StoreError::TimedOut)))?;
            Ok(now)
        })
        .await
    }

    async fn connect(&self) -> Result<Open> {
        let (client, connection) = self.address.connect().await?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // Callers that wait for an answer get the error; here it only ends the task.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to Postgres");
            }
        }));
        let first = async {
            match self.first {
                Some(first) => client.batch_execute(first).await,
                None => Ok(()),
            }
        };
        let prepared = async { Ok(try_join(first, client.prepare(self.sql)).await?) };
        let ((), ((), statement)) = try_join(end_with_client(&client), prepared).await?;
        if let Some(server) = &self.server
            && client.query_one(IDENTITY.as_str(), &[]).await?.try_get::<_, Option<&str>>(0)?
                != Some(&**server)
        {
            return Err(StoreError::AnotherHistory);
        }
        Ok(Open { client, statement, copy: None, replayed: None, _connection: connection })
    }
}

impl Open {
    /// Begins a transaction and a COPY in it.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] or [`StoreError::NotCompared`] if the database's
    /// history is not the given one.
    async fn begin_copy(&mut self, history: Option<&StoreEpoch>) -> Result<(Timestamp, CopyInSink<Bytes>)> {
        let Copying { now, copy } = match &self.copy {
            Some(copying) => copying.clone(),
            None => {
                let compared = history.map_or("NULL", |_| &COMPARED_EPOCH);
                let now = self.client.prepare(&format!("SELECT now(), ({compared})")).await?;
                self.copy.insert(Copying { now, copy: self.client.prepare(COPY).await? }).clone()
            }
        };
        let client = &self.client;
        let ((), row, sink) =
            try_join3(client.batch_execute("BEGIN"), client.query_one(&now, &[]), client.copy_in(&copy))
                .await?;
        // On an error the sink is dropped, which makes the COPY fail, and the connection is dropped
        // with it.
        let row = transaction::row(&row)?;
        if let Some(history) = history
            && row.opt_text(1)?.ok_or(StoreError::NotCompared)? != history.as_str()
        {
            return Err(StoreError::AnotherHistory);
        }
        Ok((row.time(0)?, sink))
    }

    /// Pipelines the query for the replay position and the statement. The server answers them in
    /// this order.
    async fn read_replica(&mut self, params: &[&(dyn ToSql + Sync)]) -> Result<(Replayed, Vec<Row>)> {
        let replayed = match &self.replayed {
            Some(replayed) => replayed.clone(),
            None => self.replayed.insert(self.client.prepare(REPLAYED).await?).clone(),
        };
        let position = self.client.query_one(&replayed, &[]);
        let (replayed, rows) = try_join(position, self.client.query(&self.statement, params)).await?;
        let replayed = transaction::row(&replayed)?;
        let position = replayed.opt_int(0)?.zip(replayed.opt_time(1)?);
        let position = position.map(|(at, start)| Position { start, at });
        Ok((Replayed { position, is_all: replayed.flag(2)? }, rows))
    }
}

/// Sends the rows and COMMIT together, and waits for both answers. After a failed COPY, COMMIT
/// rolls the transaction back without an error of its own, so the error of the COPY counts.
async fn commit_copy(client: &Client, sink: CopyInSink<Bytes>, rows: Bytes) -> Result<(), InsertError> {
    let mut sink = pin!(sink);
    let copy = async {
        sink.send(rows).await?;
        sink.as_mut().finish().await
    };
    let (copied, committed) = join(copy, client.batch_execute("COMMIT")).await;
    copied.and(committed).map_err(failed)
}

/// Classifies the error of a statement that was sent. If Postgres answered with it, the statement's
/// transaction was rolled back.
fn failed(error: tokio_postgres::Error) -> InsertError {
    if rolled_back(&error) { InsertError::Failed(error.into()) } else { InsertError::Unknown(error.into()) }
}

/// Returns whether the server's error proves that nothing was committed. A server that is shutting
/// down may have committed first, and its error does not tell.
pub fn rolled_back(error: &tokio_postgres::Error) -> bool {
    let going_down = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
    ];
    // Errors of class 08 (connection) come from a pooler, which does not know the outcome. An error
    // that ends the session or the server proves nothing either.
    let is_of_the_connection = |code: &SqlState| code.code().starts_with("08");
    let severity = error.as_db_error().and_then(|error| error.parsed_severity());
    let ends = matches!(severity, Some(Severity::Fatal | Severity::Panic));
    error.code().is_some_and(|code| !going_down.contains(code) && !is_of_the_connection(code)) && !ends
}
