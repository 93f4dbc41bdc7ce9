//! A database belongs to one ledger, and a SQLite file to one process.

use std::{fs, time::Duration};

use harness::{Launch, Resolver, Scratch, binaries};

const SOON: Duration = Duration::from_secs(60);
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test(flavor = "multi_thread")]
async fn another_ledger_than_the_databases_own_is_refused_at_start_until_the_operator_says_so() {
    let scratch = Scratch::new().unwrap();
    let build = || Resolver::builder(&scratch, "resolver-0", KEY).unwrap();
    let mut resolver = build().start().await.unwrap();
    let code = resolver.api.create("https://example.com/before").await.unwrap().code;
    resolver.stop(SOON).await.unwrap();
    fs::remove_file(scratch.path().join("data/ledger.json")).unwrap();

    let refused = build().run_to_its_end(SOON).await.unwrap();
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    let line = refused.stderr.lines().find(|line| line.contains("--forget-ledger"));
    assert!(line.is_some_and(|line| line.contains("numbers come from ledger")), "{refused:?}");

    let migrate = Launch::new(&scratch, "forget", binaries::resolver().await.unwrap());
    let forgot = migrate.args(["migrate", "--forget-ledger"]).run(SOON).await.unwrap();
    assert!(forgot.status.success(), "{forgot:?}");
    let resolver = build().start().await.unwrap();
    assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
    for number in 0..20 {
        let again = resolver.api.create(&format!("https://example.com/after/{number}")).await.unwrap();
        assert_ne!(again.code, code, "the register refuses numbers that the new ledger knows nothing of");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_one_sqlite_file_is_refused_also_with_an_issuer() {
    let scratch = Scratch::new().unwrap();
    let build = |holder| Resolver::builder(&scratch, holder, KEY).unwrap();
    let first = build("resolver-0").start().await.unwrap();
    let second = build("resolver-1").issuers(["http://127.0.0.1:9"]);
    let refused = second.run_to_its_end(SOON).await.unwrap();
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    assert!(refused.stderr.contains("another resolver serves from this file"), "{refused:?}");
    first.api.create("https://example.com/still-there").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_that_cannot_be_made_is_named() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", KEY).unwrap();
    let refused = builder.database("sqlite:/proc/none/x.db").run_to_its_end(SOON).await.unwrap();
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    assert!(refused.stderr.contains("--database /proc/none/x.db: "), "{refused:?}");
}
