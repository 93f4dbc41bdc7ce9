//! Batches of links under custom slugs that are mintable codes.

use codes::LinkId;
use harness::Postgres;
use links::{DomainId, NewLink, Precondition, Slug, api_key::ApiKeyId, reservation::ReservationId};
use numbers::Span;
use store::{
    BlockEntry, CustomSlugLink, InsertedLink, Links as _, Registration, Source, Store,
    postgres::PostgresStore,
};

use super::{blocks::block, custom_link, keyspace, new_link};

pub(super) fn with_slug(slug: &str, id: LinkId, url: &str) -> NewLink {
    let mut draft = new_link(1, url).draft;
    draft.details.get_or_insert_default().slug = Some(Slug::parse(slug).unwrap());
    NewLink { id, draft }
}

pub(super) async fn slugs_are_stored_where_nothing_is_in_the_way(store: &dyn Store) {
    let id = |number| LinkId::new(keyspace(1), number);
    let history = store.epoch().await.unwrap();
    let minted = new_link(8_301, "https://x.y/minted");
    store.insert(&history, std::slice::from_ref(&minted)).await.unwrap();
    let former = custom_link(store, DomainId::DEFAULT, "SLUGB1", "https://x.y/former").await;
    let former = CustomSlugLink { mintable: Some(id(8_302)), ..former };
    let stored = store.insert_with_slug(&former, &[], None).await.unwrap();
    assert!(matches!(stored, InsertedLink::Stored(at, _, 0) if at == id(8_302)), "{stored:?}");
    store.delete(id(8_302), &Precondition::default(), ApiKeyId(7)).await.unwrap().unwrap();
    let reservation = ReservationId::draw().unwrap();
    store.add_reservation(&reservation, keyspace(2), ApiKeyId(7)).await.unwrap();
    let reserved = BlockEntry { holder: reservation.holder(), ..block(60_000, 10, 80, "s") };
    assert_eq!(store.register_block(&reserved).await.unwrap(), Registration::Registered);

    let links = [
        with_slug("SLUGB4", id(8_304), "https://x.y/free"),
        with_slug("SLUGB2", minted.id, "https://x.y/late"),
        with_slug("SLUGB3", id(8_303), "https://x.y/first of two"),
        with_slug("SLUGB3", id(8_303), "https://x.y/second of two"),
        with_slug("SLUGB5", LinkId::new(keyspace(2), 60_009), "https://x.y/reserved"),
        with_slug("SLUGB6", LinkId::new(keyspace(2), 60_010), "https://x.y/beside the reservation"),
        // At another number, as after a change of keyspaces: its versions would not continue.
        with_slug("SLUGB1", id(8_305), "https://x.y/again"),
    ];
    let outcomes = store.insert_slugs(&links).await.unwrap();
    let ids: Vec<_> = links.iter().map(|link| link.id).collect();
    let read = store.read(&ids, Source::Primary).await.unwrap().links;
    if store.open_bucket().is_some() {
        // Nodes take them one by one.
        assert_eq!(outcomes, [None; 7]);
        assert_eq!(read.len(), 1, "that which was minted: {read:?}");
        return;
    }
    let is_stored: Vec<_> = outcomes.iter().map(Option::is_some).collect();
    assert_eq!(is_stored, [true, false, true, false, false, true, false]);
    let found = |id: LinkId| read.iter().find(|found| found.id == id);
    for (link, outcome) in links.iter().zip(&outcomes) {
        if let Some(at) = outcome {
            let found = found(link.id).unwrap();
            assert!(found.is(&link.draft), "{found:?}");
            assert_eq!((found.created_at, found.slug()), (*at, link.draft.details().slug.as_ref()));
        }
    }
    assert!(found(minted.id).unwrap().is(&minted.draft), "what is there stays");
    assert!(found(links[4].id).is_none() && found(links[6].id).is_none(), "{read:?}");
    assert_eq!(store.insert_slugs(&links).await.unwrap(), [None; 7], "each is stored once");
    let gaps = store.unused(keyspace(1), Span::new(8_303, 3).unwrap()).await.unwrap();
    assert_eq!(gaps, [Span::new(8_305, 1).unwrap()], "their numbers are used");
}

pub(super) async fn behind_a_lock_a_batch_stores_nothing_and_says_so(postgres: &Postgres) {
    if !postgres.nodes().is_empty() {
        return; // Nodes take no batches.
    }
    let store = PostgresStore::new(&postgres.url(), None).await.unwrap();
    let id = |number| LinkId::new(keyspace(1), number);
    let links = [
        with_slug("SLUGB7", id(8_307), "https://x.y/free"),
        with_slug("SLUGB8", id(8_308), "https://x.y/locked"),
    ];
    let mut client = postgres.client().await.unwrap();
    let late = client.transaction().await.unwrap();
    let row = "INSERT INTO link (id, long_url, crawlable, forward_query, created_by) VALUES ($1, '', false, true, 1)";
    late.execute(row, &[&links[1].id.get()]).await.unwrap();
    assert_eq!(store.insert_slugs(&links).await.unwrap(), [None, None]);
    late.rollback().await.unwrap();
    let stored = store.insert_slugs(&links).await.unwrap();
    assert!(stored.iter().all(Option::is_some), "{stored:?}");
}
