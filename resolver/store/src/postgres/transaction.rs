//! The shared statements on Postgres: each takes one round trip and has no name, so that a pooler
//! in transaction mode may stand between.

use std::time::{Duration, SystemTime};

use numbers::StoreEpoch;
use tokio_postgres::{
    Client, Transaction,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{
    PostgresStore,
    admin::compared_epoch,
    connect::{Address, Connections, check_out},
    deadline::{DEADLINE, within},
    line::rolled_back,
    timestamp::timestamp,
};
use crate::{
    InsertError, StoreError,
    sql::{Cell, Dialect, Row, Sql, Told, Value},
};

/// A transaction on Postgres.
pub(super) struct PostgresSql<'a>(Transaction<'a>);

/// A transaction of a caller, who commits it.
pub(super) struct SharedSql<'a, 'b>(pub(super) &'a Transaction<'b>);

/// Server-side limits of a transaction. A caller that timed out must not keep a connection busy,
/// and one that disappears midway must not keep locks.
const LIMITS: &str =
    "SET LOCAL statement_timeout = '3s'; SET LOCAL idle_in_transaction_session_timeout = '3s'";

/// Deadline of a transaction with many statements, such as a batch of an import or a step of a
/// sweep, over a slow network.
const LONG: Duration = Duration::from_secs(60);

/// Maximum number of attempts at a transaction that the server rolls back because of a deadlock or
/// a serialization failure.
const TRIES: usize = 3;

/// Begins a transaction with [`LIMITS`].
async fn begin(client: &mut Client) -> Result<PostgresSql<'_>, StoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    Ok(PostgresSql(transaction))
}

/// Returns whether the server rolled the transaction back because of a deadlock or a serialization
/// failure, so that it may be repeated.
fn is_to_be_repeated(error: &StoreError) -> bool {
    let codes = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    matches!(error, StoreError::Postgres(error) if error.code().is_some_and(|code| codes.contains(code)))
}

impl PostgresSql<'_> {
    /// Checks the database's history inside the transaction that writes. A pooler may serve each
    /// transaction from another server.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] if the history is another one.
    pub(super) async fn must_be_of(&self, history: &StoreEpoch) -> Result<(), StoreError> {
        if compared_epoch(&self.0).await? == *history { Ok(()) } else { Err(StoreError::AnotherHistory) }
    }
}

impl PostgresStore {
    /// Runs an operation in a transaction and commits it. The caller may repeat it whatever the
    /// outcome.
    pub(super) async fn run<T>(
        &self,
        operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        self.run_on(&self.pool, operation).await
    }

    /// Runs an operation of many statements with the deadline [`LONG`]. The server limits each
    /// statement by itself.
    pub(super) async fn run_long<T>(
        &self,
        operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        self.run_for(&self.pool, LONG, operation).await
    }

    /// Runs an operation like [`run`](Self::run), over a connection of this pool.
    pub(super) async fn run_on<T>(
        &self,
        pool: &Connections,
        operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        self.run_for(pool, DEADLINE, operation).await
    }

    async fn run_for<T>(
        &self,
        pool: &Connections,
        deadline: Duration,
        operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        let got = check_out(pool).await;
        self.address.note(&got);
        let mut connection = got?;
        let mut tries = 0;
        loop {
            let run = async {
                let mut sql = begin(&mut connection).await?;
                let done = operation(&mut sql).await?;
                sql.0.commit().await?;
                Ok(done)
            };
            tries += 1;
            match tokio::time::timeout(deadline, run).await.unwrap_or(Err(StoreError::TimedOut)) {
                Err(error) if tries < TRIES && is_to_be_repeated(&error) => {
                    self.address.note_error(&error);
                }
                end => {
                    self.address.note(&end);
                    return end;
                }
            }
        }
    }
}

/// Runs an operation that stores a link. Its outcome is known, unless COMMIT was sent and not
/// answered. An operation that stored nothing is committed as well, without effect.
pub(super) async fn insert<T>(
    address: &Address,
    client: &mut Client,
    operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
) -> Result<T, InsertError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match insert_once(client, operation).await {
            Err(InsertError::Failed(error)) if tries < TRIES && is_to_be_repeated(&error) => {
                address.note_error(&error);
            }
            end => {
                if let Err(InsertError::Failed(error) | InsertError::Unknown(error)) = &end {
                    address.note_error(error);
                }
                return end;
            }
        }
    }
}

