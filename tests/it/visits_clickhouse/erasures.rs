//! Erasures while rows are on their way.

use std::time::Duration;

use harness::{Direction, Flow, Proxy};
use tokio::time::sleep;
use visit_store::{ErasureId, VisitStore};

use super::{Databases, commit};
use crate::visit_conformance::{Visit, erasure, noon, register};

/// A network of whole addresses, which are found by their texts, and one of numbers.
const NETWORKS: [&str; 2] = ["2001:db8:1:2::/64", "192.0.2.0/24"];
/// How long the answers of a slow server take, in milliseconds.
const SLOW: u64 = 400;
/// A visitor of each of them, and one of neither.
const VISITORS: [u64; 3] = [4, 1, 0];

/// Visits on two days: of both networks, and of others.
pub(super) fn visits(from: i64) -> Vec<Visit> {
    let visit = |number: i64| {
        let visitor = VISITORS[usize::try_from(number % 3).unwrap()];
        Visit { visitor, ..Visit::of(1 + number % 2, noon(1 + i32::from(number % 4 == 3)) + from + number) }
    };
    (0..60).map(visit).collect()
}

/// Takes steps, and returns whether there are more.
async fn step(store: &dyn VisitStore, steps: u32) -> bool {
    for _ in 0..steps {
        if store.delete_rows().await.unwrap().is_none() {
            return false;
        }
    }
    true
}

async fn begin(store: &dyn VisitStore, network: &str) -> ErasureId {
    store.erase(&erasure::erasure(network, noon(0))).await.unwrap().unwrap()
}

/// Rows arrive before each step, and after the last one.
pub(super) async fn rows_that_come_at_any_step_are_erased(databases: &mut Databases) {
    for network in NETWORKS {
        let mut steps = 0;
        loop {
            let (store, _) = databases.fresh("").await;
            let mut producer = register(&store, 1).await;
            let early = commit(&store, &mut producer, &visits(0)).await;
            store.store_rows(&early).await.unwrap();
            let late = commit(&store, &mut producer, &visits(1_000)).await;
            let id = begin(&store, network).await;
            let has_more = step(&store, steps).await;
            store.store_rows(&late).await.unwrap();
            assert_eq!(erasure::finish(&store, id).await.0, 2 * 20, "{network}, after {steps} steps");
            assert_eq!(erasure::visitors(&store).await.len(), 2 * 40, "{network}, after {steps} steps");
            erasure::must_say_how_many_rows(&store).await;
            if !has_more {
                break;
            }
            steps += 1;
        }
        assert!(steps > 3, "days are found, rows deleted, the erasure closed");
    }
}

/// So many rows are found on a day, and deleted, in more than one step.
pub(super) async fn many_rows_are_erased_in_steps(databases: &mut Databases) {
    let (store, _) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let visit = |number: i64| {
        let visitor = if number % 50 == 0 { VISITORS[2] } else { VISITORS[1] };
        Visit { visitor, ..Visit::of(1, noon(1) + number) }
    };
    let visits: Vec<Visit> = (0..21_000).map(visit).collect();
    for part in visits.chunks(7_000) {
        let record = commit(&store, &mut producer, part).await;
        store.store_rows(&record).await.unwrap();
    }
    let id = begin(&store, NETWORKS[1]).await;
    assert_eq!(erasure::finish(&store, id).await.0, 21_000 / 50 * 49);
    assert_eq!(erasure::visitors(&store).await.len(), 21_000 / 50);
    erasure::must_say_how_many_rows(&store).await;
}

/// A record is sent again, because its sender did not see the answer, when its rows are found,
/// deleted or gone already.
pub(super) async fn rows_that_come_again_at_any_step_are_erased_once(databases: &mut Databases) {
    let mut steps = 0;
    loop {
        let (store, _) = databases.fresh("").await;
        let mut producer = register(&store, 1).await;
        let mut record = commit(&store, &mut producer, &visits(0)).await;
        store.store_rows(&record).await.unwrap();
        let id = begin(&store, NETWORKS[0]).await;
        let has_more = step(&store, steps).await;
        record.may_be_stored = true;
        store.store_rows(&record).await.unwrap();
        assert_eq!(erasure::finish(&store, id).await.0, 20, "after {steps} steps");
        assert_eq!(erasure::visitors(&store).await.len(), 40, "after {steps} steps");
        erasure::must_say_how_many_rows(&store).await;
        if !has_more {
            return;
        }
        steps += 1;
    }
}

/// A record is sent again while its rows are deleted in one table already, and not in the other.
pub(super) async fn a_row_that_comes_again_between_the_tables_is_deleted_in_both(databases: &mut Databases) {
    let (store, name) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let mut record = commit(&store, &mut producer, &visits(0)).await;
    store.store_rows(&record).await.unwrap();
    let id = begin(&store, NETWORKS[1]).await;
    databases.sql(&format!("SYSTEM STOP MERGES {name}.visit_by_time")).await;
    let rows = async |table: &str| {
        databases.sql(&format!("SELECT count() FROM {name}.{table}")).await.parse::<u64>().unwrap()
    };
    // The server deletes part by part: it has done so in the first table when 40 are left.
    while rows("visit").await > 40 {
        assert!(store.delete_rows().await.unwrap().is_some());
    }
    assert_eq!((rows("visit").await, rows("visit_by_time").await), (40, 60));
    record.may_be_stored = true;
    store.store_rows(&record).await.unwrap();
    assert_eq!((rows("visit").await, rows("visit_by_time").await), (60, 60));
    databases.sql(&format!("SYSTEM START MERGES {name}.visit_by_time")).await;
    assert_eq!(erasure::finish(&store, id).await.0, 20);
    assert_eq!((rows("visit").await, rows("visit_by_time").await), (40, 40));
    erasure::must_say_how_many_rows(&store).await;
}

/// Rows arrive after the servers were asked for those of a day, and before the answer was used.
pub(super) async fn rows_that_come_after_a_question_are_erased(databases: &mut Databases) {
    let proxy = Proxy::start(databases.server).await.unwrap();
    for pause in (0..SLOW).step_by(usize::try_from(SLOW / 8).unwrap()) {
        let (store, name) = databases.fresh("").await;
        let mut producer = register(&store, 1).await;
        let early = commit(&store, &mut producer, &visits(0)).await;
        store.store_rows(&early).await.unwrap();
        let late = commit(&store, &mut producer, &visits(1_000)).await;
        let eraser = databases.open_at(&name, proxy.addr());
        // Asks the server for its release while it answers at once.
        eraser.migrate().await.unwrap();
        let id = begin(&eraser, NETWORKS[1]).await;
        proxy.set(Direction::ToClient, Flow::Delay(Duration::from_millis(SLOW)));
        let arrive = async {
            // Each step asks whether the servers are done, and then for the rows of a day.
            sleep(Duration::from_millis(SLOW + pause)).await;
            store.store_rows(&late).await.unwrap();
        };
        let (step, ()) = tokio::join!(eraser.delete_rows(), arrive);
        assert!(step.unwrap().is_some());
        proxy.set(Direction::ToClient, Flow::Pass);
        assert_eq!(erasure::finish(&store, id).await.0, 2 * 20, "after {pause} ms");
        assert_eq!(erasure::visitors(&store).await.len(), 2 * 40, "after {pause} ms");
        erasure::must_say_how_many_rows(&store).await;
    }
}
