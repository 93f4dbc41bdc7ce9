//! The shared statements on Postgres. None is prepared, so that each takes one round trip.

use std::{
    error::Error,
    iter::empty,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::BytesMut;
use futures_util::{TryStreamExt as _, future::try_join};
use jiff::Timestamp;
use tokio::time::timeout;
use tokio_postgres::{
    Client, GenericClient, Transaction,
    error::SqlState,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    PostgresStore,
    admin::compared_epoch,
    connect::{Connections, check_out},
    line::rolled_back,
    statements::IDENTITY,
};
use crate::{
    Database, Done, InsertError, Lane, Operation, Result, StoreError, Under, Witness,
    sql::{Cell, Dialect, Notice, Row, Sql, Value},
};

/// A transaction on Postgres, which is committed by the code that began it; or a connection, each
/// of whose statements is a transaction of its own.
pub struct PostgresSql<'a, C>(pub &'a C);

/// Deadline of one attempt at a statement or transaction, and of a wait for a connection.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// Server-side limits of a transaction. A caller that timed out must not keep a connection busy,
/// and one that disappears midway must not keep locks. To compile a statement takes a third of a
/// second, and to start workers for it a tenth: more than either saves.
const LIMITS: &str = "
    SET LOCAL statement_timeout = '3s'; SET LOCAL idle_in_transaction_session_timeout = '3s';
    SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0";

/// Deadline of a transaction with many statements, such as a batch of an import or a step of a
/// sweep, over a slow network.
const LONG: Duration = Duration::from_secs(60);

/// Maximum number of attempts at a transaction that the server rolls back because of others
/// ([`is_contended`]).
const TRIES: usize = 3;

/// Applies [`DEADLINE`] to a call.
pub(super) async fn within<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(DEADLINE, call).await.unwrap_or(Err(StoreError::TimedOut))
}

/// Returns whether the server rolled the transaction back because of what others did at the same
/// time: a deadlock, a serialization failure, or a lock that they held too long. So it may be
/// repeated.
pub(super) fn is_contended(error: &StoreError) -> bool {
    let codes =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    matches!(error, StoreError::Postgres(error) if error.code().is_some_and(|code| codes.contains(code)))
}

#[async_trait]
impl Database for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn is_distributed(&self) -> bool {
        self.nodes.load().is_some()
    }

    fn witness(&self) -> Option<&Arc<Witness>> {
        self.witness.as_ref()
    }

    async fn run(&self, lane: Lane, operation: Operation) -> Result<Done> {
        let (pool, deadline) = match lane {
            Lane::Write | Lane::Read => (&self.pool, DEADLINE),
            Lane::LongWrite => (&self.pool, LONG),
            Lane::List => (&self.lists, DEADLINE),
            Lane::Authenticate => (&self.keys, DEADLINE),
        };
        match self.transact(pool, deadline, None, &operation).await.map_err(StoreError::from) {
            // The connection may lead to a server that has restarted since.
            Err(StoreError::Postgres(_)) if lane == Lane::Authenticate => {
                Ok(self.transact(pool, deadline, None, &operation).await?)
            }
            end => end,
        }
    }

    async fn run_insert(&self, under: Option<Under<'_>>, insert: Operation) -> Result<Done, InsertError> {
        self.transact(&self.pool, DEADLINE, under, &insert).await
    }

    fn announces_creates(&self) -> bool {
        self.tells_creates.load(Ordering::Relaxed)
    }
}

