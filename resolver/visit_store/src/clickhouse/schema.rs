//! The tables, and their partitions.
//!
//! 1. Rows are in two tables: by link, for the visits of a link or of a few, and by time, for
//!    everything else. A projection would need a recent release. A third one has counters.
//! 2. A partition of rows has those of a day, so that old ones are dropped at once, and that the
//!    rows of a batch and a day are one block, which a server stores entirely or not at all.
//! 3. Types and engines are those that releases 18.16 and 26.9 have in common.

use visits::{DAY, Day, VisitId};

use super::{address::ClickhouseAddress, servers::Servers};
use crate::{Result, VisitStoreError};

/// The tables, each with its order.
pub(super) const TABLES: [Table; 2] = [Table::ByLink, Table::ByTime];

/// The table of counters.
pub(super) const COUNTERS: &str = "visit_day";
/// Its index granularity: small, because a link has few rows.
const GRANULARITY: u32 = 512;
/// Time of the transfers in one of its partitions.
const PARTITION_MICROS: i64 = 90 * DAY;

/// How long servers remember the blocks that they have stored, in seconds: a week.
const REMEMBERED: u64 = 7 * 86_400;
/// How many blocks a server without a cluster remembers for each table.
const BLOCKS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Ordered by link and id.
    ByLink,
    /// Ordered by id.
    ByTime,
}

impl Table {
    /// The name, with that of its database.
    pub(super) fn of(self, database: &str) -> String {
        format!("{database}.{}", self.name())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ByLink => "visit",
            Self::ByTime => "visit_by_time",
        }
    }

    fn order(self) -> &'static str {
        match self {
            Self::ByLink => "(link_id, id)",
            Self::ByTime => "id",
        }
    }
}

pub(super) fn partition(day: Day) -> i64 {
    VisitId::floor(day.start()).get() / ids_of_a_day()
}

fn day_of_partition(partition: i32) -> Day {
    // Ids count from here.
    Day::from_stored(Day::of(VisitId::from_stored(0).micros()).get() + partition)
}

fn ids_of_a_day() -> i64 {
    let any = Day::from_stored(20_000);
    VisitId::floor(any.next().start()).get() - VisitId::floor(any.start()).get()
}

/// Settings by which an insertion is on disk when it is answered: its record is removed then.
/// Release 18 does not have them, and loses what the system had not written yet when the power
/// fails.
const DURABLE: &str = "fsync_after_insert = 1, fsync_part_directory = 1";

/// Creates the database and its tables, unless they exist.
pub(super) async fn migrate(servers: &Servers, address: &ClickhouseAddress) -> Result<()> {
    let ClickhouseAddress { database, cluster, .. } = address;
    let everywhere = cluster.as_ref().map_or_else(String::new, |cluster| format!(" ON CLUSTER {cluster}"));
    servers.run(&format!("CREATE DATABASE IF NOT EXISTS {database}{everywhere}")).await?;
    let is_old = servers.are_old().await?;
    let engine = |kind: &str, table: &str| match cluster {
        Some(_) => {
            format!(
                "Replicated{kind}MergeTree('/clickhouse/tables/{{shard}}/{database}/{table}', '{{replica}}')"
            )
        }
        None => format!("{kind}MergeTree()"),
    };
    let settings = match cluster {
        // 18.16 remembers the blocks of replicas for a week, and has no setting for it.
        Some(_) => format!(
            ", replicated_deduplication_window_seconds = {REMEMBERED}, replicated_deduplication_window = {BLOCKS}"
        ),
        None if is_old => String::new(),
        None => format!(", non_replicated_deduplication_window = {BLOCKS}"),
    };
    let rows = TABLES.map(|table| {
        format!(
            "CREATE TABLE IF NOT EXISTS {}{everywhere} (
                 link_id Int64, id Int64, user_agent Int64, referrer Int64, urls Int64, place Int64, address Int64,
                 visitor Int32, domain Int32, language Int32, flags Int16, rule Int16
             ) ENGINE = {} PARTITION BY intDiv(id, {}) ORDER BY {}
             SETTINGS index_granularity = 8192{settings}",
            table.of(database),
            engine("", table.name()),
            ids_of_a_day(),
            table.order()
        )
    });
    let counters = format!(
        "CREATE TABLE IF NOT EXISTS {database}.{COUNTERS}{everywhere} (
             kind Int16, subject Int64, part Int64, day Int32, era Int64, transfer Int64, total Int64, bots Int64,
             quarters String, dimensions String, visitors String, addresses String
         ) ENGINE = {} PARTITION BY intDiv(transfer, {PARTITION_MICROS}) ORDER BY (kind, subject, part, day, era, transfer)
         SETTINGS index_granularity = {GRANULARITY}{settings}",
        engine("Replacing", COUNTERS)
    );
    for create in rows.into_iter().chain([counters]) {
        servers.run(&create).await?;
    }
    if !is_old {
        for table in TABLES.map(Table::name).into_iter().chain([COUNTERS]) {
            let alter = format!("ALTER TABLE {database}.{table}{everywhere} MODIFY SETTING {DURABLE}");
            servers.run(&alter).await?;
        }
    }
    Ok(())
}

