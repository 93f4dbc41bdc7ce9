//! Imported links that had no code get the first free one of their candidates.

use links::{ImportCode, ImportItem, PickedCode, Slug};
use store::{ImportBatch, Imported, Source, Store, StoreError};

use super::new_link;

fn item(candidates: &[&str], is_all: bool, url: &str) -> ImportItem {
    let picked = |text: &&str| PickedCode { slug: Slug::parse(text).unwrap(), mintable: None };
    let candidates = candidates.iter().map(picked).collect();
    ImportItem {
        code: ImportCode::FirstFree { candidates, is_all },
        draft: new_link(1, url).draft,
        tags: Vec::new(),
        created_at: None,
        minted: false,
        uses: 0,
    }
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
    assert_eq!(store.import_position("of candidates").await.unwrap(), 0);
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
    let read = store.read(&[b], Source::Primary).await.unwrap();
    assert_eq!(read.links[0].slug(), Some(&Slug::parse("second/of").unwrap()));
    assert_eq!(store.import(&batch(4, items)).await.unwrap(), [Imported::AlreadyThere; 4]);
}
