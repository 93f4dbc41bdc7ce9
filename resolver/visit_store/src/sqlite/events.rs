//! Events for webhooks on their way into the links' database.
//!
//! They are stored with their batch, and deleted after the links' database has them. A crash
//! between the two sends them again, and the links' database, which keeps the number of the last
//! one, leaves them out. So numbers ascend, and none comes twice, not even after the file of visits
//! was lost and begun anew: they follow the clock, as those of [`link_visits`](super::link_visits)
//! do.

use codes::LinkId;
use links::{
    DomainId,
    webhook::{EventKind, NewWebhookEvent},
};
use rusqlite::{Connection, params};

use super::{Waiting, next_number};
use crate::{Result, sql::int};

const STEP: usize = 100;

pub(super) fn insert(transaction: &Connection, events: &[NewWebhookEvent]) -> Result<()> {
    let insert = format!(
        "INSERT INTO visit_event (number, kind, domain_id, link_id, tags, data) VALUES ({}, ?1, ?2, ?3, ?4, ?5)",
        next_number("visit_event")
    );
    let mut insert = transaction.prepare_cached(&insert)?;
    for NewWebhookEvent { kind, domain, link, tags, data } in events {
        let tags: Vec<u8> = tags.iter().flat_map(|tag| tag.to_le_bytes()).collect();
        insert.execute(params![kind, domain.map(DomainId::get), link.map(LinkId::get), tags, data])?;
    }
    Ok(())
}

/// Returns the oldest events; `None` if there are none.
pub(super) fn oldest(connection: &Connection) -> Result<Option<Waiting<NewWebhookEvent>>> {
    let query =
        "SELECT number, kind, domain_id, link_id, tags, data FROM visit_event ORDER BY number LIMIT ?1";
    let mut query = connection.prepare_cached(query)?;
    let mut rows = query.query([int(STEP)])?;
    let (mut up_to, mut count, mut events) = (None, 0, Vec::new());
    while let Some(row) = rows.next()? {
        up_to = Some(row.get(0)?);
        count += 1;
        let name: String = row.get(1)?;
        // A later version may have written a kind that no webhook of this one asks for.
        let Some(kind) = EventKind::NAMES.into_iter().find(|known| *known == name) else { continue };
        events.push(NewWebhookEvent {
            kind,
            domain: row.get::<_, Option<i64>>(2)?.map(DomainId::from_stored),
            link: row.get::<_, Option<i64>>(3)?.map(LinkId::from_stored),
            tags: tags(&row.get::<_, Vec<u8>>(4)?),
            data: row.get(5)?,
        });
    }
    Ok(up_to.map(|up_to| Waiting { up_to, items: events, has_more: count == STEP }))
}

fn tags(stored: &[u8]) -> Vec<i64> {
    stored.as_chunks().0.iter().map(|tag| i64::from_le_bytes(*tag)).collect()
}

pub(super) fn forget(transaction: &Connection, up_to: i64) -> Result<()> {
    transaction.execute("DELETE FROM visit_event WHERE number <= ?1", [up_to])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::tests::memory, *};

    fn event(link: i64) -> NewWebhookEvent {
        NewWebhookEvent {
            kind: EventKind::NAMES[0],
            domain: Some(DomainId::from_stored(3)),
            link: Some(LinkId::from_stored(link)),
            tags: vec![7, -8],
            data: "{}".to_owned(),
        }
    }

    #[test]
    fn events_wait_in_their_order_until_they_are_forgotten() {
        let connection = memory();
        assert!(oldest(&connection).unwrap().is_none());
        let events: Vec<NewWebhookEvent> = (1..=150).map(event).collect();
        insert(&connection, &events).unwrap();
        let first = oldest(&connection).unwrap().unwrap();
        assert_eq!((first.items.as_slice(), first.has_more), (&events[..STEP], true));
        forget(&connection, first.up_to).unwrap();
        let rest = oldest(&connection).unwrap().unwrap();
        assert_eq!((rest.items.as_slice(), rest.has_more), (&events[STEP..], false));
        forget(&connection, rest.up_to).unwrap();
        assert!(oldest(&connection).unwrap().is_none());
    }

    #[test]
    fn a_file_that_was_begun_anew_repeats_no_number() {
        let connection = memory();
        let now: i64 = connection.query_row("SELECT unixepoch() * 1000000", [], |row| row.get(0)).unwrap();
        insert(&connection, &[event(1), event(2)]).unwrap();
        let up_to = oldest(&connection).unwrap().unwrap().up_to;
        assert!(up_to > now, "{up_to} is the second number since {now}");
    }

    #[test]
    fn a_kind_of_a_later_version_is_passed_over() {
        let connection = memory();
        let unknown = NewWebhookEvent { kind: "visits.weighed", ..event(1) };
        insert(&connection, &[unknown, event(2)]).unwrap();
        assert_eq!(oldest(&connection).unwrap().unwrap().items, [event(2)]);
    }
}
