//! Domains, target rules, and one code on several domains.

use std::collections::HashMap;

use links::{
    Authority, DomainEdit, DomainId, Edit, Precondition, Refusal, Slug,
    api_key::{ApiKeyId, KeyHash, KeyLimits, NewKey, OPERATOR},
    scope::Scopes,
    targets::TargetRule,
};
use store::{DomainEdited, DomainRemoved, InsertedLink, NamedIds, SettingsVersion, Source, Store};

use super::{custom_link, full_link};

pub(super) async fn domains_and_targets_are_told_with_a_version_that_grows(store: &dyn Store) {
    let settings = async |known: Option<&SettingsVersion>| store.poll_settings(known).await.unwrap().settings;
    let first = settings(None).await.unwrap();
    assert_eq!(first.domains.iter().map(|domain| domain.id).collect::<Vec<_>>(), [DomainId::DEFAULT]);
    assert_eq!(settings(Some(&first.version)).await, None, "nothing has changed");
    let (one, other) =
        (Authority::parse("one.example").unwrap(), Authority::parse("two.example:81").unwrap());
    let by = ApiKeyId(1);
    assert_eq!(store.add_domain(&one, 0, by).await.unwrap(), None, "there are as many as there may be");
    let id = store.add_domain(&one, 1, by).await.unwrap().expect("there is room for one");
    assert_eq!(store.add_domain(&other, 1, by).await.unwrap(), None);
    assert_eq!(store.add_domain(&one, 0, by).await.unwrap(), Some(id), "it is there");
    assert!(store.add_domain(&other, 2, by).await.unwrap().is_some(), "there is room for two");
    let edit = DomainEdit {
        disabled: Some(true),
        base_url: Some(Some("https://a.b/".to_owned())),
        ..DomainEdit::default()
    };
    assert!(matches!(store.edit_domain(id, &edit, by).await.unwrap(), DomainEdited::Done(_)));
    let rename = DomainEdit { authority: Some(other.clone()), ..DomainEdit::default() };
    assert_eq!(store.edit_domain(id, &rename, by).await.unwrap(), DomainEdited::Taken);
    let nobody = DomainId::from_stored(999);
    assert_eq!(store.edit_domain(nobody, &rename, by).await.unwrap(), DomainEdited::Absent);
    let rule = TargetRule::parse("*.evil.example", false).unwrap();
    store.set_target(&rule, by).await.unwrap();
    let told = settings(Some(&first.version)).await.expect("the settings have changed");
    assert!(told.version.number > first.version.number);
    assert_eq!(told.version.copy, first.version.copy, "the database is the same");
    let of_a_copy = SettingsVersion { copy: "another".to_owned(), ..told.version.clone() };
    assert!(settings(Some(&of_a_copy)).await.is_some(), "the same number of another copy says nothing");
    let domain = told.domains.iter().find(|domain| domain.id == id).unwrap();
    assert_eq!((domain.authority.as_ref(), domain.settings.disabled), (Some(&one), true));
    assert_eq!(domain.settings.redirects.base_url.as_deref(), Some("https://a.b/"));
    assert_eq!(told.targets, std::slice::from_ref(&rule));
    assert!(store.remove_target(rule.pattern(), by).await.unwrap());
    assert!(!store.remove_target(rule.pattern(), by).await.unwrap());
    assert_eq!(settings(Some(&told.version)).await.unwrap().targets, []);
}

