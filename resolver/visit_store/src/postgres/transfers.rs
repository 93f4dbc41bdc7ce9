//! Transfers: counters of past days leave for another database.
//!
//! Counters change with the position of their producer, in one transaction, so visits are counted
//! here first. Past days are then moved there in transfers, one at a time:
//!
//! 1. Closed days become rows of slot [`LEAVING`]. Once they are enough, the transfer gets a
//!    number, and they stay as they are.
//! 2. They are stored there under that number, as often as it takes: a row that is there twice
//!    counts once.
//! 3. One transaction notes that the transfer is there, and removes them here.
//!
//! So a reader that first looks here, and then there at the transfers that were noted, counts each
//! visit once, even if a step is interrupted, or another process sends the same rows.
//!
//! A server that starts may have an older copy, which does not know some transfers and has their
//! counters itself. So it begins an era, and of earlier eras only the transfers that it knows
//! count.
//!
//! A change of a past day, such as a deletion, begins a row of slot [`CHANGED`], which is closed
//! and transferred in turn.

use store::{Dialect, Row, Sql, StoreError, Value};
use visits::{Day, SubjectKey, tally::Counters};

use crate::{
    LEAVING, Remaining, Result,
    sql::{changes::outdate, closing, old_counters::read_first_kept, take_counters},
};

/// The slot whose rows take changes of past days. No producer has it.
pub(crate) const CHANGED: i16 = 128;
/// The size of a transfer, in rows and in bytes. It is exceeded by a step of the closing at most.
const ROWS: i64 = 20_000;
const BYTES: i64 = 16 << 20;

/// What is to be done for the next transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing to send yet; `Remaining` says when to ask again.
    Rest(Remaining),
    /// The rows of this transfer are to be sent.
    Send(Transfer),
}

/// A transfer that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) era: i64,
    pub(crate) number: i64,
}

/// Which transfers count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The eras, each with its last transfer.
    pub(crate) eras: Vec<(i64, i64)>,
    /// The first day that counts.
    pub(crate) days_from: i64,
}

/// The counters of a subject and day that leave.
#[derive(Clone, Debug)]
pub(crate) struct LeavingDay {
    pub(crate) subject: SubjectKey,
    pub(crate) day: Day,
    pub(crate) counters: Counters,
}

/// Returns the transfer that is under way, or collects some rows for the next one.
///
/// The caller keeps deletions and other collectors out.
pub(crate) async fn next(sql: &mut dyn Sql) -> Result<Next> {
    // Processes that do not read what was transferred, because they have an older release or no
    // ClickHouse, are gone by then.
    let wait =
        "UPDATE visit_state SET transfers_from = now() + interval '1 hour' WHERE transfers_from IS NULL";
    sql.execute(wait, &[]).await?;
    let state = format!(
        "SELECT era, transfer, transfers_from <= now(), {} = (SELECT copy FROM visit_era WHERE visit_era.era = visit_state.era)
         FROM visit_state",
        Dialect::Postgres.copy_of_database()
    );
    let Some(state) = sql.first(&state, &[]).await? else { return Ok(Next::Rest(Remaining::Nothing)) };
    if !state.flag(2)? {
        return Ok(Next::Rest(Remaining::Nothing));
    }
    let is_same_copy = !state.is_null(3) && state.flag(3)?;
    let era = if is_same_copy { state.int(0)? } else { begin_era(sql).await? };
    if let Some(number) = state.opt_int(1)?.filter(|_| is_same_copy) {
        return Ok(Next::Send(Transfer { era, number }));
    }
    let remaining = closing::close(sql, LEAVING).await?;
    let (rows, bytes) = size(sql).await?;
    if rows == 0 || (remaining == Remaining::Something && rows < ROWS && bytes < BYTES) {
        return Ok(Next::Rest(remaining));
    }
    let number = format!(
        "UPDATE visit_state SET transfer = greatest(transferred + 1, {} * 1000) RETURNING transfer",
        Dialect::Postgres.now_millis()
    );
    let number = sql.number(&number, &[]).await?.unwrap_or(0);
    Ok(Next::Send(Transfer { era, number }))
}

