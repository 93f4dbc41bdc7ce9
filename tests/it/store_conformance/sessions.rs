//! The life of a browser session: sign-in, sign-out, expiry, and the end of its key or secret.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use links::{
    SessionHash,
    api_key::{ApiKey, ApiKeyId, Grant, KeyLimits, NewKey, OPERATOR, SecretNumber},
    scope::Scopes,
};
use store::Store;

const HOUR: Duration = Duration::from_secs(3_600);
/// Maximum number of open sessions of a key.
const OPEN_MAX: u64 = 50;

fn new_key(name: &str) -> NewKey {
    NewKey {
        name: name.to_owned(),
        hash: ApiKey::draw().unwrap().hash(),
        scopes: "read,create".parse::<Scopes>().unwrap(),
        expires_at: None,
        limits: KeyLimits { own_links_only: true, ..KeyLimits::default() },
    }
}

async fn add_key(store: &dyn Store, new: &NewKey) -> ApiKeyId {
    store.add_api_key(new, OPERATOR).await.unwrap().expect("the name is new")
}

fn session(name: &str) -> SessionHash {
    SessionHash::of(name.as_bytes())
}

pub(super) async fn a_session_grants_what_its_key_does_until_it_ends_or_expires(store: &dyn Store) {
    let new = new_key("web");
    let id = add_key(store, &new).await;
    let by = (id, SecretNumber(1));
    let grant =
        Grant { id, secret: by.1, name: "web".into(), scopes: new.scopes, limits: new.limits.clone() };
    let (first, second) = (session("first"), session("second"));
    let find = async |hash: &SessionHash| store.find_session(hash).await.unwrap();
    assert_eq!(find(&first).await, None);
    store.open_session(&first, by, HOUR).await.unwrap();
    store.open_session(&second, by, HOUR).await.unwrap();
    assert_eq!(find(&first).await, Some(grant.clone()));

    // A sign-in that is sent again changes nothing.
    store.open_session(&first, (id, SecretNumber(7)), Duration::ZERO).await.unwrap();
    assert_eq!(find(&first).await, Some(grant.clone()));
    for _ in 0..2 {
        store.end_session(&first).await.unwrap();
        assert_eq!(find(&first).await, None);
    }
    assert_eq!(find(&second).await, Some(grant), "another browser stays signed in");

    let (none, short) = (session("none"), session("short"));
    store.open_session(&none, by, Duration::ZERO).await.unwrap();
    assert_eq!(find(&none).await, None);
    store.open_session(&short, by, Duration::from_millis(50)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(find(&short).await, None);
}

pub(super) async fn a_session_ends_with_its_key_and_with_its_secret(store: &dyn Store) {
    let id = add_key(store, &new_key("rotated-web")).await;
    let secret_of = async |hash: &SessionHash| {
        let found = store.find_session(hash).await.unwrap();
        found.map(|grant| grant.secret.0)
    };
    let rotate = async |keep| {
        let hash = ApiKey::draw().unwrap().hash();
        assert!(store.rotate_api_key("rotated-web", &hash, keep, OPERATOR).await.unwrap());
    };
    let hashes = ["secret 1", "secret 2", "secret 3"].map(session);
    let [first, second, third] = &hashes;
    store.open_session(first, (id, SecretNumber(1)), HOUR).await.unwrap();
    store.open_session(third, (id, SecretNumber(3)), HOUR).await.unwrap();
    assert_eq!((secret_of(first).await, secret_of(third).await), (Some(1), None));
    rotate(HOUR).await;
    store.open_session(second, (id, SecretNumber(2)), HOUR).await.unwrap();
    assert_eq!((secret_of(first).await, secret_of(second).await), (Some(1), Some(2)));
    rotate(Duration::ZERO).await;
    assert_eq!((secret_of(first).await, secret_of(second).await), (None, None));
    assert_eq!(secret_of(third).await, Some(3));
    assert!(store.revoke_api_key("rotated-web", OPERATOR).await.unwrap());
    assert_eq!(secret_of(third).await, None);

    let past = Timestamp::now() - SignedDuration::from_secs(60);
    let expired = NewKey { expires_at: Some(past), ..new_key("expired-web") };
    let id = add_key(store, &expired).await;
    let hash = session("expired key");
    store.open_session(&hash, (id, SecretNumber(1)), HOUR).await.unwrap();
    assert_eq!(secret_of(&hash).await, None);
}

pub(super) async fn a_key_has_so_many_sessions_and_the_ones_that_expire_first_end(store: &dyn Store) {
    let [id, other] =
        [add_key(store, &new_key("busy-web")).await, add_key(store, &new_key("calm-web")).await];
    let calm = session("calm");
    store.open_session(&calm, (other, SecretNumber(1)), HOUR / 2).await.unwrap();
    let hashes: Vec<SessionHash> = (0..=OPEN_MAX).map(|number| session(&format!("busy {number}"))).collect();
    for (seconds, hash) in (0..).zip(&hashes) {
        let lasts = HOUR + Duration::from_secs(seconds);
        store.open_session(hash, (id, SecretNumber(1)), lasts).await.unwrap();
    }
    let is_open = async |hash: &SessionHash| store.find_session(hash).await.unwrap().is_some();
    assert!(!is_open(&hashes[0]).await, "it expires first");
    for hash in &hashes[1..] {
        assert!(is_open(hash).await);
    }

    // Even a session that expires before all others is not ended by its own sign-in.
    let short = session("busy and short");
    store.open_session(&short, (id, SecretNumber(1)), HOUR / 2).await.unwrap();
    assert!(is_open(&short).await && !is_open(&hashes[1]).await && is_open(&hashes[2]).await);
    assert!(is_open(&calm).await, "another key has sessions of its own");
}
