//! A dedicated connection with one prepared statement, remade when it breaks.

use std::{pin::pin, time::Duration};

use futures_util::{SinkExt as _, future::try_join};
use hyper::body::Bytes;
use issuer::names::StoreEpoch;
use jiff::Timestamp;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use tokio_postgres::{Client, Config, CopyInSink, NoTls, Row, Statement, error::SqlState, types::ToSql};

use super::{admin::epoch, copy::COPY, timestamp};
use crate::store::StoreError;

/// A connection that answers one statement at a time.
pub(super) struct Line {
    config: Config,
    sql: &'static str,
    /// None until it is needed, and after trouble. The lock is tokio's: it is held while the statement runs, which is
    /// what makes the line answer one at a time.
    open: Mutex<Option<Open>>,
}

struct Open {
    client: Client,
    statement: Statement,
    /// To copy rows in; prepared when it is first needed.
    copy: Option<Copying>,
    /// Which history of the database it writes; asked when it is first needed. A connection keeps its history: a server that is
    /// promoted takes no writes before.
    history: Option<StoreEpoch>,
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
    pub(super) fn new(config: Config, sql: &'static str) -> Self {
        Self { config, sql, open: Mutex::new(None) }
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

    /// Runs the statement if the connection leads to this history of the database; else it is surely not sent.
    pub(super) async fn query_in(
        &self,
        history: &StoreEpoch,
        deadline: Duration,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LineError> {
        let mut slot = self.turn(deadline).await?;
        let open = self.take_in(&mut slot, history, deadline).await?;
        Self::run(&mut slot, open, deadline, params).await
    }

    /// Copies rows in, which are told the time that they are stored at, likewise. Nothing is stored before all of them have come.
    pub(super) async fn copy_in(
        &self,
        history: &StoreEpoch,
        deadline: Duration,
        rows: impl FnOnce(Timestamp) -> Bytes,
    ) -> Result<Timestamp, LineError> {
        let mut slot = self.turn(deadline).await?;
        let mut open = self.take_in(&mut slot, history, deadline).await?;
        let begun = timeout(deadline, open.begin_copy()).await.unwrap_or(Err(StoreError::TimedOut));
        let (now, sink) = begun.map_err(LineError::NotSent)?;
        let mut sink = pin!(sink);
        let sent = async {
            sink.send(rows(now)).await?;
            sink.as_mut().finish().await
        };
        match timeout(deadline, sent).await {
            Ok(Ok(_)) => {
                *slot = Some(open);
                Ok(now)
            }
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(LineError::InDoubt(StoreError::TimedOut)),
        }
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

    /// The same, if it leads to this history of the database.
    async fn take_in(
        &self,
        slot: &mut Option<Open>,
        history: &StoreEpoch,
        deadline: Duration,
    ) -> Result<Open, LineError> {
        let mut open = self.take(slot, deadline).await?;
        if open.history.is_none() {
            let asked = timeout(deadline, epoch(&open.client)).await.unwrap_or(Err(StoreError::TimedOut));
            open.history = Some(asked.map_err(LineError::NotSent)?);
        }
        // The connection is not kept otherwise: it may be the one that leads to a primary of the past.
        if open.history.as_ref() == Some(history) {
            Ok(open)
        } else {
            Err(LineError::NotSent(StoreError::AnotherHistory))
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
        let statement = client.prepare(self.sql).await?;
        Ok(Open { client, statement, copy: None, history: None })
    }
}

impl Open {
    /// Begins to copy, and asks for the database's time on the way.
    async fn begin_copy(&mut self) -> Result<(Timestamp, CopyInSink<Bytes>), StoreError> {
        let Copying { now, copy } = match &self.copy {
            Some(copying) => copying.clone(),
            None => {
                let now = self.client.prepare("SELECT now()").await?;
                self.copy.insert(Copying { now, copy: self.client.prepare(COPY).await? }).clone()
            }
        };
        let (row, sink) = try_join(self.client.query_one(&now, &[]), self.client.copy_in(&copy)).await?;
        Ok((timestamp(&row, 0)?, sink))
    }
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
    error.code().is_some_and(|code| !going_down.contains(code))
}
