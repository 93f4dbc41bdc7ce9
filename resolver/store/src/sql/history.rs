//! The database's mark and history, which detect that it was restored from an older copy: see
//! [`Mark`].

use std::collections::BTreeMap;

use codes::KeyspaceIndex;
use jiff::Timestamp;
use numbers::{Mark, Span};

use super::{
    Dialect, Sql, Value,
    blocks::{enter, registered_end},
    keyspaces::{ids_of, keyspaces, number_of_end},
};
use crate::{Advanced, BlockEntry, Comparison, Result, StoreError, witness::Known};

/// SQL statement that raises the mark by one and returns it.
const RAISE: &str = "UPDATE deployment SET mark = mark + 1 RETURNING mark";
/// The least number of numbers that a restore without a given number leaves out.
const SKIP_MIN: u64 = 2_000_000;
/// The least number of ids of links with a slug, and of domains, that a new history leaves out. As
/// many again are left out by chance, lest two restores of one backup continue at the same id.
const SLUG_LINKS_SKIPPED: u64 = 1 << 32;
/// Far more domains than there may be; their ids have to fit 31 bits.
const DOMAINS_SKIPPED: u64 = 100_000;
/// The holder of withheld numbers in the register. No allocation has this name.
const NOBODY: &str = "nobody";

/// Returns the result and the history that holds from now on. In a history that the witness does
/// not know, the numbers up to its ends are withheld.
pub(crate) async fn advance(
    sql: &mut dyn Sql,
    at_least: Mark,
    how: Comparison,
    known: &Known,
) -> Result<(Advanced, i64)> {
    if was_restarted(sql, how.since).await? {
        return Ok((Advanced::Restarted, known.history));
    }
    let by = i64::from(how.raises);
    // The update runs even if it adds 0: it locks the row until the new history is visible to all.
    let compared = match (sql.dialect(), how.since) {
        (Dialect::Postgres, Some(_)) => {
            ", compared_start = pg_postmaster_start_time(), compared_table = tableoid"
        }
        // SQLite has no server. A file is replaced while no process has it open, and compared
        // before it serves.
        _ => "",
    };
    let step = format!("UPDATE deployment SET mark = mark + $1{compared} RETURNING mark - $1, mark, history");
    let row = sql.first(&step, &[Value::Int(by)]).await?.ok_or_else(no_deployment)?;
    let (was, mark, history) = (mark_of(row.int(0)?)?, mark_of(row.int(1)?)?, row.int(2)?);
    if was >= at_least {
        if history != known.history {
            // Another process has begun this history, and knew less.
            withhold(sql, &known.ends, mark).await?;
        }
        return Ok((Advanced::To(mark), history));
    }
    let mark = at_least.next();
    let history = begin(sql, mark, &known.ends).await?;
    tracing::error!(
        mark = mark.0,
        history,
        "the database was put back from an older copy: the links that it had since are lost. A new history begins, in which no number is \
         used that may have been one of theirs"
    );
    Ok((Advanced::Began(mark), history))
}

/// Without `skip`, as many numbers are withheld as [`safe_skip`] says.
pub(crate) async fn begin_history(sql: &mut dyn Sql, skip: Option<u64>) -> Result<Mark> {
    let mark = mark_of(sql.number(RAISE, &[]).await?.ok_or_else(no_deployment)?)?;
    let mut ends = BTreeMap::new();
    for (index, keyspace) in keyspaces(sql).await? {
        let end = registered_end(sql, index).await?;
        let skip = match skip {
            Some(skip) => skip,
            None => safe_skip(keyspace.capacity().saturating_sub(end), draw()?),
        };
        ends.insert(index, end.saturating_add(skip));
    }
    begin(sql, mark, &ends).await?;
    Ok(mark)
}

/// Returns how many of the numbers that are left may have been used since the backup that was
/// restored: half of them, because nothing tells how many were. That is billions in the default
/// keyspace. In a small one it is all that two of the largest blocks can have.
///
/// A backup may be restored twice. So up to another quarter is left out by chance, lest the second
/// time the same codes are minted as after the first.
fn safe_skip(left: u64, drawn: u64) -> u64 {
    let chance = drawn % (left / 4).max(1);
    (left / 2 + chance).max(SKIP_MIN).min(left)
}

/// Returns whether the server has another start time than the one seen before the ledger was asked.
async fn was_restarted(sql: &mut dyn Sql, seen: Option<Timestamp>) -> Result<bool> {
    let (Dialect::Postgres, Some(seen)) = (sql.dialect(), seen) else { return Ok(false) };
    let started = sql.first("SELECT pg_postmaster_start_time()", &[]).await?;
    Ok(started.map(|row| row.time(0)).transpose()? != Some(seen))
}

fn no_deployment() -> StoreError {
    StoreError::Corrupt(
        "table deployment is empty: expected a database that a resolver was started on".to_owned(),
    )
}

/// Raises the mark within a transaction that writes links. Returns 0 before the deployment is set
/// up.
pub(crate) async fn raise(sql: &mut dyn Sql) -> Result<Mark> {
    mark_of(sql.number(RAISE, &[]).await?.unwrap_or(0))
}

