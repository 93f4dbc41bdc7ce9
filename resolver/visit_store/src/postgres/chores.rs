//! Upkeep: partitions by day, retention, and erased secrets.

use store::postgres::PostgresSql;
use tokio_postgres::{Client, types::Type};
use visits::{Day, VisitId};

use super::{CHORE, try_lock};
use crate::{
    Result,
    sql::{
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

pub(super) async fn keep(client: &mut Client, rows_from: Day) -> Result<()> {
    let today = today(&mut PostgresSql(&*client)).await?;
    let days = partitions(client).await?;
    for day in today.get() - BEHIND..=today.get() + AHEAD {
        if day >= rows_from.get() && !days.contains(&day) {
            create_partition(client, Day::from_stored(day)).await?;
        }
    }
    for day in days.into_iter().filter(|day| *day < rows_from.get()) {
        locked(client, &format!("SELECT visit_remove_day({day})")).await?;
    }
    // Kept for two days: the secret of the day before yesterday is gone.
    let erase = "DELETE FROM visit_secret WHERE name LIKE 'day-%' AND substr(name, 5)::integer <= $1";
    client.execute_typed(erase, &[(&(today.get() - 2), Type::INT4)]).await?;
    remove_old(client, rows_from).await
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
