//! Links that get other names on their domain.

use codes::LinkId;
use links::{DomainId, Edit, Record, Refusal, Relocation, Slug, api_key::ApiKeyId};
use store::{CustomSlugLink, Inserted, InsertedLink, Source, Store};

use super::{custom_link, keyspace, new_link};

pub(super) async fn a_link_gets_another_name_and_its_code_stays_with_its_number(store: &dyn Store) {
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let history = store.epoch().await.unwrap();
    let [link, late, other] = [8_701, 8_702, 8_703].map(|number| new_link(number, "https://x.y/renamed"));
    let (own, free): (LinkId, LinkId) = (link.id, LinkId::new(keyspace(1), 8_702));
    store.insert(&history, &[link, other.clone()]).await.unwrap();
    let slug = |text: &str| Slug::parse(text).unwrap();
    let rename = async |from: &str, to: &str, number: Option<LinkId>| -> Result<Record, Refusal> {
        let (domain, name, former) = (DomainId::DEFAULT, slug(to), slug(from));
        let relocation = Relocation { domain, name, former, number, keyspaces };
        let edit = Edit { relocation: Some(relocation), ..Edit::default() };
        store.edit(own, &edit, ApiKeyId(7)).await.unwrap()
    };
    let entry = async |name: &str| store.find_slug(DomainId::DEFAULT, &slug(name)).await.unwrap();

    let renamed = rename("RENAMA", "rename/b", None).await.unwrap().link;
    assert!(renamed.is_renamed() && !renamed.is_named_by_id(), "{renamed:?}");
    assert_eq!(entry("rename/b").await, Some(own));
    // A code that no link has had is given up for the name.
    rename("rename/b", "RENAMC", Some(free)).await.unwrap();
    assert_eq!((entry("rename/b").await, entry("RENAMC").await), (None, Some(own)));
    assert_eq!(store.insert(&history, &[late]).await.unwrap(), [Inserted::Taken]);
    let former = store.read(&[free], Source::Primary).await.unwrap().links.remove(0);
    assert!(former.leaves_code(&slug("RENAMC")), "{former:?}");
    assert!(former.details().disabled, "restored, it does not lead past a password: {former:?}");

    assert_eq!(rename("RENAMC", "RENAMD", Some(other.id)).await, Err(Refusal::Taken));
    assert_eq!((entry("RENAMC").await, entry("RENAMD").await), (Some(own), None));
    let back = rename("RENAMC", "RENAMA", Some(own)).await.unwrap().link;
    assert_eq!((back.slug(), back.version(), entry("RENAMC").await), (None, 3, None));

    // A number that was given up never had a link that could be restored or blocked.
    let gone = store.find_deleted(DomainId::DEFAULT, "RENAMC", Some(free), None).await.unwrap();
    assert_eq!(gone, None);

    let picked = custom_link(store, DomainId::DEFAULT, "RENAMC", "https://x.y/renamed").await;
    let picked = CustomSlugLink { mintable: Some(free), ..picked };
    let stored = store.insert_with_slug(&picked, &[], None).await.unwrap();
    // What was meant for the link that had the name before is not for this one.
    assert!(matches!(stored, InsertedLink::Stored(id, _, 3) if id != free), "{stored:?}");
    assert_eq!(rename("RENAMA", "RENAMC", Some(free)).await, Err(Refusal::Taken));
}
