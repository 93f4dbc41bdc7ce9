//! Fixed schedules, of one process over a database without faults.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use app::{
    AppError,
    creator::{CodeChoice, CreateOptions},
};
use codes::{Code, Keyspace, KeyspaceIndex, LinkId, Mint};
use links::{Authority, DomainEdit, DomainId, Draft, Edit, LongUrl, NewLink, Precondition, Slug};
use lookup::{LookupError, domain_cache::SHOWN, freshness::AWAY};
use store::{CustomSlugLink, DomainEdited, InsertedLink, Links, Register, Settings, Store};
use tokio::time::{Instant, sleep, timeout};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{
    database::{Database, Rates},
    network::Network,
    node::{Common, Node, Setup},
    rng::Rng,
    rules::{Off, without},
    run::code_key,
    shared::BY,
};
use supply::{StopReason, safety_rule::SafetyRule};

/// The messages of a thread's log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn has(&self, message: &str) -> bool {
        self.0.lock().unwrap().iter().any(|logged| logged == message)
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

fn keyspaces(definitions: &[&str]) -> Vec<Keyspace> {
    definitions.iter().map(|text| Keyspace::parse(text).unwrap()).collect()
}

async fn common() -> Common {
    common_with(Rates::default()).await
}

async fn common_with(rates: Rates) -> Common {
    let database = Arc::new(Database::new(Rng(1), rates));
    let key = code_key().unwrap();
    database.sqlite.migrate().await.unwrap();
    database.sqlite.adopt_fingerprint(&key.fingerprint()).await.unwrap();
    Common {
        database,
        network: Network::new(),
        mint: Mint::new(&key, []),
        key,
        keyspaces: Vec::new(),
        domains_max: u32::MAX,
        replica_lag: Duration::from_secs(2),
    }
}

async fn start(common: &Common, definitions: &[&str]) -> Node {
    start_as("h0", common, definitions).await
}

