//! Counters by day and by month.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use codes::LinkId;
use links::DomainId;
use tokio::join;
use visit_store::{Columns, DayCounters, Days, Producer, Remaining, VisitStore};
use visits::{
    DAY, Day, Month, OrphanKind, Outcome, Subject, VisitId,
    tally::{Counters, Tally},
};

use super::{Visit, always, noon, register, store_all, tally, today, totals};

pub(crate) async fn counters_of_two_slots_add_up(store: &dyn VisitStore) {
    let (mut one, mut other) = (register(store, 1).await, register(store, 2).await);
    let visit = |visit: i64| Visit {
        is_bot: visit % 4 == 0,
        domain: visit % 2,
        visitor: visit.unsigned_abs() % 30,
        ..Visit::of(5, noon(i32::from(visit >= 50)) + visit)
    };
    let visits: Vec<Visit> = (0..100).map(visit).collect();
    for part in visits.chunks(10) {
        store_all(store, &mut one, &part[..4]).await;
        store_all(store, &mut other, &part[4..]).await;
    }
    let link = Subject::Link(LinkId::from_stored(5));
    let domain = |domain: i64| Subject::All(Some(DomainId::from_stored(domain)));
    assert_eq!(totals(store, link).await, (100, 25), "on both domains");
    assert_eq!(totals(store, Subject::All(None)).await, (100, 25));
    assert_eq!(totals(store, domain(0)).await, (50, 25));
    assert_eq!(totals(store, domain(1)).await, (50, 0));
    assert_eq!(totals(store, domain(2)).await, (0, 0));
    for subject in [link, Subject::All(None)] {
        let days = store.days(subject, always(), Columns::ALL).await.unwrap();
        let numbers: Vec<_> =
            days.iter().map(|day| (day.days.start, day.days.len(), day.counters.total)).collect();
        let today = today().get();
        assert_eq!(numbers, [(today - 1, 1, 50), (today, 1, 50)], "{subject:?}");
        let expected = super::batch(&one, &visits);
        let key = Subject::All(None).key();
        let of_all = expected.days.iter().filter(|delta| delta.subject == key);
        for (delta, day) in of_all.zip(&days) {
            assert_eq!(tally(std::slice::from_ref(day)), Tally::from_chunks(&delta.delta).unwrap());
        }
        let yesterday = Days { first: Day::from_stored(today - 1), end: Day::from_stored(today) };
        let yesterday = store.days(subject, yesterday, Columns::ALL).await.unwrap();
        assert_eq!(yesterday[..], days[..1]);
        only_wanted_columns(store, subject, &days[1]).await;
    }
    links_count_within_days(store, &mut one).await;
}

/// Counts visits of several links at once, beside the hundred of link 5.
async fn links_count_within_days(store: &dyn VisitStore, producer: &mut Producer) {
    let other = LinkId::from_stored(6);
    store_all(store, producer, &[Visit::of(6, noon(1))]).await;
    let of_links = async |first: i32, end: i32| {
        let days = Days { first: Day::from_stored(first), end: Day::from_stored(end) };
        let links = [LinkId::from_stored(5), other, LinkId::from_stored(7)];
        let totals = store.link_totals(&links, days).await.unwrap();
        links.map(|link| totals.get(&link).map(|totals| (totals.total, totals.bots)))
    };
    let today = today().get();
    assert_eq!(of_links(today - 1, today + 1).await, [Some((100, 25)), Some((1, 0)), None]);
    assert_eq!(of_links(today, today + 1).await, [Some((50, 13)), None, None]);
    assert_eq!(of_links(today - 1, today).await, [Some((50, 12)), Some((1, 0)), None]);
}

async fn only_wanted_columns(store: &dyn VisitStore, subject: Subject, expected: &DayCounters) {
    let days = Days { first: today(), end: today().next() };
    for wanted in [
        Columns::default(),
        Columns { quarters: true, ..Columns::default() },
        Columns { dimensions: true, addresses: true, ..Columns::default() },
        Columns { visitors: true, ..Columns::default() },
    ] {
        let only = |bytes: &[u8], is_wanted: bool| if is_wanted { bytes.to_vec() } else { Vec::new() };
        let all = &expected.counters;
        let counters = Counters {
            quarters: only(&all.quarters, wanted.quarters),
            dimensions: only(&all.dimensions, wanted.dimensions),
            visitors: only(&all.visitors, wanted.visitors),
            addresses: only(&all.addresses, wanted.addresses),
            ..*all
        };
        let expected = DayCounters { days: expected.days.clone(), counters };
        assert_eq!(store.days(subject, days, wanted).await.unwrap(), [expected]);
    }
}

pub(crate) async fn orphans_count_by_kind_and_domain(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let outcomes = [Outcome::BaseUrl, Outcome::UnknownCode, Outcome::UnknownCode, Outcome::InvalidPath];
    let orphan = |(outcome, number): (Outcome, i64)| Visit {
        outcome,
        domain: number % 2,
        is_bot: number == 3,
        ..Visit::of(0, noon(0) + number)
    };
    let visits: Vec<Visit> = outcomes.into_iter().zip(0..).map(orphan).collect();
    store_all(store, &mut producer, &visits).await;
    let domain = |domain: i64| Some(DomainId::from_stored(domain));
    for (kind, on, expected) in [
        (None, None, (4, 1)),
        (None, domain(1), (2, 1)),
        (Some(OrphanKind::BaseUrl), None, (1, 0)),
        (Some(OrphanKind::InvalidShortUrl), None, (2, 0)),
        (Some(OrphanKind::InvalidShortUrl), domain(0), (1, 0)),
        (Some(OrphanKind::RegularNotFound), None, (1, 1)),
        (Some(OrphanKind::RegularNotFound), domain(0), (0, 0)),
    ] {
        assert_eq!(totals(store, Subject::Orphans(kind, on)).await, expected, "{kind:?} on {on:?}");
    }
    assert_eq!(totals(store, Subject::All(None)).await, (0, 0));
}

