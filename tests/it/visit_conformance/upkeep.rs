//! Retention and secrets.

use codes::LinkId;
use visit_store::{Batch, Columns, Remaining, StoredText, TextRef, VisitStore};
use visits::{Day, DaySecret, Month, Subject, TextHash, VisitId};

use super::{Visit, all_rows, always, batch, noon, register, store_all, store_batch, today, totals};

pub(crate) async fn retention_removes_rows_and_texts_and_keeps_counters(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    assert_eq!(store.rows_from().await.unwrap(), None);
    let rows_from = today().minus(90);
    let old = today().minus(130);
    let times = [old.start(), old.start() + 1, rows_from.start() - 1, rows_from.start(), noon(0)];
    let visits = times.map(|at| Visit::of(1, at));
    let text = |day: visits::Day| {
        let at = TextRef { month: day.month(), hash: TextHash::from_stored(77) };
        StoredText { at, text: b"a text".to_vec() }
    };
    let texts = [text(old), text(rows_from)];
    let batch = Batch { texts: texts.to_vec(), ..batch(&producer, &visits) };
    store_batch(store, &producer, &batch, 0).await.unwrap();
    let link = Subject::Link(LinkId::from_stored(1));
    store.keep(rows_from).await.unwrap();
    assert_eq!(store.rows_from().await.unwrap(), Some(rows_from));
    let rows = store.rows(&all_rows(link)).await.unwrap();
    let left: Vec<i64> = rows.iter().map(|row| row.id.micros()).collect();
    assert_eq!(left, [noon(0), rows_from.start()]);
    let refs = texts.each_ref().map(|text| text.at);
    assert_eq!(store.texts(&refs).await.unwrap(), texts[1..]);
    assert_eq!(totals(store, link).await, (5, 0));
    assert_eq!(totals(store, Subject::All(None)).await, (5, 0));
    // A longer retention does not bring anything back.
    store.keep(today().minus(365)).await.unwrap();
    assert_eq!(store.rows_from().await.unwrap(), Some(rows_from));
}

async fn remove_counters(store: &dyn VisitStore, from: Day) {
    while store.merge().await.unwrap() == Remaining::Something {}
    while store.remove_old_counters(from).await.unwrap() == Remaining::Something {}
}

pub(crate) async fn counters_of_old_months_are_removed_and_do_not_come_back(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let from = Month::from_stored(today().month().get() - 1).first_day();
    let days = [from.minus(31), from.minus(1), from, today()];
    for link in [1, 2] {
        let visits = days.map(|day| Visit::of(link, day.start() + link));
        store_all(store, &mut producer, &visits).await;
    }
    let link = Subject::Link(LinkId::from_stored(1));
    let counted = async |subject: Subject| {
        let (total, _) = totals(store, subject).await;
        let spans = store.spans(subject, always(), Columns::default()).await.unwrap();
        assert_eq!(spans.iter().map(|span| span.counters.total).sum::<i64>(), total);
        total
    };
    let listed = async || {
        let id = LinkId::from_stored(1);
        store.link_totals(&[id], always()).await.unwrap().get(&id).map_or(0, |totals| totals.total)
    };
    assert_eq!((counted(link).await, counted(Subject::All(None)).await, listed().await), (4, 8, 4));
    remove_counters(store, from).await;
    for late in [7, 8] {
        assert_eq!((counted(link).await, counted(Subject::All(None)).await, listed().await), (2, 4, 2));
        // A spool brings an old visit, and a process keeps counters for longer.
        store_all(store, &mut producer, &[Visit::of(1, from.minus(1).start() + late)]).await;
        assert_eq!((counted(link).await, listed().await), (2, 2));
        remove_counters(store, from.minus(1).month().first_day()).await;
    }
    remove_counters(store, from).await;
    assert_eq!(store.delete(link, VisitId::floor(noon(-1))).await.unwrap(), 6, "its total has all visits");
    assert_eq!((counted(link).await, counted(Subject::All(None)).await, listed().await), (0, 2, 0));
}

pub(crate) async fn secrets_are_the_same_for_all_callers(store: &dyn VisitStore) {
    let (one, other) = tokio::join!(store.secrets(), store.secrets());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one == other && store.secrets().await.unwrap() == one);
    let (token, another) = tokio::join!(store.token_secret(), store.token_secret());
    assert!(token.unwrap() == another.unwrap());
    let mut secrets: Vec<DaySecret> = Vec::new();
    for day in [today().minus(1), today(), today().next()] {
        let (one, other) = tokio::join!(store.day_secret(day), store.day_secret(day));
        let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
        assert!(one == other && store.day_secret(day).await.unwrap() == Some(one));
        assert!(!secrets.contains(&one), "each day has a secret of its own");
        secrets.push(one);
    }
    for day in [today().minus(2), today().minus(500), today().next().next()] {
        assert!(store.day_secret(day).await.unwrap().is_none(), "{day:?} is too far off");
    }
    store.keep(today().minus(90)).await.unwrap();
    assert!(store.day_secret(today().minus(1)).await.unwrap() == Some(secrets[0]), "kept for two days");
    assert!(store.secrets().await.unwrap() == one);
}

/// Expects that the secrets of the day before yesterday and of a week ago are stored.
pub(crate) async fn secrets_are_erased_after_two_days(store: &dyn VisitStore) {
    let yesterday = store.day_secret(today().minus(1)).await.unwrap();
    assert!(yesterday.is_some());
    for days in [2, 7] {
        assert!(store.day_secret(today().minus(days)).await.unwrap().is_some(), "{days} days ago");
    }
    store.keep(today().minus(90)).await.unwrap();
    for days in [2, 7] {
        assert!(store.day_secret(today().minus(days)).await.unwrap().is_none(), "{days} days ago");
    }
    assert!(store.day_secret(today().minus(1)).await.unwrap() == yesterday);
}
