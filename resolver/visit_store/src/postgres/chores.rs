//! Upkeep: partitions by day and their indexes, retention, and erased secrets.

use store::postgres::PostgresSql;
use tokio_postgres::{
    Client,
    types::{ToSql, Type},
};
use visits::{Day, VisitId};

use super::{CHORE, try_lock};
use crate::{
    Result,
    sql::{
        closing::OPEN,
        erasures,
        rows::{self, Aging},
        today,
    },
};

/// Days that have a partition ahead of today.
const AHEAD: i32 = 3;
/// Days before today that get a partition if they have none, for visits that arrive late.
const BEHIND: i32 = 2;
/// Key of the advisory lock of the upkeep.
const LOCK: i64 = 0x5348_4f52_564b_4550;
/// Key of the advisory lock of the process that rebuilds an index.
const REBUILDING: i64 = 0x5348_4f52_5652_4549;
/// Selects an index of links on days $1 with more than 36 bytes a row. Links arrive in any order,
/// which leaves a third of it empty; a new one has 28. Only the owner of the days may build it.
const LOOSE: &str = "SELECT index.oid::regclass::text FROM pg_inherits
     JOIN pg_index ON indexrelid = inhrelid
     JOIN pg_class AS index ON index.oid = indexrelid
     JOIN pg_class AS day ON day.oid = indrelid
     WHERE inhparent = 'visit_link'::regclass AND day.relname = ANY($1)
       AND pg_relation_size(index.oid) > greatest(1048576, 36 * day.reltuples)
       AND pg_has_role(day.relowner, 'USAGE')
     ORDER BY day.relname DESC LIMIT 1";
/// Selects the indexes that an interrupted `REINDEX CONCURRENTLY` has left.
const LEFT_OVER: &str = "SELECT index.oid::regclass::text FROM pg_index
     JOIN pg_class AS index ON index.oid = indexrelid
     JOIN pg_class AS day ON day.oid = indrelid
     WHERE NOT indisvalid AND index.relname ~ '_cc(new|old)[0-9]*$' AND day.relname = ANY($1)
       AND index.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'visit'::regclass)
       AND pg_has_role(day.relowner, 'USAGE')
       AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS at WHERE at.relid = day.oid)";

pub(super) async fn keep(client: &mut Client, rows_from: Day) -> Result<()> {
    let today = today(&mut PostgresSql(&*client)).await?;
    let days = partitions(client).await?;
    for day in today.get() - BEHIND..=today.get() + AHEAD {
        if day >= rows_from.get() && !days.contains(&day) {
            create_partition(client, Day::from_stored(day)).await?;
        }
    }
    // Kept for two days: the secret of the day before yesterday is gone.
    let erase = "DELETE FROM visit_secret WHERE name LIKE 'day-%' AND substr(name, 5)::integer <= $1";
    client.execute_typed(erase, &[(&(today.get() - 2), Type::INT4)]).await?;
    for day in days.into_iter().filter(|day| *day < rows_from.get()) {
        locked(client, &format!("SELECT visit_remove_day({day})")).await?;
    }
    remove_old(client, rows_from).await
}

/// Rebuilds an index of links of a closed day if that saves space, while rows are read and written.
/// Returns whether there was one.
///
/// The lock belongs to the session, because no transaction can rebuild an index concurrently.
pub(super) async fn rebuild_index(client: &Client, rows_from: Day) -> Result<bool> {
    let lock = format!("SELECT pg_try_advisory_lock({REBUILDING})");
    if !client.query_one(&lock, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(false);
    }
    let done = rebuild_one(client, rows_from).await;
    client.batch_execute(&format!("SELECT pg_advisory_unlock({REBUILDING})")).await?;
    done
}

async fn rebuild_one(client: &Client, rows_from: Day) -> Result<bool> {
    let today = today(&mut PostgresSql(client)).await?.get();
    // Days that go soon would have to wait for it, and batches for them.
    let closed = rows_from.get() + OPEN..=today - OPEN;
    let days = partitions(client).await?.into_iter().filter(|day| closed.contains(day));
    let tables: Vec<String> = days.map(|day| format!("visit_{day}")).collect();
    let tables: [(&(dyn ToSql + Sync), Type); 1] = [(&tables, Type::TEXT_ARRAY)];
    let Some(row) = client.query_typed(LOOSE, &tables).await?.into_iter().next() else { return Ok(false) };
    for left in client.query_typed(LEFT_OVER, &tables).await? {
        client.batch_execute(&format!("DROP INDEX CONCURRENTLY {}", left.try_get::<_, &str>(0)?)).await?;
    }
    let index: &str = row.try_get(0)?;
    // Hardly any row is added to it.
    client.batch_execute(&format!("ALTER INDEX {index} SET (fillfactor = 100)")).await?;
    client.batch_execute(&format!("REINDEX INDEX CONCURRENTLY {index}")).await?;
    tracing::info!(index, "rebuilt the index of a past day of visits");
    Ok(true)
}

async fn partitions(client: &Client) -> Result<Vec<i32>> {
    let query = "SELECT substr(relname, 7)::integer FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
         WHERE inhparent = 'visit'::regclass AND relname ~ '^visit_[0-9]+$'";
    Ok(client.query_typed(query, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Creates the partition of a day, and moves rows there that have arrived without it. Attaching, as
/// the function does, takes a weaker lock than `CREATE TABLE … PARTITION OF`: reads go on.
async fn create_partition(client: &mut Client, day: Day) -> Result<()> {
    let (first, end) = (VisitId::floor(day.start()).get(), VisitId::floor(day.next().start()).get());
    locked(client, &format!("SELECT visit_add_day({}, {first}, {end})", day.get())).await
}

/// Runs statements in a transaction, unless another resolver is at the upkeep. It gives up on locks
/// soon, because requests queue behind a waiting lock; the next upkeep tries again.
async fn locked(client: &mut Client, statements: &str) -> Result<()> {
    let transaction = client.transaction().await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
    if try_lock(&mut PostgresSql(&transaction), LOCK).await? {
        transaction.batch_execute(statements).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Removes rows without a partition, marks and texts of days that are no longer kept.
async fn remove_old(client: &Client, rows_from: Day) -> Result<()> {
    erasures::forget(&mut PostgresSql(client), rows_from).await?;
    let oldest = VisitId::floor(rows_from.start()).get();
    let forget = "DELETE FROM visit_erased WHERE id < $1 AND NOT has_row";
    client.execute_typed(forget, &[(&oldest, Type::INT8)]).await?;
    for aging in Aging::ALL {
        while rows::remove_old(&mut PostgresSql(client), aging, rows_from).await? {}
    }
    let note = "UPDATE chore SET position = greatest(position, $1) WHERE name = $2";
    client.execute_typed(note, &[(&i64::from(rows_from.get()), Type::INT8), (&CHORE, Type::TEXT)]).await?;
    Ok(())
}
