//! A resolver that ends while Postgres is away: its log counts the visits that it leaves in its
//! spool, and says what becomes of them.

use std::{path::Path, time::Duration};

use harness::Resolver;

use crate::{
    visit_faults::Database,
    visits::{client, create, must_count, visit},
};

/// Longer than the deadlines of an end add up to.
const END_WITHIN: Duration = Duration::from_secs(60);
/// A file system in memory on every Linux.
const MEMORY: &str = "/dev/shm";

/// Stores three visits, records five more while Postgres is stopped, and ends. Returns the resolver
/// and the link.
async fn end_without_postgres(database: &mut Database, spool: &Path) -> (Resolver, String) {
    let mut resolver = database.resolver("one", spool, &database.postgres.url()).await;
    let code = create(&resolver, &database.key).await;
    for _ in 0..3 {
        assert!(visit(&client(), &resolver, &code).await);
    }
    must_count(&resolver, &database.key, &code, 3).await;
    database.postgres.stop_fast().await.unwrap();
    for _ in 0..5 {
        assert!(visit(&client(), &resolver, &code).await);
    }
    resolver.stop(END_WITHIN).await.unwrap();
    (resolver, code)
}

/// Returns the line of the log of a process that tells of its end, and must count five visits.
/// Threads that still run may log behind it.
fn last_line(resolver: &Resolver) -> String {
    let log = resolver.process.stderr();
    let last = log.lines().rfind(|line| line.contains("stopped: ")).unwrap().to_owned();
    assert!(last.contains("visits=5 ") && last.contains("bytes="), "{last}");
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_that_are_left_are_counted_and_stored_by_the_next_start() {
    let mut database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let (mut resolver, code) = end_without_postgres(&mut database, &spool).await;
    last_line(&resolver);
    database.postgres.restart().await.unwrap();
    resolver.restart().await.unwrap();
    must_count(&resolver, &database.key, &code, 8).await;
    resolver.stop(END_WITHIN).await.unwrap();
    let log = resolver.process.stderr();
    assert!(
        log.lines().any(|line| line.ends_with(" stopped")),
        "nothing is left: {}",
        resolver.process.tail()
    );
}

/// Bytes of a spool that are overwritten while visits wait in it: what is behind them is stored,
/// and the loss is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_part_of_a_spool_is_counted_and_costs_no_other_visit() {
    let mut database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("one", &spool, &database.postgres.url()).await;
    let code = create(&resolver, &database.key).await;
    assert!(visit(&client(), &resolver, &code).await);
    must_count(&resolver, &database.key, &code, 1).await;
    database.postgres.stop_fast().await.unwrap();
    // The first one is read at once, and kept while it cannot be stored.
    assert!(visit(&client(), &resolver, &code).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let segment = spool.join("0000000000000000.segment");
    let from = std::fs::metadata(&segment).unwrap().len();
    assert!(visit(&client(), &resolver, &code).await);
    let to = std::fs::metadata(&segment).unwrap().len();
    for _ in 0..3 {
        assert!(visit(&client(), &resolver, &code).await);
    }
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 8], (from + to) / 2).unwrap();
    database.postgres.restart().await.unwrap();
    must_count(&resolver, &database.key, &code, 5).await;
    assert_eq!(resolver.metric("resolver_visit_spool_errors_total").await, Some(1.0));
    assert!(resolver.process.stderr().contains("its visits are lost bytes="), "{}", resolver.process.tail());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_that_goes_with_its_pod_is_an_error() {
    let mut database = Database::start(&[]).await;
    let memory = tempfile::tempdir_in(MEMORY).unwrap();
    let spool = memory.path().join("spool");
    let (resolver, _) = end_without_postgres(&mut database, &spool).await;
    let last = last_line(&resolver);
    assert!(last.contains("ERROR") && last.contains("place=\"memory\""), "{last}");
}