async fn start_as(holder: &str, common: &Common, definitions: &[&str]) -> Node {
    let setup = Setup { keyspaces: keyspaces(definitions), default: 0 };
    Node::start(common, holder, &setup, &mut Rng(2)).await
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_keyspace_an_older_copy_lacks_ends() {
    for is_other in [false, true] {
        let common = common().await;
        common.database.sqlite.adopt_keyspaces(&keyspaces(&["a=3:0-9"])).await.unwrap();
        common.database.keep_copy();
        let node = start(&common, &["a=3:0-9", "k=3:a-m"]).await;
        sleep(SHOWN).await;
        assert!(node.lost().is_none() && node.ends.domain_cache.is_fresh());

        common.database.put_back(true);
        common.database.restart(Duration::ZERO);
        let expected = if is_other {
            common.database.sqlite.adopt_keyspaces(&keyspaces(&["l=3:n-z"])).await.unwrap();
            "index 2 is keyspace k=3:a-m here, and l=3:n-z in the database"
        } else {
            "keyspace k=3:a-m has index 2 here, and is not in the database any more"
        };
        timeout(SHOWN, async {
            while node.lost().is_none() {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("a contradiction is noticed within SHOWN, as any change is");
        let Some(StopReason::Keyspaces(reason)) = node.lost() else { panic!("{:?}", node.lost()) };
        assert_eq!(reason.to_string(), expected);
        sleep(SHOWN).await;
        assert!(!node.ends.domain_cache.is_fresh(), "nothing is denied by settings of another history");
        node.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_start_waits_though_numbers_of_its_keyspace_are_registered() {
    let common = common().await;
    let create = async |node: &Node, code| {
        let code = CodeChoice::CustomSlug(Slug::parse(code).unwrap());
        let options = CreateOptions { code, ..CreateOptions::default() };
        node.ends.creator.create(draft_of("https://example.org/"), options).await.unwrap()
    };
    let began = Instant::now();
    let node = start(&common, &["a=3:0-9"]).await;
    assert!(began.elapsed() < SHOWN, "redirects need not wait");
    create(&node, "041").await;
    assert!(began.elapsed() >= SHOWN);
    node.kill();
    common.database.sqlite.begin_history(Some(5)).await.unwrap();
    let index = KeyspaceIndex::new(1).unwrap();
    assert!(common.database.sqlite.registered_end(index).await.unwrap() > 0);
    let began = Instant::now();
    let node = start(&common, &["a=3:0-9"]).await;
    create(&node, "042").await;
    assert!(began.elapsed() >= SHOWN);
}

/// Starts a process that knows a domain by one name, and lets another process rename the domain.
async fn renamed() -> (Node, DomainId, Instant) {
    let common = common().await;
    let node = start(&common, &["a=3:0-9"]).await;
    let old = Authority::parse("old.example").unwrap();
    let id = node.ends.domain_cache.add(&old, BY).await.unwrap().unwrap();
    sleep(SHOWN).await;
    let edit =
        DomainEdit { authority: Some(Authority::parse("new.example").unwrap()), ..DomainEdit::default() };
    let edited = common.database.sqlite.edit_domain(id, &edit, BY).await.unwrap();
    assert!(matches!(edited, DomainEdited::Done(_)));
    (node, id, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_domain_is_used_under_its_new_name_once_all_know_it() {
    let (node, id, renamed_at) = renamed().await;
    let found = node.ends.domain_cache.find_for_link("new.example").await.unwrap();
    assert_eq!(found, Some(id));
    assert!(renamed_at.elapsed() >= SHOWN, "others may know the old name only");
}

#[tokio::test(start_paused = true)]
async fn a_domain_is_not_used_under_its_old_name_once_it_has_another() {
    let (node, ..) = renamed().await;
    node.hang(SHOWN + Duration::from_secs(1));
    sleep(SHOWN).await;
    assert_eq!(node.ends.domain_cache.find_for_link("old.example").await.unwrap(), None);

    let (node, ..) = renamed().await;
    node.hang(Duration::from_secs(60));
    sleep(SHOWN).await;
    assert!(node.ends.domain_cache.find_for_link("old.example").await.is_err(), "nobody can say");
}

#[tokio::test(start_paused = true)]
async fn a_block_takes_no_slug_that_a_keyspace_has_now() {
    let common = common().await;
    let store = &common.database.sqlite;
    let draft = |slug: &Slug| Draft {
        details: Some(Box::new(links::Details { slug: Some(slug.clone()), ..Default::default() })),
        ..draft_of("https://example.org/")
    };
    let mut ids = Vec::new();
    for name in ["abc", "ABC"] {
        let slug = Slug::parse(name).unwrap();
        assert!(Code::parse(name).is_ok());
        let link = CustomSlugLink { mintable: None, keyspaces: 0, draft: draft(&slug), slug: slug.clone() };
        let stored = store.insert_with_slug(&link, &[], None).await.unwrap();
        let InsertedLink::Stored(id, ..) = stored else { panic!("{stored:?}") };
        let _ = store.delete(id, &Precondition::default(), BY).await.unwrap();
        ids.push((id, slug));
    }
    store.adopt_keyspaces(&keyspaces(&["k=3:a-z"])).await.unwrap();
    for (id, _) in &ids {
        let block = Edit { block: Some(Some("phishing".to_owned())), ..Edit::default() };
        assert!(store.edit(*id, &block, BY).await.unwrap().is_ok());
    }
    let held = async |slug| store.find_slug(DomainId::DEFAULT, slug).await.unwrap();
    assert_eq!(held(&ids[0].1).await, None, "it is a number's by now");
    assert_eq!(held(&ids[1].1).await, Some(ids[1].0));
    let refused = store.adopt_keyspaces(&keyspaces(&["k=3:a-z", "l=3:A-Z"])).await.unwrap_err();
    assert!(refused.to_string().contains("or unblocked"), "{refused}");
}

fn draft_of(url: &str) -> Draft {
    Draft {
        long_url: LongUrl::from_stored(url.to_owned()),
        title: None,
        crawlable: false,
        forward_query: true,
        created_by: BY,
        details: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_picked_again_is_another_link_in_every_process_and_no_visit_is_older_than_its_link() {
    let common = common().await;
    let nodes = [start(&common, &["a=3:0-9"]).await, start_as("h1", &common, &["a=3:0-9"]).await];
    sleep(SHOWN).await;
    let (database, slug) = (&common.database, Slug::parse("042").unwrap());
    let (mut links, mut visits) = (Vec::new(), Vec::new());
    for round in 0..6 {
        let (by, other) = (&nodes[round % 2].ends, &nodes[(round + 1) % 2].ends);
        let options =
            CreateOptions { code: CodeChoice::CustomSlug(slug.clone()), ..CreateOptions::default() };
        let url = format!("https://example.org/{round}");
        let link = by.creator.create(draft_of(&url), options).await.unwrap().link;
        for ends in [by, other] {
            let wanted = ends.lookup.key_of_path("/042").unwrap();
            let found = ends.lookup.find_on(DomainId::DEFAULT, &wanted).await.unwrap().unwrap();
            assert_eq!((found.id, found.long_url.as_str()), (link.id, url.as_str()), "round {round}");
            visits.push((found.id, database.now()));
        }
        assert_eq!(other.store.delete(link.id, &Precondition::default(), BY).await.unwrap(), Ok(()));
        other.lookup.changed(link.id);
        sleep(SHOWN).await;
        links.push(link);
    }
    for (id, at) in visits {
        let of: Vec<_> = links.iter().filter(|link| link.id == id).collect();
        assert!(matches!(of[..], [link] if link.created_at <= at), "{id:?}: {of:?}");
    }
    nodes.iter().for_each(Node::kill);
}

#[tokio::test(start_paused = true)]
async fn a_new_start_stores_no_reservation_before_all_know_its_keyspace() {
    let common = common().await;
    let node = start(&common, &["a=3:0-9"]).await;
    let creator = &node.ends.creator;
    let count = || -> i64 {
        let connection = common.database.connection.lock().unwrap();
        connection.query_row("SELECT count(*) FROM reservation", [], |row| row.get(0)).unwrap()
    };
    for (time, stored) in [(SHOWN / 2, 0), (SHOWN, 1)] {
        // There is no issuer, so no call comes to its end.
        let reserved = timeout(time, creator.reserve(BY, &creator.config.mintings[0], 1)).await;
        assert!(reserved.is_err(), "{reserved:?}");
        assert_eq!(count(), stored, "another call could fill it after {time:?}");
    }
    node.kill();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_failed_and_cannot_be_given_up_is_logged() {
    let common = common().await;
    let node = start(&common, &["a=3:0-9"]).await;
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON reservation
                  BEGIN SELECT RAISE(ABORT, 'refused'); END";
    common.database.connection.lock().unwrap().execute_batch(refuse).unwrap();
    let (creator, log) = (&node.ends.creator, Log::default());
    let minting = &creator.config.mintings[0];
    let reserved = {
        let _logging = tracing::subscriber::set_default(log.clone());
        creator.reserve(BY, minting, minting.capacity + 1).await
    };
    assert!(matches!(reserved, Err(AppError::Exhausted)));
    assert!(log.has("a reservation that failed could not be given up"));
    node.kill();
}

const OLD: &str = "https://example.org/old";
const NEW: &str = "https://example.org/new";
const HOUR: Duration = Duration::from_secs(3_600);

/// Changes a link after the last poll of the primary, without a notification, and asks a process
/// for it before and during an outage in which an older copy answers. Returns the second answer.
async fn asked_in_an_outage(is_deleted: bool) -> Result<Option<String>, LookupError> {
    let rates = Rates { copied: 1_000, ..Rates::default() };
    // No replica is read while the primary answers.
    let common = Common { replica_lag: HOUR, ..common_with(rates).await };
    let (node, store) = (start(&common, &["a=3:0-9"]).await, &common.database.sqlite);
    let id = LinkId::new(KeyspaceIndex::new(1).unwrap(), 7);
    let draft = draft_of(OLD);
    let history = store.epoch().await.unwrap();
    store.insert(&history, &[NewLink { id, draft }]).await.unwrap();
    sleep(SHOWN).await;
    node.hang(HOUR);
    sleep(Duration::from_millis(50)).await;
    common.database.keep_copy();
    if is_deleted {
        let _ = store.delete(id, &Precondition::default(), BY).await.unwrap();
    } else {
        let edit = Edit { long_url: Some(LongUrl::from_stored(NEW)), ..Edit::default() };
        let _ = store.edit(id, &edit, BY).await.unwrap();
    }
    let code = node.ends.mint.code_of(id).unwrap();
    let find = async || {
        let found = node.ends.lookup.find(code).await?.filter(|link| !link.is_deleted());
        Ok(found.map(|link| link.long_url.as_str().to_owned()))
    };
    assert_eq!(find().await, Ok((!is_deleted).then(|| NEW.to_owned())), "the primary shows it");
    common.database.restart(HOUR);
    sleep(2 * AWAY).await;
    find().await
}

#[test]
fn a_copy_undoes_nothing_that_the_primary_has_shown() {
    for (rule, is_deleted, expected) in [
        (SafetyRule::Newer, false, Ok(Some(NEW.to_owned()))),
        (SafetyRule::Shown, true, Err(LookupError::NoStore)),
    ] {
        let run = |off: Option<SafetyRule>| {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            let answer = without(off.map(Off::from), || runtime.block_on(asked_in_an_outage(is_deleted)));
            runtime.shutdown_background();
            answer
        };
        assert_eq!(run(None), expected);
        assert_eq!(run(Some(rule)), Ok(Some(OLD.to_owned())), "{rule:?} is not missed");
    }
}
