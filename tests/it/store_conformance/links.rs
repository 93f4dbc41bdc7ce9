//! Inserts of links in batches, visit limits, and pages of lists.

use std::{sync::Arc, time::Duration};

use codes::LinkId;
use harness::Postgres;
use links::{DetailsEdit, DomainId, Edit, Filter, NewLink, OrderBy, OrderField, Tag, api_key::ApiKeyId};
use numbers::StoreEpoch;
use store::{
    BATCH_MAX, InsertError, Inserted, Links, Reading, Register, Source, Store, StoreError, Visible,
    postgres::PostgresStore,
};

use super::{keyspace, new_link};

/// A large batch is stored exactly as given, with the details of each link. The reported creation
/// times are those that are read back.
pub(super) async fn a_large_batch_is_stored_as_it_was_given(store: &dyn Store) {
    let mut links: Vec<_> =
        (0..BATCH_MAX as u64).rev().map(|n| new_link(n, &format!("https://x.y/{n}"))).collect();
    links[7].draft.details.get_or_insert_default().description = Some("\"ü\" \\ \n".to_owned());
    let stored = store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    let ids: Vec<_> = links.iter().map(|link| link.id).chain([LinkId::new(keyspace(1), 999_999)]).collect();
    let Reading { links: read, complete, .. } =
        store.read(&ids[1..], Source::Any { lag: Duration::from_secs(1) }).await.unwrap();
    assert!(complete);
    assert_eq!(read.len(), BATCH_MAX - 1, "what does not exist is left out");
    for (link, outcome) in links.iter().zip(&stored).skip(1) {
        let found = read.iter().find(|found| found.id == link.id).unwrap();
        assert!(found.is(&link.draft) && found.details == link.draft.details, "{found:?}");
        assert_eq!(*outcome, Inserted::Stored(found.created_at));
    }
    // Every other one, in the order of their numbers.
    let some: Vec<_> = ids.into_iter().rev().skip(1).step_by(2).collect();
    let read = store.read(&some, Source::Primary).await.unwrap().links;
    assert_eq!(read.len(), some.len());
    assert!(read.iter().all(|link| some.contains(&link.id)), "links in between are left out");
}

/// Small and large batches take different paths, so both sizes are tested.
pub(super) async fn a_taken_id_does_not_fail_its_neighbours(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    for (first, count) in [(5_000, 3), (10_000, BATCH_MAX as u64)] {
        let url = |number: u64| format!("https://x.y/{number}?ü");
        let mut links: Vec<_> =
            (first..first + count).rev().map(|number| new_link(number, &url(number))).collect();
        links[1] = new_link(3, "https://x.y/rival");
        links[2].draft.details.get_or_insert_default().description = Some("\"ü\" \\ \n".to_owned());
        for is_again in [false, true] {
            let outcomes = store.insert(&history, &links).await.unwrap();
            let taken = outcomes.iter().filter(|outcome| **outcome == Inserted::Taken).count();
            let expected = if is_again { links.len() } else { 1 };
            assert_eq!((outcomes.len(), taken, outcomes[1]), (links.len(), expected, Inserted::Taken));
        }
        let kept = store
            .read(&[links[0].id, links[1].id, links[2].id], Source::Any { lag: Duration::from_secs(1) })
            .await
            .unwrap();
        let found = |link: &NewLink| kept.links.iter().find(|found| found.id == link.id).unwrap();
        assert_eq!(found(&links[1]).long_url.as_str(), "https://x.y/3");
        for link in [&links[0], &links[2]] {
            let found = found(link);
            assert!(found.is(&link.draft), "{found:?}");
            assert_eq!(found.details, link.draft.details);
        }
    }
}

