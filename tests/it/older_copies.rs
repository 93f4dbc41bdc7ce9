//! Restores of a store from an older copy (fault 29). Links are lost with it, but none of their
//! published codes is minted for another URL.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Api, Cluster, Created, Launch, Resolver, Scratch, binaries, load, wait};
use reqwest::StatusCode;

const SOON: Duration = Duration::from_secs(60);
const KEY: &str = "0123456789abcdef0123456789abcdef";
const DATABASE: &[&str] = &["shortmint.db", "shortmint.db-wal", "shortmint.db-shm"];
const LEDGER: &[&str] = &["ledger.json"];
/// The numbers of links created before the copy, after it, and after its restore. The last number
/// exceeds the rest of a block.
const BEFORE: usize = 20;
const LOST: usize = 200;
const AFTER: usize = 600;

/// The state of the process when its files are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Stopped before the copy, and started again after it.
    Stopped,
    /// Running, and only paused during the copy.
    Running,
}

/// The published codes with their URLs.
type Public = HashMap<String, String>;

/// Creates links, and waits while the server is unavailable. Panics if a published code is minted
/// again.
async fn create(api: &Api, count: usize, public: &mut Public) {
    for _ in 0..count {
        let url = load::next_long_url();
        let mut code = None;
        wait::until(SOON, "a link is created", async || {
            let Ok(answer) = api.try_create(&url).await else { return false };
            if answer.status == StatusCode::SERVICE_UNAVAILABLE {
                return false;
            }
            code = Some(Created::read(&answer).unwrap().code);
            true
        })
        .await
        .unwrap();
        let code = code.unwrap();
        if let Some(other) = public.insert(code.clone(), url.clone()) {
            panic!("{code} was public for {other}, and was minted for {url}");
        }
    }
}

/// Asserts that every published code leads to its own URL or is not found.
async fn nothing_is_another(api: &Api, public: &Public) {
    for (code, url) in public {
        let (status, location) = api.follow(code).await.unwrap();
        assert!(status == 404 || location.as_ref() == Some(url), "{code} of {url} leads to {location:?}");
    }
}

fn copy(from: &Path, to: &Path, files: &[&str]) -> io::Result<()> {
    for file in files {
        match fs::copy(from.join(file), to.join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if to.join(file).exists() {
                    fs::remove_file(to.join(file))?;
                }
            }
            copied => copied.map(drop)?,
        }
    }
    Ok(())
}

