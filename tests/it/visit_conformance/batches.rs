//! Batches are stored once, by the process that has the spool, and only if they respect all
//! changes.

use std::collections::HashMap;

use codes::LinkId;
use links::{
    DomainId,
    webhook::{EventKind, NewWebhookEvent},
};
use store::Store;
use visit_store::{Batch, Producer, Standing, StoredText, TextRef, VisitStore, WriteError};
use visits::{Month, Outcome, Subject, TextHash, VisitId};

use super::{Visit, all_rows, batch, noon, register, store_all, store_batch, totals};

const ALL: Subject = Subject::All(None);

/// Returns how many visits the counters have, and how many rows there are.
async fn stored(store: &dyn VisitStore) -> (i64, u64) {
    (totals(store, ALL).await.0, store.count_rows(&all_rows(ALL)).await.unwrap())
}

fn visits(count: i64) -> Vec<Visit> {
    (0..count).map(|visit| Visit::of(1 + visit % 3, noon(0) + visit)).collect()
}

async fn refused(store: &dyn VisitStore, producer: &Producer, batch: &Batch, known: i64) -> WriteError {
    let before = stored(store).await;
    let error = store_batch(store, producer, batch, known).await.unwrap_err();
    assert_eq!(stored(store).await, before, "{error}");
    error
}

pub(crate) async fn a_batch_is_stored_once_however_often_it_is_sent(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    let batch = batch(&producer, &visits(10));
    assert_eq!(store.standing(&producer).await.unwrap(), Standing::At(0));
    store_batch(store, &producer, &batch, 0).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(refused(store, &producer, &batch, 0).await, WriteError::Fenced));
    }
    assert_eq!(store.standing(&producer).await.unwrap(), Standing::At(1));
    assert_eq!(stored(store).await, (10, 10));
}

pub(crate) async fn a_process_that_was_replaced_stores_nothing(store: &dyn VisitStore) {
    let old = register(store, 1).await;
    let new = register(store, 1).await;
    assert_eq!((new.slot, new.position), (old.slot, 0));
    assert!(new.incarnation > old.incarnation);
    let batch = batch(&old, &visits(2));
    assert!(matches!(refused(store, &old, &batch, 0).await, WriteError::Fenced));
    assert_eq!(store.standing(&old).await.unwrap(), Standing::Replaced);
    store_batch(store, &new, &batch, 0).await.unwrap();
    assert_eq!(stored(store).await, (2, 2));
    assert_eq!(register(store, 1).await.position, 1, "a position outlives its process");
}

pub(crate) async fn a_batch_from_another_position_is_refused(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    for (from, to) in [(1, 2), (7, 9), (u64::MAX - 1, u64::MAX)] {
        let batch = Batch { from, to, ..batch(&producer, &visits(2)) };
        assert!(matches!(refused(store, &producer, &batch, 0).await, WriteError::Fenced));
    }
    let batch = Batch { from: 0, to: 9, ..batch(&producer, &visits(2)) };
    store_batch(store, &producer, &batch, 0).await.unwrap();
    assert_eq!(store.standing(&producer).await.unwrap(), Standing::At(9));
}

pub(crate) async fn a_batch_is_refused_until_it_respects_all_deletions(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    let none = store.changes(0).await.unwrap();
    assert!(none.cuts.is_empty());
    let before = VisitId::floor(noon(0) + 1);
    store.delete(Subject::Link(LinkId::from_stored(2)), before).await.unwrap();
    let orphan = Visit { outcome: Outcome::BaseUrl, ..Visit::of(0, noon(0) + 9) };
    let batch = batch(&producer, &[visits(2), vec![orphan]].concat());
    assert!(matches!(refused(store, &producer, &batch, none.version).await, WriteError::Outdated));
    let first = store.changes(none.version).await.unwrap();
    let cuts: Vec<_> = first.cuts.iter().map(|cut| (cut.link, cut.before)).collect();
    assert_eq!(cuts, [(Some(LinkId::from_stored(2)), before)]);
    store.delete(Subject::Orphans(None, None), before).await.unwrap();
    assert!(matches!(refused(store, &producer, &batch, first.version).await, WriteError::Outdated));
    let second = store.changes(first.version).await.unwrap();
    let cuts: Vec<_> = second.cuts.iter().map(|cut| (cut.link, cut.before)).collect();
    assert_eq!(cuts, [(None, before)], "without the cuts that are known");
    store_batch(store, &producer, &batch, second.version).await.unwrap();
    assert_eq!(store.changes(0).await.unwrap().cuts.len(), 2, "a new process asks for all");
    // An earlier end does not bring back what a later one has deleted.
    store.delete(Subject::Link(LinkId::from_stored(2)), VisitId::floor(noon(9))).await.unwrap();
    let third = store.changes(second.version).await.unwrap();
    assert_eq!((third.cuts.len(), third.cuts[0].before), (1, before));
}

