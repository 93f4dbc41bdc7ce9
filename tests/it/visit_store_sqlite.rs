//! The conformance suite on SQLite, and what only SQLite has: files, and two databases.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use codes::LinkId;
use harness::Scratch;
use links::{Tag, api_key::ApiKeyId};
use rusqlite::{Connection, params};
use store::{Catalog as _, Store as _, sqlite::SqliteStore};
use visit_store::{
    Columns, Days, Erasure, Producer, SpoolId, SqliteVisits, Standing, VisitReader as _, VisitStore,
    VisitStoreError, WriteError,
};
use visits::{AddressNetwork, Day, Subject, VisitId};

use crate::visit_conformance::{
    Visit, all_rows, batch, batches, common_cases, folding, folding::expected, noon, pages, register,
    sql_cases, store_all, today, totals, upkeep,
};

/// Both databases in a folder of their own.
struct Files {
    folder: Scratch,
    links: Arc<SqliteStore>,
    visits: SqliteVisits,
}

impl Files {
    async fn new() -> Self {
        Self::within(Scratch::new().unwrap()).await
    }

    async fn with_producer() -> (Self, Producer) {
        let files = Self::new().await;
        let producer = register(&files.visits, 1).await;
        (files, producer)
    }

    async fn within(folder: Scratch) -> Self {
        let (links, visits) = (folder.path().join("data/links.db"), folder.path().join("data/visits.db"));
        let store = Arc::new(SqliteStore::open(&links).unwrap());
        store.migrate().await.unwrap();
        let catalog = Arc::<SqliteStore>::clone(&store);
        let visits = SqliteVisits::open(&visits, &links, catalog).unwrap();
        visits.migrate().await.unwrap();
        Self { folder, links: store, visits }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    fn execute(&self, name: &str, statements: &str) {
        Connection::open(self.path(name)).unwrap().execute_batch(statements).unwrap();
    }
}

/// Runs each case with a store of its own.
macro_rules! cases {
    ($($group:ident: $($case:ident),+;)+) => {$($(
        #[tokio::test]
        async fn $case() {
            crate::visit_conformance::$group::$case(&Files::new().await.visits).await;
        }
    )+)+};
}

common_cases!(cases);
sql_cases!(cases);

#[tokio::test]
async fn events_of_a_batch_wait_for_webhooks_once() {
    let files = Files::new().await;
    batches::events_of_a_batch_wait_for_webhooks_once(&files.visits, &*files.links).await;
}

#[tokio::test]
async fn rows_of_a_tag_are_those_of_its_links() {
    let files = Files::new().await;
    let tags = "INSERT INTO tag (id, name) VALUES (40, 'one'), (41, 'other');
        INSERT INTO link_tag (tag_id, link_id) VALUES (40, 2), (40, 5), (40, 6), (41, 2), (41, 3)";
    files.execute("links.db", tags);
    pages::rows_of_a_tag_are_those_of_its_links(&files.visits).await;
}

#[tokio::test]
async fn visits_are_added_to_links_once() {
    let files = Files::new().await;
    folding::visits_are_added_to_links_once(&files.visits, &*files.links).await;
}

#[tokio::test]
async fn totals_of_links_outlive_their_counters_until_they_are_deleted() {
    let files = Files::new().await;
    folding::totals_of_links_outlive_their_counters_until_they_are_deleted(&files.visits, &*files.links)
        .await;
}

#[tokio::test]
async fn secrets_are_erased_after_two_days() {
    let files = Files::new().await;
    let connection = Connection::open(files.path("visits.db")).unwrap();
    let secret = *b"0123456789abcdef";
    for days in [2, 7] {
        let name = format!("day-{}", today().minus(days).get());
        let insert = "INSERT INTO visit_secret (name, secret) VALUES (?1, ?2)";
        connection.execute(insert, params![name, secret]).unwrap();
    }
    drop(connection);
    let holds_secret = || {
        let files = fs::read_dir(files.path("")).unwrap();
        let bytes = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        bytes.into_iter().any(|bytes| bytes.windows(secret.len()).any(|window| window == secret))
    };
    assert!(holds_secret());
    upkeep::secrets_are_erased_after_two_days(&files.visits).await;
    assert!(!holds_secret(), "neither the file nor its log has a copy");
}

#[tokio::test]
async fn a_crash_between_both_databases_counts_nothing_twice() {
    let (files, mut producer) = Files::with_producer().await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0)), Visit::of(2, noon(0) + 1)]).await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0) + 2)]).await;
    // After the visits were added, their batches cannot be deleted.
    let crash = "CREATE TRIGGER crash BEFORE DELETE ON visit_link_batch
        BEGIN SELECT raise(ABORT, 'a crash'); END";
    files.execute("visits.db", crash);
    let added = [expected(1, 2, 0, Some(noon(0))), expected(2, 1, 0, Some(noon(0)))];
    for _ in 0..2 {
        files.visits.fold_link_visits().await.unwrap_err();
        assert_eq!(folding::listed(&*files.links).await, added);
    }
    // The process starts again, and stores more before it adds visits to links.
    let Files { folder, links, visits } = files;
    drop((links, visits));
    let files = Files::within(folder).await;
    let mut producer = register(&files.visits, 1).await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0) + 3)]).await;
    files.visits.fold_link_visits().await.unwrap_err();
    files.execute("visits.db", "DROP TRIGGER crash");
    folding::fold(&files.visits).await;
    let all = [expected(1, 3, 0, Some(noon(0))), added[1]];
    assert_eq!(folding::listed(&*files.links).await, all);
}

