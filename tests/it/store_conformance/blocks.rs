//! The block register, and the reservations whose numbers it contains.

use std::{sync::Arc, time::Duration};

use codes::{KeyspaceIndex, LinkId};
use harness::{Postgres, wait};
use links::{
    NewLink,
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::Span;
use store::{BlockEntry, Register, Registration, Store, StoreError, postgres::PostgresStore};

use super::{keyspace, new_link};

const SOON: Duration = Duration::from_secs(10);

pub(super) fn block(start: u64, len: u64, generation: u64, holder: &str) -> BlockEntry {
    let span = Span::new(start, len).unwrap();
    let (holder, instance) = (holder.to_owned(), format!("start-of-{holder}"));
    BlockEntry { keyspace: keyspace(2), span, generation, holder, incarnation: 1, instance }
}

pub(super) async fn an_overlapping_block_is_refused(store: &dyn Store) {
    let first = block(100, 100, 1, "a");
    let again = BlockEntry { instance: "another-entry-of-a".to_owned(), ..first.clone() };
    assert_eq!(store.register_block(&first).await.unwrap(), Registration::Registered);
    assert_eq!(
        store.register_block(&first).await.unwrap(),
        Registration::Registered,
        "a copy of the same call"
    );
    for rival in [
        again,
        block(100, 100, 2, "b"),
        block(100, 100, 1, "b"),
        block(0, 101, 3, "b"),
        block(199, 1, 4, "b"),
        block(150, 10, 5, "a"),
        block(0, 1_000, 6, "a"),
    ] {
        assert_eq!(store.register_block(&rival).await.unwrap(), Registration::Overlaps, "{rival:?}");
    }
    for neighbour in [block(0, 100, 7, "b"), block(200, 100, 8, "b")] {
        assert_eq!(
            store.register_block(&neighbour).await.unwrap(),
            Registration::Registered,
            "{neighbour:?}"
        );
    }
    let elsewhere = BlockEntry { keyspace: keyspace(1), ..first };
    assert_eq!(store.register_block(&elsewhere).await.unwrap(), Registration::Registered, "another keyspace");
}

pub(super) async fn a_released_rest_can_be_registered_by_another(store: &dyn Store) {
    let first = block(10_000, 100, 20, "a");
    store.register_block(&first).await.unwrap();
    let kept = [Span::new(10_000, 10).unwrap(), Span::new(10_050, 10).unwrap()];
    store.release_block(&first, &kept).await.unwrap();
    store.release_block(&first, &kept).await.unwrap();
    assert_eq!(store.register_block(&block(10_010, 40, 21, "b")).await.unwrap(), Registration::Registered);
    assert_eq!(store.register_block(&block(10_060, 40, 22, "b")).await.unwrap(), Registration::Registered);
    assert_eq!(store.register_block(&block(10_055, 1, 23, "b")).await.unwrap(), Registration::Overlaps);
    store.release_block(&block(20_000, 5, 30, "a"), &[]).await.unwrap();
}

pub(super) async fn a_leaked_block_is_taken_over_once_and_its_gaps_are_found(store: &dyn Store) {
    let (lost, heir, rival) =
        (block(30_000, 10, 40, "a"), block(30_000, 10, 41, "b"), block(30_000, 10, 42, "c"));
    store.register_block(&lost).await.unwrap();
    let id = |number| LinkId::new(keyspace(2), number);
    let link = |number| NewLink { id: id(number), ..new_link(number, "https://x.y/") };
    store
        .insert(&store.epoch().await.unwrap(), &[link(30_000), link(30_003), link(30_004), link(30_010)])
        .await
        .unwrap();
    assert!(store.holds(id(30_005), 40, "start-of-a").await.unwrap());

    assert_eq!(store.take_over_block(&heir, 40).await.unwrap(), Registration::Registered);
    assert_eq!(
        store.take_over_block(&heir, 40).await.unwrap(),
        Registration::Registered,
        "a copy of the call"
    );
    assert_eq!(
        store.take_over_block(&rival, 40).await.unwrap(),
        Registration::Overlaps,
        "it is gone already"
    );
    assert!(!store.holds(id(30_005), 40, "start-of-a").await.unwrap());
    assert!(store.holds(id(30_009), 41, "start-of-b").await.unwrap());
    assert!(!store.holds(id(30_010), 41, "start-of-b").await.unwrap());
    // The lost holder may still be alive: its calls must not touch the heir's block.
    assert_eq!(store.register_block(&lost).await.unwrap(), Registration::Overlaps);
    let not_its_own = store.release_block(&lost, &[Span::new(30_001, 5).unwrap()]).await;
    assert!(matches!(not_its_own, Err(StoreError::Overlap)), "{not_its_own:?}");
    // Nor does it regain any part of a block once the heir has released all of it.
    let (passed, next) = (block(35_000, 10, 46, "a"), block(35_000, 10, 47, "b"));
    store.register_block(&passed).await.unwrap();
    store.take_over_block(&next, 46).await.unwrap();
    store.release_block(&next, &[]).await.unwrap();
    let not_its_own = store.release_block(&passed, &[Span::new(35_001, 5).unwrap()]).await;
    assert!(matches!(not_its_own, Err(StoreError::Overlap)), "{not_its_own:?}");
    assert!(!store.holds(id(35_001), 46, "start-of-a").await.unwrap());
    assert!(store.holds(id(30_000), 41, "start-of-b").await.unwrap());

    let gaps = store.unused(keyspace(2), heir.span).await.unwrap();
    assert_eq!(gaps, [Span::new(30_001, 2).unwrap(), Span::new(30_005, 5).unwrap()]);
    let empty = Span::new(40_000, 25_000).unwrap();
    assert_eq!(store.unused(keyspace(2), empty).await.unwrap(), [empty]);
    // The holder of generation 44 died before it had taken the block over from generation 41.
    let after_it = block(30_000, 10, 45, "d");
    assert_eq!(store.take_over_block(&after_it, 44).await.unwrap(), Registration::Registered);
    assert_eq!(store.take_over_block(&block(30_000, 10, 44, "c"), 41).await.unwrap(), Registration::Overlaps);
    let never_registered = block(50_000, 10, 51, "b");
    assert_eq!(store.take_over_block(&never_registered, 50).await.unwrap(), Registration::Registered);
}

/// After a restore of etcd from a backup a reservation's numbers may be allocated again. To the new
/// holder they look like an older entry of the same block.
pub(super) async fn an_open_reservation_is_never_taken_over(store: &dyn Store) {
    let id = ReservationId::draw().unwrap();
    store.add_reservation(&id, keyspace(2), ApiKeyId(7)).await.unwrap();
    let reserved = BlockEntry { holder: id.holder(), ..block(95_000, 10, 70, "r") };
    assert_eq!(store.register_block(&reserved).await.unwrap(), Registration::Registered);
    let link_id = |number| LinkId::new(keyspace(2), number);
    for heir in [block(95_000, 10, 71, "a"), block(94_990, 30, 72, "b"), block(95_002, 3, 73, "c")] {
        assert_eq!(store.take_over_block(&heir, 70).await.unwrap(), Registration::Overlaps, "{heir:?}");
        assert!(store.holds(link_id(95_003), 70, "start-of-r").await.unwrap(), "{heir:?}");
    }
    assert!(!store.holds(link_id(94_991), 72, "start-of-b").await.unwrap(), "nothing of it was entered");
    store.close_reservation(&id).await.unwrap();
    let heir = block(95_000, 10, 74, "d");
    assert_eq!(store.take_over_block(&heir, 70).await.unwrap(), Registration::Registered, "it was given up");
}

/// The predecessor was killed after it had sent COMMIT. Its row becomes visible only now, so the
/// heir's delete could not see it.
pub(super) async fn a_take_over_waits_for_a_predecessors_late_commit(postgres: &Postgres) {
    let store = Arc::new(PostgresStore::new(&postgres.url(), None).await.unwrap());
    let (mut client, connection) =
        tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let late = client.transaction().await.unwrap();
    let (first, end) = LinkId::range(keyspace(2), block(90_000, 10, 90, "a").span);
    let row = "INSERT INTO block (ids, generation, holder, incarnation, instance) VALUES (int8range($1, $2), 90, 'a', 1, 'x')";
    late.execute(row, &[&first, &end]).await.unwrap();
    let heir = Arc::clone(&store);
    let taken =
        tokio::spawn(async move { heir.take_over_block(&block(90_000, 10, 91, "b"), 90).await.unwrap() });
    let waits =
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO block%'";
    // The query needs a connection of its own: inside a transaction the activity is a snapshot as
    // of its first query.
    let (watcher, connection) =
        tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let waiting = wait::until(SOON, "the heir's insert waits for the predecessor", async || {
        watcher.query_opt(waits, &[]).await.unwrap().is_some()
    });
    waiting.await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(taken.await.unwrap(), Registration::Registered);
}

pub(super) async fn the_registers_end_is_that_of_the_keyspace(store: &dyn Store) {
    let empty = KeyspaceIndex::new(30_000).unwrap();
    assert_eq!(store.registered_end(empty).await.unwrap(), 0);
    let last = BlockEntry { keyspace: empty, ..block(Span::LIMIT - 5, 5, 60, "a") };
    store.register_block(&last).await.unwrap();
    assert_eq!(store.registered_end(empty).await.unwrap(), Span::LIMIT);
    store.register_block(&block(70_000, 8, 61, "a")).await.unwrap();
    assert_eq!(store.registered_end(keyspace(2)).await.unwrap(), 70_008);
}

pub(super) async fn a_reservations_numbers_are_the_registers_rows_of_its_holder(store: &dyn Store) {
    let (id, other) = (ReservationId::draw().unwrap(), ReservationId::draw().unwrap());
    let (key, index) = (ApiKeyId(7), keyspace(2));
    assert_eq!(store.reservation(&id).await.unwrap(), None);
    let created_at = store.add_reservation(&id, index, key).await.unwrap();
    store.add_reservation(&other, index, ApiKeyId(8)).await.unwrap();
    for start in [80_020, 80_000] {
        let entry = BlockEntry { holder: id.holder(), ..block(start, 10, start, "r") };
        assert_eq!(store.register_block(&entry).await.unwrap(), Registration::Registered);
    }
    let spans = [80_000, 80_020].map(|start| Span::new(start, 10).unwrap()).to_vec();
    let expected =
        Reservation { id: id.clone(), keyspace: index, created_by: key, created_at, closed_at: None, spans };
    assert_eq!(store.reservation(&id).await.unwrap(), Some(expected.clone()));
    assert_eq!(store.reservations(Some(key)).await.unwrap(), [expected]);
    assert_eq!(store.reservations(None).await.unwrap().len(), 2);
    let open = |count, codes| OpenReservations { count, codes };
    assert_eq!(store.count_reserved(key).await.unwrap(), open(1, 20), "one of two blocks");
    assert_eq!(store.count_reserved(ApiKeyId(8)).await.unwrap(), open(1, 0), "one without a block");
    store.close_reservation(&id).await.unwrap();
    assert_eq!(store.count_reserved(key).await.unwrap(), open(0, 0));
    let closed_at = store.reservation(&id).await.unwrap().unwrap().closed_at;
    assert!(closed_at.is_some_and(|at| at >= created_at));
    store.close_reservation(&id).await.unwrap();
    assert_eq!(store.reservation(&id).await.unwrap().unwrap().closed_at, closed_at, "the first time counts");
    assert_eq!(store.reservation(&other).await.unwrap().unwrap().closed_at, None);
}
