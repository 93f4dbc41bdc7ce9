//! A dedicated connection with one prepared statement, remade when it breaks.
//!
//! 1. I6: a write is reported as done only after the answer to its COMMIT. A single statement commits at `Sync`, whose answer
//!    [`Client::query`] waits for. COPY does not: `CopyInSink::finish` returns at `CommandComplete`, before the commit, so rows
//!    are copied inside a transaction of their own and its COMMIT is awaited.
//! 2. I4: once a COMMIT may have reached the server, only the server's own answer to it decides. Anything else is in doubt.
//! 3. The history of the database is checked inside the transaction that writes. A transaction pooler may serve each
//!    transaction from another server, so what an earlier transaction saw proves nothing.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use futures_util::{
    SinkExt as _,
    future::{join, try_join, try_join3},
};
use jiff::Timestamp;
use numbers::StoreEpoch;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use tokio_postgres::{
    Client, Config, CopyInSink, NoTls, Row, Statement,
    error::{Severity, SqlState},
    types::ToSql,
};

use super::{
    admin::{COMPARED_EPOCH, NOTE_SERVER},
    copy::COPY,
    optional_timestamp,
    replica::{Position, REPLAYED},
    timestamp,
};
use crate::StoreError;

/// A connection that answers one statement at a time.
pub(super) struct Line {
    config: Config,
    sql: &'static str,
    /// Whether the statement asks for the database's history. A role that only reads may not ask for the server.
    writes: bool,
    /// None until it is needed, and after trouble. The lock is tokio's: it is held while the statement runs, which is
    /// what makes the line answer one at a time.
    open: Mutex<Option<Open>>,
}

struct Open {
    client: Client,
    statement: Statement,
    /// To copy rows in; prepared when it is first needed.
    copy: Option<Copying>,
    /// Asks a replica for its position; prepared when it is first needed.
    replayed: Option<Statement>,
}

/// What a line needs to copy rows in.
#[derive(Clone)]
struct Copying {
    now: Statement,
    copy: Statement,
}

/// How far a statement came.
#[derive(Debug)]
pub(super) enum LineError {
    /// It never left: there was no connection.
    NotSent(StoreError),
    /// Postgres answered with an error, so the statement's transaction was rolled back.
    Answered(tokio_postgres::Error),
    /// It was sent, and nobody knows.
    InDoubt(StoreError),
}

impl From<LineError> for StoreError {
    fn from(error: LineError) -> Self {
        match error {
            LineError::NotSent(error) | LineError::InDoubt(error) => error,
            LineError::Answered(error) => error.into(),
        }
    }
}

impl Line {
    /// For a statement that writes in one history of the database.
    pub(super) fn writer(config: Config, sql: &'static str) -> Self {
        Self { config, sql, writes: true, open: Mutex::new(None) }
    }

    pub(super) fn reader(config: Config, sql: &'static str) -> Self {
        Self { config, sql, writes: false, open: Mutex::new(None) }
    }

    /// Whether no statement runs on it.
    pub(super) fn is_free(&self) -> bool {
        self.open.try_lock().is_ok()
    }

