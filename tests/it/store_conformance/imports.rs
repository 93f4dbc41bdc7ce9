//! Imported links that had no code get the first free one of their candidates.

use links::{
    ExternalId, Filter, ImportCode, ImportItem, OrderBy, OrderField, PickedCode, Precondition, Slug, Tag,
    api_key::ApiKeyId,
};
use store::{
    ImportBatch, ImportPosition, Imported, InsertedLink, LinkVisits, Source, Store, StoreError, Visible,
};

use super::{full_link, import, import_batch, import_item};

fn item(candidates: &[&str], is_all: bool, url: &str) -> ImportItem {
    let picked = |text: &&str| PickedCode { slug: Slug::parse(text).unwrap(), mintable: None };
    let candidates = candidates.iter().map(picked).collect();
    import_item(ImportCode::FirstFree { candidates, is_all }, url)
}

pub(super) async fn a_batch_is_stored_once_each_item_has_a_free_candidate(store: &dyn Store) {
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let batch = |end: u64, items: Vec<ImportItem>| {
        let name = "of candidates".to_owned();
        ImportBatch { name, end, items, keyspaces }
    };
    let first = item(&["first/of", "second/of"], false, "https://x.y/1");
    let second = item(&["first/of", "second/of"], false, "https://x.y/2");
    let third = item(&["first/of", "second/of"], false, "https://x.y/3");
    let refused = store.import(&batch(3, vec![first.clone(), second.clone(), third])).await;
    assert!(matches!(refused, Err(StoreError::NoFreeCode { item: 2 })), "{refused:?}");
    let position = async || store.import_position("of candidates").await.unwrap();
    assert_eq!(position().await, ImportPosition::default());
    let slug = async |text: &str| {
        store.find_slug(links::DomainId::DEFAULT, &Slug::parse(text).unwrap()).await.unwrap()
    };
    assert_eq!((slug("first/of").await, slug("second/of").await), (None, None), "nothing is stored");

    let third = item(&["first/of", "second/of", "third/of"], false, "https://x.y/3");
    let fourth = item(&["first/of", "second/of"], true, "https://x.y/4");
    let items = vec![first, second, third, fourth];
    let done = store.import(&batch(4, items.clone())).await.unwrap();
    let [Imported::Stored(a), Imported::Stored(b), Imported::Stored(c), Imported::Taken] = done[..] else {
        panic!("{done:?}")
    };
    assert_eq!((slug("first/of").await, slug("third/of").await), (Some(a), Some(c)));
    assert_eq!(position().await, ImportPosition { place: 4, refused: 1 });
    let read = store.read(&[b], Source::Primary).await.unwrap();
    assert_eq!(read.links[0].slug(), Some(&Slug::parse("second/of").unwrap()));
    assert_eq!(store.import(&batch(4, items)).await.unwrap(), [Imported::AlreadyThere; 4]);
    store.import(&batch(9, vec![item(&["first/of"], true, "https://x.y/1")])).await.unwrap();
    let expected = ImportPosition { place: 9, refused: 6 };
    assert_eq!(position().await, expected, "four were refused before the batch was sent, and its own item");
}

pub(super) async fn imported_visits_are_part_of_a_link_s_total_until_they_are_deleted(store: &dyn Store) {
    let visited = |slug: &str, visits: u64| {
        let url = "https://x.y/visited";
        ImportItem { visits, tags: vec![Tag::from_stored("visited")], ..item(&[slug], true, url) }
    };
    let items = vec![visited("visited/1", 40), visited("visited/2", 0), visited("visited/3", 2)];
    let batch = import_batch(store, "with visits", items).await;
    let done = store.import(&batch).await.unwrap();
    let [Imported::Stored(first), Imported::Stored(second), Imported::Stored(third)] = done[..] else {
        panic!("{done:?}")
    };
    let again = store.import(&batch).await.unwrap();
    assert_eq!(again, [Imported::AlreadyThere; 3], "and their visits are not added again");
    let counted = LinkVisits { link: first, total: 5, bots: 1, last: 1_000_000, imported: 0 };
    store.add_visits(1, &[counted]).await.unwrap();
    let totals = async || {
        let mut found = store.visit_totals(&[first, second, third]).await.unwrap();
        found.sort_by_key(|(link, _)| *link);
        found.iter().map(|(_, totals)| (totals.total, totals.bots)).collect::<Vec<_>>()
    };
    let of_tag = async || {
        let found =
            store.tag_visit_totals(&[Tag::from_stored("visited")], &Visible::default()).await.unwrap();
        found[0].1.total
    };
    let exported = async || {
        let rows = store.export(Some(first), 10).await.unwrap();
        rows.iter().find(|row| row.record.link.id == third).unwrap().visits
    };
    let most_visited = async || {
        let order = OrderBy { field: OrderField::Visits, descending: true };
        let tags = vec![Tag::from_stored("visited")];
        let filter = Filter { order, tags, ..Filter::default() };
        store.outline(&filter, None).await.unwrap().ids
    };
    assert_eq!((totals().await, of_tag().await, exported().await), (vec![(45, 1), (0, 0), (2, 0)], 47, 2));
    assert_eq!(most_visited().await, [first, third, second]);
    assert_eq!(store.take_imported_visits(first).await.unwrap(), 40);
    assert_eq!(store.take_imported_visits(first).await.unwrap(), 0);
    assert_eq!((totals().await, of_tag().await), (vec![(5, 1), (0, 0), (2, 0)], 7), "counted visits stay");
    assert_eq!(most_visited().await, [first, third, second]);
    let single = LinkVisits { link: third, total: 1, bots: 1, last: 1_000_000, imported: 1 };
    store.add_visits(2, &[single]).await.unwrap();
    assert_eq!(totals().await, [(5, 1), (0, 0), (2, 1)], "it takes the place of one that was counted");
    let more = LinkVisits { total: 3, bots: 0, imported: 3, ..single };
    let without_counts = LinkVisits { link: second, ..more };
    let mut both = [more, without_counts];
    both.sort_by_key(|visits| visits.link);
    store.add_visits(3, &both).await.unwrap();
    assert_eq!(totals().await, [(5, 1), (3, 0), (4, 1)]);
}

pub(super) async fn an_imported_link_has_its_external_id_unless_another_live_one_has(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let (by, id) = (ApiKeyId(7), ExternalId::parse("imported").unwrap());
    let import_one = async |slug: &str| {
        let mut item = item(&[slug], true, "https://x.y/external");
        item.draft.details.get_or_insert_default().external_id = Some(id.clone());
        import(store, item).await
    };
    let must_have = async |link| {
        let (new, entry) = (full_link(8_406, "https://x.y/external"), id.entry(by));
        let inserted = store.insert_full(&history, &new, &[], Some(&entry)).await.unwrap();
        assert_eq!(inserted, InsertedLink::Existing(link));
    };
    let first = import_one("external/1").await;
    must_have(first).await;
    store.delete(first, &Precondition::default(), by).await.unwrap().unwrap();
    let second = import_one("external/2").await;
    must_have(second).await;
    import_one("external/3").await;
    must_have(second).await;
}
