//! Properties of a link that an export preserves, and the import of links whose protection the
//! export format lacks.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Finished, Launch, Postgres, Resolver, Scratch, binaries, secret, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{SOON, call, done, expect_problem, get, leads_to};

const URL: &str = "https://example.com/page";
const RUN_WITHIN: Duration = Duration::from_secs(60);

/// A deployment of one resolver, with the folder in which its commands run.
struct Side {
    scratch: Scratch,
    resolver: Resolver,
    database: Option<String>,
}

impl Side {
    async fn start(database: Option<String>, code_key: Option<&Path>) -> Self {
        let scratch = Scratch::new().unwrap();
        if let Some(key) = code_key {
            let folder = scratch.folder("data").unwrap();
            std::fs::copy(key, folder.join("code.key")).unwrap();
        }
        let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
        let builder = builder.args(["--tell-gone"]);
        let builder = match &database {
            Some(url) => {
                harness::migrate(&scratch, url).await.unwrap().success().unwrap();
                builder.database(url)
            }
            None => builder,
        };
        let resolver = builder.start().await.unwrap();
        Self { scratch, resolver, database }
    }

    fn code_key(&self) -> PathBuf {
        self.scratch.path().join("data/code.key")
    }

    async fn run(&self, args: &[&str]) -> Finished {
        let launch = Launch::new(&self.scratch, "command", binaries::resolver().await.unwrap()).args(args);
        let launch = match &self.database {
            Some(url) => launch.args(["--database", url]),
            None => launch,
        };
        launch.run(RUN_WITHIN).await.unwrap()
    }

    async fn key(&self, name: &str) -> harness::Api {
        let made = self.run(&["api-key", "create", "--name", name]).await.success().unwrap();
        self.resolver.api.with_key(made.stdout.trim())
    }

    /// Exports all links and returns the exported text and its path.
    async fn export(&self, name: &str) -> (String, String) {
        let path = self.scratch.path().join(name);
        let shown = path.display().to_string();
        self.run(&["export", "--out", &shown]).await.success().unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "hashes of passwords are nobody else's to read");
        (std::fs::read_to_string(path).unwrap(), shown)
    }

    async fn import(&self, args: &[&str]) -> (Value, String) {
        let imported = self.run(&[&["import", "--json"], args].concat()).await;
        let told: Value = serde_json::from_str(&imported.stdout).unwrap();
        let code = if told["refused"] == 0 { 0 } else { 65 };
        assert_eq!(imported.code(), Some(code), "{imported:?}");
        (told, imported.stderr)
    }

    async fn follow(&self, code: &str) -> (u16, Option<String>) {
        self.resolver.api.follow(code).await.unwrap()
    }

    /// Sends the password form of a link and returns the status of the response.
    async fn unlock(&self, code: &str, password: &str) -> u16 {
        let api = &self.resolver.api;
        let form = format!("password={}", password.replace(' ', "+"));
        let request = api.http().post(format!("{}/{code}", api.url())).body(form);
        request
            .header("content-type", "application/x-www-form-urlencoded")
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    }
}

