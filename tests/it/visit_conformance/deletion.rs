//! Deletion of visits.

use codes::LinkId;
use links::DomainId;
use visit_store::{Columns, VisitStore};
use visits::{OrphanKind, Outcome, Subject, VisitId, tally::Tally};

use super::{Visit, all_rows, always, noon, register, store_all, tally, totals};

/// Rows of the deleted link: more than one step deletes.
const MANY: i64 = 20_500;

fn len(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

fn link(link: i64) -> Subject {
    Subject::Link(LinkId::from_stored(link))
}

/// Deletes all rows that deletions have left, and returns their number and that of the steps.
async fn delete_rows(store: &dyn VisitStore) -> (u64, u64) {
    let (mut deleted, mut steps) = (0, 0);
    while let Some(step) = store.delete_rows().await.unwrap() {
        deleted += step;
        steps += u64::from(step > 0);
    }
    (deleted, steps)
}

pub(crate) async fn a_deletion_takes_the_visits_of_a_link_from_everything(store: &dyn VisitStore) {
    let (mut one, mut other) = (register(store, 1).await, register(store, 2).await);
    let visit = |number: i64| Visit {
        domain: number % 2,
        is_bot: number % 5 == 0,
        visitor: number.unsigned_abs() % 50,
        ..Visit::of(1 + i64::from(number % 3 == 0), noon(i32::try_from(number / 2 % 2).unwrap()) + number)
    };
    let visits: Vec<Visit> = (0..400).map(visit).collect();
    let (kept, deleted): (Vec<Visit>, Vec<Visit>) = visits.iter().partition(|visit| visit.link == 2);
    for (number, part) in visits.chunks(80).enumerate() {
        let producer = if number % 2 == 0 { &mut one } else { &mut other };
        store_all(store, producer, part).await;
    }
    let count = |visits: &[Visit], on: Option<i64>| {
        let of = || visits.iter().filter(move |visit| on.is_none_or(|domain| domain == visit.domain));
        (len(of().count()), len(of().filter(|visit| visit.is_bot).count()))
    };
    let on = |domain: i64| Subject::All(Some(DomainId::from_stored(domain)));
    assert_eq!(totals(store, on(1)).await, count(&visits, Some(1)));
    let before = VisitId::floor(noon(0) + 1_000);
    assert_eq!(store.delete(link(1), before).await.unwrap(), deleted.len() as u64);
    assert_eq!(totals(store, link(1)).await, (0, 0));
    assert_eq!(totals(store, link(2)).await, count(&kept, None));
    assert_eq!(totals(store, Subject::All(None)).await, count(&kept, None));
    for domain in [0, 1] {
        assert_eq!(totals(store, on(domain)).await, count(&kept, Some(domain)), "domain {domain}");
    }
    // Sketches cannot be subtracted; all other columns are those of the visits that stay.
    let days = store.days(Subject::All(None), always(), Columns::ALL).await.unwrap();
    let of_kept = store.days(link(2), always(), Columns::ALL).await.unwrap();
    assert_eq!((days.len(), of_kept.len()), (2, 2));
    for (day, of_kept) in days.iter().zip(&of_kept) {
        let (all, of_kept) = (tally(std::slice::from_ref(day)), tally(std::slice::from_ref(of_kept)));
        let Tally { visitors, addresses, .. } = all.clone();
        assert_eq!(all, Tally { visitors, addresses, ..of_kept });
    }
    assert_eq!(delete_rows(store).await.0, deleted.len() as u64);
    assert_eq!(store.count_rows(&all_rows(Subject::All(None))).await.unwrap(), kept.len() as u64);
    assert_eq!(store.delete(link(1), before).await.unwrap(), 0, "for the second time");
    assert_eq!(store.delete(Subject::All(None), before).await.unwrap(), 0, "only links and orphans");
    assert_eq!(totals(store, Subject::All(None)).await, count(&kept, None));
}

pub(crate) async fn rows_of_a_deletion_go_in_steps_and_later_visits_stay(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visit = |number: i64| Visit { visitor: 3, ..Visit::of(1 + number % 100 / 99, noon(1) + number) };
    let visits: Vec<Visit> = (0..MANY * 100 / 99).map(visit).collect();
    let of_link = visits.iter().filter(|visit| visit.link == 1).count() as u64;
    assert!(of_link > 20_000);
    for part in visits.chunks(7_000) {
        store_all(store, &mut producer, part).await;
    }
    let end = VisitId::floor(noon(0));
    assert_eq!(store.delete(link(1), end).await.unwrap(), of_link);
    // Visits after the deletion count, while rows before it are still there.
    let later = [Visit::of(1, noon(0)), Visit::of(1, noon(0) + 1)];
    store_all(store, &mut producer, &later).await;
    assert_eq!(totals(store, link(1)).await, (2, 0));
    let (deleted, steps) = delete_rows(store).await;
    assert_eq!(deleted, of_link);
    assert!(steps > 1, "{steps} steps");
    assert_eq!(store.count_rows(&all_rows(link(1))).await.unwrap(), 2);
    assert_eq!(store.count_rows(&all_rows(link(2))).await.unwrap(), visits.len() as u64 - of_link);
    assert_eq!(totals(store, link(1)).await, (2, 0));
    assert_eq!(delete_rows(store).await, (0, 0));
}

pub(crate) async fn orphans_are_deleted_and_links_stay(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let outcomes = [Outcome::BaseUrl, Outcome::UnknownCode, Outcome::InvalidPath, Outcome::Expired];
    let orphan = |(outcome, at): (Outcome, i64)| Visit { outcome, domain: 1, ..Visit::of(0, at) };
    let mut visits: Vec<Visit> = outcomes.into_iter().zip(noon(0)..).map(orphan).collect();
    visits.extend((10..15).map(|number| Visit::of(4, noon(0) + number)));
    store_all(store, &mut producer, &visits).await;
    assert_eq!(totals(store, Subject::Orphans(None, None)).await, (4, 0));
    let end = VisitId::floor(noon(0) + 100);
    assert_eq!(store.delete(Subject::Orphans(None, None), end).await.unwrap(), 4);
    let domain = Some(DomainId::from_stored(1));
    for kind in OrphanKind::ALL.into_iter().map(Some).chain([None]) {
        for domain in [None, domain] {
            assert_eq!(totals(store, Subject::Orphans(kind, domain)).await, (0, 0));
        }
    }
    assert_eq!(totals(store, Subject::All(None)).await, (5, 0));
    assert_eq!(delete_rows(store).await.0, 4);
    assert_eq!(store.count_rows(&all_rows(Subject::Orphans(None, None))).await.unwrap(), 0);
    assert_eq!(store.count_rows(&all_rows(link(4))).await.unwrap(), 5);
    let later = Visit { outcome: Outcome::BaseUrl, ..Visit::of(0, noon(0) + 100) };
    store_all(store, &mut producer, &[later]).await;
    assert_eq!(delete_rows(store).await.0, 0);
    assert_eq!(totals(store, Subject::Orphans(None, None)).await, (1, 0));
}
