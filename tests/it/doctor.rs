//! `resolver doctor`: a sound deployment has no fault, each fault is found, nothing is changed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{
    Authority, Cluster, Finished, PgBouncer, PoolMode, Postgres, Resolver, ResolverBuilder, Scratch,
    SecretFolder, secret, wait,
};
use serde_json::Value;
use store::postgres::migrate_to;

const SOON: Duration = Duration::from_secs(30);
/// The exit code if something is wrong.
const WRONG: i32 = 69;
/// A spool that fits on any disk.
const SMALL_SPOOL: [&str; 2] = ["--limit", "visits-spool-mib=64"];
const RUNBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/runbooks");

/// The findings of a run, by their checks.
struct Report {
    checks: Vec<Value>,
    finished: Finished,
}

impl Report {
    async fn of(resolver: &ResolverBuilder) -> Self {
        let finished = resolver.doctor(SOON).await.unwrap();
        let json: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        Self { checks: json["checks"].as_array().unwrap().clone(), finished }
    }

    /// Returns the checks with this verdict.
    fn all(&self, verdict: &str) -> Vec<&str> {
        let found = self.checks.iter().filter(|finding| finding["verdict"] == verdict);
        found.map(|finding| finding["check"].as_str().unwrap()).collect()
    }

    /// Asserts that these checks are wrong and no others, and that each is explained.
    #[track_caller]
    fn has_wrong(&self, checks: &[&str]) {
        assert_eq!(self.all("wrong"), checks, "{:#?}", self.checks);
        assert_eq!(self.finished.code(), Some(if checks.is_empty() { 0 } else { WRONG }));
        for finding in self.checks.iter().filter(|finding| finding["verdict"] == "wrong") {
            assert!(finding["why"].is_string() && finding["do"].is_string(), "{finding}");
        }
    }

    /// Asserts that all is well, and that these checks were made.
    #[track_caller]
    fn is_well(&self, checks: &[&str]) {
        self.has_wrong(&[]);
        for verdict in ["warning", "unknown"] {
            assert!(self.all(verdict).is_empty(), "{:#?}", self.checks);
        }
        let made = self.all("ok");
        for check in checks {
            assert!(made.contains(check), "{check} is not among {made:?}");
        }
    }

    /// Returns what a check has found.
    #[track_caller]
    fn found(&self, check: &str) -> &str {
        let finding = self.checks.iter().find(|finding| finding["check"] == check);
        finding.unwrap_or_else(|| panic!("no {check} in {:#?}", self.checks))["found"].as_str().unwrap()
    }
}