/// Begins an era of this copy of the database. A transfer that was under way does not count, and
/// its rows get another number.
async fn begin_era(sql: &mut dyn Sql) -> Result<i64> {
    let drawn = getrandom::u64().map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    let era = drawn.cast_signed();
    sql.execute("DELETE FROM visit_era WHERE until = 0", &[]).await?;
    let begin = format!(
        "INSERT INTO visit_era (era, copy, until) SELECT $1, {}, 0 FROM visit_state",
        Dialect::Postgres.copy_of_database()
    );
    sql.execute(&begin, &[era.into()]).await?;
    // Numbers grow also if the clock was set back: deletions are compared with them.
    let begin =
        "UPDATE visit_state SET era = $1, transferred = coalesce(transfer, transferred), transfer = NULL";
    sql.execute(begin, &[era.into()]).await?;
    Ok(era)
}

async fn size(sql: &mut dyn Sql) -> Result<(i64, i64)> {
    let size = format!(
        "SELECT count(*), CAST(coalesce(sum(octet_length(quarters) + octet_length(dimensions)
             + octet_length(visitors) + octet_length(addresses)), 0) AS bigint)
         FROM visit_day WHERE slot = {LEAVING}"
    );
    let Some(row) = sql.first(&size, &[]).await? else { return Ok((0, 0)) };
    Ok((row.int(0)?, row.int(1)?))
}

/// Returns the rows of a transfer that is under way. There are none if it has ended meanwhile.
pub(crate) async fn leaving(sql: &mut dyn Sql, transfer: Transfer) -> Result<Vec<LeavingDay>> {
    let rows = format!(
        "SELECT kind, subject, part, day, total, bots, quarters, dimensions, visitors, addresses
         FROM visit_day, visit_state WHERE slot = {LEAVING} AND era = $1 AND transfer = $2
         ORDER BY kind, subject, part, day"
    );
    let leaving = |row: &mut Row| {
        let subject = SubjectKey { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)? };
        Ok(LeavingDay { subject, day: Day::from_stored(row.number(3)?), counters: take_counters(row, 4)? })
    };
    sql.query(&rows, &[transfer.era.into(), transfer.number.into()]).await?.iter_mut().map(leaving).collect()
}

/// Notes that a transfer is there, unless another process has. The caller keeps deletions out.
pub(crate) async fn end(sql: &mut dyn Sql, Transfer { era, number }: Transfer) -> Result<()> {
    let values = [era, number].map(Value::Int);
    let note =
        "UPDATE visit_state SET transferred = transfer, transfer = NULL WHERE era = $1 AND transfer = $2";
    if sql.execute(note, &values).await? > 0 {
        sql.execute("UPDATE visit_era SET until = $2 WHERE era = $1", &values).await?;
        sql.execute(&format!("DELETE FROM visit_day WHERE slot = {LEAVING}"), &[]).await?;
        // What was deleted meanwhile may have arrived there after the rest was deleted. The version
        // tells those who delete it at this moment.
        let again = "UPDATE visit_cut SET has_rows = true, version = (SELECT version + 1 FROM visit_state)
             WHERE transferred = $1";
        if sql.execute(again, &[number.into()]).await? > 0 {
            outdate(sql).await?;
        }
    }
    Ok(())
}

/// Returns the transfers that count.
pub(crate) async fn noted(sql: &mut dyn Sql) -> Result<Noted> {
    let eras = sql.query("SELECT era, until FROM visit_era WHERE until > 0 ORDER BY until", &[]).await?;
    let eras = eras.iter().map(|row| Ok((row.int(0)?, row.int(1)?))).collect::<Result<_>>()?;
    Ok(Noted { eras, days_from: read_first_kept(sql).await? })
}

/// Returns up to which transfer the counters of some links are deleted; 0 stands for the visits
/// without a link. Links that were not cut are left out.
pub(crate) async fn cuts(sql: &mut dyn Sql, links: &[i64]) -> Result<Vec<(i64, i64)>> {
    let cuts = "SELECT link_id, transferred FROM visit_cut WHERE link_id = ANY($1) AND transferred > 0";
    let rows = sql.query(cuts, &[Value::IntArray(links.to_vec())]).await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.int(1)?))).collect()
}

/// Notes at the cut of a link what of its counters is there, or on its way there.
pub(crate) async fn note_cut(sql: &mut dyn Sql, link: i64) -> Result<()> {
    let note = "UPDATE visit_cut SET transferred = coalesce(transfer, state.transferred)
         FROM visit_state AS state WHERE link_id = $1";
    sql.execute(note, &[link.into()]).await?;
    Ok(())
}
