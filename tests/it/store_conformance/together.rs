//! Batches of links with custom slugs, tags and domains.

use std::sync::Arc;

use codes::LinkId;
use links::{Authority, DomainId, Precondition, Slug, Tag, api_key::ApiKeyId};
use store::{BatchLink, CustomSlugLink, FullLink, InsertedLink, Source, Store, Visible};

use super::{full_link, keyspace};

fn tags(names: &[&str]) -> Vec<Tag> {
    names.iter().map(|name| Tag::parse(name).unwrap()).collect()
}

fn minted(number: u64, domain: DomainId, names: &[&str]) -> BatchLink {
    let mut link: FullLink = full_link(number, &format!("https://x.y/together/{number}"));
    if !domain.is_default() {
        link.new.draft.details.get_or_insert_default().domain = Some(domain);
    }
    BatchLink::Minted(link, tags(names))
}

/// Makes links under custom slugs.
struct Custom {
    keyspaces: usize,
}

impl Custom {
    fn link(&self, slug: &str, domain: DomainId, mintable: Option<LinkId>) -> CustomSlugLink {
        let slug = Slug::parse(slug).unwrap();
        let mut draft = full_link(1, "https://x.y/together").new.draft;
        let details = draft.details.get_or_insert_default();
        details.slug = Some(slug.clone());
        details.domain = Some(domain).filter(|domain| !domain.is_default());
        CustomSlugLink { slug, mintable, keyspaces: self.keyspaces, draft }
    }

    fn tagged(&self, slug: &str, domain: DomainId, names: &[&str]) -> BatchLink {
        BatchLink::Custom(self.link(slug, domain, None), tags(names))
    }

    /// Makes a link whose slug is the code of a number.
    fn picked(&self, slug: &str, number: u64, names: &[&str]) -> BatchLink {
        let id = LinkId::new(keyspace(1), number);
        BatchLink::Custom(self.link(slug, DomainId::DEFAULT, Some(id)), tags(names))
    }
}

pub(super) async fn links_are_stored_together_where_nothing_is_in_the_way(store: &dyn Store) {
    let (by, default) = (ApiKeyId(7), DomainId::DEFAULT);
    let domain = Authority::parse("together.example").unwrap();
    let domain = store.add_domain(&domain, u32::MAX, by).await.unwrap().unwrap();
    let custom = Custom { keyspaces: store.adopt_keyspaces(&[]).await.unwrap().len() };
    let history = store.epoch().await.unwrap();
    let taken = custom.link("together-taken", default, None);
    store.insert_with_slug(&taken, &[], None).await.unwrap();
    let former = custom.link("together-former", domain, None);
    let stored = store.insert_with_slug(&former, &[], None).await.unwrap();
    let InsertedLink::Stored(former, _, 0) = stored else { panic!("{stored:?}") };
    store.delete(former, &Precondition::default(), by).await.unwrap().unwrap();
    let before = full_link(8_401, "https://x.y/before");
    store.insert_full(&history, &before, &[], None).await.unwrap();

    let links = Arc::new(vec![
        custom.tagged("together-new", default, &["together-a", "together-b"]),
        custom.tagged("together-taken", default, &["together-lost"]),
        custom.tagged("together-new", domain, &["together-b", "together-b"]),
        custom.tagged("together-new", default, &["together-lost"]),
        custom.tagged("together-former", domain, &[]),
        minted(8_402, default, &["together-ä"]),
        minted(8_401, domain, &["together-lost"]),
        minted(8_403, domain, &["together-a"]),
        custom.tagged("code8403", domain, &["together-lost"]),
        custom.picked("TOGET1", 8_404, &["together-a"]),
        custom.picked("TOGET2", 8_401, &["together-lost"]),
        custom.tagged("together-nowhere", DomainId::from_stored(999_999), &["together-lost"]),
    ]);
    let stored = store.insert_together(Some(&history), &links).await.unwrap();
    let lost = store.tags(Some("together-lost"), 10, &Visible::default()).await.unwrap();
    assert!(lost.is_empty(), "nothing is left of links that are not stored: {lost:?}");
    let name = Slug::parse("code8401").unwrap();
    assert_eq!(store.find_slug(domain, &name).await.unwrap(), None, "a name without its link is free");
    if store.open_bucket().is_some() {
        // Nodes take them one by one.
        assert_eq!(stored, [None; 12]);
        return;
    }
    let places: Vec<usize> = (0..links.len()).filter(|place| stored[*place].is_some()).collect();
    assert_eq!(places, [0, 2, 4, 5, 7, 9], "of two with one name, the first is stored");
    for (link, stored) in links.iter().zip(&stored) {
        let Some((id, at, version)) = *stored else { continue };
        let found = store.read(&[id], Source::Primary).await.unwrap().links.pop().unwrap();
        let mut draft = link.draft().clone();
        if let Some(details) = &mut draft.details {
            details.version = version;
        }
        assert!(found.is(&draft) && found.created_at == at, "{found:?}");
        let mut names = link.tags().to_vec();
        names.dedup();
        assert_eq!(store.tags_of(id).await.unwrap(), names, "{found:?}");
        if let BatchLink::Custom(link, _) = link
            && link.mintable.is_none()
        {
            let named = store.find_slug(link.draft.domain(), &link.slug).await.unwrap();
            assert_eq!(named, Some(id), "{found:?}");
        }
    }
    assert!(stored[4].is_some_and(|(id, _, version)| id != former && version > 0), "{stored:?}");
    assert_eq!(stored[9].map(|(id, ..)| id), Some(LinkId::new(keyspace(1), 8_404)));
    let again = store.insert_together(Some(&history), &links).await.unwrap();
    assert_eq!(again, [None; 12], "each is stored once");
}

pub(super) async fn a_minted_link_is_not_taken_for_the_slug_of_its_number(store: &dyn Store) {
    let (by, default) = (ApiKeyId(7), DomainId::DEFAULT);
    let custom = Custom { keyspaces: store.adopt_keyspaces(&[]).await.unwrap().len() };
    let history = store.epoch().await.unwrap();
    // The slug of a deleted link has become the code of a number since.
    let former = custom.link("TOGET3", default, None);
    let stored = store.insert_with_slug(&former, &[], None).await.unwrap();
    let InsertedLink::Stored(former, ..) = stored else { panic!("{stored:?}") };
    store.delete(former, &Precondition::default(), by).await.unwrap().unwrap();
    let links = Arc::new(vec![custom.picked("TOGET3", 8_405, &[]), minted(8_405, default, &[])]);
    let stored = store.insert_together(Some(&history), &links).await.unwrap();
    for (link, stored) in links.iter().zip(&stored) {
        let Some((id, ..)) = *stored else { continue };
        let found = store.read(&[id], Source::Primary).await.unwrap().links.pop().unwrap();
        assert_eq!(found.long_url, link.draft().long_url, "each is told of its own row");
    }
    let alone = full_link(8_405, "https://x.y/alone");
    let by_itself = store.insert_full(&history, &alone, &[], None).await.unwrap();
    let is_free = matches!(by_itself, InsertedLink::Stored(..));
    assert_eq!(is_free, stored == [None; 2], "what is not told is not stored: {by_itself:?}");
}