/// Creates links that use every property. Returns the minted codes of the first link and of the
/// deleted one.
async fn fill(side: &Side) -> (String, String) {
    let api = &side.resolver.api;
    let minted = api.create(URL).await.unwrap().code;
    for wish in [
        json!({ "longUrl": URL, "customSlug": "locked", "password": "hush hush", "title": "=1+1", "tags": ["b|c", "a"],
            "description": "two\nlines", "redirectStatus": 307, "extraPath": "append",
            "expiredUrl": "https://example.org/over",
            "preview": { "title": "=P", "description": "a\nb", "image": "https://example.org/a.png" }, "crawlable": true, "forwardQuery": false }),
        json!({ "longUrl": URL, "customSlug": "spent", "maxVisits": 3, "validUntil": "2090-01-01T00:00:00+00:00" }),
        json!({ "longUrl": URL, "customSlug": "ruled", "domain": "other.example", "validSince": "2020-01-01T00:00:00+00:00" }),
        json!({ "longUrl": URL, "customSlug": "off", "enabled": false, "externalId": "sku 7" }),
        json!({ "longUrl": URL, "customSlug": "gone", "tags": ["was"], "password": "hush hush" }),
        json!({ "longUrl": URL, "customSlug": "blocked" }),
        json!({ "longUrl": URL, "customSlug": "blocked-later" }),
    ] {
        api.create_with(&wish).await.unwrap();
    }
    let rules = json!({ "redirectRules": [{ "longUrl": "https://example.org/", "conditions": [
        { "type": "query-param", "matchKey": "a", "matchValue": "b" }, { "type": "device", "matchValue": "ios" }] }] });
    let editor = side.key("editor").await;
    done(&editor, Method::POST, "short-urls/ruled/redirect-rules?domain=other.example", Some(rules)).await;
    done(&editor, Method::PATCH, "short-urls/off", Some(json!({ "title": "T" }))).await;
    let rename = json!({ "oldName": "a", "newName": "fooRenamed 2" });
    assert_eq!(call(&editor, Method::PUT, "tags", Some(rename)).await.status, 204);
    for _ in 0..2 {
        assert_eq!(side.follow("spent").await.0, 302);
    }
    let deleted = editor.create(URL).await.unwrap().code;
    for code in ["gone", "blocked-later", &deleted] {
        assert_eq!(call(&editor, Method::DELETE, &format!("short-urls/{code}"), None).await.status, 204);
    }
    for code in ["blocked", "blocked-later"] {
        let reason = Some(json!({ "reason": "phishing" }));
        done(&editor, Method::POST, &format!("short-urls/{code}/block"), reason).await;
    }
    (minted, deleted)
}

/// Returns the lines of an export in sorted order, for a comparison that ignores order.
fn sorted(export: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = export.lines().collect();
    lines.sort_unstable();
    lines
}