/// One slug on several domains, and a number whose code another link has on one of them.
pub(super) async fn each_domain_has_links_of_its_own(store: &dyn Store) {
    let by = ApiKeyId(1);
    let add = async |name: &str| {
        let authority = Authority::parse(name).unwrap();
        store.add_domain(&authority, u32::MAX, by).await.unwrap().unwrap()
    };
    let (id, second) = (add("one.example").await, add("two.example:81").await);
    let slug = Slug::parse("same").unwrap();
    let mut ids = Vec::new();
    for domain in [DomainId::DEFAULT, id, second] {
        let wish = custom_link(store, domain, "same", "https://x.y/domains").await;
        let stored = store.insert_with_slug(&wish, &[], None).await.unwrap();
        let InsertedLink::Stored(link, ..) = stored else { panic!("{domain:?}: {stored:?}") };
        assert_eq!(store.find_slug(domain, &slug).await.unwrap(), Some(link));
        assert_eq!(store.insert_with_slug(&wish, &[], None).await.unwrap(), InsertedLink::Taken);
        ids.push(link);
    }
    let history = store.epoch().await.unwrap();
    let mut minted = full_link(7_500, "https://x.y/minted");
    minted.new.draft.details.get_or_insert_default().domain = Some(id);
    minted.code = "same".to_owned();
    assert_eq!(store.insert_full(&history, &minted, &[], None).await.unwrap(), InsertedLink::CodeTaken);
    assert_eq!(
        store.read(&[minted.new.id], Source::Primary).await.unwrap().links,
        [],
        "and nothing was stored"
    );
    minted.code = "other".to_owned();
    assert!(matches!(
        store.insert_full(&history, &minted, &[], None).await.unwrap(),
        InsertedLink::Stored(..)
    ));
    let other = Slug::parse("other").unwrap();
    assert_eq!(store.find_slug(id, &other).await.unwrap(), Some(minted.new.id));
    // Each slug is looked for on its own domain.
    let some = [(second, slug.clone()), (id, other.clone())];
    let there = HashMap::from([(some[0].clone(), ids[2]), (some[1].clone(), minted.new.id)]);
    assert_eq!(store.find_slugs(&some).await.unwrap().ids, there);
    let all = [Slug::parse("absent").unwrap(), slug.clone(), other.clone(), slug.clone()];
    let on_each = [second, DomainId::DEFAULT, id].map(|on| all.clone().map(|slug| (on, slug)));
    let named = store.find_slugs(&on_each.concat()).await.unwrap();
    let there = HashMap::from([
        ((DomainId::DEFAULT, slug.clone()), ids[0]),
        ((id, slug.clone()), ids[1]),
        ((id, other), minted.new.id),
        ((second, slug.clone()), ids[2]),
    ]);
    assert_eq!(named, NamedIds { ids: there, complete: true });
    assert_eq!(store.find_slugs(&[]).await.unwrap().ids, HashMap::new());
    assert_eq!(store.delete(ids[1], &Precondition::default(), by).await.unwrap(), Ok(()));
    assert_eq!(store.find_slug(id, &slug).await.unwrap(), None, "deleted on one domain");
    assert_eq!(store.find_slug(second, &slug).await.unwrap(), Some(ids[2]));
}

