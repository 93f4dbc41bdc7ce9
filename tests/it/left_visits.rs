//! A resolver that ends while Postgres is away: the last line of its log counts the visits that it
//! leaves in its spool, and says what becomes of them.

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

/// Returns the last line of the log of a process, which must count five visits.
fn last_line(resolver: &Resolver) -> String {
    let log = resolver.process.stderr();
    let last = log.lines().last().unwrap().to_owned();
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
    assert!(log.lines().last().unwrap().ends_with("stopped"), "nothing is left: {}", resolver.process.tail());
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