    /// Runs the statement. A connection on which anything went wrong is not used again.
    pub(super) async fn query(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LineError> {
        let mut slot = self.turn(deadline).await?;
        let open = self.take(&mut slot, deadline).await?;
        Self::run(&mut slot, open, deadline, params).await
    }

    /// Runs a statement that changes nothing: it may be sent again whatever became of the first. Once, because the connection may have been an
    /// old one to a server that has restarted since.
    pub(super) async fn read(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LineError> {
        match self.query(deadline, params).await {
            Err(LineError::InDoubt(_)) => self.query(deadline, params).await,
            answer => answer,
        }
    }

    /// Runs a statement that changes nothing on a replica; how far it had replayed the log before, if it can say, and the rows.
    pub(super) async fn read_replica(
        &self,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Option<Position>, Vec<Row>), LineError> {
        let mut slot = self.turn(deadline).await?;
        let mut open = self.take(&mut slot, deadline).await?;
        let read = timeout(deadline, open.read_replica(params)).await.unwrap_or(Err(StoreError::TimedOut));
        let read = read.map_err(LineError::InDoubt)?;
        *slot = Some(open);
        Ok(read)
    }

    /// Copies rows in and commits them; when they were stored, by the database's clock. In another history of the database
    /// nothing is sent.
    ///
    /// BEGIN, the question for time and history, and the head of COPY leave in one flight, the rows and COMMIT in a second.
    pub(super) async fn copy_in(
        &self,
        history: &StoreEpoch,
        deadline: Duration,
        rows: impl FnOnce(Timestamp) -> Bytes,
    ) -> Result<Timestamp, LineError> {
        let mut slot = self.turn(deadline).await?;
        let mut open = self.take(&mut slot, deadline).await?;
        let begun = timeout(deadline, open.begin_copy(history)).await.unwrap_or(Err(StoreError::TimedOut));
        let (now, sink) = begun.map_err(LineError::NotSent)?;
        let committed = timeout(deadline, commit_copy(&open.client, sink, rows(now))).await;
        committed.unwrap_or(Err(LineError::InDoubt(StoreError::TimedOut)))?;
        *slot = Some(open);
        Ok(now)
    }

    /// The right to run a statement. Who does not get it in time has sent nothing.
    async fn turn(&self, deadline: Duration) -> Result<MutexGuard<'_, Option<Open>>, LineError> {
        timeout(deadline, self.open.lock()).await.map_err(|_| LineError::NotSent(StoreError::TimedOut))
    }

    /// The open connection, or a new one.
    async fn take(&self, slot: &mut Option<Open>, deadline: Duration) -> Result<Open, LineError> {
        match slot.take().filter(|open| !open.client.is_closed()) {
            Some(open) => Ok(open),
            None => timeout(deadline, self.connect())
                .await
                .unwrap_or(Err(StoreError::TimedOut))
                .map_err(LineError::NotSent),
        }
    }

    async fn run(
        slot: &mut Option<Open>,
        open: Open,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LineError> {
        match timeout(deadline, open.client.query(&open.statement, params)).await {
            Ok(Ok(rows)) => {
                *slot = Some(open);
                Ok(rows)
            }
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(LineError::InDoubt(StoreError::TimedOut)),
        }
    }

    async fn connect(&self) -> Result<Open, StoreError> {
        let unreachable = |error| StoreError::Unreachable(Box::new(error));
        let (client, connection) = self.config.connect(NoTls).await.map_err(unreachable)?;
        tokio::spawn(async move {
            // The error reaches whoever waits for an answer; here it only ends the task.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to Postgres");
            }
        });
        let note = async { if self.writes { client.batch_execute(&NOTE_SERVER).await } else { Ok(()) } };
        let ((), statement) = try_join(note, client.prepare(self.sql)).await?;
        Ok(Open { client, statement, copy: None, replayed: None })
    }
}

impl Open {
    /// Begins a transaction and a COPY in it, unless the database is of another history.
    async fn begin_copy(
        &mut self,
        history: &StoreEpoch,
    ) -> Result<(Timestamp, CopyInSink<Bytes>), StoreError> {
        let Copying { now, copy } = match &self.copy {
            Some(copying) => copying.clone(),
            None => {
                let now = self.client.prepare(&format!("SELECT now(), ({})", *COMPARED_EPOCH)).await?;
                self.copy.insert(Copying { now, copy: self.client.prepare(COPY).await? }).clone()
            }
        };
        let client = &self.client;
        let ((), row, sink) =
            try_join3(client.batch_execute("BEGIN"), client.query_one(&now, &[]), client.copy_in(&copy))
                .await?;
        // The sink is dropped otherwise, which makes the COPY fail, and so does the connection.
        let epoch: Option<&str> = row.try_get(1)?;
        if epoch.ok_or(StoreError::NotCompared)? != history.as_str() {
            return Err(StoreError::AnotherHistory);
        }
        Ok((timestamp(&row, 0)?, sink))
    }
}

impl Open {
    /// Sends both questions in one flight; the server answers them in their order.
    async fn read_replica(
        &mut self,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Option<Position>, Vec<Row>), StoreError> {
        let replayed = match &self.replayed {
            Some(replayed) => replayed.clone(),
            None => self.replayed.insert(self.client.prepare(REPLAYED).await?).clone(),
        };
        let position = self.client.query_one(&replayed, &[]);
        let (replayed, rows) = try_join(position, self.client.query(&self.statement, params)).await?;
        let start = optional_timestamp(&replayed, 1)?;
        let position = replayed.try_get::<_, Option<i64>>(0)?.zip(start);
        Ok((position.map(|(at, start)| Position { start, at }), rows))
    }
}

/// Sends the rows and COMMIT together, and waits for the answers to both. A COPY that failed leaves a transaction that COMMIT
/// rolls back without an error of its own, so its failure is the one that counts.
async fn commit_copy(client: &Client, sink: CopyInSink<Bytes>, rows: Bytes) -> Result<(), LineError> {
    let mut sink = pin!(sink);
    let copy = async {
        sink.send(rows).await?;
        sink.as_mut().finish().await
    };
    let (copied, committed) = join(copy, client.batch_execute("COMMIT")).await;
    copied.and(committed).map_err(failed)
}

/// What is known of a statement that was sent and failed.
fn failed(error: tokio_postgres::Error) -> LineError {
    if rolled_back(&error) { LineError::Answered(error) } else { LineError::InDoubt(error.into()) }
}

/// Whether the server's answer proves that nothing was committed. A server that is going down may have committed before it
/// said so, and says so without a word about the statement.
pub(super) fn rolled_back(error: &tokio_postgres::Error) -> bool {
    let going_down = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
    ];
    // Of a connection (class 08) a pooler speaks, which does not know; and what ends the server or the connection proves nothing either.
    let is_of_the_connection = |code: &SqlState| code.code().starts_with("08");
    let severity = error.as_db_error().and_then(|error| error.parsed_severity());
    let ends = matches!(severity, Some(Severity::Fatal | Severity::Panic));
    error.code().is_some_and(|code| !going_down.contains(code) && !is_of_the_connection(code)) && !ends
}
