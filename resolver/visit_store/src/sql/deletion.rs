//! Deletion of visits: counters and a cut at once, rows in steps.

use codes::LinkId;
use store::{Dialect, Sql, Value, counted_visits};
use visits::{Subject, VisitId, tally::Counters};

use super::{
    changes::{outdate, tags_of},
    days, lock,
    old_counters::read_first_kept,
    sums::Sums,
    tags::take_link_day,
    transferred::Transferred,
};
use crate::{
    LinkVisits, Result,
    link_visits::{decode_links, insert_links},
    postgres::LOCK,
};

const STEP: i64 = 20_000;
/// Batches that are read at once. A batch may have some hundred kilobytes.
const BATCHES: usize = 20;

/// Deletes visits. `added` is what was added to the total of the link, all visits and those of
/// bots, where that is in another database; the caller lets nothing be added meanwhile.
pub(crate) async fn delete(
    sql: &mut dyn Sql,
    subject: Subject,
    before: VisitId,
    transferred: &dyn Transferred,
    added: Option<(i64, i64)>,
) -> Result<u64> {
    lock(sql, LOCK).await?;
    let (link, deleted) = match subject {
        Subject::Link(link) => (link.get(), delete_of_link(sql, link, transferred, added).await?),
        Subject::Orphans(..) => (0, delete_of_orphans(sql, transferred).await?),
        Subject::Tag(..) | Subject::All(_) => return Ok(0),
    };
    let version = outdate(sql).await?;
    let cut = format!(
        "INSERT INTO visit_cut AS old (link_id, before_id, version, has_rows) VALUES ($1, $2, $3, true)
         ON CONFLICT (link_id) DO UPDATE SET before_id = {},
             version = excluded.version, has_rows = true",
        sql.dialect().later("old.before_id", "excluded.before_id")
    );
    sql.execute(&cut, &[link.into(), before.get().into(), version.into()]).await?;
    transferred.cut(sql, link).await?;
    Ok(deleted)
}