impl PostgresStore {
    /// Runs an operation in a transaction, under numbers of a history if these are given.
    /// `deadline` applies to what is before COMMIT, and to COMMIT.
    ///
    /// The outcome is known, unless COMMIT was sent and not answered. An operation that stored
    /// nothing is committed as well, without effect.
    async fn transact(
        &self,
        pool: &Connections,
        deadline: Duration,
        under: Option<Under<'_>>,
        operation: &Operation,
    ) -> Result<Done, InsertError> {
        let note = |error: &InsertError| {
            let (InsertError::Failed(error) | InsertError::Unknown(error)) = error;
            self.address.note_error(error);
        };
        let connection = check_out(pool).await.map_err(InsertError::Failed);
        let mut connection = connection.inspect_err(note)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.transact_once(&mut connection, deadline, under, operation).await {
                Err(InsertError::Failed(error)) if tries < TRIES && is_contended(&error) => {
                    self.address.note_error(&error);
                }
                end => return end.inspect_err(note),
            }
        }
    }

    async fn transact_once(
        &self,
        client: &mut Client,
        deadline: Duration,
        under: Option<Under<'_>>,
        operation: &Operation,
    ) -> Result<Done, InsertError> {
        let prepare = async {
            let transaction = client.transaction().await?;
            let run = async {
                // In the transaction that writes: after a fail-over, a connection leads to another
                // server.
                if let Some(under) = under {
                    self.compare(&transaction, under).await?;
                }
                let mut sql = PostgresSql(&transaction);
                match self.nodes.load().is_some() {
                    true => operation.run(&mut OnNodes(sql)).await,
                    false => operation.run(&mut sql).await,
                }
            };
            // Sent before the first statement of the operation, whose answer comes with theirs: a
            // round trip less.
            let limits = async { transaction.batch_execute(LIMITS).await.map_err(StoreError::from) };
            let ((), done) = try_join(limits, run).await?;
            Ok((transaction, done))
        };
        let prepared = timeout(deadline, prepare).await.unwrap_or(Err(StoreError::TimedOut));
        let (transaction, done) = prepared.map_err(InsertError::Failed)?;
        match timeout(deadline, transaction.commit()).await {
            Ok(Ok(())) => Ok(done),
            // A distributed database may have committed on a node, and then failed.
            Ok(Err(error)) if rolled_back(&error) && self.nodes.load().is_none() => {
                Err(InsertError::Failed(error.into()))
            }
            Ok(Err(error)) => Err(InsertError::Unknown(error.into())),
            Err(_) => Err(InsertError::Unknown(StoreError::TimedOut)),
        }
    }

    /// Checks that the database's history is that of the numbers, and also that of the node which
    /// has their bucket.
    async fn compare(&self, transaction: &Transaction<'_>, Under { history, link }: Under<'_>) -> Result<()> {
        let (nodes, compared) = (self.find_nodes().await?, compared_epoch(transaction).await?);
        let Some(nodes) = nodes else {
            return if compared == *history { Ok(()) } else { Err(StoreError::AnotherHistory) };
        };
        // The statement has one row and is run by the node of the link, as those are that follow.
        let ask = format!("SELECT ({}) FROM (SELECT count(*) FROM link WHERE id = $1) AS node", *IDENTITY);
        let row = transaction.query_typed(&ask, &[(&link.get(), Type::INT8)]).await?;
        nodes.compare(link, row.first().map(|row| row.try_get(0)).transpose()?.flatten())?;
        if compared.as_str() == nodes.of_coordinator(history)? {
            Ok(())
        } else {
            Err(StoreError::AnotherHistory)
        }
    }
}

#[async_trait]
impl<C: GenericClient + Sync> Sql for PostgresSql<'_, C> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        self.0.query_typed(sql, &parameters(values)).await?.iter().map(row).collect()
    }

    async fn numbers(&mut self, sql: &str) -> Result<Vec<i64>> {
        let mut rows = pin!(self.0.query_typed_raw(sql, empty::<(i64, Type)>()).await?);
        let mut numbers = Vec::new();
        while let Some(row) = rows.try_next().await? {
            for column in 0..row.len() {
                let Int(number) = row.try_get(column)?;
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        Ok(self.0.execute_typed(sql, &parameters(values)).await?)
    }

    async fn notify(&mut self, notice: Notice<'_>) -> Result<()> {
        let text = match notice {
            Notice::Changed(ids) => ids.iter().map(|id| id.get().to_string()).collect::<Vec<_>>().join(","),
            Notice::Picked(id) => format!("+{}", id.get()),
        };
        let notify = "SELECT pg_notify('shortmint_links', $1)";
        self.0.query_typed(notify, &[(&text, Type::TEXT)]).await?;
        Ok(())
    }
}

/// The same, on a database whose links are on nodes.
struct OnNodes<'a, C>(PostgresSql<'a, C>);

