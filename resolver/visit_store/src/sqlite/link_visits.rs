//! Visits by link on their way into the links' database.
//!
//! 1. Numbers of batches ascend, and none comes twice, not even after the file of visits was lost
//!    and begun anew: they follow the clock, and the last number while the clock stands or is set
//!    back.
//! 2. Which batches are added together is noted before they are. After a crash the same ones are
//!    sent again, and the links' database knows them by the last of their numbers.
//! 3. They are deleted after they were added.
//!
//! Rejected: batches chosen anew after a crash. With a later batch among them their last number
//! would be a new one, and the earlier batches would count twice.

use rusqlite::{Connection, OptionalExtension as _};

use super::Waiting;
use crate::{
    LinkVisits, Result,
    link_visits::{decode_links, sum_links},
};

const BATCHES: i64 = 64;
/// Bytes of the batches added in one step, unless there is only one: creates of links wait while
/// the visits of some thousand links are added.
const BYTES: i64 = 256 * 1024;

/// Chooses the oldest batches, or those of an attempt that has not ended.
pub(super) fn begin(transaction: &Connection) -> Result<Option<Waiting<LinkVisits>>> {
    let begun = "SELECT folding FROM visit_upkeep WHERE folding > 0";
    let begun: Option<i64> = transaction.query_row(begun, [], |row| row.get(0)).optional()?;
    let up_to = match begun {
        Some(up_to) => Some(up_to),
        None => oldest(transaction)?,
    };
    let Some(up_to) = up_to else { return Ok(None) };
    transaction.execute("UPDATE visit_upkeep SET folding = ?1 WHERE folding <> ?1", [up_to])?;
    let mut links = Vec::new();
    let mut batches = transaction.prepare("SELECT links FROM visit_link_batch WHERE number <= ?1")?;
    for batch in batches.query_map([up_to], |row| row.get::<_, Vec<u8>>(0))? {
        links.append(&mut decode_links(&batch?)?);
    }
    let more = "SELECT EXISTS (SELECT 1 FROM visit_link_batch WHERE number > ?1)";
    let has_more = transaction.query_row(more, [up_to], |row| row.get(0))?;
    Ok(Some(Waiting { up_to, items: sum_links(links), has_more }))
}

fn oldest(transaction: &Connection) -> Result<Option<i64>> {
    let query = "SELECT number, octet_length(links) FROM visit_link_batch ORDER BY number LIMIT ?1";
    let mut query = transaction.prepare(query)?;
    let mut rows = query.query([BATCHES])?;
    let (mut last, mut bytes) = (None, 0);
    while let Some(row) = rows.next()? {
        bytes += row.get::<_, i64>(1)?;
        if last.is_some() && bytes > BYTES {
            break;
        }
        last = Some(row.get(0)?);
    }
    Ok(last)
}

pub(super) fn end(transaction: &Connection, up_to: i64) -> Result<()> {
    transaction.execute("DELETE FROM visit_link_batch WHERE number <= ?1", [up_to])?;
    transaction.execute("UPDATE visit_upkeep SET folding = 0", [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use futures_executor::block_on;
    use store::sqlite::SqliteSql;

    use super::*;
    use crate::{link_visits::insert_links, sqlite::tests::memory};

    fn insert(connection: &mut Connection, links: &[LinkVisits]) {
        block_on(insert_links(&mut SqliteSql(connection), links)).unwrap();
    }

    fn numbers(connection: &Connection) -> Vec<i64> {
        let mut query = connection.prepare("SELECT number FROM visit_link_batch ORDER BY number").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn visits(link: i64, total: i64) -> LinkVisits {
        LinkVisits { link: LinkId::from_stored(link), total, bots: 0, last: 0, imported: 0 }
    }

    #[test]
    fn numbers_follow_the_clock_and_never_fall() {
        let mut connection = memory();
        let now: i64 = connection.query_row("SELECT unixepoch() * 1000000", [], |row| row.get(0)).unwrap();
        insert(&mut connection, &[visits(1, 1)]);
        insert(&mut connection, &[]);
        let first = numbers(&connection)[0];
        assert!(first >= now, "{first} was at {now} or later");
        // The clock is set back: the last number lies far in the future, and its batch is gone.
        let later = first + 1_000_000_000_000;
        connection.execute("UPDATE visit_link_batch SET number = ?1", [later]).unwrap();
        connection.execute("UPDATE sqlite_sequence SET seq = ?1", [later]).unwrap();
        end(&connection, later).unwrap();
        insert(&mut connection, &[visits(1, 1)]);
        assert_eq!(numbers(&connection), [later + 1]);
    }

    #[test]
    fn a_step_is_bounded_in_batches_and_in_bytes() {
        let mut connection = memory();
        let of_links = |count: i64| (1..=count).map(|link| visits(link, 1)).collect::<Vec<_>>();
        for count in [20_000, 5_000, 3_000, 192] {
            insert(&mut connection, &of_links(count));
        }
        (0..70).for_each(|_| insert(&mut connection, &of_links(1)));
        for expected in [20_000, 5_000 + 3_000 + 192, 64, 6] {
            let step = begin(&connection).unwrap().unwrap();
            assert_eq!(step.items.iter().map(|visits| visits.total).sum::<i64>(), expected);
            assert_eq!(step.has_more, expected != 6);
            end(&connection, step.up_to).unwrap();
        }
    }

    #[test]
    fn an_attempt_that_has_not_ended_is_repeated_with_the_same_batches() {
        let mut connection = memory();
        assert!(begin(&connection).unwrap().is_none());
        insert(&mut connection, &[visits(1, 5), visits(2, 1)]);
        insert(&mut connection, &[visits(1, 5)]);
        let first = begin(&connection).unwrap().unwrap();
        assert_eq!((&first.items[..], first.has_more), (&[visits(1, 10), visits(2, 1)][..], false));
        insert(&mut connection, &[visits(1, 100)]);
        let again = begin(&connection).unwrap().unwrap();
        assert_eq!((again.up_to, again.items, again.has_more), (first.up_to, first.items, true));
        end(&connection, first.up_to).unwrap();
        let next = begin(&connection).unwrap().unwrap();
        assert_eq!((&next.items[..], next.has_more), (&[visits(1, 100)][..], false));
        end(&connection, next.up_to).unwrap();
        assert!(begin(&connection).unwrap().is_none());
    }
}