/// Removes the counters of a link, and takes them away from those of wider subjects.
async fn delete_of_link(
    sql: &mut dyn Sql,
    link: LinkId,
    transferred: &dyn Transferred,
    added: Option<(i64, i64)>,
) -> Result<u64> {
    let own: [Value; 1] = [link.get().into()];
    let remove = "DELETE FROM visit_day WHERE kind = 0 AND subject = $1
         RETURNING day, part, total, bots, quarters, dimensions, visitors, addresses";
    let mut days = transferred.days_of_link(sql, link).await?;
    for mut row in sql.query(remove, &own).await? {
        days.push(take_link_day(&mut row)?);
    }
    let tags = tags_of(sql, &[link]).await?.remove(&link).unwrap_or_default();
    let (mut sums, mut total, mut bots) = (Sums::default(), 0, 0);
    for (day, domain, counters) in days {
        (total, bots) = (total + counters.total, bots + counters.bots);
        let domain = Some(domain);
        let of_tags = tags.iter().flat_map(|tag| [Subject::Tag(*tag, None), Subject::Tag(*tag, domain)]);
        let wider = [Subject::All(None), Subject::All(domain)].into_iter().chain(of_tags);
        sums.add(wider, day, &counters);
    }
    days::add(sql, transferred.slot_of_changes(), &sums.deltas(Counters::negated)?).await?;
    for table in ["visit_month", "visit_marks"] {
        sql.execute(&format!("DELETE FROM {table} WHERE kind = 0 AND subject = $1"), &own).await?;
    }
    if read_first_kept(sql).await? > 0 {
        (total, bots) = whole_total(sql, link, added).await?;
    }
    insert_links(sql, &[LinkVisits { link, total: -total, bots: -bots, last: 0, imported: 0 }]).await?;
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Returns all visits of a link and those of bots, as its total will tell once the batches that
/// wait are added: more than its days tell, of which old ones were removed.
///
/// No batch is stored meanwhile. On Postgres, one that another process is adding is awaited.
async fn whole_total(sql: &mut dyn Sql, link: LinkId, added: Option<(i64, i64)>) -> Result<(i64, i64)> {
    let has_link = match sql.dialect() {
        Dialect::Postgres => "position($1 IN links) > 0",
        Dialect::Sqlite => "instr(links, $1) > 0",
    };
    let waiting = format!(
        "SELECT number, links FROM visit_link_batch WHERE {has_link} AND number > $2
         ORDER BY number LIMIT {BATCHES} {}",
        sql.dialect().for_update()
    );
    let (mut total, mut bots, mut after) = (0, 0, 0);
    loop {
        let id = Value::Bytes(link.get().to_le_bytes().to_vec());
        let mut batches = sql.query(&waiting, &[id, Value::Int(after)]).await?;
        if batches.is_empty() {
            break;
        }
        for batch in &mut batches {
            after = batch.int(0)?;
            for visits in decode_links(&batch.take_bytes(1)?)?.iter().filter(|visits| visits.link == link) {
                (total, bots) = (total + visits.total, bots + visits.bots);
            }
        }
    }
    let (added, added_bots) = match added {
        Some(added) => added,
        None => counted_visits(sql, link).await?,
    };
    Ok((total + added, bots + added_bots))
}

/// Removes the counters of orphan visits. Counts of outcomes, which links and everything have too,
/// stay.
async fn delete_of_orphans(sql: &mut dyn Sql, transferred: &dyn Transferred) -> Result<u64> {
    let kind = Subject::Orphans(None, None).key().kind;
    let total = format!(
        "SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM visit_day
         WHERE kind = {kind} AND subject = 0 AND part = 0"
    );
    let total = sql.number(&total, &[]).await?.unwrap_or(0) + transferred.orphan_total(sql).await?;
    for table in ["visit_day", "visit_month", "visit_marks"] {
        sql.execute(&format!("DELETE FROM {table} WHERE kind = {kind}"), &[]).await?;
    }
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Deletes some of the rows before a cut. Returns `None` if no cut has rows left.
pub(crate) async fn delete_rows(sql: &mut dyn Sql) -> Result<Option<u64>> {
    let cut = "SELECT link_id, before_id, version FROM visit_cut WHERE has_rows ORDER BY version LIMIT 1";
    let Some(cut) = sql.first(cut, &[]).await? else { return Ok(None) };
    let (link, before, version) = (cut.int(0)?, cut.int(1)?, cut.int(2)?);
    let bound = "SELECT max(id) FROM
         (SELECT id FROM visit WHERE link_id = $1 AND id < $2 ORDER BY id LIMIT $3) AS step";
    let bound = sql.number(bound, &[link.into(), before.into(), STEP.into()]).await?;
    let Some(bound) = bound else {
        let done = "UPDATE visit_cut SET has_rows = false WHERE link_id = $1 AND version = $2";
        sql.execute(done, &[link.into(), version.into()]).await?;
        return Ok(Some(0));
    };
    let remove = "DELETE FROM visit WHERE link_id = $1 AND id <= $2";
    Ok(Some(sql.execute(remove, &[link.into(), bound.into()]).await?))
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use links::DomainId;
    use store::sqlite::SqliteSql;
    use visits::{Day, SubjectKey};

    use super::*;
    use crate::{
        DayDelta, MERGED,
        sql::{old_counters, transferred::NothingTransferred},
        sqlite::tests::memory,
    };

    #[test]
    fn a_deletion_takes_what_old_days_have_counted_from_the_total() {
        for (has_old, expected) in [(false, 2), (true, 103)] {
            let mut connection = memory();
            let sql = &mut SqliteSql(&mut connection);
            let (link, other) = (LinkId::from_stored(7), LinkId::from_stored(8));
            for day in [19_000, 20_000] {
                let counters = Counters { total: 1, ..Counters::default() };
                let subject = SubjectKey::of_link(link, DomainId::DEFAULT);
                let delta = DayDelta { subject, day: Day::from_stored(day), delta: counters };
                block_on(days::add(sql, MERGED, &[delta])).unwrap();
            }
            for link in [link, other] {
                let waiting = LinkVisits { link, total: 3, bots: 2, last: 0, imported: 0 };
                block_on(insert_links(sql, &[waiting])).unwrap();
            }
            if has_old {
                assert!(block_on(old_counters::remove(sql, Day::from_stored(19_500))).unwrap());
            }
            let delete = delete(sql, Subject::Link(link), VisitId::MAX, &NothingTransferred, Some((100, 10)));
            assert_eq!(block_on(delete).unwrap(), expected);
            let last = "SELECT links FROM visit_link_batch ORDER BY number DESC LIMIT 1";
            let bytes: Vec<u8> = connection.query_row(last, [], |row| row.get(0)).unwrap();
            let taken = decode_links(&bytes).unwrap();
            let (total, bots) = if has_old { (-103, -12) } else { (-2, 0) };
            assert_eq!(taken, [LinkVisits { link, total, bots, last: 0, imported: 0 }]);
        }
    }
}
