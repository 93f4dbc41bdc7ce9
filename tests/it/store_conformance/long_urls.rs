//! Lookup of links by long URL: new links are found at once, older ones by an index that one holder
//! at a time maintains.

use std::time::Duration;

use codes::LinkId;
use links::{Edit, LongUrl, Precondition, api_key::ApiKeyId};
use store::{Indexed, LinkIndex, Store, Visible};
use tokio::time::{Instant, sleep};

use super::{import, new_link, old_item};

/// The `held_for` of an index step, longer than any step takes here.
const HELD_FOR: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(90);

pub(super) async fn links_are_found_by_where_they_lead(store: &dyn Store) {
    let history = store.epoch().await.unwrap();
    let many: Vec<_> = (30_000..31_500).map(|n| new_link(n, &format!("https://i.x/ä/{}", n % 500))).collect();
    for links in many.chunks(1_000) {
        store.insert(&history, links).await.unwrap();
    }
    let ids = async |url: &str, of: Visible| {
        let found = store.links_of_url(&LongUrl::from_stored(url), &of, 10).await.unwrap();
        found.iter().map(|record| record.link.id).collect::<Vec<LinkId>>()
    };
    let (all, of_nobody) =
        (Visible::default(), Visible { created_by: Some(ApiKeyId(99)), ..Visible::default() });
    let expected = [7, 507, 1_007].map(|n| many[n].id);
    assert_eq!(ids("https://i.x/ä/7", all).await, expected, "before they are in the index");
    assert!(ids("https://i.x/ä/7", of_nobody).await.is_empty());

    let since = store.unindexed_since(LinkIndex::LongUrls).await.unwrap().unwrap();
    let step = async |holder: &str| store.index_links(LinkIndex::LongUrls, holder, HELD_FOR).await.unwrap();
    let (mut noted, begun) = (0, Instant::now());
    while noted < many.len() {
        assert!(begun.elapsed() < SOON, "expected {} links in the index, found {noted}", many.len());
        match step("one").await {
            Indexed::Some(count) => {
                noted += count;
                let other = step("other").await;
                assert!(
                    matches!(other, Indexed::NotOurs | Indexed::Done),
                    "while the first one is there: {other:?}"
                );
            }
            Indexed::Done => sleep(Duration::from_millis(50)).await,
            Indexed::NotOurs => panic!("nobody else has begun"),
        }
    }
    assert_eq!(ids("https://i.x/ä/7", all).await, expected, "in the index, and no more than once");
    let left = store.unindexed_since(LinkIndex::LongUrls).await.unwrap();
    assert!(left.is_none_or(|left| left > since), "{left:?}, {since} before");

    let old = import(store, old_item("of-long-urls", "https://i.x/old")).await;
    assert_eq!(ids("https://i.x/old", all).await, [old], "though it was created long ago");
    let edit = Edit { long_url: Some(LongUrl::from_stored("https://i.x/ä/7")), ..Edit::default() };
    store.edit(old, &edit, ApiKeyId(1)).await.unwrap().unwrap();
    assert!(ids("https://i.x/old", all).await.is_empty());
    assert!(ids("https://i.x/ä/7", all).await.contains(&old), "it leads there now");
    store.delete(many[7].id, &Precondition::default(), ApiKeyId(1)).await.unwrap().unwrap();
    assert!(!ids("https://i.x/ä/7", all).await.contains(&many[7].id), "it is deleted");
}