/// Returns 0 before the deployment is set up.
pub(crate) async fn mark(sql: &mut dyn Sql) -> Result<Mark> {
    mark_of(sql.number("SELECT mark FROM deployment", &[]).await?.unwrap_or(0))
}

fn mark_of(stored: i64) -> Result<Mark> {
    u64::try_from(stored)
        .map(Mark)
        .map_err(|_| StoreError::Corrupt(format!("deployment.mark: expected 0 to 2^63 - 1, got {stored}")))
}

/// Begins a new history at this mark, and withholds the numbers up to the ends. Returns its number.
async fn begin(sql: &mut dyn Sql, mark: Mark, ends: &BTreeMap<KeyspaceIndex, u64>) -> Result<i64> {
    withhold(sql, ends, mark).await?;
    let stored = i64::try_from(mark.0)
        .map_err(|_| StoreError::Corrupt(format!("deployment.mark: expected less than 2^63, got {mark}")))?;
    let history = draw_history()?;
    let begin = "UPDATE deployment SET mark = $1, history = $2";
    sql.query(begin, &[Value::Int(stored), Value::Int(history)]).await?;
    skip_ids(sql).await?;
    Ok(history)
}

/// Leaves out ids that lost links and domains may have had. The spools may hold visits of those,
/// which would count for whoever has the id next.
async fn skip_ids(sql: &mut dyn Sql) -> Result<()> {
    for (skip, least) in sql.dialect().skip_ids().into_iter().zip([DOMAINS_SKIPPED, SLUG_LINKS_SKIPPED]) {
        sql.query(skip, &[Value::count(least + draw()? % least)]).await?;
    }
    Ok(())
}

/// Draws the number of a history at random, because two histories may begin at one mark: if the
/// database is restored again before the first one's mark was reported, the second begins where the
/// first did.
fn draw_history() -> Result<i64> {
    // Positive, because 0 is the first history.
    Ok(i64::try_from(draw()? >> 1).unwrap_or(i64::MAX).max(1))
}

fn draw() -> Result<u64> {
    getrandom::u64().map_err(|error| StoreError::Unreachable(Box::new(error)))
}

/// Withholds all unregistered numbers below the ends: registers them for a holder that never uses
/// them, under a generation that none exceeds. Numbers registered before belong to an earlier
/// history, and are burned with it.
async fn withhold(sql: &mut dyn Sql, ends: &BTreeMap<KeyspaceIndex, u64>, mark: Mark) -> Result<()> {
    for (keyspace, end) in ends {
        for span in gaps(sql, *keyspace, *end).await? {
            let entry = BlockEntry {
                keyspace: *keyspace,
                span,
                generation: i64::MAX.unsigned_abs(),
                holder: NOBODY.to_owned(),
                incarnation: 0,
                instance: format!("{NOBODY}/{mark}"),
            };
            if !enter(sql, &entry, &[span]).await? {
                return Err(StoreError::Overlap);
            }
        }
    }
    Ok(())
}

/// Returns the unregistered numbers of a keyspace below `end`, or below the register's own end if
/// that is higher.
async fn gaps(sql: &mut dyn Sql, keyspace: KeyspaceIndex, end: u64) -> Result<Vec<Span>> {
    let (low, high) = sql.dialect().block_bounds();
    // Only the edges of gaps are sent over the network: there may be a million blocks.
    let edges = format!(
        "SELECT high, next FROM (
             SELECT {high} AS high, lead({low}) OVER (ORDER BY {low}) AS next FROM block
             WHERE {low} >= $1 AND {low} < $2
         ) AS blocks WHERE next IS NULL OR next > high ORDER BY high"
    );
    let (first, last) = ids_of(keyspace);
    let between = [Value::Int(first), Value::Int(last)];
    let lowest = format!("SELECT min({low}) FROM block WHERE {low} >= $1 AND {low} < $2");
    let number = |id: i64| number_of_end(keyspace, Some(id));
    let lowest = sql.number(&lowest, &between).await?;
    let (mut gaps, mut from) = (Vec::new(), 0);
    let mut until = lowest.map(number);
    let rows = sql.query(&edges, &between).await?;
    let mut rows = rows.iter();
    loop {
        let to = until.unwrap_or(end.min(Span::LIMIT));
        gaps.extend(Span::new(from, to.saturating_sub(from)).ok());
        let (Some(row), Some(_)) = (rows.next(), until) else { return Ok(gaps) };
        from = number(row.int(0)?);
        until = if row.is_null(1) { None } else { Some(number(row.int(1)?)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_leaves_out_half_of_a_large_keyspace_and_all_of_a_tiny_one() {
        let large = 62_u64.pow(6);
        for drawn in [0, 1, large / 8, u64::MAX] {
            let skip = safe_skip(large, drawn);
            assert!(skip >= large / 2 && skip < large / 4 * 3, "{skip}");
            assert_eq!(safe_skip(62_u64.pow(3), drawn), 62_u64.pow(3));
            assert_eq!(safe_skip(0, drawn), 0);
        }
        assert_ne!(safe_skip(large, 5), safe_skip(large, 77), "a second restore begins elsewhere");
    }
}
