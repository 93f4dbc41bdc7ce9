//! Removal of unvisited links and of old entries of the audit log by one holder at a time, in
//! steps. Links that arrived or were visited recently stay.

use std::{collections::BTreeSet, time::Duration};

use codes::LinkId;
use jiff::Timestamp;
use links::{
    Edit, Link, Precondition, Refusal,
    api_key::ApiKeyId,
    audit::{EntryFilter, NewEntry},
};
use store::{Imported, Source, Store, Sweep};
use tokio::time::{Instant, sleep};

use super::{import_batch, new_link, old_item};

/// The `held_for` of a removal step, longer than any step takes here.
const HELD_FOR: Duration = Duration::from_secs(3_600);
/// A pause that separates two stored times: both databases have a resolution of a millisecond.
const A_MOMENT: Duration = Duration::from_millis(20);
/// A pause that is longer than a busy machine takes to begin a removal step. What is removed is
/// counted back from that beginning, so that a slow one reaches further than was meant.
const SLOW_START: Duration = Duration::from_secs(5);

pub(super) async fn what_came_or_was_visited_lately_stays_and_one_holder_removes_the_rest(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let old: Vec<_> = (20_000..20_900).map(|n| new_link(n, &format!("https://x.y/{n}"))).collect();
    store.insert(&history, &old).await.unwrap();
    sleep(A_MOMENT).await;
    let before = Instant::now();
    sleep(SLOW_START).await;
    let new = new_link(20_900, "https://x.y/new");
    store.insert(&history, std::slice::from_ref(&new)).await.unwrap();
    let (visited, restored) = (old[100].id, old[200].id);
    // An old visit is no reason to remove a link that was restored today.
    store.note_visits(&[(restored, Timestamp::UNIX_EPOCH)]).await.unwrap();
    store.note_visits(&[(visited, Timestamp::now())]).await.unwrap();
    assert_eq!(store.delete(restored, &Precondition::default(), ApiKeyId(1)).await.unwrap(), Ok(()));
    assert!(store.restore(restored, &Precondition::default(), 0, ApiKeyId(1)).await.unwrap().is_ok());
    let blocked = old[300].id;
    let block = Edit { block: Some(Some("phishing".to_owned())), ..Edit::default() };
    let Ok(record) = store.edit(blocked, &block, ApiKeyId(1)).await.unwrap() else { panic!() };
    let read = store.read(&[blocked], Source::Primary).await.unwrap().links.remove(0);
    let block_of = |link: Link| link.details.unwrap().blocked.unwrap();
    assert_eq!(block_of(read), block_of(record.link), "reason, key and time are read as written");
    assert_eq!(
        store.delete(blocked, &Precondition::default(), ApiKeyId(1)).await.unwrap(),
        Err(Refusal::Blocked)
    );
    let imported = import(store).await;

    // Removes links that were neither created nor visited since `before`, however long the test
    // takes.
    let sweep_after = async |holder: &str, held_for: Duration| {
        let (kept_for, every) = (before.elapsed(), Duration::from_secs(3_600));
        let sweep = Sweep { holder: holder.to_owned(), held_for, kept_for, every };
        store.sweep(&sweep).await.unwrap()
    };
    let sweep = async |holder: &str| sweep_after(holder, HELD_FOR).await;
    let mut removed = BTreeSet::new();
    let Some(first) = sweep("one").await else { panic!("there are some") };
    removed.extend(first);
    assert_eq!(sweep("other").await, None, "while the first one is there");
    let Some(more) = sweep_after("one", A_MOMENT).await else { panic!("there are others") };
    assert!(more.iter().all(|id| removed.insert(*id)), "each once");
    sleep(2 * A_MOMENT).await;
    // The first holder's `held_for` has passed. Another continues from its position and examines
    // nothing twice.
    while let Some(some) = sweep_after("other", A_MOMENT).await {
        assert!(some.iter().all(|id| removed.insert(*id)), "each once");
    }
    assert_eq!(sweep("other").await, None, "it rests");
    for link in &old {
        let stays = [visited, restored, blocked].contains(&link.id);
        assert_eq!(removed.contains(&link.id), !stays, "{link:?}");
    }
    assert!(!removed.contains(&new.id) && !removed.contains(&imported));
    let read = store.read(&[old[0].id, visited, imported], Source::Primary).await.unwrap();
    let gone: Vec<LinkId> = read.links.iter().filter(|link| link.is_deleted()).map(|link| link.id).collect();
    assert_eq!(gone, [old[0].id]);
}

/// Imports a link that is old in its former system. When it was last visited there is unknown.
async fn import(store: &dyn Store) -> LinkId {
    let items = ["https://x.y/elsewhere", "https://x.y/taken"].map(|url| old_item("from/elsewhere", url));
    let batch = import_batch(store, "old", items.to_vec()).await;
    let done = store.import(&batch).await.unwrap();
    let again = store.import(&batch).await.unwrap();
    assert_eq!(again, [Imported::AlreadyThere, Imported::Taken], "a call whose answer was lost");
    match done[..] {
        [Imported::Stored(id), Imported::Taken] => id,
        _ => panic!("{done:?}"),
    }
}

pub(super) async fn old_audit_entries_are_removed_by_one_holder_at_a_time(store: &dyn Store) {
    let remove = async |holder: &str, kept_for: Duration| {
        let sweep = Sweep { holder: holder.to_owned(), held_for: HELD_FOR, kept_for, every: Duration::ZERO };
        store.remove_old_audit_entries(&sweep).await.unwrap()
    };
    let add = async || {
        store.add_audit_entry(ApiKeyId(1), &NewEntry::of_orphan_visits(7)).await.unwrap();
        sleep(A_MOMENT).await;
    };
    let count = async || store.audit_entries(&EntryFilter::default(), 10).await.unwrap().len();
    add().await;
    assert!(!remove("one", Duration::from_secs(86_400)).await, "nothing is that old");
    assert_ne!(count().await, 0);
    sleep(A_MOMENT).await;
    assert!(remove("one", Duration::ZERO).await);
    add().await;
    assert!(!remove("other", Duration::ZERO).await, "while the first one is there");
    assert_ne!(count().await, 0);
    while remove("one", Duration::ZERO).await {}
    assert_eq!(count().await, 0);
    add().await;
    assert!(remove("other", Duration::ZERO).await, "the first one rests");
    assert_eq!(count().await, 0);
}