#[tokio::test]
async fn visits_that_the_links_could_not_take_are_added_later() {
    let (files, mut producer) = Files::with_producer().await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0))]).await;
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON link_seen BEGIN SELECT raise(ABORT, 'refused'); END";
    files.execute("links.db", refuse);
    files.visits.fold_link_visits().await.unwrap_err();
    assert!(folding::listed(&*files.links).await.is_empty());
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0) + 1)]).await;
    files.execute("links.db", "DROP TRIGGER refuse");
    folding::fold(&files.visits).await;
    assert_eq!(folding::listed(&*files.links).await, [expected(1, 2, 0, Some(noon(0)))]);
}

#[tokio::test]
async fn a_slot_is_taken_from_the_spool_that_was_silent_for_longest() {
    let files = Files::new().await;
    for spool in 0..128 {
        register(&files.visits, spool).await;
    }
    let silent = register(&files.visits, 7).await;
    let ago = |spool: u128, seconds: i64| {
        let connection = Connection::open(files.path("visits.db")).unwrap();
        let set = "UPDATE visit_producer SET seen_at = seen_at - ?1 WHERE spool = ?2";
        connection.execute(set, params![seconds * 1_000, spool.to_be_bytes()]).unwrap();
    };
    ago(8, 290);
    let refused = files.visits.register(SpoolId(500), "a test").await;
    assert!(matches!(refused, Err(VisitStoreError::NoSlot)), "{refused:?}");
    ago(8, 20);
    ago(7, 330);
    assert_eq!(register(&files.visits, 500).await.slot, silent.slot);
    let late = files.visits.store(&silent, &batch(&silent, &[Visit::of(1, noon(0))]), 0).await;
    assert!(matches!(late, Err(WriteError::Fenced)), "{late:?}");
    // Its spool comes back, goes on where it was, and takes another silent one's slot.
    assert_eq!(files.visits.standing(&silent).await.unwrap(), Standing::Unregistered);
    let back = register(&files.visits, 7).await;
    assert_ne!(back.slot, silent.slot);
    assert_eq!(files.visits.standing(&silent).await.unwrap(), Standing::Replaced);
    files.visits.release(&back).await.unwrap();
    assert_eq!(
        files.visits.standing(&silent).await.unwrap(),
        Standing::Replaced,
        "the later one gave it back"
    );
}