/// Returns the files below a folder, with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            // An empty folder is a trace too.
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_alone_is_looked_at_before_its_start_beside_it_and_after_its_end() {
    let (scratch, key) = (Scratch::new().unwrap(), secret::random_hex().unwrap());
    let builder = Resolver::builder(&scratch, "resolver-0", &key).unwrap().args(SMALL_SPOOL);
    let before = Report::of(&builder).await;
    before.has_wrong(&[]);
    assert_eq!(before.all("unknown"), ["stored data", "process", "public URL"]);
    let data = scratch.path().join("data");
    assert!(!data.exists(), "nothing is created");

    let mut resolver = builder.clone().start().await.unwrap();
    let link = resolver.api.create("https://example.com/").await.unwrap();
    let beside = Report::of(&builder).await;
    beside.is_well(&["configuration", "database", "schema", "code key", "keyspaces", "witness", "ledger"]);
    beside.is_well(&["webhooks", "indexes", "spool", "process", "public URL", "host"]);
    assert!(!beside.finished.stdout.contains(&key) && !beside.finished.stderr.contains(&key));
    assert_eq!(resolver.api.follow(&link.code).await.unwrap().0, 302);

    // The log of a database that was killed is only read as well.
    resolver.process.kill_now().unwrap();
    let killed = files(&data);
    Report::of(&builder).await.has_wrong(&[]);
    assert_eq!(files(&data), killed);
    resolver.restart().await.unwrap();
    resolver.stop(SOON).await.unwrap();
    let stopped = files(&data);
    let after = Report::of(&builder).await;
    after.has_wrong(&[]);
    assert!(after.all("ok").contains(&"keyspaces"), "{:#?}", after.checks);
    assert_eq!(files(&data), stopped);

    fs::write(data.join("code.key"), secret::random_hex().unwrap()).unwrap();
    fs::remove_file(data.join("ledger.json")).unwrap();
    fs::write(data.join("shortmint.db.witness"), "cut").unwrap();
    Report::of(&builder).await.has_wrong(&["code key", "witness", "ledger"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_flags_that_a_server_would_not_start_with_are_found() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", "unused-unused-unused").unwrap();
    let file = scratch.file("file", "").unwrap();
    let below = format!("{}/spool", file.display());
    let spool = builder.clone().args(["--visits-spool", &below]);
    Report::of(&spool).await.has_wrong(&["spool"]);

    let authority = Authority::new("doctor").unwrap();
    let expired = authority.issue_expired(&["localhost"]).unwrap();
    let expired = SecretFolder::create(scratch.path().join("expired"), authority.pem(), &expired).unwrap();
    let expired = builder.clone().args(SMALL_SPOOL).args(["--tls", &expired.entries(&["cert", "key"])]);
    Report::of(&expired).await.has_wrong(&["certificate"]);

    let places = builder.clone().args(["--places", "nowhere.mmdb"]);
    let report = Report::of(&places).await;
    report.has_wrong(&["configuration"]);
    assert!(report.found("configuration").contains("--places nowhere.mmdb"), "{:#?}", report.checks);

    let behind = builder.public_url("https://s.invalid").args(SMALL_SPOOL);
    let report = Report::of(&behind).await;
    report.has_wrong(&[]);
    assert_eq!(report.all("warning"), ["proxies"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_sends_another_host_is_found() {
    let (scratch, key) = (Scratch::new().unwrap(), secret::random_hex().unwrap());
    let builder = Resolver::builder(&scratch, "resolver-0", &key).unwrap().args(SMALL_SPOOL);
    let _resolver = builder.clone().public_url("http://s.test").start().await.unwrap();
    Report::of(&builder).await.has_wrong(&["host"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_a_platform_is_looked_at_and_each_fault_around_it_is_found() {
    let cluster = Cluster::builder().on_one_postgres().etcd(1).issuers(1).resolvers(0);
    let mut cluster = cluster.start().await.unwrap();
    let builder = cluster.resolver("resolver-0").unwrap().args(SMALL_SPOOL);
    let resolver = builder.clone().start().await.unwrap();
    resolver.api.create("https://example.com/").await.unwrap();
    let report = Report::of(&builder).await;
    report.is_well(&[
        "database",
        "durability",
        "connections",
        "clock",
        "rights",
        "notifications",
        "schema",
        "code key",
        "keyspaces",
        "webhooks",
        "indexes",
        "visits",
        "issuers",
        "leader",
        "holder id",
    ]);
    faults_of_flags(&cluster, &builder).await;
    faults_of_roles(&cluster, &builder).await;

    // The same name, from a place where no process is.
    let twin = cluster.resolver("resolver-0").unwrap().args(SMALL_SPOOL);
    wait::until(SOON, "the issuer knows the holder", async || {
        Report::of(&twin).await.all("warning").contains(&"holder id")
    })
    .await
    .unwrap();

    cluster.issuers[0].process.kill_now().unwrap();
    Report::of(&builder).await.has_wrong(&["issuers", "leader"]);
    cluster.postgres.stop_fast().await.unwrap();
    let report = Report::of(&builder).await;
    assert!(report.all("wrong").starts_with(&["database", "issuers", "leader"]), "{:#?}", report.checks);
    assert!(report.all("unknown").contains(&"stored data"));
}

async fn faults_of_flags(cluster: &Cluster, builder: &ResolverBuilder) {
    let other = secret::random_hex().unwrap();
    let file = cluster.scratch.secret("other.key", &other).unwrap();
    let report = Report::of(&builder.clone().code_key_file(&file)).await;
    report.has_wrong(&["code key"]);
    assert!(!report.finished.stdout.contains(&other), "{:?}", report.finished);
    let redefined = builder.clone().keyspaces("default=5:0-9A-Za-z");
    Report::of(&redefined).await.has_wrong(&["keyspaces"]);
    let replica = builder.clone().args(["--read-database", "postgres://me@127.0.0.1:1/links"]);
    Report::of(&replica).await.has_wrong(&["replica"]);
    let many = builder.clone().args(["--limit", "database-connections=1000"]);
    Report::of(&many).await.has_wrong(&["connections"]);
}

/// Roles of the database with which a process would not work, or lose links.
async fn faults_of_roles(cluster: &Cluster, builder: &ResolverBuilder) {
    let sql = cluster.postgres.client().await.unwrap();
    let roles = "CREATE ROLE poor LOGIN; CREATE ROLE careless SUPERUSER LOGIN;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO poor;
         ALTER ROLE careless SET synchronous_commit = off";
    sql.batch_execute(roles).await.unwrap();
    let owner = cluster.postgres.url();
    let user = owner.strip_prefix("postgres://").unwrap().split('@').next().unwrap();
    let of = |role: &str| builder.clone().database(&owner.replacen(user, role, 1));
    let report = Report::of(&of("poor")).await;
    report.has_wrong(&["rights"]);
    assert!(report.found("rights").contains("link"), "{:#?}", report.checks);
    Report::of(&of("careless")).await.has_wrong(&["durability"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_behind_and_a_pooler_between_are_found() {
    let (scratch, postgres) = (Scratch::new().unwrap(), Postgres::start().await.unwrap());
    let builder = Resolver::builder(&scratch, "resolver-0", "unused-unused-unused").unwrap();
    let builder = builder.args(SMALL_SPOOL).database(&postgres.url());
    migrate_to(&postgres.url(), 30).await.unwrap();
    let report = Report::of(&builder).await;
    report.has_wrong(&["schema"]);
    assert!(report.found("schema").starts_with("at version 30,"), "{:#?}", report.checks);
    let sql = postgres.client().await.unwrap();
    let version = "SELECT max(version) FROM refinery_schema_history";
    assert_eq!(sql.query_one(version, &[]).await.unwrap().get::<_, i32>(0), 30, "nothing is migrated");

    let pooler = PgBouncer::start(&scratch, &postgres, PoolMode::Transaction).await.unwrap();
    let report = Report::of(&builder.database(&pooler.url())).await;
    assert!(report.all("wrong").contains(&"notifications"), "{:#?}", report.checks);
}

/// Returns the anchors of a page's sections.
fn anchors(page: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(RUNBOOKS).join(page)).unwrap_or_else(|_| panic!("no {page}"));
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| line.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-")).collect()
}

#[test]
fn each_runbook_that_is_named_has_the_section() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../resolver/src");
    let mut named = 0;
    for (path, content) in files(&Path::new(sources).join("doctor")) {
        let text = String::from_utf8(content).unwrap();
        for runbook in text.split('"').filter(|text| text.contains(".md#")) {
            let (page, anchor) = runbook.split_once('#').unwrap();
            assert!(anchors(page).iter().any(|known| known == anchor), "{runbook} in {}", path.display());
            named += 1;
        }
    }
    assert!(named > 10, "the sources name runbooks");
}