/// Runs one process, restores some of its files from a copy, and checks the published codes.
async fn files_are_put_back(put_back: &[&[&str]], taken: Taken) {
    let scratch = Scratch::new().unwrap();
    let build = || Resolver::builder(&scratch, "resolver-0", KEY).unwrap();
    let (data, kept) = (scratch.path().join("data"), scratch.folder("kept").unwrap());
    let mut public = Public::new();
    let mut resolver = build().start().await.unwrap();
    create(&resolver.api, BEFORE, &mut public).await;
    match taken {
        Taken::Stopped => resolver.stop(SOON).await.unwrap(),
        Taken::Running => resolver.process.pause().await.unwrap(),
    }
    put_back.iter().for_each(|files| copy(&data, &kept, files).unwrap());
    match taken {
        Taken::Stopped => resolver = build().start().await.unwrap(),
        Taken::Running => resolver.process.resume().unwrap(),
    }
    create(&resolver.api, LOST, &mut public).await;
    resolver.process.kill_now().unwrap();
    put_back.iter().for_each(|files| copy(&kept, &data, files).unwrap());

    let resolver = build().start().await.unwrap();
    create(&resolver.api, AFTER, &mut public).await;
    nothing_is_another(&resolver.api, &public).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_public_code_is_minted_again_when_a_sqlite_file_is_put_back() {
    for taken in [Taken::Stopped, Taken::Running] {
        files_are_put_back(&[DATABASE], taken).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_public_code_is_minted_again_when_a_ledger_file_is_put_back() {
    for taken in [Taken::Stopped, Taken::Running] {
        files_are_put_back(&[LEDGER], taken).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_public_code_is_minted_again_when_both_files_are_put_back() {
    for taken in [Taken::Stopped, Taken::Running] {
        files_are_put_back(&[DATABASE, LEDGER], taken).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_file_that_is_none_is_refused_with_the_reason() {
    let scratch = Scratch::new().unwrap();
    let build = || Resolver::builder(&scratch, "resolver-0", KEY).unwrap();
    let mut resolver = build().start().await.unwrap();
    resolver.stop(SOON).await.unwrap();
    let log = fs::metadata(scratch.path().join("data/shortmint.db-wal"));
    assert_eq!(
        log.map_or(0, |log| log.len()),
        0,
        "whoever copies the file of a stopped process has all links"
    );
    fs::write(scratch.path().join("data/shortmint.db.witness"), "something else").unwrap();
    let refused = build().run_to_its_end(SOON).await.unwrap();
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    assert!(refused.stderr.contains("--witness") && refused.stderr.contains("shortmint.db.witness"));
}

/// The party that knows of the lost links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownTo {
    /// The ledger, which a starting resolver asks.
    Ledger,
    /// A resolver that keeps running.
    Resolver,
    /// The witness file, when database and ledger are restored together.
    Witness,
    /// The operator who restored both.
    Operator,
}

fn keep(folder: &Path, copy: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(folder).arg(copy).status().unwrap();
    assert!(done.success());
}

/// Waits until the ledger has a mark higher than the database's current one.
async fn ledger_is_told(cluster: &Cluster) {
    let client = cluster.postgres.client().await.unwrap();
    let mark: i64 = client.query_one("SELECT mark FROM deployment", &[]).await.unwrap().get(0);
    wait::until(SOON, "the ledger is told of the database's mark", async || {
        let keys = cluster.etcd.get_prefix("/shortmint/").await.unwrap();
        let head = keys.iter().find(|(key, _)| key.ends_with("/head")).unwrap();
        let head: serde_json::Value = serde_json::from_str(&head.1).unwrap();
        head["mark"].as_i64() > Some(mark)
    })
    .await
    .unwrap();
}

/// Restores Postgres's data folder, and etcd's as well where only the witness or the operator
/// knows, and checks the published codes.
async fn a_data_folder_is_put_back(known: KnownTo) {
    let both = matches!(known, KnownTo::Witness | KnownTo::Operator);
    let scratch = Scratch::new().unwrap();
    let witness = scratch.path().join("witness").display().to_string();
    let cluster = Cluster::builder().etcd(1).issuers(1).alone().holder_ttl("3s").lease_ttl("2s");
    let cluster = cluster.issuer_args(["--block-min", "100", "--block-max", "100"]);
    let args = if known == KnownTo::Witness { vec!["--witness".to_owned(), witness] } else { Vec::new() };
    let mut cluster = cluster.resolver_args(args).start().await.unwrap();
    let mut public = Public::new();
    create(&cluster.resolvers[0].api, BEFORE, &mut public).await;

    let folder = cluster.postgres.with_links().data_folder().to_owned();
    let copy: PathBuf = scratch.path().join("copy");
    cluster.postgres.with_links().stop_fast().await.unwrap();
    keep(&folder, &copy);
    let backup = if both { Some(cluster.etcd.save_snapshot().await.unwrap()) } else { None };
    cluster.postgres.with_links().restart().await.unwrap();
    create(&cluster.resolvers[0].api, 1, &mut public).await;
    ledger_is_told(&cluster).await;
    create(&cluster.resolvers[0].api, LOST, &mut public).await;

    if known != KnownTo::Resolver {
        cluster.resolvers[0].process.kill_now().unwrap();
    }
    cluster.postgres.with_links().stop_fast().await.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    keep(&copy, &folder);
    if let Some(backup) = backup {
        cluster.etcd.restore_snapshot(&backup).await.unwrap();
    }
    cluster.postgres.with_links().restart().await.unwrap();
    if known == KnownTo::Operator {
        let url = cluster.postgres.url();
        let args = ["migrate", "--database", &url, "--put-back", "1000"];
        let told = cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap();
        assert!(told.stdout.contains("the next 1000 numbers of each keyspace are left out"), "{told:?}");
    }
    if known != KnownTo::Resolver {
        cluster.resolvers[0].restart().await.unwrap();
    }
    create(&cluster.resolvers[0].api, AFTER, &mut public).await;
    nothing_is_another(&cluster.resolvers[0].api, &public).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_public_code_is_minted_again_when_a_data_folder_of_postgres_is_put_back() {
    a_data_folder_is_put_back(KnownTo::Ledger).await;
    a_data_folder_is_put_back(KnownTo::Resolver).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn no_public_code_is_minted_again_when_postgres_and_etcd_are_put_back_together() {
        a_data_folder_is_put_back(KnownTo::Witness).await;
        a_data_folder_is_put_back(KnownTo::Operator).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_says_that_a_sqlite_file_was_put_back_with_all_that_would_notice() {
    let scratch = Scratch::new().unwrap();
    let build = || Resolver::builder(&scratch, "resolver-0", KEY).unwrap();
    let (data, copy) = (scratch.path().join("data"), scratch.path().join("copy"));
    let mut public = Public::new();
    let mut resolver = build().start().await.unwrap();
    create(&resolver.api, BEFORE, &mut public).await;
    resolver.stop(SOON).await.unwrap();
    keep(&data, &copy);
    let resolver = build().start().await.unwrap();
    create(&resolver.api, LOST, &mut public).await;
    drop(resolver);
    fs::remove_dir_all(&data).unwrap();
    keep(&copy, &data);
    let migrate = Launch::new(&scratch, "put-back", binaries::resolver().await.unwrap());
    migrate.args(["migrate", "--put-back", "5000"]).run(SOON).await.unwrap().success().unwrap();
    let resolver = build().start().await.unwrap();
    create(&resolver.api, AFTER, &mut public).await;
    nothing_is_another(&resolver.api, &public).await;
}
