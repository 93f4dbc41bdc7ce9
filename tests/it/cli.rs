//! `resolver link` and `resolver completions`, run against a real server as people and scripts run
//! them.

use std::time::Duration;

use harness::{Finished, Launch, Resolver, Scratch, binaries, net};
use serde_json::{Value, json};

/// Longer than the deadline of a call with all its retries.
const SOON: Duration = Duration::from_secs(45);
const URL: &str = "https://example.com/page";

/// A user of the command line, configured for one server and API key.
pub(crate) struct Person {
    scratch: Scratch,
    pub(crate) server: String,
    pub(crate) key: String,
}

impl Person {
    pub(crate) fn at(resolver: &Resolver) -> Self {
        let api = &resolver.api;
        Self { scratch: Scratch::new().unwrap(), server: api.url().to_owned(), key: api.key().to_owned() }
    }

    async fn launch(&self, args: &[&str]) -> Launch {
        let launch = Launch::new(&self.scratch, "cli", binaries::resolver().await.unwrap()).args(args);
        let launch = launch.env("RESOLVER_SERVER", &self.server).env("RESOLVER_API_KEY", &self.key);
        launch.env("COLUMNS", "80")
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Finished {
        self.launch(args).await.run(SOON).await.unwrap()
    }

    /// Runs a command that must succeed and returns its standard output.
    pub(crate) async fn read(&self, args: &[&str]) -> String {
        self.run(args).await.success().unwrap().stdout
    }

    pub(crate) async fn read_json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.read(args).await).unwrap()
    }

    /// Runs a command that must fail with this exit code and returns its single line of error.
    /// Asserts that standard output is empty, so that a script cannot mistake it for a result.
    pub(crate) async fn fail(&self, args: &[&str], code: i32) -> String {
        let Finished { status, stdout, stderr } = self.run(args).await;
        assert_eq!(status.code(), Some(code), "{args:?}: {stderr}");
        assert_eq!(stdout, "", "{args:?}");
        assert!(stderr.starts_with("resolver: ") && stderr.trim_end().lines().count() == 1, "{stderr}");
        stderr
    }
}