async fn a_round_trip_changes_nothing(from: &Side, to: &Side, same_key: bool) {
    let (minted, deleted) = fill(from).await;
    let (first, path) = from.export("first.ndjson").await;
    assert_eq!(first.lines().count(), 2 + 9, "{first}");
    let (told, warned) = to.import(&[&path]).await;
    assert_eq!(
        (&told["stored"], &told["refused"], &told["disabled"]),
        (&json!(9), &json!(0), &json!(0)),
        "{told}"
    );
    assert_eq!(warned, "", "all of it came along");
    let (second, second_path) = to.export("second.ndjson").await;
    assert_eq!(sorted(&first), sorted(&second));
    if same_key {
        assert_eq!(first, second, "in the same order, too");
    }
    let (again, _) = to.import(&[&second_path]).await;
    assert_eq!((&again["stored"], &again["refused"]), (&json!(0), &json!(0)), "nothing comes twice: {again}");

    assert_eq!(to.follow(&minted).await, leads_to(URL));
    assert_eq!(to.follow("locked").await.0, 200, "visitors are asked for the password");
    assert_eq!(to.unlock("locked", "wrong").await, 403);
    assert_eq!(to.unlock("locked", "hush hush").await, 303);
    for code in ["off", "gone", &deleted] {
        assert_ne!(to.follow(code).await.0, 302, "{code}");
    }
    let spent = wait::until(SOON, "the last use is spent", async || to.follow("spent").await.0 != 302);
    spent.await.unwrap();
    let rules = get(&to.resolver.api, "short-urls/ruled/redirect-rules?domain=other.example").await;
    assert_eq!(rules["redirectRules"][0]["conditions"].as_array().unwrap().len(), 2, "{rules}");
    let restored = done(&to.resolver.api, Method::POST, "short-urls/gone/restore", None).await;
    assert_eq!((&restored["tags"], &restored["hasPassword"]), (&json!(["was"]), &json!(true)));
    for code in ["blocked", "blocked-later"] {
        assert_eq!(to.follow(code).await, (410, None), "{code}");
        let wish = json!({ "longUrl": URL, "customSlug": code });
        let refused = call(&to.resolver.api, Method::POST, "short-urls", Some(wish)).await;
        expect_problem(&refused, 400, "non-unique-slug");
    }
    let locked = get(&to.resolver.api, "short-urls/locked").await;
    assert_eq!(locked["tags"], json!(["b|c", "fooRenamed 2"]), "tags stay as they were renamed");
    assert_eq!(locked["extraPath"], "append");
    assert_eq!(locked["expiredUrl"], "https://example.org/over");
    let preview = json!({ "title": "=P", "description": "a\nb", "image": "https://example.org/a.png" });
    assert_eq!(locked["preview"], preview);
    let off = get(&to.resolver.api, "short-urls/off").await;
    assert_eq!((&off["version"], &off["enabled"], &off["title"]), (&json!(1), &json!(false), &json!("T")));
    let again = json!({ "longUrl": "https://example.org/7", "externalId": "sku 7" });
    let again = done(&to.resolver.api, Method::POST, "short-urls", Some(again)).await;
    assert_eq!((&again["shortCode"], &again["externalId"]), (&json!("off"), &json!("sku 7")));
    if same_key {
        // A minted code is never reused, even after its link was deleted.
        let wish = json!({ "longUrl": URL, "customSlug": deleted });
        let refused = call(&to.resolver.api, Method::POST, "short-urls", Some(wish)).await;
        expect_problem(&refused, 400, "non-unique-slug");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_carries_what_protects_a_link_from_sqlite_to_sqlite() {
    let from = Side::start(None, None).await;
    let to = Side::start(None, Some(&from.code_key())).await;
    a_round_trip_changes_nothing(&from, &to, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_carries_what_protects_a_link_from_postgres_to_postgres_with_another_code_key() {
    let postgres = Postgres::start().await.unwrap();
    let client = postgres.client().await.unwrap();
    client.batch_execute("CREATE DATABASE copy").await.unwrap();
    let url = postgres.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let from = Side::start(Some(url.clone()), None).await;
    let to = Side::start(Some(format!("{server}/copy")), None).await;
    a_round_trip_changes_nothing(&from, &to, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_whose_password_cannot_come_along_is_never_published_by_default() {
    let from = Side::start(None, None).await;
    let api = &from.resolver.api;
    for (slug, password) in [("open", None), ("locked", Some("hush hush"))] {
        let wish = json!({ "longUrl": URL, "customSlug": slug, "password": password });
        api.create_with(&wish).await.unwrap();
    }
    let table = from.scratch.path().join("links.csv").display().to_string();
    let exported = from.run(&["export", "--format", "csv", "--out", &table]).await.success().unwrap();
    assert!(
        exported.stderr.contains("1 links have a property that a table does not carry: password"),
        "{exported:?}"
    );
    let kutt = json!({ "data": [
        { "address": "open", "target": URL, "visit_count": 3, "password": false },
        { "address": "locked", "target": URL, "visit_count": 5, "password": true },
    ] });
    let kutt = from.scratch.file("kutt.json", &kutt.to_string()).unwrap().display().to_string();
    for source in [["--from", "csv", &table], ["--from", "kutt", &kutt]] {
        let to = Side::start(None, None).await;
        let (told, warned) = to.import(&source).await;
        assert_eq!((&told["stored"], &told["disabled"]), (&json!(2), &json!(1)), "{told}");
        assert_eq!(told["leftOut"], json!({ "password": 1 }));
        assert!(warned.contains("1 links are stored disabled"), "{warned}");
        if source[1] == "kutt" {
            let (again, _) = to.export("again.ndjson").await;
            assert!(again.contains(r#""visits":3"#) && again.contains(r#""visits":5"#), "{again}");
        }
        assert_eq!(to.follow("open").await, leads_to(URL));
        assert_eq!(to.follow("locked").await.0, 410, "its code is kept, and leads nowhere");
        if source[1] == "kutt" {
            imported_visits_count(&to).await;
        }

        let strict = Side::start(None, None).await;
        let (told, _) = strict.import(&[&source[..], &["--unprotected", "refuse"]].concat()).await;
        assert_eq!((&told["stored"], &told["refused"], &told["disabled"]), (&json!(1), &json!(1), &json!(0)));
        assert!(
            told["reasons"][0].as_str().unwrap().contains("item 2: password is not part of the file"),
            "{told}"
        );
        assert_eq!(strict.follow("locked").await.0, 404);

        let careless = Side::start(None, None).await;
        let (told, warned) = careless.import(&[&source[..], &["--unprotected", "open"]].concat()).await;
        assert_eq!((&told["stored"], &told["leftOut"]["password"]), (&json!(2), &json!(1)));
        assert!(warned.contains("password"), "{warned}");
        assert_eq!(careless.follow("locked").await, leads_to(URL));
    }
}

/// The link was imported with 3 visits, and visited once.
async fn imported_visits_count(to: &Side) {
    let api = &to.resolver.api;
    let total = async || get(api, "short-urls/open").await["visitsSummary"]["total"].clone();
    wait::until(SOON, "the visit is added", async || total().await == 4).await.unwrap();
    let deleted = done(api, Method::DELETE, "short-urls/open/visits", None).await;
    assert_eq!(deleted["deletedVisits"], 4);
    wait::until(SOON, "no visit is left", async || total().await == 0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_was_cut_short_or_is_of_a_later_version_is_refused() {
    let side = Side::start(None, None).await;
    side.resolver.api.create_with(&json!({ "longUrl": URL, "customSlug": "x" })).await.unwrap();
    let (whole, _) = side.export("whole.ndjson").await;
    let to = Side::start(None, None).await;
    let cut = whole.rsplitn(3, '\n').last().unwrap();
    for (text, part) in [
        (cut.to_owned(), "the export ends without its last line"),
        (whole.replace("\"version\":1", "\"version\":2"), "and this release reads version 1"),
        (whole.split_once('\n').unwrap().1.to_owned(), "the first line of an export is missing"),
    ] {
        let file = to.scratch.file("bad.ndjson", &text).unwrap().display().to_string();
        let refused = to.run(&["import", &file]).await;
        assert_eq!(refused.code(), Some(65), "{refused:?}");
        assert!([&refused.stderr, &refused.stdout].iter().any(|text| text.contains(part)), "{refused:?}");
    }
    let rejects = to.scratch.path().join("rejects.txt");
    let later = whole.replace("\"longUrl\"", "\"blockedUntil\":1,\"longUrl\"");
    let file = to.scratch.file("later.ndjson", &later).unwrap().display().to_string();
    let (told, _) = to.import(&["--rejects", &rejects.display().to_string(), &file]).await;
    let mode = std::fs::metadata(&rejects).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "reasons quote what links have");
    assert_eq!(told["refused"], 1, "a field of a later version may protect the link: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_a_database_that_is_not_there_say_so_at_once_and_leave_none_behind() {
    let scratch = Scratch::new().unwrap();
    let file = scratch.file("links.csv", "code,url\nx,https://example.com/\n").unwrap();
    let file = file.display().to_string();
    let commands: [&[&str]; 6] = [
        &["import", "--from", "csv", &file],
        &["export"],
        &["api-key", "list"],
        &["api-key", "create", "--name", "x"],
        &["api-key", "revoke", "--name", "x"],
        &["api-key", "rotate", "--name", "x"],
    ];
    // Shorter than the deadline for a server that is still starting: the commands do not wait for
    // one.
    let at_once = Duration::from_secs(20);
    for args in commands {
        let launch = Launch::new(&scratch, "command", binaries::resolver().await.unwrap());
        let refused = launch.args(args).run(at_once).await.unwrap();
        assert_eq!(refused.code(), Some(64), "{args:?}: {refused:?}");
        let expected =
            "--database sqlite:./data/shortmint.db: there is no such file: start `resolver` on it first";
        assert!(refused.stderr.contains(expected), "{args:?}: {refused:?}");
    }
    assert!(!scratch.path().join("data").exists(), "nothing is left behind");

    // An empty file, as an earlier version left behind, or as a person may have created it.
    scratch.folder("data").unwrap();
    std::fs::write(scratch.path().join("data/shortmint.db"), "").unwrap();
    for args in commands {
        let launch = Launch::new(&scratch, "command", binaries::resolver().await.unwrap());
        let refused = launch.args(args).run(at_once).await.unwrap();
        assert_eq!(refused.code(), Some(64), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains("run `resolver migrate`"), "{args:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_there_is_named() {
    let scratch = Scratch::new().unwrap();
    let resolver = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
    let _resolver = resolver.start().await.unwrap();
    for args in [
        &["import", "nowhere.csv"][..],
        &["import", "--rejects", "nowhere/rejects.txt", "data/code.key"],
        &["export", "--out", "nowhere/links.ndjson"],
    ] {
        let launch = Launch::new(&scratch, "command", binaries::resolver().await.unwrap());
        let refused = launch.args(args).run(RUN_WITHIN).await.unwrap();
        assert_eq!(refused.code(), Some(64), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains("nowhere") && refused.stderr.contains("No such file"), "{refused:?}");
    }
}
