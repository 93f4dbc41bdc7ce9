//! Links in batches: what is stored, what is refused, and how often it may be followed.

use std::sync::Arc;

use harness::Postgres;
use issuer::names::StoreEpoch;
use resolver::{
    api_key::ApiKeyId,
    codes::LinkId,
    links::Edit,
    store::{
        BATCH_MAX, Edited, InsertError, Inserted, LinkStore, Reading, Source, StoreError,
        postgres::PostgresStore,
    },
};

use super::{keyspace, new_link};

pub(super) async fn links_are_stored_once_and_read_back(store: &dyn LinkStore) {
    let links: Vec<_> =
        (0..BATCH_MAX as u64).rev().map(|n| new_link(n, &format!("https://x.y/{n}"))).collect();
    let stored = store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    assert!(stored.iter().all(|one| matches!(one, Inserted::Stored(_))), "{stored:?}");
    let ids: Vec<_> = links.iter().map(|link| link.id).chain([LinkId::new(keyspace(1), 999_999)]).collect();
    let Reading { links: read, complete } = store.read(&ids[1..], Source::Any).await.unwrap();
    assert!(complete);
    assert_eq!(read.len(), BATCH_MAX - 1, "what does not exist is left out");
    for (link, inserted) in links.iter().zip(&stored).skip(1) {
        let found = read.iter().find(|found| found.id == link.id).unwrap();
        assert!(found.is(&link.draft));
        assert_eq!(Inserted::Stored(found.created_at), *inserted);
    }
}

pub(super) async fn a_taken_id_does_not_fail_its_neighbours(store: &dyn LinkStore) {
    let links = [
        new_link(5_001, "https://x.y/new"),
        new_link(3, "https://x.y/rival"),
        new_link(5_000, "https://x.y/z"),
    ];
    let outcomes = store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    assert!(
        matches!(outcomes[..], [Inserted::Stored(_), Inserted::Taken, Inserted::Stored(_)]),
        "{outcomes:?}"
    );
    let kept = store.read(&[links[1].id], Source::Any).await.unwrap();
    assert_eq!(kept.links[0].long_url.as_str(), "https://x.y/3");
}

pub(super) async fn two_inserts_of_one_id_have_one_winner(store: &Arc<dyn LinkStore>) {
    let insert = |url: &'static str| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            store.insert(&store.epoch().await.unwrap(), &[new_link(6_000, url)]).await.unwrap().remove(0)
        })
    };
    let (one, other) = (insert("https://x.y/one"), insert("https://x.y/other"));
    let outcomes = [one.await.unwrap(), other.await.unwrap()];
    let winners = outcomes.iter().filter(|outcome| matches!(outcome, Inserted::Stored(_))).count();
    assert_eq!(winners, 1, "{outcomes:?}");
}

pub(super) async fn nothing_is_stored_in_another_history(postgres: &Postgres) {
    let store = PostgresStore::new(&postgres.url(), None).await.unwrap();
    let link = new_link(7_000, "https://x.y/another-history");
    let before = StoreEpoch::new("7001:1").unwrap();
    for _ in 0..2 {
        let refused = store.insert(&before, std::slice::from_ref(&link)).await;
        let refused = matches!(refused, Err(InsertError::Failed(StoreError::AnotherHistory)));
        assert!(refused, "a number of a history that has ended");
    }
    assert_eq!(store.read(&[link.id], Source::Primary).await.unwrap().links, []);
    let now = store.epoch().await.unwrap();
    let stored = store.insert(&now, std::slice::from_ref(&link)).await.unwrap();
    assert!(matches!(stored[..], [Inserted::Stored(_)]), "{stored:?}");
}

pub(super) async fn uses_are_taken_as_far_as_the_limit_goes(store: &dyn LinkStore) {
    let mut link = new_link(9_001, "https://x.y/limited");
    link.draft.details.get_or_insert_default().max_visits = Some(5);
    store.insert(&store.epoch().await.unwrap(), std::slice::from_ref(&link)).await.unwrap();
    let free = new_link(3, "https://x.y/3").id;
    assert_eq!(store.use_links(&[(free, 7), (link.id, 3)]).await.unwrap(), [7, 3]);
    assert_eq!(store.use_links(&[(link.id, 3)]).await.unwrap(), [2]);
    assert_eq!(store.use_links(&[(link.id, 1)]).await.unwrap(), [0]);
    let raised = Edit { max_visits: Some(Some(6)), ..Edit::default() };
    assert!(matches!(store.edit(link.id, &raised, ApiKeyId(1)).await.unwrap(), Edited::Done(_)));
    assert_eq!(store.use_links(&[(link.id, 9)]).await.unwrap(), [1]);
}
