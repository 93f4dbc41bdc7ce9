//! Retention and secrets.

use codes::LinkId;
use visit_store::{Batch, StoredText, TextRef, VisitStore};
use visits::{DaySecret, Subject, TextHash};

use super::{Visit, all_rows, batch, noon, register, store_batch, today, totals};

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
