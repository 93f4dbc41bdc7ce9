//! Blocks on deleted links: the slug is held while the block lasts, and no other link loses its
//! slug.

use codes::LinkId;
use jiff::Timestamp;
use links::{Authority, Block, DomainId, Edit, Precondition, Refusal, Slug, api_key::ApiKeyId};
use store::{Imported, InsertedLink, Store};

use super::{custom_link, import_batch, old_item};

const BY: ApiKeyId = ApiKeyId(1);

async fn pick(store: &dyn Store, domain: DomainId, slug: &Slug) -> Option<LinkId> {
    let link = custom_link(store, domain, slug.as_str(), "https://x.y/held").await;
    match store.insert_with_slug(&link, &[], None).await.unwrap() {
        InsertedLink::Stored(id, ..) => Some(id),
        _ => None,
    }
}

async fn block(store: &dyn Store, id: LinkId, reason: Option<&str>) {
    let edit = Edit { block: Some(reason.map(str::to_owned)), ..Edit::default() };
    assert!(store.edit(id, &edit, BY).await.unwrap().is_ok());
}

pub(super) async fn a_block_holds_the_slug_of_a_deleted_link(store: &dyn Store) {
    let authority = Authority::parse("held.example").unwrap();
    let other = store.add_domain(&authority, u32::MAX, ApiKeyId(1)).await.unwrap().unwrap();
    let slug = Slug::parse("held/slug").unwrap();
    for domain in [DomainId::DEFAULT, other] {
        let holder = async || store.find_slug(domain, &slug).await.unwrap();
        let id = pick(store, domain, &slug).await.expect("the slug is free");
        assert_eq!(store.delete(id, &Precondition::default(), BY).await.unwrap(), Ok(()));
        assert_eq!(holder().await, None, "a deleted link gives its slug up");
        for _ in 0..2 {
            block(store, id, Some("phishing")).await;
            assert_eq!((holder().await, pick(store, domain, &slug).await), (Some(id), None));
        }
        assert!(
            store.restore(id, &Precondition::default(), 0, BY).await.unwrap().is_ok(),
            "it has its own slug"
        );
        assert_eq!(store.delete(id, &Precondition::default(), BY).await.unwrap(), Err(Refusal::Blocked));
        block(store, id, None).await;
        assert_eq!(holder().await, Some(id), "a link that lives keeps its slug");
        assert_eq!(store.delete(id, &Precondition::default(), BY).await.unwrap(), Ok(()));
        block(store, id, Some("phishing")).await;
        block(store, id, None).await;
        assert_eq!(holder().await, None);

        let next = pick(store, domain, &slug).await.expect("the slug is free again");
        for reason in [Some("too late"), None] {
            block(store, id, reason).await;
            assert_eq!(holder().await, Some(next), "another link has it by now");
            assert_eq!(
                store.restore(id, &Precondition::default(), 0, BY).await.unwrap(),
                Err(Refusal::Taken)
            );
        }
    }
}

pub(super) async fn an_imported_takedown_holds_its_slug(store: &dyn Store) {
    let item = |slug: &str, is_blocked: bool| {
        let mut item = old_item(slug, "https://x.y/imported");
        let details = item.draft.details.get_or_insert_default();
        let at = Timestamp::UNIX_EPOCH;
        details.deleted_at = Some(at);
        details.blocked = is_blocked.then(|| Block { reason: "phishing".to_owned(), by: BY, at });
        item
    };
    let items = vec![item("held/import", true), item("free/import", false)];
    let done = store.import(&import_batch(store, "takedowns", items).await).await.unwrap();
    let [Imported::Stored(held), Imported::Stored(_)] = done[..] else { panic!("{done:?}") };
    let holder = async |name| store.find_slug(DomainId::DEFAULT, &Slug::parse(name).unwrap()).await.unwrap();
    assert_eq!((holder("held/import").await, holder("free/import").await), (Some(held), None));
}
