//! Keyspaces: each keeps its index and its definition.

use std::sync::Arc;

use codes::Keyspace;
use links::{DomainId, Precondition, Refusal, api_key::ApiKeyId};
use store::{CustomSlugLink, InsertError, InsertedLink, Store, StoreError};

use super::{custom_link, keyspace};

pub(super) async fn keyspaces_keep_their_index_and_cannot_be_redefined(store: &dyn Store) {
    let parse = |text| Keyspace::parse(text).unwrap();
    let (web, mobile) = (parse("web=6:A-Z"), parse("mobile=6:a-z"));
    assert_eq!(
        store.adopt_keyspaces(std::slice::from_ref(&web)).await.unwrap(),
        [(keyspace(1), web.clone())]
    );
    let both = [(keyspace(1), web.clone()), (keyspace(2), mobile.clone())];
    assert_eq!(store.adopt_keyspaces(std::slice::from_ref(&mobile)).await.unwrap(), both);
    for wrong in ["web=5:A-Z", "other=6:X"] {
        let refused = store.adopt_keyspaces(&[parse(wrong)]).await;
        assert!(matches!(refused, Err(StoreError::Keyspace(_))), "{wrong}: {refused:?}");
    }
    assert_eq!(store.adopt_keyspaces(&[]).await.unwrap(), both);
}

pub(super) async fn a_keyspace_with_hand_picked_codes_is_refused(store: &dyn Store) {
    let picked = custom_link(store, DomainId::DEFAULT, "promo", "https://x.y/promo").await;
    let (slug, keyspaces) = (&picked.slug, picked.keyspaces);
    let stale = CustomSlugLink { keyspaces: keyspaces + 1, ..picked.clone() };
    let refused = store.insert_with_slug(&stale, &[], None).await;
    assert!(matches!(refused, Err(InsertError::Failed(StoreError::Keyspace(_)))), "{refused:?}");
    let InsertedLink::Stored(id, _, 0) = store.insert_with_slug(&picked, &[], None).await.unwrap() else {
        panic!("the slug is free");
    };
    assert_eq!(store.insert_with_slug(&picked, &[], None).await.unwrap(), InsertedLink::Taken);
    assert_eq!(store.find_slug(DomainId::DEFAULT, slug).await.unwrap(), Some(id));
    let five = Keyspace::parse("five=5:a-z").unwrap();
    let refused = store.adopt_keyspaces(std::slice::from_ref(&five)).await;
    let names = matches!(&refused, Err(StoreError::Keyspace(reason)) if reason.contains("promo"));
    assert!(names, "{refused:?}");
    assert_eq!(
        store
            .delete(id, &Precondition { versions: Some(vec![7]), ..Precondition::default() }, ApiKeyId(1))
            .await
            .unwrap(),
        Err(Refusal::Superseded)
    );
    assert_eq!(store.delete(id, &Precondition::default(), ApiKeyId(1)).await.unwrap(), Ok(()));
    assert_eq!(store.delete(id, &Precondition::default(), ApiKeyId(1)).await.unwrap(), Err(Refusal::Absent));
    assert_eq!(store.find_slug(DomainId::DEFAULT, slug).await.unwrap(), None);
    store.adopt_keyspaces(&[five]).await.unwrap();
    // By now the slug is also the code of a number. Only a process that knows all keyspaces can
    // tell, so the stale count is refused.
    let refused = store.restore(id, &Precondition::default(), keyspaces, ApiKeyId(1)).await;
    assert!(matches!(refused, Err(StoreError::Keyspace(_))), "{refused:?}");
}

/// Resolvers that start at the same time must agree on the index of a new keyspace.
pub(super) async fn adoptions_at_the_same_time_agree_on_the_index(store: &Arc<dyn Store>) {
    let adoptions: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(store);
            let new = Keyspace::parse("manual=6:0-9").unwrap();
            tokio::spawn(async move { store.adopt_keyspaces(&[new]).await.unwrap() })
        })
        .collect();
    for adoption in adoptions {
        let known = adoption.await.unwrap();
        assert_eq!(known.iter().map(|(index, _)| index.get()).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