#[async_trait]
impl<C: GenericClient + Sync> Sql for OnNodes<'_, C> {
    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn is_distributed(&self) -> bool {
        true
    }

    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        self.0.query(sql, values).await
    }

    async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        self.0.execute(sql, values).await
    }

    async fn notify(&mut self, notice: Notice<'_>) -> Result<()> {
        self.0.notify(notice).await
    }
}

fn parameters(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as _, type_of(value))).collect()
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Int(_) | Value::OptInt(_) => Type::INT8,
        Value::Bool(_) => Type::BOOL,
        Value::Text(_) | Value::OptText(_) => Type::TEXT,
        Value::Time(_) | Value::OptTime(_) => Type::TIMESTAMPTZ,
        Value::Bytes(_) => Type::BYTEA,
        Value::IntArray(_) => Type::INT8_ARRAY,
        Value::TextArray(_) => Type::TEXT_ARRAY,
        Value::TimeArray(_) => Type::TIMESTAMPTZ_ARRAY,
        Value::BytesArray(_) => Type::BYTEA_ARRAY,
    }
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Int(value) => value.to_sql(kind, out),
            Self::OptInt(value) => value.to_sql(kind, out),
            Self::Bool(value) => value.to_sql(kind, out),
            Self::Text(value) => value.to_sql(kind, out),
            Self::OptText(value) => value.to_sql(kind, out),
            Self::Time(value) => SystemTime::from(*value).to_sql(kind, out),
            Self::OptTime(value) => value.map(SystemTime::from).to_sql(kind, out),
            Self::Bytes(value) => value.to_sql(kind, out),
            Self::IntArray(values) => values.to_sql(kind, out),
            Self::TextArray(values) => values.to_sql(kind, out),
            Self::TimeArray(values) => {
                let times = values.iter().map(|value| value.map(SystemTime::from));
                times.collect::<Vec<_>>().to_sql(kind, out)
            }
            Self::BytesArray(values) => values.to_sql(kind, out),
        }
    }

    /// Each value is sent with its own type.
    fn accepts(_kind: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A number of any width.
struct Int(i64);

impl<'a> FromSql<'a> for Int {
    fn from_sql(kind: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT2 => i16::from_sql(kind, bytes)?.into(),
            Type::INT4 => i32::from_sql(kind, bytes)?.into(),
            _ => i64::from_sql(kind, bytes)?,
        }))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT2 | Type::INT4 | Type::INT8)
    }
}

pub(super) fn row(row: &tokio_postgres::Row) -> Result<Row> {
    let int = |value: Option<i64>| value.map_or(Cell::Null, Cell::Int);
    let cell = |index: usize| {
        let kind = row.columns()[index].type_();
        Ok(match *kind {
            Type::INT8 | Type::INT4 | Type::INT2 => {
                int(row.try_get::<_, Option<Int>>(index)?.map(|Int(number)| number))
            }
            Type::BOOL => int(row.try_get::<_, Option<bool>>(index)?.map(i64::from)),
            Type::TEXT => row.try_get::<_, Option<String>>(index)?.map_or(Cell::Null, Cell::Text),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map_or(Cell::Null, Cell::Bytes),
            Type::TIMESTAMPTZ => {
                match row.try_get::<_, Option<SystemTime>>(index)?.map(Timestamp::try_from) {
                    Some(time) => {
                        Cell::Time(time.map_err(|error| StoreError::Corrupt(format!("a time: {error}")))?)
                    }
                    None => Cell::Null,
                }
            }
            _ => return Err(StoreError::Corrupt(format!("a value of type {kind}"))),
        })
    };
    (0..row.len()).map(cell).collect::<Result<_, _>>().map(Row)
}