/// Adds visits of links to the links, so that the busy ones are known, and merges months.
async fn merge(store: &dyn VisitStore) {
    while store.fold_link_visits().await.unwrap() {}
    while store.merge().await.unwrap() == Remaining::Something {}
}

pub(crate) async fn a_merged_month_equals_its_days_until_a_visit_comes_late(store: &dyn VisitStore) {
    let month = Month::from_stored(today().month().get() - 1);
    let (first, end) = (month.first_day(), month.next().first_day());
    let mut producers = [register(store, 1).await, register(store, 2).await];
    for day in first.get() - 1..=end.get() {
        let visit = |visit: i64| Visit {
            is_bot: visit % 8 == 0,
            // Dimensions have at most a thousand values of their own.
            visitor: (u64::from(day.unsigned_abs()) * 60 + visit.unsigned_abs() % 60) % 900,
            ..Visit::of(9, i64::from(day) * DAY + visit)
        };
        let visits: Vec<Visit> = (0..80).map(visit).collect();
        let (one, other) = visits.split_at(40);
        store_all(store, &mut producers[0], one).await;
        store_all(store, &mut producers[1], other).await;
    }
    let range = Days { first: first.minus(5), end: end.next() };
    let subjects = [
        Subject::Link(LinkId::from_stored(9)),
        Subject::All(None),
        Subject::All(Some(DomainId::from_stored(0))),
    ];
    for subject in subjects {
        let days = store.days(subject, range, Columns::ALL).await.unwrap();
        assert_eq!(store.spans(subject, range, Columns::ALL).await.unwrap(), days, "nothing is merged yet");
    }
    merge(store).await;
    for subject in subjects {
        is_merged(store, subject, range, month).await;
        // A range that has no whole month.
        let part = Days { first: first.next(), end: end.next() };
        let days = store.days(subject, part, Columns::ALL).await.unwrap();
        assert_eq!(store.spans(subject, part, Columns::ALL).await.unwrap(), days);
    }
    let late = Visit { visitor: 7, ..Visit::of(9, first.start() + DAY / 2) };
    store_all(store, &mut producers[0], &[late]).await;
    for subject in subjects {
        let days = store.days(subject, range, Columns::ALL).await.unwrap();
        assert_eq!(store.spans(subject, range, Columns::ALL).await.unwrap(), days, "{subject:?}: outdated");
    }
    merge(store).await;
    for subject in subjects {
        is_merged(store, subject, range, month).await;
    }
}

/// Days are closed while visits of them arrive and visits of links are deleted.
pub(crate) async fn days_are_closed_beside_late_visits_and_deletions(store: &dyn VisitStore) {
    const BATCHES: i64 = 100;
    let (mut one, mut other) = (register(store, 1).await, register(store, 2).await);
    let is_over = AtomicBool::new(false);
    let late = async |producer: &mut Producer| {
        for number in 0..BATCHES {
            let visit = |link: i64| Visit::of(link, noon(9) + 1_000 * link + number);
            let deleted = 1_000 * (1 + i64::from(producer.slot.get())) + number;
            store_all(store, producer, &[visit(5), visit(6), visit(deleted)]).await;
            let subject = Subject::Link(LinkId::from_stored(deleted));
            assert_eq!(store.delete(subject, VisitId::floor(noon(0))).await.unwrap(), 1, "link {deleted}");
            assert_eq!(totals(store, subject).await, (0, 0), "link {deleted}");
        }
    };
    let close = async || {
        while !is_over.load(Relaxed) {
            store.merge().await.unwrap();
        }
    };
    let work = async {
        join!(late(&mut one), late(&mut other));
        is_over.store(true, Relaxed);
    };
    join!(work, close());
    merge(store).await;
    assert_eq!(store.oldest_open().await.unwrap(), Duration::ZERO, "all days are closed");
    for link in [5, 6] {
        assert_eq!(totals(store, Subject::Link(LinkId::from_stored(link))).await, (2 * BATCHES, 0));
    }
    assert_eq!(totals(store, Subject::All(None)).await, (4 * BATCHES, 0));
}

/// Checks that the spans are a day, the month and a day, and have the sums of the days.
async fn is_merged(store: &dyn VisitStore, subject: Subject, range: Days, month: Month) {
    let (first, end) = (month.first_day().get(), month.next().first_day().get());
    let days = store.days(subject, range, Columns::ALL).await.unwrap();
    let spans = store.spans(subject, range, Columns::ALL).await.unwrap();
    let lens: Vec<_> = spans.iter().map(|span| span.days.clone()).collect();
    assert_eq!(lens, [first - 1..first, first..end, end..end + 1], "{subject:?}");
    assert_eq!((&spans[0], &spans[2]), (&days[0], days.last().unwrap()));
    let within = &days[1..days.len() - 1];
    let sum = |count: fn(&Counters) -> i64| within.iter().map(|day| count(&day.counters)).sum::<i64>();
    let month = &spans[1].counters;
    assert_eq!((month.total, month.bots), (sum(|day| day.total), sum(|day| day.bots)));
    assert!(month.quarters.is_empty(), "quarter hours of which day?");
    let merged = Tally { quarters: tally(within).quarters, ..tally(&spans[1..2]) };
    assert_eq!(merged, tally(within), "{subject:?}");
    let only = store.spans(subject, range, Columns::default()).await.unwrap();
    assert_eq!((only[1].counters.total, only[1].counters.dimensions.len()), (month.total, 0));
}