#[tokio::test]
async fn a_deletion_takes_the_visits_of_a_link_from_its_tags() {
    let (files, mut producer) = Files::with_producer().await;
    files.execute("visits.db", "INSERT INTO visit_tag (link_id, tag_id) VALUES (1, 40), (2, 40)");
    let link = |link: i64| LinkId::from_stored(link);
    let tags = files.visits.tags_of(&[link(1), link(3)]).await.unwrap();
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), [(link(1), vec![40])]);
    let visits = [(1, 0), (1, 1), (1, 2), (2, 3)];
    let visits = visits.map(|(link, at)| Visit { tag: Some(40), domain: 6, ..Visit::of(link, noon(0) + at) });
    store_all(&files.visits, &mut producer, &visits).await;
    let domain = Some(links::DomainId::from_stored(6));
    let (tag, on_domain) = (Subject::Tag(40, None), Subject::Tag(40, domain));
    assert_eq!(totals(&files.visits, tag).await, (4, 0));
    files.visits.delete(Subject::Link(link(1)), VisitId::floor(noon(0) + 9)).await.unwrap();
    for subject in [tag, on_domain, Subject::All(domain), Subject::Link(link(2))] {
        assert_eq!(totals(&files.visits, subject).await, (1, 0), "{subject:?}");
    }
}

#[tokio::test]
async fn a_deleted_tag_is_forgotten_and_other_tags_keep_their_visits() {
    let (files, mut producer) = Files::with_producer().await;
    let tags = "INSERT INTO tag (id, name) VALUES (40, 'one'), (41, 'other');
        INSERT INTO link_tag (tag_id, link_id) VALUES (40, 1), (40, 2), (41, 2);
        INSERT INTO tag_change (link_id) VALUES (1), (2), (1)";
    files.execute("links.db", tags);
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0)), Visit::of(2, noon(1))]).await;
    let follow = async || while files.visits.follow_tags().await.unwrap() {};
    follow().await;
    let of = async |tag: i64| totals(&files.visits, Subject::Tag(tag, None)).await;
    assert_eq!((of(40).await, of(41).await), ((2, 0), (1, 0)));
    files.links.delete_tags(&[Tag::from_stored("one")], ApiKeyId(1)).await.unwrap();
    follow().await;
    assert_eq!((of(40).await, of(41).await), ((0, 0), (1, 0)));
    let count = |name: &str, table: &str| -> i64 {
        let connection = Connection::open(files.path(name)).unwrap();
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!([count("visits.db", "visit_tag"), count("links.db", "link_tag")], [1, 1]);
    assert_eq!([count("links.db", "tag_gone"), count("links.db", "tag_change")], [0, 0]);
}

#[tokio::test]
async fn visits_are_in_a_private_file_and_there_after_a_restart() {
    let (files, mut producer) = Files::with_producer().await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0))]).await;
    let mode = |name: &str| fs::metadata(files.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("visits.db"), mode("visits.db-wal")), (0o700, 0o600, 0o600));
    files.visits.close().await;
    assert_eq!(fs::metadata(files.path("visits.db-wal")).unwrap().len(), 0, "all is in the main file");
    let Files { folder, links, visits } = files;
    drop((links, visits));
    let files = Files::within(folder).await;
    assert_eq!(files.visits.standing(&producer).await.unwrap(), Standing::At(1));
    let days = Days { first: today(), end: Day::from_stored(today().get() + 1) };
    let days = files.visits.days(Subject::All(None), days, Columns::ALL).await.unwrap();
    assert_eq!(days.iter().map(|day| day.counters.total).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn an_id_that_is_given_twice_counts_twice_and_is_listed_twice() {
    let (files, mut producer) = Files::with_producer().await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0))]).await;
    store_all(&files.visits, &mut producer, &[Visit::of(1, noon(0)), Visit::of(1, noon(0) + 1)]).await;
    let link = Subject::Link(LinkId::from_stored(1));
    assert_eq!(totals(&files.visits, link).await, (3, 0));
    let rows = files.visits.rows(&all_rows(link)).await.unwrap();
    let mut at: Vec<i64> = rows.iter().map(|row| row.id.micros() - noon(0)).collect();
    at.sort_unstable();
    assert_eq!(at, [0, 1, 2]);
}

#[tokio::test]
async fn there_are_at_most_a_thousand_erasures() {
    let files = Files::new().await;
    let count = format!(
        "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {})
         INSERT INTO visit_erasure (version, network, before_id, has_rows) SELECT -number, '192.0.2.1/32', 7, 0 FROM numbers",
        Erasure::MOST - 1
    );
    files.execute("visits.db", &count);
    let erasure = Erasure { network: AddressNetwork::parse("192.0.2.1").unwrap(), before: VisitId::MAX };
    assert!(files.visits.erase(&erasure).await.unwrap().is_some());
    assert!(files.visits.erase(&erasure).await.unwrap().is_none());
}
