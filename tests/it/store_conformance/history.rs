//! The store's mark and its histories: a store whose mark is below a known one begins a new
//! history.

use links::{Authority, DomainId, api_key::ApiKeyId};
use numbers::Mark;
use store::{Advanced, BlockEntry, Comparison, InsertedLink, Registration, Store};

use super::{blocks::block, custom_link, keyspace};

async fn raise(store: &dyn Store, at_least: Mark) -> Advanced {
    store.advance(at_least, Comparison { raises: true, since: None }).await.unwrap()
}

pub(super) async fn a_store_below_a_known_mark_begins_a_history(store: &dyn Store) {
    let Advanced::To(first) = raise(store, Mark(0)).await else { panic!("nothing is known") };
    let second = first.next();
    assert_eq!(raise(store, first).await, Advanced::To(second));
    assert_eq!(store.mark().await.unwrap(), second);
    assert_eq!(store.advance(second, Comparison::default()).await.unwrap(), Advanced::To(second));

    let before = store.epoch().await.unwrap();
    // A known mark that is one higher is enough.
    let lost = second.next();
    assert_eq!(store.advance(lost, Comparison::default()).await.unwrap(), Advanced::Began(lost.next()));
    let after = store.epoch().await.unwrap();
    assert_ne!(before, after);
    // The name of the history ends in a number of its own and not in the mark, because another
    // history may begin at the same mark.
    assert!(!after.as_str().ends_with(&format!(":{}", lost.next())), "{after}");
    assert_eq!(store.advance(lost, Comparison::default()).await.unwrap(), Advanced::To(lost.next()));
    assert_eq!(store.epoch().await.unwrap(), after);
}

pub(super) async fn an_operator_leaves_numbers_out(store: &dyn Store) {
    let index = keyspace(1);
    let end = store.registered_end(index).await.unwrap();
    let before = store.epoch().await.unwrap();
    store.begin_history(Some(1_000)).await.unwrap();
    assert_ne!(store.epoch().await.unwrap(), before);
    assert_eq!(store.registered_end(index).await.unwrap(), end + 1_000);
    let entry = BlockEntry { keyspace: index, ..block(end + 999, 2, 1, "a") };
    assert_eq!(store.register_block(&entry).await.unwrap(), Registration::Overlaps);
    assert_eq!(store.take_over_block(&entry, u64::MAX >> 1).await.unwrap(), Registration::Overlaps);
}

/// Whatever outlives the rows that were lost, such as visits in a spool, names them by their ids.
pub(super) async fn ids_of_lost_links_and_domains_are_not_given_again(store: &dyn Store) {
    let next = async |number: u64| {
        let authority = Authority::parse(&format!("history-{number}.example")).unwrap();
        let domain = store.add_domain(&authority, 1_000, ApiKeyId(1)).await.unwrap().unwrap();
        let slug = format!("history-{number}");
        let named = custom_link(store, DomainId::DEFAULT, &slug, "https://x.y/").await;
        let stored = store.insert_with_slug(&named, &[], None).await.unwrap();
        let InsertedLink::Stored(link, ..) = stored else { panic!("{stored:?}") };
        (domain.get(), link.get())
    };
    let (domain, link) = next(1).await;
    store.begin_history(Some(0)).await.unwrap();
    let (next_domain, next_link) = next(2).await;
    assert!(next_domain > domain + 1_000, "{next_domain} after {domain}");
    assert!(next_link.abs_diff(link) > 1 << 31, "{next_link} after {link}");
    assert_eq!(next(3).await, (next_domain + 1, next_link + 1));
}
