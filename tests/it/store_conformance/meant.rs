//! A change applies only to the link that its caller found, even if another link has its code
//! since.

use codes::LinkId;
use links::{DetailsEdit, DomainId, Edit, Link, Precondition, Refusal, api_key::ApiKeyId};
use store::{CustomSlugLink, InsertedLink, Source, Store};

use super::{custom_link, keyspace};

async fn version(store: &dyn Store, id: LinkId) -> u64 {
    store.read(&[id], Source::Primary).await.unwrap().links[0].version()
}

pub(super) async fn a_change_leaves_the_next_link_of_the_same_code_alone(store: &dyn Store) {
    let by = ApiKeyId(1);
    let number = LinkId::new(keyspace(1), 8_201);
    let picked = custom_link(store, DomainId::DEFAULT, "MEANTX", "https://x.y/again").await;
    let (keyspaces, picked) = (picked.keyspaces, CustomSlugLink { mintable: Some(number), ..picked });
    let pick = async || -> Link {
        let InsertedLink::Stored(id, _, version) = store.insert_with_slug(&picked, &[], None).await.unwrap()
        else {
            panic!("the slug is free");
        };
        let link = store.read(&[id], Source::Primary).await.unwrap().links.remove(0);
        assert_eq!(link.version(), version);
        link
    };
    let (link, any) = (pick().await, Precondition::default());
    assert_eq!(link.id, number, "the number of the code has no other link");
    let first = Precondition::of(&link);
    assert_eq!(store.delete(link.id, &first, by).await.unwrap(), Ok(()));
    let next = pick().await;
    assert!(next.id != link.id && next.id.unpack().is_none(), "what belongs to an id stays with its link");
    assert_eq!(next.version(), 2, "a version of the one is none of the other");
    assert_eq!(store.insert_with_slug(&picked, &[], None).await.unwrap(), InsertedLink::Taken);
    let edit = |precondition: &Precondition| Edit {
        details: DetailsEdit { disabled: Some(true), ..DetailsEdit::default() },
        precondition: precondition.clone(),
        ..Edit::default()
    };
    assert_eq!(store.edit(link.id, &edit(&first), by).await.unwrap(), Err(Refusal::Absent));
    assert_eq!(store.restore(link.id, &any, keyspaces, by).await.unwrap(), Err(Refusal::Taken));

    assert_eq!(store.delete(next.id, &Precondition::of(&next), by).await.unwrap(), Ok(()));
    let gone = version(store, next.id).await;
    assert!(store.restore(link.id, &any, keyspaces, by).await.unwrap().is_ok());
    let back = version(store, link.id).await;
    assert!(back > gone, "{back}: what was meant for version {gone} of the next link does not apply");
    assert_eq!(store.restore(next.id, &any, keyspaces, by).await.unwrap(), Err(Refusal::Taken));
    assert_eq!(store.delete(link.id, &any, by).await.unwrap(), Ok(()));
    assert!(store.restore(next.id, &any, keyspaces, by).await.unwrap().is_ok());
    assert_eq!(store.delete(next.id, &any, by).await.unwrap(), Ok(()));
    let third = pick().await;
    assert!(third.id != next.id && third.version() > 4, "{third:?}");
    assert_eq!(store.delete(third.id, &any, by).await.unwrap(), Ok(()));

    // A blocked link keeps the name from others, whether or not its id is the number of the code.
    let block = |reason: Option<&str>| Edit { block: Some(reason.map(str::to_owned)), ..Edit::default() };
    for id in [link.id, third.id] {
        let blocked = store.edit(id, &block(Some("phishing")), by).await.unwrap();
        assert!(blocked.is_ok(), "{blocked:?}");
        assert_eq!(store.insert_with_slug(&picked, &[], None).await.unwrap(), InsertedLink::Taken);
        assert_eq!(store.restore(next.id, &any, keyspaces, by).await.unwrap(), Err(Refusal::Taken));
        assert!(store.edit(id, &block(None), by).await.unwrap().is_ok());
    }
    pick().await;
}