pub(crate) async fn a_batch_is_stored_beside_deletions_of_other_visits(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    let none = store.changes(0).await.unwrap();
    for subject in [Subject::Link(LinkId::from_stored(7)), Subject::Orphans(None, None)] {
        store.delete(subject, VisitId::MAX).await.unwrap();
    }
    store_batch(store, &producer, &batch(&producer, &visits(2)), none.version).await.unwrap();
    assert_eq!(stored(store).await, (2, 2));
}

pub(crate) async fn a_batch_is_refused_if_its_links_have_other_tags(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    let tagged = |tags: Vec<i64>| {
        let tags = HashMap::from([(LinkId::from_stored(1), tags), (LinkId::from_stored(2), Vec::new())]);
        Batch { tags, ..batch(&producer, &visits(2)) }
    };
    assert!(matches!(refused(store, &producer, &tagged(vec![40]), 0).await, WriteError::Outdated));
    store_batch(store, &producer, &tagged(Vec::new()), 0).await.unwrap();
}

pub(crate) async fn texts_come_back_byte_for_byte(store: &dyn VisitStore) {
    let producer = register(store, 1).await;
    let text = |month: i32, hash: i64, text: &[u8]| {
        let at = TextRef { month: Month::from_stored(month), hash: TextHash::from_stored(hash) };
        StoredText { at, text: text.to_vec() }
    };
    let texts = [
        text(24_000, i64::MIN, b"Mozilla/5.0"),
        text(24_000, i64::MAX, &[0, 0xff, 0xc3, 0x28, 0, b'\'']),
        text(24_001, i64::MIN, b"Mozilla/5.0"),
        text(24_001, 77, &[b'x'; 6_000]),
    ];
    let given = Batch { texts: texts.to_vec(), ..batch(&producer, &visits(1)) };
    store_batch(store, &producer, &given, 0).await.unwrap();
    // Another process may store the same texts.
    let other = register(store, 2).await;
    let given = Batch { texts: texts.to_vec(), ..batch(&other, &visits(1)) };
    store_batch(store, &other, &given, 0).await.unwrap();
    let mut wanted: Vec<TextRef> = texts.iter().map(|text| text.at).collect();
    wanted.push(text(24_002, 77, b"").at);
    let mut found = store.texts(&wanted).await.unwrap();
    found.sort_by_key(|text| text.at);
    let mut expected = texts.to_vec();
    expected.sort_by_key(|text| text.at);
    assert_eq!(found, expected);
    assert!(store.texts(&[]).await.unwrap().is_empty());
}

pub(crate) async fn events_of_a_batch_wait_for_webhooks_once(store: &dyn VisitStore, links: &dyn Store) {
    let mut producer = register(store, 1).await;
    let known = store.changes(0).await.unwrap().version;
    let event = |link| NewWebhookEvent {
        kind: EventKind::NAMES[0],
        domain: Some(DomainId::from_stored(2)),
        link: Some(LinkId::from_stored(link)),
        tags: vec![3, 4],
        data: format!("{{\"visits\":{link}}}"),
    };
    let told = Batch { events: vec![event(7), event(8)], ..batch(&producer, &[Visit::of(7, noon(0))]) };
    store_batch(store, &producer, &told, known).await.unwrap();
    refused(store, &producer, &told, known).await;
    producer.position += 1;
    store_all(store, &mut producer, &[Visit::of(7, noon(0) + 1)]).await;
    while store.pass_on_events().await.unwrap() {}
    assert!(!store.pass_on_events().await.unwrap());
    let waiting = links.waiting_webhook_events(10).await.unwrap();
    let waiting: Vec<NewWebhookEvent> = waiting
        .into_iter()
        .map(|event| NewWebhookEvent {
            kind: EventKind::NAMES.into_iter().find(|name| *name == event.kind).unwrap(),
            domain: event.domain,
            link: event.link,
            tags: event.tags,
            data: event.data,
        })
        .collect();
    assert_eq!(waiting, [event(7), event(8)]);
}