pub(super) async fn a_domain_is_removed_only_when_nothing_depends_on_it(store: &dyn Store) {
    let by = ApiKeyId(1);
    let names = ["removed.example", "kept.example"].map(|name| Authority::parse(name).unwrap());
    let id = store.add_domain(&names[0], u32::MAX, by).await.unwrap().unwrap();
    let kept = store.add_domain(&names[1], u32::MAX, by).await.unwrap().unwrap();
    let mut wish = custom_link(store, id, "only", "https://x.y/removed").await;
    wish.draft.created_by = ApiKeyId(41);
    let stored = store.insert_with_slug(&wish, &[], None).await.unwrap();
    let InsertedLink::Stored(link, ..) = stored else { panic!("{stored:?}") };
    let used = store.domains_with_links(None).await.unwrap();
    assert!(used.contains(&id) && !used.contains(&kept), "{used:?}");
    assert_eq!(store.domains_with_links(Some(ApiKeyId(41))).await.unwrap(), [id]);
    assert_eq!(store.domains_with_links(Some(ApiKeyId(42))).await.unwrap(), []);

    assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::HasLinks);
    assert_eq!(store.delete(link, &Precondition::default(), by).await.unwrap(), Ok(()));
    let limits = KeyLimits { domain: Some(id), ..KeyLimits::default() };
    let hash = KeyHash::of(b"of one domain");
    let key = NewKey { name: "removed".to_owned(), hash, scopes: Scopes::admin(), expires_at: None, limits };
    store.add_api_key(&key, OPERATOR).await.unwrap().unwrap();
    assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::HasKeys);
    assert!(store.revoke_api_key("removed", OPERATOR).await.unwrap());
    let before = store.poll_settings(None).await.unwrap().settings.unwrap();
    assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::Done);
    let after = store
        .poll_settings(Some(&before.version))
        .await
        .unwrap()
        .settings
        .expect("the removal changes the settings");
    assert!(after.domains.iter().all(|domain| domain.id != id));
    for gone in [id, DomainId::DEFAULT] {
        assert_eq!(store.remove_domain(gone, by).await.unwrap(), DomainRemoved::Absent);
    }

    assert_eq!(store.insert_with_slug(&wish, &[], None).await.unwrap(), InsertedLink::NoDomain);
    let mut full = full_link(9_009, "https://x.y/gone");
    full.new.draft.details.get_or_insert_default().domain = Some(id);
    let history = store.epoch().await.unwrap();
    assert_eq!(store.insert_full(&history, &full, &[], None).await.unwrap(), InsertedLink::NoDomain);
    assert_eq!(
        store.restore(link, &Precondition::default(), wish.keyspaces, by).await.unwrap(),
        Err(Refusal::Absent)
    );
    let again = store.add_domain(&names[0], u32::MAX, by).await.unwrap().unwrap();
    assert!(again.get() > kept.get(), "a number is never given again");
    for domain in [again, kept] {
        assert_eq!(store.remove_domain(domain, by).await.unwrap(), DomainRemoved::Done);
    }
}

/// A minted code stays with its link, so its row in `slug` outlives the link.
pub(super) async fn deleted_minted_links_keep_no_domain(store: &dyn Store) {
    let by = ApiKeyId(1);
    let name = Authority::parse("minted.example").unwrap();
    let id = store.add_domain(&name, u32::MAX, by).await.unwrap().unwrap();
    let mut minted = full_link(7_600, "https://x.y/minted-there");
    minted.new.draft.details.get_or_insert_default().domain = Some(id);
    let (link, code) = (minted.new.id, Slug::parse(&minted.code).unwrap());
    let history = store.epoch().await.unwrap();
    let stored = store.insert_full(&history, &minted, &[], None).await.unwrap();
    assert!(matches!(stored, InsertedLink::Stored(..)), "{stored:?}");
    let created_by = minted.new.draft.created_by;
    let uses = async || {
        let (all, own) = (store.domains_with_links(None), store.domains_with_links(Some(created_by)));
        let (all, own) = (all.await.unwrap().contains(&id), own.await.unwrap().contains(&id));
        assert_eq!(all, own);
        all
    };
    for _ in 0..2 {
        assert!(uses().await);
        assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::HasLinks);
        assert_eq!(store.delete(link, &Precondition::default(), by).await.unwrap(), Ok(()));
        assert!(!uses().await);
        assert_eq!(store.find_slug(id, &code).await.unwrap(), Some(link), "nobody else gets its code");
        assert!(store.restore(link, &Precondition::default(), 0, by).await.unwrap().is_ok());
    }
    assert_eq!(store.delete(link, &Precondition::default(), by).await.unwrap(), Ok(()));
    for reason in [Some("phishing".to_owned()), None] {
        let is_blocked = reason.is_some();
        let block = Edit { block: Some(reason), ..Edit::default() };
        assert!(store.edit(link, &block, by).await.unwrap().is_ok());
        assert_eq!(uses().await, is_blocked);
        if is_blocked {
            assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::HasLinks);
        }
    }
    assert_eq!(store.remove_domain(id, by).await.unwrap(), DomainRemoved::Done);
    assert_eq!(store.restore(link, &Precondition::default(), 0, by).await.unwrap(), Err(Refusal::Absent));
}
