//! How far the database has come, and which history of it this is: see [`Mark`].

use issuer::{block::Span, tokens::Mark};
use jiff::Timestamp;

use super::{Dialect, Sql, Value, ids_of, number_of_end};
use crate::{
    codes::{KeyspaceIndex, LinkId},
    store::{Advanced, Raise, StoreError},
};

/// Raises the mark by one.
pub(in crate::store) const RAISE: &str = "UPDATE deployment SET mark = mark + 1 RETURNING mark";
/// In the register, the holder of numbers that are given to nobody.
const NOBODY: &str = "nobody";

/// Compares the mark with one that is known, and raises it if asked to. One that was below says that the database was put back from an
/// older copy: a new history begins, and no number below these ends is registered by anybody.
pub(in crate::store) async fn advance<S: Sql>(
    sql: &mut S,
    at_least: Mark,
    raise: Raise,
    ends: &[(KeyspaceIndex, u64)],
) -> Result<Advanced, StoreError> {
    if let Raise::Since(seen) = raise
        && was_restarted(sql, seen).await?
    {
        return Ok(Advanced::Restarted);
    }
    let by = i64::from(matches!(raise, Raise::Since(_)));
    // Also by nothing: the row is locked until the new history is there for all to see.
    let step = "UPDATE deployment SET mark = mark + $1 RETURNING mark - $1, mark";
    let rows = sql.query(step, &[Value::Int(by)]).await?;
    let row = rows.first().ok_or_else(no_deployment)?;
    if mark_of(row.int(0)?)? >= at_least {
        return Ok(Advanced::To(mark_of(row.int(1)?)?));
    }
    let mark = begin(sql, at_least.next(), ends).await?;
    tracing::error!(
        history = mark.0,
        "the database was put back from an older copy: the links that it had since are lost. A new history begins, in which no number is \
         used that may have been one of theirs"
    );
    Ok(Advanced::Began(mark))
}

/// Begins a new history all the same, for an operator who knows more; leaves out so many numbers of every keyspace.
pub(in crate::store) async fn begin_history<S: Sql>(sql: &mut S, skip: u64) -> Result<Mark, StoreError> {
    let rows = sql.query(RAISE, &[]).await?;
    let mark = mark_of(rows.first().ok_or_else(no_deployment)?.int(0)?)?;
    let mut ends = Vec::new();
    for row in sql.query("SELECT \"index\" FROM keyspace", &[]).await? {
        let keyspace =
            KeyspaceIndex::new(row.int(0)?).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        ends.push((keyspace, registered_end(sql, keyspace).await?.saturating_add(skip)));
    }
    begin(sql, mark, &ends).await
}

async fn was_restarted<S: Sql>(sql: &mut S, seen: Option<Timestamp>) -> Result<bool, StoreError> {
    let (Dialect::Postgres, Some(seen)) = (S::DIALECT, seen) else { return Ok(false) };
    let rows = sql.query("SELECT pg_postmaster_start_time()", &[]).await?;
    let started = rows.first().map(|row| row.time(0)).transpose()?;
    Ok(started != Some(seen))
}

fn no_deployment() -> StoreError {
    StoreError::Corrupt("table deployment is empty".to_owned())
}

/// The same within a transaction that writes links; 0 before the deployment is set up.
pub(in crate::store) async fn raise<S: Sql>(sql: &mut S) -> Result<Mark, StoreError> {
    let rows = sql.query(RAISE, &[]).await?;
    rows.first().map_or(Ok(Mark(0)), |row| mark_of(row.int(0)?))
}

/// A mark as it is stored.
pub(in crate::store) fn mark_of(stored: i64) -> Result<Mark, StoreError> {
    u64::try_from(stored).map(Mark).map_err(|_| StoreError::Corrupt(format!("a mark of {stored}")))
}

async fn begin<S: Sql>(sql: &mut S, mark: Mark, ends: &[(KeyspaceIndex, u64)]) -> Result<Mark, StoreError> {
    for (keyspace, end) in ends {
        withhold(sql, *keyspace, *end, mark).await?;
    }
    let stored = i64::try_from(mark.0).map_err(|_| StoreError::Corrupt(format!("a mark of {mark}")))?;
    let begin = "UPDATE deployment SET mark = $1, history = $1";
    sql.query(begin, &[Value::Int(stored)]).await?;
    Ok(mark)
}

/// Registers what lies between the register's end and this one as nobody's, under a generation that none exceeds.
async fn withhold<S: Sql>(
    sql: &mut S,
    keyspace: KeyspaceIndex,
    end: u64,
    mark: Mark,
) -> Result<(), StoreError> {
    let from = registered_end(sql, keyspace).await?;
    let missing = end.min(Span::LIMIT).saturating_sub(from);
    let Ok(span) = Span::new(from, missing) else { return Ok(()) };
    let (first, end) = LinkId::range(keyspace, span);
    let columns = match S::DIALECT {
        Dialect::Postgres => "ids, generation, holder, incarnation, instance",
        Dialect::Sqlite => "first_id, end_id, generation, holder, incarnation, instance",
    };
    let range = match S::DIALECT {
        Dialect::Postgres => "int8range($1, $2)",
        Dialect::Sqlite => "$1, $2",
    };
    let withhold = format!("INSERT INTO block ({columns}) VALUES ({range}, $3, $4, 0, $5)");
    let holder = Value::Text(NOBODY.to_owned());
    let instance = Value::Text(format!("{NOBODY}/{mark}"));
    let generation = Value::Int(i64::MAX);
    sql.query(&withhold, &[Value::Int(first), Value::Int(end), generation, holder, instance]).await.map(drop)
}

async fn registered_end<S: Sql>(sql: &mut S, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
    let (first, end) = ids_of(keyspace);
    let found = sql.query(S::DIALECT.registered_end(), &[Value::Int(first), Value::Int(end)]).await?;
    let end = found.first().filter(|row| !row.is_null(0)).map(|row| row.int(0)).transpose()?;
    Ok(number_of_end(keyspace, end))
}
