//! Visits in lists of links.

use codes::LinkId;
use jiff::Timestamp;
use store::{Catalog, VisitTotals};
use visit_store::{Remaining, VisitStore};
use visits::{Month, Subject, VisitId};

use super::{Visit, noon, register, store_all, today};

pub(crate) async fn fold(store: &dyn VisitStore) {
    while store.fold_link_visits().await.unwrap() {}
}

/// Returns the visits of links 1 to 3, in this order.
pub(crate) async fn listed(catalog: &dyn Catalog) -> Vec<(LinkId, VisitTotals)> {
    let mut totals = catalog.visit_totals(&[1, 2, 3].map(LinkId::from_stored)).await.unwrap();
    totals.sort_by_key(|(link, _)| *link);
    totals
}

pub(crate) fn expected(link: i64, total: u64, bots: u64, last: Option<i64>) -> (LinkId, VisitTotals) {
    // SQLite keeps milliseconds.
    let last = last.map(|last| Timestamp::from_millisecond(last.div_euclid(1_000)).unwrap());
    (LinkId::from_stored(link), VisitTotals { total, bots, last })
}

pub(crate) async fn visits_are_added_to_links_once(store: &dyn VisitStore, catalog: &dyn Catalog) {
    let mut producer = register(store, 1).await;
    assert!(!store.fold_link_visits().await.unwrap(), "nothing waits");
    // More batches than one step adds.
    for number in 0..150_i64 {
        let at = noon(0) + number * 1_000;
        let visits = [
            Visit { is_bot: number % 3 == 0, ..Visit::of(1, at) },
            Visit::of(if number < 100 { 2 } else { 3 }, at + 1),
        ];
        store_all(store, &mut producer, &visits).await;
    }
    let at = |number: i64| Some(noon(0) + number * 1_000);
    let all = [expected(1, 150, 50, at(149)), expected(2, 100, 0, at(99)), expected(3, 50, 0, at(149))];
    for _ in 0..2 {
        fold(store).await;
        assert_eq!(listed(catalog).await, all);
    }
    // A late visit does not move the last one back.
    store_all(store, &mut producer, &[Visit::of(2, noon(3))]).await;
    fold(store).await;
    assert_eq!(listed(catalog).await[1], expected(2, 101, 0, at(99)));
    store.delete(Subject::Link(LinkId::from_stored(1)), VisitId::floor(noon(0) + 1_000_000)).await.unwrap();
    store_all(store, &mut producer, &[Visit::of(2, noon(2))]).await;
    fold(store).await;
    let left = [expected(1, 0, 0, None), expected(2, 102, 0, at(99)), all[2]];
    assert_eq!(listed(catalog).await, left);
}

pub(crate) async fn totals_of_links_outlive_their_counters_until_they_are_deleted(
    store: &dyn VisitStore,
    catalog: &dyn Catalog,
) {
    let (mut producer, at) = (register(store, 1).await, noon(0));
    let from = Month::from_stored(today().month().get() - 1).first_day();
    let old = Visit { is_bot: true, ..Visit::of(1, from.minus(1).start()) };
    store_all(store, &mut producer, &[old, Visit::of(1, at), Visit::of(2, at + 1_000)]).await;
    while store.merge().await.unwrap() == Remaining::Something {}
    while store.remove_old_counters(from).await.unwrap() == Remaining::Something {}
    fold(store).await;
    let other = expected(2, 1, 0, Some(at + 1_000));
    assert_eq!(listed(catalog).await, [expected(1, 2, 1, Some(at)), other]);
    // One of its visits is not added yet.
    store_all(store, &mut producer, &[Visit::of(1, at + 2_000)]).await;
    let deleted = store.delete(Subject::Link(LinkId::from_stored(1)), VisitId::floor(at + 1_000_000));
    assert_eq!(deleted.await.unwrap(), 3);
    fold(store).await;
    assert_eq!(listed(catalog).await, [expected(1, 0, 0, None), other]);
}