pub(super) async fn two_inserts_of_one_id_have_one_winner(store: &Arc<dyn Store>) {
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

pub(super) async fn uses_are_taken_as_far_as_the_limit_goes(store: &dyn Store) {
    let mut link = new_link(9_001, "https://x.y/limited");
    link.draft.details.get_or_insert_default().max_visits = Some(5);
    store.insert(&store.epoch().await.unwrap(), std::slice::from_ref(&link)).await.unwrap();
    let free = new_link(3, "https://x.y/3").id;
    assert_eq!(store.take_visits(&[(free, 7), (link.id, 3)]).await.unwrap(), [7, 3]);
    assert_eq!(store.take_visits(&[(link.id, 3)]).await.unwrap(), [2]);
    assert_eq!(store.take_visits(&[(link.id, 1)]).await.unwrap(), [0]);
    let details = DetailsEdit { max_visits: Some(Some(6)), ..DetailsEdit::default() };
    let raised = Edit { details, ..Edit::default() };
    assert!(store.edit(link.id, &raised, ApiKeyId(1)).await.unwrap().is_ok());
    assert_eq!(store.take_visits(&[(link.id, 9)]).await.unwrap(), [1]);
}

pub(super) async fn a_page_is_outlined_and_its_links_are_read_in_that_order(store: &dyn Store) {
    let number = 700_000;
    let mut links: Vec<NewLink> =
        (0..3).map(|n| new_link(number + n, &format!("https://outline.example/{n}"))).collect();
    links[1].draft.details.get_or_insert_default().description = Some("ü".repeat(1_000));
    store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    let filter = Filter {
        search: Some("outline.example".to_owned()),
        order: OrderBy { field: OrderField::LongUrl, descending: true },
        ..Filter::default()
    };
    let outline = store.outline(&filter, None).await.unwrap();
    let ids = outline.ids;
    assert_eq!((outline.total, &ids), (3, &links.iter().rev().map(|link| link.id).collect()));
    let counted_to_two = Filter { count_max: Some(2), ..filter.clone() };
    let counted = store.outline(&counted_to_two, None).await.unwrap();
    assert_eq!((counted.total, counted.ids.len()), (2, 3), "the count ends early, the page does not");
    let outlined = store.outlines_of(&ids).await.unwrap();
    let bytes: Vec<u64> = outlined.iter().map(|entry| entry.bytes).collect();
    assert!(bytes[1] > 2_000 && bytes[0] > 20 && bytes[0] < 200, "bytes, not characters: {bytes:?}");
    let tags = (0..50).map(|n| Tag::parse(&format!("{n}{}", "t".repeat(100))).unwrap()).collect();
    let tagged = Edit { tags: Some(tags), ..Edit::default() };
    store.edit(ids[0], &tagged, ApiKeyId(1)).await.unwrap().unwrap();
    let weighed =
        store.outlines_of(&[ids[2], LinkId::new(keyspace(1), 999_999), ids[0], ids[1]]).await.unwrap();
    let weighed: Vec<_> = weighed.iter().map(|entry| (entry.id, entry.bytes)).collect();
    assert_eq!((weighed[0], weighed[2]), ((ids[2], bytes[2]), (ids[1], bytes[1])));
    assert!(weighed[1].0 == ids[0] && weighed[1].1 > bytes[0] + 5_000, "with its tags: {weighed:?}");
    let records = store.records(&[ids[2], LinkId::new(keyspace(1), 999_999), ids[0]]).await.unwrap();
    let read: Vec<LinkId> = records.iter().map(|record| record.link.id).collect();
    assert_eq!(read, [ids[2], ids[0]]);
    assert!(store.records(&[]).await.unwrap().is_empty());
}

pub(super) async fn a_tag_is_known_by_its_whole_name_where_a_link_with_it_is_visible(store: &dyn Store) {
    let link = new_link(710_000, "https://tagged.example/");
    store.insert(&store.epoch().await.unwrap(), std::slice::from_ref(&link)).await.unwrap();
    let [tag, part, pattern] = ["50%-ÄB", "50%-Ä", "50%"].map(|name| Tag::exactly(name).unwrap());
    let tagged = async |tags: Vec<Tag>| {
        let edit = Edit { tags: Some(tags), ..Edit::default() };
        assert!(store.edit(link.id, &edit, ApiKeyId(1)).await.unwrap().is_ok());
    };
    tagged(vec![tag.clone()]).await;
    let all = Visible::default();
    let of_key = |key| Visible { created_by: Some(ApiKeyId(key)), ..all };
    let of_domain = |domain| Visible { domain: Some(domain), ..all };
    for (tag, of, is_known) in [
        (&tag, all, true),
        (&part, all, false),
        (&pattern, all, false),
        (&tag, of_key(7), true),
        (&tag, of_key(8), false),
        (&part, of_key(7), false),
        (&tag, of_domain(DomainId::DEFAULT), true),
        (&tag, of_domain(DomainId::from_stored(99)), false),
        (&tag, Visible { domain: Some(DomainId::DEFAULT), created_by: Some(ApiKeyId(7)) }, true),
        (&tag, Visible { domain: Some(DomainId::DEFAULT), created_by: Some(ApiKeyId(8)) }, false),
    ] {
        assert_eq!(store.tag_id(tag, &of).await.unwrap().is_some(), is_known, "{tag}: {of:?}");
        let names = store.tag_names(10_000, &of).await.unwrap();
        assert_eq!(names.contains(tag), is_known, "{tag}: {of:?}");
        assert!(names.is_sorted_by_key(Tag::as_str) && store.tag_names(0, &of).await.unwrap().is_empty());
    }
    // A searched text means itself.
    for (text, count) in [("0%-ä", 1), ("5_%", 0), ("5\\0%", 0), ("%-ÄB%", 0)] {
        assert_eq!(store.tags(Some(text), 10, &all).await.unwrap().len(), count, "{text}");
    }
    tagged(Vec::new()).await;
    assert!(store.tag_id(&tag, &all).await.unwrap().is_some(), "a tag outlives its links");
    assert!(store.tag_id(&tag, &of_key(7)).await.unwrap().is_none());
    store.delete_tags(std::slice::from_ref(&tag), ApiKeyId(1)).await.unwrap();
    assert!(store.tag_id(&tag, &all).await.unwrap().is_none());
}
