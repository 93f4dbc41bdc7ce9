//! Edits of links that are made at a moment.

use codes::LinkId;
use jiff::Timestamp;
use links::{
    Edit, Precondition, Refusal, SCHEDULED_PER_LINK, ScheduledEdit, ScheduledEditId, ScheduledFields,
    api_key::ApiKeyId,
};
use store::{Scheduled, Store};

use super::new_link;

const BY: ApiKeyId = ApiKeyId(7);
/// In seconds since 1970; after any run of this test.
const LATER: i64 = 4_000_000_000;

fn retitle(title: &str) -> Edit {
    Edit { title: Some(Some(title.to_owned())), ..Edit::default() }
}

async fn add(store: &dyn Store, number: u64) -> LinkId {
    let link = new_link(number, "https://x.y/scheduled");
    let history = store.epoch().await.unwrap();
    store.insert(&history, std::slice::from_ref(&link)).await.unwrap();
    link.id
}

async fn try_schedule(store: &dyn Store, link: LinkId, second: i64, title: &str) -> Scheduled {
    let (at, fields) = (Timestamp::from_second(second).unwrap(), ScheduledFields::of(&retitle(title)));
    store.schedule_edit(link, at, &fields, BY).await.unwrap()
}

async fn schedule(store: &dyn Store, link: LinkId, second: i64, title: &str) -> ScheduledEditId {
    match try_schedule(store, link, second, title).await {
        Scheduled::Stored(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn make(store: &dyn Store, due: &ScheduledEdit) {
    store.make_edit(due, &due.fields.edit().unwrap()).await.unwrap().unwrap();
}

fn ids(edits: &[ScheduledEdit]) -> Vec<ScheduledEditId> {
    edits.iter().map(|edit| edit.id).collect()
}

pub(super) async fn a_due_edit_is_made_once_in_the_order_of_its_link(store: &dyn Store) {
    let (link, other) = (add(store, 8_801).await, add(store, 8_802).await);
    let late = schedule(store, link, LATER, "late").await;
    let second = schedule(store, link, 2, "second").await;
    let first = schedule(store, link, 1, "first").await;
    let elsewhere = schedule(store, other, 3, "elsewhere").await;
    let due = async || store.due_edits(None, 10).await.unwrap();
    let title = async || store.records(&[link]).await.unwrap().remove(0).link.title;
    assert_eq!(ids(&due().await), [first, elsewhere], "the earliest of each link");
    let page = store.due_edits(None, 1).await.unwrap();
    assert_eq!(ids(&page), [first]);
    let behind = store.due_edits(Some((page[0].due_at, page[0].id)), 1).await.unwrap();
    assert_eq!(ids(&behind), [elsewhere], "the next page");
    let last = (behind[0].due_at, behind[0].id);
    assert_eq!(store.due_edits(Some(last), 1).await.unwrap(), []);
    assert_eq!(ids(&store.scheduled_edits(link).await.unwrap()), [first, second, late]);

    let made = due().await.remove(0);
    make(store, &made).await;
    assert_eq!(title().await.as_deref(), Some("first"));
    store.edit(link, &retitle("by hand"), BY).await.unwrap().unwrap();
    make(store, &made).await;
    assert_eq!(title().await.as_deref(), Some("by hand"), "it was made already");

    let next = due().await.remove(0);
    assert_eq!(next.id, second);
    let precondition = Precondition { versions: Some(vec![99]), ..Precondition::default() };
    let refused = store.make_edit(&next, &Edit { precondition, ..retitle("second") }).await.unwrap();
    assert_eq!(refused, Err(Refusal::Superseded));
    assert_eq!(ids(&due().await), [second, elsewhere], "it stays");
    store.fail_edit(second, "why").await.unwrap();
    assert_eq!(ids(&due().await), [elsewhere]);
    make(store, &next).await;
    assert_eq!(title().await.as_deref(), Some("by hand"), "it has failed");
    let failed = store.scheduled_edit(second).await.unwrap();
    assert_eq!(failed, Some(ScheduledEdit { failure: Some("why".to_owned()), ..next }));
    assert!(store.cancel_edit(second).await.unwrap());
    assert!(!store.cancel_edit(second).await.unwrap());
    assert_eq!(ids(&store.scheduled_edits(link).await.unwrap()), [late]);
}

pub(super) async fn scheduled_edits_of_a_link_are_bounded_and_end_with_its_deletion(store: &dyn Store) {
    let link = add(store, 8_803).await;
    for _ in 0..SCHEDULED_PER_LINK {
        schedule(store, link, LATER, "one").await;
    }
    let more = try_schedule(store, link, LATER, "one too many").await;
    assert_eq!(more, Scheduled::TooMany(SCHEDULED_PER_LINK));
    store.delete(link, &Precondition::default(), BY).await.unwrap().unwrap();
    assert_eq!(store.scheduled_edits(link).await.unwrap(), []);
    assert_eq!(try_schedule(store, link, LATER, "late").await, Scheduled::NoLink);
}