/// Returns the value in the row with this name of a two-column table.
pub(crate) fn row<'a>(table: &'a str, name: &str) -> Option<&'a str> {
    table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  ").map(str::trim))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_made_shown_listed_changed_and_deleted_from_the_command_line() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let person = Person::at(&resolver);
    let printed =
        person.read(&["link", "create", URL, "--tag", "one", "--tag", "two", "--title", "短い"]).await;
    let short_url = printed.strip_suffix('\n').unwrap();
    let code = short_url.strip_prefix(&format!("{}/", resolver.api.url())).unwrap();
    assert_eq!(resolver.api.follow(code).await.unwrap(), (302, Some(URL.to_owned())));

    let table = person.read(&["link", "get", code]).await;
    let shown = ["short URL", "code", "long URL", "title", "tags", "version", "valid until"];
    let expected = [Some(short_url), Some(code), Some(URL), Some("短い"), Some("one, two"), Some("0"), None];
    assert_eq!(shown.map(|name| row(&table, name)), expected, "{table}");

    let long = format!("{URL}/{}", "x".repeat(500));
    let slug = "sale/über 短い";
    let second = person.read_json(&["link", "create", &long, "--slug", slug, "--json"]).await;
    assert_eq!((&second["shortCode"], &second["longUrl"]), (&json!("sale/über-短い"), &json!(long)));
    let list = person.read(&["link", "list"]).await;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("code "), "{list}");
    assert!(lines[1].starts_with("sale/über-短い  https://example.com/") && lines[1].contains('…'), "{list}");
    assert!(lines[2].starts_with(code) && lines.len() == 3, "{list}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{list}");

    let slug = "sale/über-短い";
    let edit =
        ["link", "edit", slug, "--long-url", URL, "--max-visits", "3", "--if-version", "0", "--disable"];
    let table = person.read(&edit).await;
    let shown = ["long URL", "max visits", "enabled", "version"].map(|name| row(&table, name));
    assert_eq!(shown, [Some(URL), Some("3"), Some("no"), Some("1")], "{table}");
    let late = person.fail(&edit, 64).await;
    assert!(late.contains("412"), "{late}");
    let edit = ["link", "edit", slug, "--no-max-visits", "--enable", "--tag", "three", "--json"];
    let edited = person.read_json(&edit).await;
    assert_eq!((&edited["meta"]["maxVisits"], &edited["enabled"]), (&Value::Null, &json!(true)));
    assert_eq!((&edited["tags"], &edited["version"]), (&json!(["three"]), &json!(2)));

    let late = person.fail(&["link", "delete", slug, "--if-version", "1"], 64).await;
    assert!(late.contains("412"), "{late}");
    assert_eq!(
        person.read(&["link", "delete", slug, "--if-version", "2"]).await,
        format!("{slug}: deleted\n")
    );
    let gone = person.fail(&["link", "get", slug], 66).await;
    assert!(gone.contains("404") && gone.contains(slug), "{gone}");
    assert_eq!(resolver.api.follow("sale/%C3%BCber-%E7%9F%AD%E3%81%84").await.unwrap().0, 404);
    let deleted = person.read(&["link", "list", "--deleted"]).await;
    assert!(deleted.contains(slug) && deleted.lines().count() == 2, "{deleted}");
    let table = person.read(&["link", "restore", slug]).await;
    assert_eq!((row(&table, "tags"), row(&table, "version")), (Some("three"), Some("4")), "{table}");
    assert_eq!(resolver.api.follow("sale/%C3%BCber-%E7%9F%AD%E3%81%84").await.unwrap().0, 302);
    assert_eq!(person.read(&["link", "list", "--deleted"]).await, "no links\n");
    person.fail(&["link", "restore", slug], 66).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_get_the_answers_as_json_and_all_pages_as_lines() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let person = Person::at(&resolver);
    let mut codes = Vec::new();
    for n in 0..5 {
        let tag = if n % 2 == 0 { "even" } else { "odd" };
        let url = format!("{URL}?n={n}");
        let created =
            person.read_json(&["link", "create", &url, "--tag", tag, "--tag", "all", "--json"]).await;
        let code = created["shortCode"].as_str().unwrap().to_owned();
        assert_eq!(person.read_json(&["link", "get", &code, "--json"]).await["longUrl"], url);
        codes.push(code);
    }
    let codes_of = |lines: &str| -> Vec<String> {
        let read = |line: &str| {
            serde_json::from_str::<Value>(line).unwrap()["shortCode"].as_str().unwrap().to_owned()
        };
        lines.lines().map(read).collect()
    };
    let all = person.read(&["link", "list", "--ndjson", "--per-page", "2"]).await;
    assert_eq!(codes_of(&all), codes);
    let odd = person.read(&["link", "list", "--ndjson", "--tag", "odd", "--tag", "all"]).await;
    assert_eq!(codes_of(&odd), [codes[1].clone(), codes[3].clone()]);
    let any = person.read(&["link", "list", "--ndjson", "--tag", "odd", "--tag", "even", "--any-tag"]).await;
    assert_eq!(codes_of(&any), codes);
    let page = person.read_json(&["link", "list", "--json", "--per-page", "2", "--page", "3"]).await;
    assert_eq!(page["shortUrls"]["pagination"]["pagesCount"], 3);
    assert_eq!(page["shortUrls"]["data"].as_array().unwrap().len(), 1);
    let first = person.read(&["link", "list", "--per-page", "2", "--order", "longUrl-ASC"]).await;
    assert!(first.ends_with("page 1 of 3, 5 links in all\n"), "{first}");
    assert_eq!(person.read(&["link", "list", "--search", "nothing like it"]).await, "no links\n");

    let again = ["link", "create", URL, "--idempotency-key", "nightly-7"];
    assert_eq!(person.read(&again).await, person.read(&again).await);
    let other = ["link", "create", "https://example.org/", "--idempotency-key", "nightly-7"];
    let refused = person.fail(&other, 64).await;
    assert!(refused.contains("Idempotency-Key"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_comes_from_a_file_or_the_standard_input_and_can_be_taken_away() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let person = Person::at(&resolver);
    let file = person.scratch.file("password", "geheim\nnot this\n").unwrap();
    let path = file.to_str().unwrap();
    person.read(&["link", "create", URL, "--slug", "locked", "--password-file", path]).await;
    let has_password =
        async || person.read_json(&["link", "get", "locked", "--json"]).await["hasPassword"].clone();
    assert_eq!(has_password().await, true);
    person.read(&["link", "edit", "locked", "--no-password"]).await;
    assert_eq!(has_password().await, false);
    let edit = person.launch(&["link", "edit", "locked", "--password-file", "-"]).await;
    edit.stdin(&file).run(SOON).await.unwrap().success().unwrap();
    assert_eq!(has_password().await, true);
    let empty = person.fail(&["link", "edit", "locked", "--password-file", "-"], 64).await;
    assert!(empty.contains("--password-file"), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_one_line_and_its_code_says_who_can_mend_it() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let mut person = Person::at(&resolver);
    let create = ["link", "create", "nowhere", "--max-visits", "0", "--slug", "a?b"];
    let invalid = person.fail(&create, 64).await;
    for part in
        ["longUrl: expected", "maxVisits: expected a whole number from 1", "customSlug: control characters"]
    {
        assert!(invalid.contains(part), "{invalid}");
    }
    person.read(&["link", "create", URL, "--slug", "promo"]).await;
    let taken = person.fail(&["link", "create", URL, "--slug", "promo"], 64).await;
    assert!(taken.contains("\"promo\" is already in use"), "{taken}");
    let nothing = person.fail(&["link", "edit", "promo"], 64).await;
    assert!(nothing.contains("at least one flag"), "{nothing}");
    // Taken as a path this would be the link's visits, and the command would delete those.
    person.fail(&["link", "delete", "promo/visits"], 64).await;
    let usage = person.run(&["link", "edit", "promo", "--title", "x", "--no-title"]).await;
    assert_eq!(usage.code(), Some(64), "{usage:?}");

    person.key = "another-key-that-nobody-made".to_owned();
    let stranger = person.fail(&["link", "get", "promo"], 64).await;
    assert!(stranger.contains("API key") && !stranger.contains(&person.key), "{stranger}");
    person.server = format!("http://{}", net::free_addr().unwrap());
    for args in [&["link", "get", "promo"][..], &["link", "create", URL]] {
        let alone = person.fail(args, 69).await;
        assert!(alone.contains(&person.server) && !alone.contains(&person.key), "{alone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_are_told_of_the_subcommands_without_a_server_or_a_key() {
    let scratch = Scratch::new().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let launch = Launch::new(&scratch, "completions", binaries::resolver().await.unwrap());
        let script = launch.args(["completions", shell]).run(SOON).await.unwrap().success().unwrap().stdout;
        for word in [
            "link",
            "api-key",
            "password-file",
            "if-version",
            "domain",
            "no-invalid-short-url",
            "target",
            "deny",
        ] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}
