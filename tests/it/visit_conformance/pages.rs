//! Pages of rows.

use codes::LinkId;
use links::DomainId;
use visit_store::{Producer, RowQuery, VisitStore};
use visits::{OrphanKind, Outcome, Subject, VisitId, VisitRow};

use super::{Visit, all_rows, noon, register, store_all};

/// Visits of some links and orphans over three days, in an order unlike that of their times.
fn visits() -> Vec<Visit> {
    let visit = |number: i64| {
        let mixed = number * 7_919 % 600;
        let outcome = match mixed % 5 {
            0 => Outcome::ALL[1 + usize::try_from(mixed / 5 % 9).unwrap()],
            _ => Outcome::Redirected,
        };
        Visit {
            link: if outcome == Outcome::Redirected { 1 + mixed % 7 } else { 0 },
            domain: mixed % 3,
            outcome,
            is_bot: mixed % 4 == 1,
            visitor: mixed.unsigned_abs(),
            ..Visit::of(0, noon(i32::try_from(mixed % 3).unwrap()) + mixed * 1_000)
        }
    };
    (0..600).map(visit).collect()
}

/// Returns the rows of a query by a plain sort of all visits.
fn plain(visits: &[(Visit, Producer)], query: &RowQuery, tagged: &[i64]) -> Vec<VisitRow> {
    let is_of = |visit: &Visit| {
        let on = |domain: Option<DomainId>| domain.is_none_or(|domain| domain.get() == visit.domain);
        match query.subject {
            Subject::Link(link) => visit.link == link.get(),
            Subject::Tag(_, domain) => tagged.contains(&visit.link) && on(domain),
            Subject::All(domain) => visit.link != 0 && on(domain),
            Subject::Orphans(kind, domain) => {
                visit.link == 0 && kind.is_none_or(|kind| visit.outcome.orphan() == Some(kind)) && on(domain)
            }
        }
    };
    let mut rows: Vec<VisitRow> = visits
        .iter()
        .filter(|(visit, _)| is_of(visit) && !(query.people_only && visit.is_bot))
        .map(|(visit, producer)| visit.row(producer))
        .filter(|row| (query.from..query.before).contains(&row.id))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    rows
}

async fn store_visits(store: &dyn VisitStore) -> Vec<(Visit, Producer)> {
    let mut producers = [register(store, 1).await, register(store, 2).await];
    let mut stored = Vec::new();
    for (number, part) in visits().chunks(50).enumerate() {
        let producer = &mut producers[number % 2];
        store_all(store, producer, part).await;
        stored.extend(part.iter().map(|visit| (*visit, *producer)));
    }
    stored
}

async fn check(store: &dyn VisitStore, visits: &[(Visit, Producer)], subject: Subject, tagged: &[i64]) {
    let whole = all_rows(subject);
    let (from, before) = (VisitId::floor(noon(1) + 60_000), VisitId::floor(noon(0) + 90_000));
    for ranged in [whole, RowQuery { from, ..whole }, RowQuery { from, before, ..whole }] {
        for people_only in [false, true] {
            let query = RowQuery { people_only, ..ranged };
            let expected = plain(visits, &query, tagged);
            assert_eq!(store.count_rows(&query).await.unwrap(), expected.len() as u64, "{query:?}");
            for (skip, most) in
                [(0, 1_000), (0, 1), (0, 0), (7, 20), (expected.len().saturating_sub(3), 10), (5_000, 5)]
            {
                let page = RowQuery { skip: skip as u64, most, ..query };
                let expected: Vec<_> = expected.iter().skip(skip).take(most).copied().collect();
                assert_eq!(store.rows(&page).await.unwrap(), expected, "{page:?}");
            }
        }
    }
}

pub(crate) async fn pages_of_rows_equal_a_plain_sort(store: &dyn VisitStore) {
    let visits = store_visits(store).await;
    let domain = Some(DomainId::from_stored(2));
    for subject in [
        Subject::Link(LinkId::from_stored(3)),
        Subject::All(None),
        Subject::All(domain),
        Subject::Orphans(None, None),
        Subject::Orphans(None, domain),
        Subject::Orphans(Some(OrphanKind::InvalidShortUrl), None),
    ] {
        check(store, &visits, subject, &[]).await;
    }
    let none = all_rows(Subject::Link(LinkId::from_stored(99)));
    assert_eq!((store.rows(&none).await.unwrap(), store.count_rows(&none).await.unwrap()), (Vec::new(), 0));
}

/// Expects that tag 40 has links 2, 5 and 6, and tag 41 others.
pub(crate) async fn rows_of_a_tag_are_those_of_its_links(store: &dyn VisitStore) {
    let visits = store_visits(store).await;
    for domain in [None, Some(DomainId::from_stored(1))] {
        check(store, &visits, Subject::Tag(40, domain), &[2, 5, 6]).await;
    }
    assert_eq!(store.count_rows(&all_rows(Subject::Tag(99, None))).await.unwrap(), 0);
}

pub(crate) async fn the_latest_rows_are_those_after_an_id(store: &dyn VisitStore) {
    let visits = store_visits(store).await;
    let mut rows: Vec<VisitRow> = visits.iter().map(|(visit, producer)| visit.row(producer)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    let after = rows[20].id;
    assert_eq!(store.latest(after, 100).await.unwrap(), rows[..20], "orphans too, and not the id itself");
    assert_eq!(store.latest(after, 6).await.unwrap(), rows[..6]);
    assert!(store.latest(rows[0].id, 100).await.unwrap().is_empty());
}