async fn insert_once<T>(
    client: &mut Client,
    operation: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError>,
) -> Result<T, InsertError> {
    let prepared = within(async {
        let mut sql = begin(client).await?;
        let done = operation(&mut sql).await?;
        Ok((sql, done))
    });
    let (sql, done) = prepared.await.map_err(InsertError::Failed)?;
    match tokio::time::timeout(DEADLINE, sql.0.commit()).await {
        Ok(Ok(())) => Ok(done),
        Ok(Err(error)) if rolled_back(&error) => Err(InsertError::Failed(error.into())),
        Ok(Err(error)) => Err(InsertError::Unknown(error.into())),
        Err(_) => Err(InsertError::Unknown(StoreError::TimedOut)),
    }
}

impl Sql for PostgresSql<'_> {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        query(&self.0, sql, values).await
    }

    async fn tell(&mut self, news: Told<'_>) -> Result<(), StoreError> {
        tell(&self.0, news).await
    }
}

impl Sql for SharedSql<'_, '_> {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        query(self.0, sql, values).await
    }

    async fn tell(&mut self, news: Told<'_>) -> Result<(), StoreError> {
        tell(self.0, news).await
    }
}

async fn query(transaction: &Transaction<'_>, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
    let params: Vec<(Box<dyn ToSql + Sync + Send>, Type)> = values.iter().map(param).collect();
    let params: Vec<(&(dyn ToSql + Sync), Type)> =
        params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
    transaction.query_typed(sql, &params).await?.iter().map(row).collect()
}

async fn tell(transaction: &Transaction<'_>, news: Told<'_>) -> Result<(), StoreError> {
    let text = match news {
        Told::Changed(ids) => ids.iter().map(|id| id.get().to_string()).collect::<Vec<_>>().join(","),
        Told::Picked(id) => format!("+{}", id.get()),
    };
    let notify = "SELECT pg_notify('shortmint_links', $1)";
    transaction.query_typed(notify, &[(&text, Type::TEXT)]).await?;
    Ok(())
}

fn param(value: &Value) -> (Box<dyn ToSql + Sync + Send>, Type) {
    match value.clone() {
        Value::Int(value) => (Box::new(value), Type::INT8),
        Value::OptInt(value) => (Box::new(value), Type::INT8),
        Value::Bool(value) => (Box::new(value), Type::BOOL),
        Value::Text(value) => (Box::new(value), Type::TEXT),
        Value::OptText(value) => (Box::new(value), Type::TEXT),
        Value::Time(value) => (Box::new(SystemTime::from(value)), Type::TIMESTAMPTZ),
        Value::OptTime(value) => (Box::new(value.map(SystemTime::from)), Type::TIMESTAMPTZ),
        Value::Bytes(value) => (Box::new(value), Type::BYTEA),
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let cell = |index: usize| {
        let kind = row.columns()[index].type_();
        Ok(match *kind {
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map_or(Cell::Null, Cell::Int),
            Type::INT2 => {
                row.try_get::<_, Option<i16>>(index)?.map_or(Cell::Null, |value| Cell::Int(value.into()))
            }
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(index)?.map_or(Cell::Null, |value| Cell::Int(value.into()))
            }
            Type::BOOL => {
                row.try_get::<_, Option<bool>>(index)?.map_or(Cell::Null, |value| Cell::Int(value.into()))
            }
            Type::TEXT => row.try_get::<_, Option<String>>(index)?.map_or(Cell::Null, Cell::Text),
            Type::TIMESTAMPTZ => match row.try_get::<_, Option<SystemTime>>(index)? {
                Some(_) => Cell::Time(timestamp(row, index)?),
                None => Cell::Null,
            },
            _ => return Err(StoreError::Corrupt(format!("a value of type {kind}"))),
        })
    };
    (0..row.len()).map(cell).collect::<Result<_, _>>().map(Row)
}
