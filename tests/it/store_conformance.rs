//! One suite for both stores of links: what the resolver relies on holds for Postgres and SQLite alike.

use std::{sync::Arc, time::Duration};

use harness::{Postgres, Scratch, wait};
use issuer::{block::Span, names::StoreEpoch};
use jiff::{SignedDuration, Timestamp};
use resolver::{
    api_key::{ApiKey, ApiKeyId, Grant, KeyLimits, NewKey, Rotated},
    codes::{Fingerprint, Keyspace, KeyspaceIndex, LinkId},
    links::{Authority, DomainEdit, DomainId, Draft, Edit, LongUrl, NewLink, Slug},
    reservation::{Reservation, ReservationId},
    scope::Scopes,
    store::{
        BATCH_MAX, BlockEntry, Deleted, DomainEdited, Edited, FullLink, InsertError, Inserted, InsertedFull,
        InsertedNamed, LinkStore, NamedLink, Reading, Registration, Same, Source, StoreError,
        postgres::PostgresStore, sqlite::SqliteStore,
    },
    targets::TargetRule,
};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_what_the_resolver_relies_on() {
    let scratch = Scratch::new().unwrap();
    let store = SqliteStore::open(&scratch.path().join("links.db")).unwrap();
    suite(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_what_the_resolver_relies_on() {
    let postgres = Postgres::start().await.unwrap();
    suite(Arc::new(PostgresStore::new(&postgres.url(), None).await.unwrap())).await;
    a_take_over_waits_for_a_predecessors_late_commit(&postgres).await;
    nothing_is_stored_in_another_history(&postgres).await;
}

async fn nothing_is_stored_in_another_history(postgres: &Postgres) {
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

/// The predecessor was killed after it had sent COMMIT: its row appears only now, and the heir's delete could not see it.
async fn a_take_over_waits_for_a_predecessors_late_commit(postgres: &Postgres) {
    let store = Arc::new(PostgresStore::new(&postgres.url(), None).await.unwrap());
    let (mut client, connection) =
        tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let late = client.transaction().await.unwrap();
    let (first, end) = LinkId::range(keyspace(2), block(90_000, 10, 90, "a").span);
    let row = "INSERT INTO block (ids, generation, holder, incarnation, instance) VALUES (int8range($1, $2), 90, 'a', 1, 'x')";
    late.execute(row, &[&first, &end]).await.unwrap();
    let heir = Arc::clone(&store);
    let taken =
        tokio::spawn(async move { heir.take_over_block(&block(90_000, 10, 91, "b"), 90).await.unwrap() });
    let waits =
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO block%'";
    // Asked on a connection of its own: a transaction sees the activity of when it first asked.
    let (watcher, connection) =
        tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let waiting = wait::until(SOON, "the heir's insert waits for the predecessor", async || {
        watcher.query_opt(waits, &[]).await.unwrap().is_some()
    });
    waiting.await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(taken.await.unwrap(), Registration::Registered);
}

async fn suite(store: Arc<dyn LinkStore>) {
    a_store_without_a_schema_says_so(&*store).await;
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    the_first_fingerprint_is_the_one_that_counts(&*store).await;
    keyspaces_keep_their_index_and_cannot_be_redefined(&*store).await;
    links_are_stored_once_and_read_back(&*store).await;
    a_taken_id_does_not_fail_its_neighbours(&*store).await;
    two_inserts_of_one_id_have_one_winner(&store).await;
    the_same_wish_is_given_the_same_link_until_nobody_has_asked_for_so_long(&*store).await;
    uses_are_taken_as_far_as_the_limit_goes(&*store).await;
    an_overlapping_block_is_refused(&*store).await;
    a_released_rest_can_be_registered_by_another(&*store).await;
    a_leaked_block_is_taken_over_once_and_its_gaps_are_found(&*store).await;
    the_registers_end_is_that_of_the_keyspace(&*store).await;
    a_history_has_one_name(&*store).await;
    a_reservations_numbers_are_the_registers_rows_of_its_holder(&*store).await;
    keys_are_found_until_they_are_revoked_or_expire(&*store).await;
    domains_and_targets_are_told_with_a_version_that_grows(&*store).await;
    a_call_that_is_sent_again_is_told_from_another_with_the_same_key(&*store).await;
    adoptions_at_the_same_time_agree_on_the_index(&store).await;
    a_keyspace_with_hand_picked_codes_is_refused(&*store).await;
}

fn keyspace(index: i64) -> KeyspaceIndex {
    KeyspaceIndex::new(index).unwrap()
}

fn new_link(number: u64, url: &str) -> NewLink {
    let draft = Draft {
        long_url: LongUrl::parse(url, &[]).unwrap(),
        title: number.is_multiple_of(2).then(|| "ein Titel: ä".to_owned()),
        crawlable: number.is_multiple_of(3),
        forward_query: number % 2 == 1,
        created_by: ApiKeyId(7),
        details: None,
    };
    NewLink { id: LinkId::new(keyspace(1), number), draft }
}

fn full_link(number: u64, url: &str) -> FullLink {
    FullLink { new: new_link(number, url), code: format!("code{number}") }
}

async fn a_store_without_a_schema_says_so(store: &dyn LinkStore) {
    let refused = store.check().await;
    assert!(matches!(refused, Err(StoreError::SchemaBehind { found: 0, needed: 1.. })), "{refused:?}");
}

async fn the_first_fingerprint_is_the_one_that_counts(store: &dyn LinkStore) {
    let (first, second) =
        (Fingerprint::from_stored("aa".to_owned()), Fingerprint::from_stored("bb".to_owned()));
    assert_eq!(store.fingerprint().await.unwrap(), None);
    assert_eq!(store.adopt_fingerprint(&first).await.unwrap(), first);
    assert_eq!(store.adopt_fingerprint(&second).await.unwrap(), first);
    assert_eq!(store.fingerprint().await.unwrap(), Some(first));
}

async fn keyspaces_keep_their_index_and_cannot_be_redefined(store: &dyn LinkStore) {
    let parse = |text| Keyspace::parse(text).unwrap();
    let (web, mobile) = (parse("web=6:A-Z"), parse("mobile=6:a-z"));
    assert_eq!(
        store.adopt_keyspaces(std::slice::from_ref(&web)).await.unwrap(),
        [(keyspace(1), web.clone())]
    );
    let both = [(keyspace(1), web.clone()), (keyspace(2), mobile.clone())];
    assert_eq!(store.adopt_keyspaces(std::slice::from_ref(&mobile)).await.unwrap(), both);
    for wrong in ["web=5:A-Z", "other=6:X"] {
        let refused = store.adopt_keyspaces(&[parse(wrong)]).await;
        assert!(matches!(refused, Err(StoreError::Keyspace(_))), "{wrong}: {refused:?}");
    }
    assert_eq!(store.adopt_keyspaces(&[]).await.unwrap(), both);
}

async fn the_same_wish_is_given_the_same_link_until_nobody_has_asked_for_so_long(store: &dyn LinkStore) {
    let history = store.epoch().await.unwrap();
    let ask = async |number: u64, lifetime: Duration| {
        let same = Same { digest: "a wish".to_owned(), lifetime, fingerprint: None };
        store.insert_full(&history, &full_link(number, "https://x.y/same"), &[], Some(&same)).await.unwrap()
    };
    let (long, short) = (Duration::from_secs(3_600), Duration::from_millis(1));
    let id = |number: u64| new_link(number, "https://x.y/").id;
    assert!(matches!(ask(8_001, long).await, InsertedFull::Stored(_)));
    assert_eq!(ask(8_002, long).await, InsertedFull::Same(id(8_001)));
    assert_eq!(store.read(&[id(8_002)], Source::Primary).await.unwrap().links, [], "nothing was stored");
    // Each who asks sets its end anew: this one to the next millisecond.
    assert_eq!(ask(8_003, short).await, InsertedFull::Same(id(8_001)));
    tokio::time::sleep(10 * short).await;
    assert!(matches!(ask(8_004, long).await, InsertedFull::Stored(_)), "it has lapsed");
    assert_eq!(ask(8_005, long).await, InsertedFull::Same(id(8_004)));
    assert_eq!(store.delete(id(8_004), None, ApiKeyId(1)).await.unwrap(), Deleted::Done);
    assert!(matches!(ask(8_006, long).await, InsertedFull::Stored(_)), "a deleted link is given to nobody");
    // A number that is somebody else's is given to nobody either.
    assert_eq!(store.delete(id(8_006), None, ApiKeyId(1)).await.unwrap(), Deleted::Done);
    assert_eq!(ask(3, long).await, InsertedFull::Taken);
    assert!(matches!(ask(8_007, long).await, InsertedFull::Stored(_)));
}

async fn uses_are_taken_as_far_as_the_limit_goes(store: &dyn LinkStore) {
    let mut link = new_link(9_001, "https://x.y/limited");
    link.draft.details.get_or_insert_default().max_visits = Some(5);
    store.insert(&store.epoch().await.unwrap(), std::slice::from_ref(&link)).await.unwrap();
    let free = new_link(3, "https://x.y/3").id;
    assert_eq!(store.use_links(&[(free, 7), (link.id, 3)]).await.unwrap(), [7, 3]);
    assert_eq!(store.use_links(&[(link.id, 3)]).await.unwrap(), [2]);
    assert_eq!(store.use_links(&[(link.id, 1)]).await.unwrap(), [0]);
    let raised = Edit { max_visits: Some(Some(6)), ..Edit::default() };
    assert!(matches!(store.edit(link.id, &raised, ApiKeyId(1)).await.unwrap(), Edited::Done(_)));
    assert_eq!(store.use_links(&[(link.id, 9)]).await.unwrap(), [1]);
}

async fn a_keyspace_with_hand_picked_codes_is_refused(store: &dyn LinkStore) {
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let slug = Slug::parse("promo").unwrap();
    let mut draft = new_link(1, "https://x.y/promo").draft;
    draft.details.get_or_insert_default().slug = Some(slug.clone());
    let picked = NamedLink { slug: slug.clone(), mintable: None, keyspaces, draft };
    let stale = NamedLink { keyspaces: keyspaces + 1, ..picked.clone() };
    let refused = store.insert_named(&stale, &[], None).await;
    assert!(matches!(refused, Err(InsertError::Failed(StoreError::Keyspace(_)))), "{refused:?}");
    let InsertedNamed::Stored(id, _, 0) = store.insert_named(&picked, &[], None).await.unwrap() else {
        panic!("the slug is free");
    };
    assert_eq!(store.insert_named(&picked, &[], None).await.unwrap(), InsertedNamed::Taken);
    assert_eq!(store.find_slug(DomainId::DEFAULT, &slug).await.unwrap(), Some(id));
    let five = Keyspace::parse("five=5:a-z").unwrap();
    let refused = store.adopt_keyspaces(std::slice::from_ref(&five)).await;
    let names = matches!(&refused, Err(StoreError::Keyspace(reason)) if reason.contains("promo"));
    assert!(names, "{refused:?}");
    assert_eq!(store.delete(id, Some(&[7]), ApiKeyId(1)).await.unwrap(), Deleted::Superseded);
    assert_eq!(store.delete(id, None, ApiKeyId(1)).await.unwrap(), Deleted::Done);
    assert_eq!(store.delete(id, None, ApiKeyId(1)).await.unwrap(), Deleted::Absent);
    assert_eq!(store.find_slug(DomainId::DEFAULT, &slug).await.unwrap(), None);
    store.adopt_keyspaces(&[five]).await.unwrap();
}

async fn links_are_stored_once_and_read_back(store: &dyn LinkStore) {
    let links: Vec<_> =
        (0..BATCH_MAX as u64).rev().map(|n| new_link(n, &format!("https://x.y/{n}"))).collect();
    let stored = store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    assert!(stored.iter().all(|one| matches!(one, Inserted::Stored(_))), "{stored:?}");
    let ids: Vec<_> = links.iter().map(|link| link.id).chain([LinkId::new(keyspace(1), 999_999)]).collect();
    let Reading { links: read, complete } = store.read(&ids[1..], Source::Any).await.unwrap();
    assert!(complete);
    assert_eq!(read.len(), BATCH_MAX - 1, "what does not exist is left out");
    for (link, inserted) in links.iter().zip(&stored).skip(1) {
        let found = read.iter().find(|found| found.id == link.id).unwrap();
        assert!(found.is(&link.draft));
        assert_eq!(Inserted::Stored(found.created_at), *inserted);
    }
}

async fn a_taken_id_does_not_fail_its_neighbours(store: &dyn LinkStore) {
    let links = [
        new_link(5_001, "https://x.y/new"),
        new_link(3, "https://x.y/rival"),
        new_link(5_000, "https://x.y/z"),
    ];
    let outcomes = store.insert(&store.epoch().await.unwrap(), &links).await.unwrap();
    assert!(
        matches!(outcomes[..], [Inserted::Stored(_), Inserted::Taken, Inserted::Stored(_)]),
        "{outcomes:?}"
    );
    let kept = store.read(&[links[1].id], Source::Any).await.unwrap();
    assert_eq!(kept.links[0].long_url.as_str(), "https://x.y/3");
}

async fn two_inserts_of_one_id_have_one_winner(store: &Arc<dyn LinkStore>) {
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

fn block(start: u64, len: u64, generation: u64, holder: &str) -> BlockEntry {
    let span = Span::new(start, len).unwrap();
    let (holder, instance) = (holder.to_owned(), format!("start-of-{holder}"));
    BlockEntry { keyspace: keyspace(2), span, generation, holder, incarnation: 1, instance }
}

async fn an_overlapping_block_is_refused(store: &dyn LinkStore) {
    let first = block(100, 100, 1, "a");
    let again = BlockEntry { instance: "another-entry-of-a".to_owned(), ..first.clone() };
    assert_eq!(store.register_block(&first).await.unwrap(), Registration::Registered);
    assert_eq!(
        store.register_block(&first).await.unwrap(),
        Registration::Registered,
        "a copy of the same call"
    );
    for rival in [
        again,
        block(100, 100, 2, "b"),
        block(100, 100, 1, "b"),
        block(0, 101, 3, "b"),
        block(199, 1, 4, "b"),
        block(150, 10, 5, "a"),
        block(0, 1_000, 6, "a"),
    ] {
        assert_eq!(store.register_block(&rival).await.unwrap(), Registration::Overlaps, "{rival:?}");
    }
    for neighbour in [block(0, 100, 7, "b"), block(200, 100, 8, "b")] {
        assert_eq!(
            store.register_block(&neighbour).await.unwrap(),
            Registration::Registered,
            "{neighbour:?}"
        );
    }
    let elsewhere = BlockEntry { keyspace: keyspace(1), ..first };
    assert_eq!(store.register_block(&elsewhere).await.unwrap(), Registration::Registered, "another keyspace");
}

async fn a_released_rest_can_be_registered_by_another(store: &dyn LinkStore) {
    let first = block(10_000, 100, 20, "a");
    store.register_block(&first).await.unwrap();
    let kept = [Span::new(10_000, 10).unwrap(), Span::new(10_050, 10).unwrap()];
    store.release_block(&first, &kept).await.unwrap();
    store.release_block(&first, &kept).await.unwrap();
    assert_eq!(store.register_block(&block(10_010, 40, 21, "b")).await.unwrap(), Registration::Registered);
    assert_eq!(store.register_block(&block(10_060, 40, 22, "b")).await.unwrap(), Registration::Registered);
    assert_eq!(store.register_block(&block(10_055, 1, 23, "b")).await.unwrap(), Registration::Overlaps);
    store.release_block(&block(20_000, 5, 30, "a"), &[]).await.unwrap();
}

async fn a_leaked_block_is_taken_over_once_and_its_gaps_are_found(store: &dyn LinkStore) {
    let (lost, heir, rival) =
        (block(30_000, 10, 40, "a"), block(30_000, 10, 41, "b"), block(30_000, 10, 42, "c"));
    store.register_block(&lost).await.unwrap();
    let id = |number| LinkId::new(keyspace(2), number);
    let link = |number| NewLink { id: id(number), ..new_link(number, "https://x.y/") };
    store
        .insert(&store.epoch().await.unwrap(), &[link(30_000), link(30_003), link(30_004), link(30_010)])
        .await
        .unwrap();
    assert!(store.holds(id(30_005), 40, "start-of-a").await.unwrap());

    assert_eq!(store.take_over_block(&heir, 40).await.unwrap(), Registration::Registered);
    assert_eq!(
        store.take_over_block(&heir, 40).await.unwrap(),
        Registration::Registered,
        "a copy of the call"
    );
    assert_eq!(
        store.take_over_block(&rival, 40).await.unwrap(),
        Registration::Overlaps,
        "it is gone already"
    );
    assert!(!store.holds(id(30_005), 40, "start-of-a").await.unwrap());
    assert!(store.holds(id(30_009), 41, "start-of-b").await.unwrap());
    assert!(!store.holds(id(30_010), 41, "start-of-b").await.unwrap());
    // The lost holder may still be alive: what it does now must not touch the heir's block.
    assert_eq!(store.register_block(&lost).await.unwrap(), Registration::Overlaps);
    let not_its_own = store.release_block(&lost, &[Span::new(30_001, 5).unwrap()]).await;
    assert!(matches!(not_its_own, Err(StoreError::Overlap)), "{not_its_own:?}");
    assert!(store.holds(id(30_000), 41, "start-of-b").await.unwrap());

    let gaps = store.unused(keyspace(2), heir.span).await.unwrap();
    assert_eq!(gaps, [Span::new(30_001, 2).unwrap(), Span::new(30_005, 5).unwrap()]);
    let empty = Span::new(40_000, 25_000).unwrap();
    assert_eq!(store.unused(keyspace(2), empty).await.unwrap(), [empty]);
    // The holder of generation 44 died before it had taken the block over from 41.
    let after_it = block(30_000, 10, 45, "d");
    assert_eq!(store.take_over_block(&after_it, 44).await.unwrap(), Registration::Registered);
    assert_eq!(store.take_over_block(&block(30_000, 10, 44, "c"), 41).await.unwrap(), Registration::Overlaps);
    let never_registered = block(50_000, 10, 51, "b");
    assert_eq!(store.take_over_block(&never_registered, 50).await.unwrap(), Registration::Registered);
}

async fn the_registers_end_is_that_of_the_keyspace(store: &dyn LinkStore) {
    let empty = KeyspaceIndex::new(30_000).unwrap();
    assert_eq!(store.registered_end(empty).await.unwrap(), 0);
    let last = BlockEntry { keyspace: empty, ..block(Span::LIMIT - 5, 5, 60, "a") };
    store.register_block(&last).await.unwrap();
    assert_eq!(store.registered_end(empty).await.unwrap(), Span::LIMIT);
    store.register_block(&block(70_000, 8, 61, "a")).await.unwrap();
    assert_eq!(store.registered_end(keyspace(2)).await.unwrap(), 70_008);
}

async fn a_history_has_one_name(store: &dyn LinkStore) {
    assert_eq!(store.epoch().await.unwrap(), store.epoch().await.unwrap());
}

fn new_key(name: &str, key: &ApiKey, scopes: &Scopes) -> NewKey {
    let limits = KeyLimits { own_links_only: true, ..KeyLimits::default() };
    NewKey { name: name.to_owned(), hash: key.hash(), scopes: scopes.clone(), expires_at: None, limits }
}

async fn keys_are_found_until_they_are_revoked_or_expire(store: &dyn LinkStore) {
    let key = ApiKey::draw().unwrap();
    let scopes: Scopes = "read,reserve".parse().unwrap();
    let new = new_key("ci", &key, &scopes);
    let id = store.add_api_key(&new).await.unwrap().expect("a new name");
    let again = new_key("ci", &ApiKey::draw().unwrap(), &Scopes::admin());
    assert_eq!(store.add_api_key(&again).await.unwrap(), None);
    let grant = Grant { id, name: "ci".to_owned(), scopes: scopes.clone(), limits: new.limits };
    assert_eq!(store.find_api_key(&key.hash()).await.unwrap(), Some(grant.clone()));
    assert_eq!(store.find_api_key(&ApiKey::draw().unwrap().hash()).await.unwrap(), None);
    assert!(!store.add_first_api_key("late", &ApiKey::draw().unwrap().hash()).await.unwrap());

    let (second, third) = (ApiKey::draw().unwrap(), ApiKey::draw().unwrap());
    let rotate = async |key: &ApiKey, keep| store.rotate_api_key("ci", &key.hash(), keep).await.unwrap();
    assert_eq!(rotate(&second, Duration::from_secs(600)).await, Rotated::Done);
    for good in [&key, &second] {
        assert_eq!(
            store.find_api_key(&good.hash()).await.unwrap(),
            Some(grant.clone()),
            "the old one for a while"
        );
    }
    assert_eq!(rotate(&third, Duration::ZERO).await, Rotated::Done);
    for old in [&key, &second] {
        assert_eq!(store.find_api_key(&old.hash()).await.unwrap(), None);
    }
    assert_eq!(store.rotate_api_key("nobody", &key.hash(), Duration::ZERO).await.unwrap(), Rotated::Absent);

    assert!(store.revoke_api_key("ci").await.unwrap());
    assert!(!store.revoke_api_key("ci").await.unwrap());
    assert_eq!(store.find_api_key(&third.hash()).await.unwrap(), None);
    let short = ApiKey::draw().unwrap();
    let soon = Timestamp::now() + SignedDuration::from_millis(300);
    let expiring = NewKey { expires_at: Some(soon), ..new_key("short", &short, &scopes) };
    store.add_api_key(&expiring).await.unwrap().expect("a new name");
    assert!(store.find_api_key(&short.hash()).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(store.find_api_key(&short.hash()).await.unwrap(), None);

    let keys = store.list_api_keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["ci", "short"]);
    assert_eq!((&keys[0].scopes, keys[0].expires_at), (&scopes, None));
    assert!(keys[0].revoked_at.is_some_and(|revoked| revoked >= keys[0].created_at));
    let noted = store.audit(None, 10).await.unwrap();
    let noted: Vec<&str> = noted.iter().rev().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        noted[noted.len() - 5..],
        ["create-key", "rotate-key", "rotate-key", "revoke-key", "create-key"]
    );
}

async fn domains_and_targets_are_told_with_a_version_that_grows(store: &dyn LinkStore) {
    let settings = async |known: i64| store.shared_settings(known).await.unwrap();
    let first = settings(-1).await.unwrap();
    assert_eq!(first.domains.iter().map(|domain| domain.id).collect::<Vec<_>>(), [DomainId::DEFAULT]);
    assert_eq!(settings(first.version).await, None, "nothing has changed");
    let (one, other) =
        (Authority::parse("one.example").unwrap(), Authority::parse("two.example:81").unwrap());
    let id = store.add_domain(&one).await.unwrap();
    assert_eq!(store.add_domain(&one).await.unwrap(), id);
    let second = store.add_domain(&other).await.unwrap();
    let by = ApiKeyId(1);
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
    let told = settings(first.version).await.expect("it has changed");
    assert!(told.version > first.version);
    let domain = told.domains.iter().find(|domain| domain.id == id).unwrap();
    assert_eq!((domain.authority.as_ref(), domain.settings.disabled), (Some(&one), true));
    assert_eq!(domain.settings.redirects.base_url.as_deref(), Some("https://a.b/"));
    assert_eq!(told.targets, std::slice::from_ref(&rule));
    assert!(store.remove_target(rule.pattern(), by).await.unwrap());
    assert!(!store.remove_target(rule.pattern(), by).await.unwrap());
    assert_eq!(settings(told.version).await.unwrap().targets, []);

    // The same code on two domains, and a number whose code somebody has on one of them.
    let slug = Slug::parse("same").unwrap();
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    let on = |domain: DomainId| {
        let mut draft = new_link(1, "https://x.y/domains").draft;
        let details = draft.details.get_or_insert_default();
        (details.slug, details.domain) = (Some(slug.clone()), Some(domain).filter(|id| !id.is_default()));
        NamedLink { slug: slug.clone(), mintable: None, keyspaces, draft }
    };
    let mut ids = Vec::new();
    for domain in [DomainId::DEFAULT, id, second] {
        let stored = store.insert_named(&on(domain), &[], None).await.unwrap();
        let InsertedNamed::Stored(link, ..) = stored else { panic!("{domain:?}: {stored:?}") };
        assert_eq!(store.find_slug(domain, &slug).await.unwrap(), Some(link));
        assert_eq!(store.insert_named(&on(domain), &[], None).await.unwrap(), InsertedNamed::Taken);
        ids.push(link);
    }
    let history = store.epoch().await.unwrap();
    let mut minted = full_link(7_500, "https://x.y/minted");
    minted.new.draft.details.get_or_insert_default().domain = Some(id);
    minted.code = "same".to_owned();
    assert_eq!(store.insert_full(&history, &minted, &[], None).await.unwrap(), InsertedFull::CodeTaken);
    assert_eq!(
        store.read(&[minted.new.id], Source::Primary).await.unwrap().links,
        [],
        "and nothing was stored"
    );
    minted.code = "other".to_owned();
    assert!(matches!(
        store.insert_full(&history, &minted, &[], None).await.unwrap(),
        InsertedFull::Stored(_)
    ));
    assert_eq!(store.find_slug(id, &Slug::parse("other").unwrap()).await.unwrap(), Some(minted.new.id));
    assert_eq!(store.delete(ids[1], None, by).await.unwrap(), Deleted::Done);
    assert_eq!(store.find_slug(id, &slug).await.unwrap(), None, "deleted on one domain");
    assert_eq!(store.find_slug(second, &slug).await.unwrap(), Some(ids[2]));
}

async fn a_call_that_is_sent_again_is_told_from_another_with_the_same_key(store: &dyn LinkStore) {
    let history = store.epoch().await.unwrap();
    let ask = async |number: u64, fingerprint: &str| {
        let lifetime = Duration::from_secs(3_600);
        let same = Same { digest: "a key".to_owned(), lifetime, fingerprint: Some(fingerprint.to_owned()) };
        store.insert_full(&history, &full_link(number, "https://x.y/retry"), &[], Some(&same)).await.unwrap()
    };
    let id = |number: u64| new_link(number, "https://x.y/").id;
    assert!(matches!(ask(8_101, "one").await, InsertedFull::Stored(_)));
    assert_eq!(ask(8_102, "one").await, InsertedFull::Same(id(8_101)));
    assert_eq!(ask(8_103, "other").await, InsertedFull::OtherWish);
    let titled = Edit { title: Some(Some("now".to_owned())), ..Edit::default() };
    assert!(matches!(store.edit(id(8_101), &titled, ApiKeyId(1)).await.unwrap(), Edited::Done(_)));
    assert_eq!(ask(8_104, "one").await, InsertedFull::Same(id(8_101)), "whatever has become of it");
}

async fn a_reservations_numbers_are_the_registers_rows_of_its_holder(store: &dyn LinkStore) {
    let (id, other) = (ReservationId::draw().unwrap(), ReservationId::draw().unwrap());
    let (key, index) = (ApiKeyId(7), keyspace(2));
    assert_eq!(store.reservation(&id).await.unwrap(), None);
    let created_at = store.add_reservation(&id, index, key).await.unwrap();
    store.add_reservation(&other, index, ApiKeyId(8)).await.unwrap();
    for start in [80_020, 80_000] {
        let entry = BlockEntry { holder: id.holder(), ..block(start, 10, start, "r") };
        assert_eq!(store.register_block(&entry).await.unwrap(), Registration::Registered);
    }
    let spans = [80_000, 80_020].map(|start| Span::new(start, 10).unwrap()).to_vec();
    let expected =
        Reservation { id: id.clone(), keyspace: index, created_by: key, created_at, closed_at: None, spans };
    assert_eq!(store.reservation(&id).await.unwrap(), Some(expected.clone()));
    assert_eq!(store.reservations(Some(key)).await.unwrap(), [expected]);
    assert_eq!(store.reservations(None).await.unwrap().len(), 2);
    store.close_reservation(&id).await.unwrap();
    let closed_at = store.reservation(&id).await.unwrap().unwrap().closed_at;
    assert!(closed_at.is_some_and(|at| at >= created_at));
    store.close_reservation(&id).await.unwrap();
    assert_eq!(store.reservation(&id).await.unwrap().unwrap().closed_at, closed_at, "the first time counts");
    assert_eq!(store.reservation(&other).await.unwrap().unwrap().closed_at, None);
}

/// Resolvers that start together must agree on the index of a new keyspace.
async fn adoptions_at_the_same_time_agree_on_the_index(store: &Arc<dyn LinkStore>) {
    let adoptions: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(store);
            let new = Keyspace::parse("manual=6:0-9").unwrap();
            tokio::spawn(async move { store.adopt_keyspaces(&[new]).await.unwrap() })
        })
        .collect();
    for adoption in adoptions {
        let known = adoption.await.unwrap();
        assert_eq!(known.iter().map(|(index, _)| index.get()).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
