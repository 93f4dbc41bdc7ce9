//! The life of an API key: creation, rotation, revocation and expiry.

use std::time::Duration;

use codes::LinkId;
use jiff::{SignedDuration, Timestamp};
use links::{
    api_key::{ApiKey, Grant, KeyLimits, NewKey, OPERATOR, SecretNumber},
    audit::{Action, EntryFilter, NewEntry, Object},
    scope::Scopes,
};
use serde_json::json;
use store::Store;

fn new_key(name: &str, key: &ApiKey, scopes: &Scopes) -> NewKey {
    let limits = KeyLimits { own_links_only: true, ..KeyLimits::default() };
    NewKey { name: name.to_owned(), hash: key.hash(), scopes: *scopes, expires_at: None, limits }
}

pub(super) async fn keys_are_found_until_they_are_revoked_or_expire(store: &dyn Store) {
    let key = ApiKey::draw().unwrap();
    let scopes: Scopes = "read,reserve".parse().unwrap();
    let new = new_key("ci", &key, &scopes);
    let id = store.add_api_key(&new, OPERATOR).await.unwrap().expect("the name is new");
    let again = new_key("ci", &ApiKey::draw().unwrap(), &Scopes::admin());
    assert_eq!(store.add_api_key(&again, OPERATOR).await.unwrap(), None);
    let grant = Grant { id, secret: SecretNumber(1), name: "ci".into(), scopes, limits: new.limits };
    assert_eq!(store.find_api_key(&key.hash()).await.unwrap(), Some(grant.clone()));
    assert_eq!(store.find_api_key(&ApiKey::draw().unwrap().hash()).await.unwrap(), None);
    assert!(!store.add_first_api_key("late", &ApiKey::draw().unwrap().hash()).await.unwrap());

    let (second, third) = (ApiKey::draw().unwrap(), ApiKey::draw().unwrap());
    let rotate =
        async |key: &ApiKey, keep| store.rotate_api_key("ci", &key.hash(), keep, OPERATOR).await.unwrap();
    assert!(rotate(&second, Duration::from_secs(600)).await);
    let rotated = Grant { secret: SecretNumber(2), ..grant.clone() };
    for (good, grant) in [(&key, &grant), (&second, &rotated)] {
        let found = store.find_api_key(&good.hash()).await.unwrap();
        assert_eq!(found.as_ref(), Some(grant), "the old one for a while");
        assert_eq!(store.find_grant(id, grant.secret).await.unwrap().as_ref(), Some(grant));
    }
    assert!(rotate(&third, Duration::ZERO).await);
    for old in [&key, &second] {
        assert_eq!(store.find_api_key(&old.hash()).await.unwrap(), None);
    }
    for (number, is_good) in [(0, false), (1, false), (2, false), (3, true), (4, false)] {
        let found = store.find_grant(id, SecretNumber(number)).await.unwrap();
        assert_eq!(found.is_some(), is_good, "secret {number}");
    }
    assert!(!store.rotate_api_key("nobody", &key.hash(), Duration::ZERO, OPERATOR).await.unwrap());

    assert!(store.revoke_api_key("ci", OPERATOR).await.unwrap());
    assert!(!store.revoke_api_key("ci", OPERATOR).await.unwrap());
    assert_eq!(store.find_api_key(&third.hash()).await.unwrap(), None);
    let short = ApiKey::draw().unwrap();
    let soon = Timestamp::now() + SignedDuration::from_millis(300);
    let expiring = NewKey { expires_at: Some(soon), ..new_key("short", &short, &scopes) };
    store.add_api_key(&expiring, OPERATOR).await.unwrap().expect("the name is new");
    assert!(store.find_api_key(&short.hash()).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(store.find_api_key(&short.hash()).await.unwrap(), None);

    let keys = store.list_api_keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["ci", "short"]);
    assert_eq!((&keys[0].scopes, keys[0].expires_at), (&scopes, None));
    assert!(keys[0].revoked_at.is_some_and(|revoked| revoked >= keys[0].created_at));
    let noted = store.audit_entries(&EntryFilter::default(), 10).await.unwrap();
    let noted: Vec<&str> = noted.iter().rev().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        noted[noted.len() - 5..],
        ["create-key", "rotate-key", "rotate-key", "revoke-key", "create-key"]
    );
    entries_are_found_by_what_they_are_about(store).await;
}

async fn entries_are_found_by_what_they_are_about(store: &dyn Store) {
    let by = store.list_api_keys().await.unwrap()[1].id;
    assert!(
        store.rotate_api_key("short", &ApiKey::draw().unwrap().hash(), Duration::ZERO, by).await.unwrap()
    );
    let found = async |filter: EntryFilter| {
        let found = store.audit_entries(&filter, 3).await.unwrap();
        found.into_iter().map(|entry| (entry.action, entry.subject)).collect::<Vec<_>>()
    };
    let entry = |action: &str, subject: &str| (action.to_owned(), subject.to_owned());
    let named = |name: &str, links: &[i64]| {
        Some(Object {
            name: name.to_owned(),
            links: links.iter().copied().map(LinkId::from_stored).collect(),
        })
    };
    let by_name = Some("short".to_owned());
    let rotation = vec![entry("rotate-key", "short")];
    assert_eq!(found(EntryFilter { by_name, ..EntryFilter::default() }).await, rotation);
    let filter = EntryFilter {
        action: Some(Action::RotateKey),
        object: named("ci", &[]),
        by_name: Some(String::new()),
        ..EntryFilter::default()
    };
    assert_eq!(found(filter.clone()).await, [entry("rotate-key", "ci"), entry("rotate-key", "ci")]);
    // A key is called like the number of a link.
    for (action, subject) in [(Action::DeleteLinkVisits, "42"), (Action::RevokeKey, "42")] {
        let noted = NewEntry { action, subject: subject.to_owned(), details: json!({}) };
        store.add_audit_entry(by, &noted).await.unwrap();
    }
    let of_object = |object| EntryFilter { object, ..EntryFilter::default() };
    assert_eq!(found(of_object(named("42", &[]))).await, [entry("revoke-key", "42")]);
    assert_eq!(found(of_object(named("7", &[41, 42]))).await, [entry("delete-link-visits", "42")]);
    assert_eq!(found(of_object(named("42", &[42]))).await.len(), 2);
    let hour = SignedDuration::from_hours(1);
    let (before, after) = (Timestamp::now() - hour, Timestamp::now() + hour);
    let within = EntryFilter { since: Some(before), until: Some(after), ..filter.clone() };
    assert_eq!(found(within.clone()).await.len(), 2);
    assert!(found(EntryFilter { since: Some(after), ..within.clone() }).await.is_empty());
    assert!(found(EntryFilter { until: Some(before), ..within }).await.is_empty());
    let latest = store.audit_entries(&filter, 1).await.unwrap()[0].id;
    assert_eq!(found(EntryFilter { before: Some(latest), ..filter }).await.len(), 1);
}