/// Drops the partitions of days before `rows_from`.
pub(super) async fn drop_old(servers: &Servers, database: &str, rows_from: Day) -> Result<()> {
    for table in TABLES {
        drop_before(servers, database, table.name(), partition(rows_from)).await?;
    }
    Ok(())
}

/// Drops the partitions of transfers before `counts_from`, which have no later days. Counters of
/// earlier days in the others go with those, and do not count until then.
pub(super) async fn drop_old_counters(servers: &Servers, database: &str, counts_from: Day) -> Result<()> {
    drop_before(servers, database, COUNTERS, counts_from.start() / PARTITION_MICROS).await
}

/// Drops the partitions of a table that are numbered below a bound, on all replicas. One that
/// cannot be dropped, because it is over `max_partition_size_to_drop`, does not keep the others.
async fn drop_before(servers: &Servers, database: &str, table: &str, bound: i64) -> Result<()> {
    let old = format!(
        "SELECT DISTINCT toInt64(partition) AS old FROM system.parts
         WHERE database = '{database}' AND table = '{table}' AND active = 1 AND old < {bound}"
    );
    let mut refused = Ok(());
    for old in servers.fetch::<i64>(&old).await? {
        match servers.run(&format!("ALTER TABLE {database}.{table} DROP PARTITION {old}")).await {
            Err(VisitStoreError::Engine(error)) if is_refusal(&*error) => {
                refused = Err(VisitStoreError::Engine(error));
            }
            done => done?,
        }
    }
    refused
}

/// Returns whether a server has answered that it does not do what it was told.
fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(clickhouse::error::Error::BadResponse(_)))
}

/// Returns the first day from another one on that has rows.
pub(super) async fn next_day(servers: &Servers, database: &str, from: Day) -> Result<Option<Day>> {
    let from = partition(from);
    let next = format!(
        "SELECT toInt64(partition) AS next FROM system.parts
         WHERE database = '{database}' AND table = '{}' AND active = 1 AND next >= {from} ORDER BY next LIMIT 1",
        Table::ByTime.name()
    );
    let table = Table::ByTime.of(database);
    let next = servers.fetch_latest::<i64>(&table, &next).await?.first().copied();
    Ok(next.and_then(|next| i32::try_from(next).ok()).map(day_of_partition))
}

/// SQL for the deletions of rows that are still at work.
pub(super) fn unfinished(database: &str) -> String {
    let [by_link, by_time] = TABLES.map(Table::name);
    format!(
        "system.mutations WHERE database = '{database}' AND table IN ('{by_link}', '{by_time}', '{COUNTERS}')
             AND is_done = 0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_a_partition_of_its_own() {
        for day in [19_000, 20_418, 20_782] {
            let day = Day::from_stored(day);
            let (first, last) =
                (VisitId::floor(day.start()).get(), VisitId::floor(day.next().start()).get() - 1);
            for id in [first, last] {
                assert_eq!(id / ids_of_a_day(), partition(day), "as the tables divide");
            }
            assert_eq!(partition(day.next()), partition(day) + 1);
            assert_eq!(day_of_partition(i32::try_from(partition(day)).unwrap()), day);
        }
    }
}
