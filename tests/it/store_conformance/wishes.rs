//! Deduplicated creates: a repeated request returns the earlier link, by its content or by its
//! idempotency key.

use std::time::Duration;

use links::{Edit, Idempotency, Precondition, api_key::ApiKeyId};
use store::{InsertedLink, Source, Store};

use super::{full_link, new_link};

pub(super) async fn the_same_wish_is_given_the_same_link_until_nobody_has_asked_for_so_long(
    store: &dyn Store,
) {
    let history = store.epoch().await.unwrap();
    let ask = async |number: u64, lifetime: Duration| {
        let idempotency = Idempotency { digest: "a wish".to_owned(), lifetime, fingerprint: None };
        store
            .insert_full(&history, &full_link(number, "https://x.y/same"), &[], Some(&idempotency))
            .await
            .unwrap()
    };
    let (long, short) = (Duration::from_secs(3_600), Duration::from_millis(1));
    let id = |number: u64| new_link(number, "https://x.y/").id;
    assert!(matches!(ask(8_001, long).await, InsertedLink::Stored(..)));
    assert_eq!(ask(8_002, long).await, InsertedLink::Existing(id(8_001)));
    assert_eq!(store.read(&[id(8_002)], Source::Primary).await.unwrap().links, [], "nothing was stored");
    // Every request sets the expiry anew; this one sets it to the next millisecond.
    assert_eq!(ask(8_003, short).await, InsertedLink::Existing(id(8_001)));
    tokio::time::sleep(10 * short).await;
    assert!(matches!(ask(8_004, long).await, InsertedLink::Stored(..)), "it has lapsed");
    assert_eq!(ask(8_005, long).await, InsertedLink::Existing(id(8_004)));
    assert_eq!(store.delete(id(8_004), &Precondition::default(), ApiKeyId(1)).await.unwrap(), Ok(()));
    assert!(matches!(ask(8_006, long).await, InsertedLink::Stored(..)), "a deleted link is given to nobody");
    // A create whose number is taken records nothing, so the next request does not return the other
    // link.
    assert_eq!(store.delete(id(8_006), &Precondition::default(), ApiKeyId(1)).await.unwrap(), Ok(()));
    assert_eq!(ask(3, long).await, InsertedLink::Taken);
    assert!(matches!(ask(8_007, long).await, InsertedLink::Stored(..)));
}

pub(super) async fn a_call_that_is_sent_again_is_told_from_another_with_the_same_key(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let ask = async |number: u64, fingerprint: &str| {
        let lifetime = Duration::from_secs(3_600);
        let idempotency =
            Idempotency { digest: "a key".to_owned(), lifetime, fingerprint: Some(fingerprint.to_owned()) };
        store
            .insert_full(&history, &full_link(number, "https://x.y/retry"), &[], Some(&idempotency))
            .await
            .unwrap()
    };
    let id = |number: u64| new_link(number, "https://x.y/").id;
    assert!(matches!(ask(8_101, "one").await, InsertedLink::Stored(..)));
    assert_eq!(ask(8_102, "one").await, InsertedLink::Existing(id(8_101)));
    assert_eq!(ask(8_103, "other").await, InsertedLink::KeyReused);
    let titled = Edit { title: Some(Some("now".to_owned())), ..Edit::default() };
    assert!(store.edit(id(8_101), &titled, ApiKeyId(1)).await.unwrap().is_ok());
    assert_eq!(ask(8_104, "one").await, InsertedLink::Existing(id(8_101)), "whatever has become of it");
}
