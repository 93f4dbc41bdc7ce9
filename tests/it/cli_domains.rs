//! `resolver domain` and `resolver target`, run against a real server as people and scripts run
//! them.

use harness::Scratch;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{Alone, done, get, leads_to, visit},
};

const PUBLIC_URL: &str = "https://s.test";
const URL: &str = "https://example.com/page";
const BASE: &str = "https://example.com/base";
const MISSING: &str = "https://example.com/404";
const LOST: &str = "https://example.com/lost";

/// Returns the values in the rows with these names of a two-column table.
fn rows<'a, const COUNT: usize>(table: &'a str, names: [&str; COUNT]) -> [Option<&'a str>; COUNT] {
    names.map(|name| row(table, name))
}

/// Returns the domain with this name as the API lists it; null if there is none.
async fn listed(alone: &Alone, name: &str) -> Value {
    let answer = get(alone.api(), "domains").await;
    let domains = answer["domains"]["data"].as_array().unwrap();
    domains.iter().find(|domain| domain["domain"] == name).cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_add_a_domain_that_is_listed_behind_the_default_one() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let person = Person::at(&alone.resolver);
    assert_eq!(person.read(&["domain", "list"]).await, "domain  default\ns.test  yes\n");

    let set = ["domain", "redirects", "go.example", "--base", BASE, "--regular-404", MISSING];
    let table = person.read(&set).await;
    let shown = rows(&table, ["domain", "base URL", "regular 404", "invalid short URL"]);
    assert_eq!(shown, [Some("go.example"), Some(BASE), Some(MISSING), None], "{table}");
    assert_eq!(visit(alone.api(), "go.example", "").await, leads_to(BASE));
    let change = ["domain", "redirects", "GO.example", "--no-base", "--invalid-short-url", LOST, "--json"];
    let changed = person.read_json(&change).await;
    let expected =
        json!({ "baseUrlRedirect": null, "regular404Redirect": MISSING, "invalidShortUrlRedirect": LOST });
    assert_eq!(changed, expected);
    assert_eq!(listed(&alone, "go.example").await["redirects"], expected);
    assert_eq!(visit(alone.api(), "go.example", "nowhere").await, leads_to(LOST));
    person.read(&["domain", "redirects", "DEFAULT", "--base", BASE]).await;
    assert_eq!(visit(alone.api(), "s.test", "").await, leads_to(BASE));

    let list = person.read(&["domain", "list"]).await;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= 80), "{list}");
    for (line, parts) in lines.iter().zip([
        ["domain ", "default", "base URL", "regular 404"],
        ["s.test ", "yes", "https://exa", ""],
        ["go.example ", "https://exa", "", ""],
    ]) {
        assert!(line.starts_with(parts[0]) && parts.iter().all(|part| line.contains(part)), "{list}");
    }
    let answer = person.read_json(&["domain", "list", "--json"]).await;
    assert_eq!(answer, get(alone.api(), "domains").await);
    assert_eq!(answer["domains"]["data"][0]["domain"], "s.test");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_renamed_and_switched_off_and_on_from_the_command_line() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let person = Person::at(&alone.resolver);
    // Ports and non-ASCII letters have to be escaped in the path.
    for (name, kept) in [
        ("go.example", "go.example"),
        ("go.example:8080", "go.example:8080"),
        ("münchen.de", "xn--mnchen-3ya.de"),
    ] {
        person.read(&["link", "create", URL, "--slug", "promo", "--domain", name]).await;
        let host = format!("new-{kept}");
        let host = host.as_str();
        let edit = ["domain", "edit", name, "--name", host, "--disable", "--protocol", "http"];
        let table = person.read(&edit).await;
        let shown = rows(&table, ["domain", "default", "enabled", "protocol"]);
        assert_eq!(shown, [Some(host), Some("no"), Some("no"), Some("http")], "{table}");
        let domain = listed(&alone, host).await;
        assert_eq!((&domain["enabled"], &domain["protocol"]), (&json!(false), &json!("http")));
        assert_eq!(listed(&alone, kept).await, Value::Null);
        assert_eq!(visit(alone.api(), host, "promo").await, (404, None));

        let edit = ["domain", "edit", host, "--enable", "--protocol", "default", "--json"];
        let edited = person.read_json(&edit).await;
        assert_eq!((&edited["enabled"], &edited["protocol"]), (&json!(true), &Value::Null));
        assert_eq!(edited, listed(&alone, host).await);
        assert_eq!(visit(alone.api(), host, "promo").await, leads_to(URL));
    }
    let table = person.read(&["domain", "edit", "DEFAULT", "--disable"]).await;
    assert_eq!(rows(&table, ["domain", "default", "enabled"]), [Some("s.test"), Some("yes"), Some("no")]);
    let list = person.read(&["domain", "list"]).await;
    assert!(list.lines().nth(1).is_some_and(|line| line.ends_with("disabled")), "{list}");
    person.read(&["domain", "edit", "s.test", "--enable"]).await;
    assert_eq!(listed(&alone, "s.test").await["enabled"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_domains_are_imported_on_another_server_and_a_repetition_changes_nothing() {
    let (from, to) = (Alone::start_at(PUBLIC_URL).await, Alone::start_at("https://t.test").await);
    let (source, target) = (Person::at(&from.resolver), Person::at(&to.resolver));
    let statements = json!([{ "relation": ["delegate_permission/common.handle_all_urls"],
        "target": { "namespace": "android_app", "package_name": "com.example",
            "sha256_cert_fingerprints": ["AB:CD"] } }]);
    let everything = json!({ "enabled": false, "trackVisitors": false, "protocol": "http",
        "ignoreCase": true, "ignoreTrailing": true, "catchAll": true, "extraPath": "append",
        "crossOrigin": true, "crawlable": true, "confirmLimited": true,
        "expiredUrl": "https://example.com/over", "queryTemplate": "a={code}",
        "appleAppSiteAssociation": { "applinks": { "details": [{ "appID": "A.b", "paths": ["*"] }] } },
        "assetLinks": statements });
    source.read(&["domain", "redirects", "go.example", "--base", BASE, "--regular-404", MISSING]).await;
    done(from.api(), Method::PATCH, "domains/go.example", Some(everything)).await;
    source.read(&["domain", "redirects", "two.example", "--invalid-short-url", LOST]).await;
    source.read(&["domain", "edit", "DEFAULT", "--ignore-case"]).await;
    // These are on both servers: a setting that the file has otherwise, and a domain that it has
    // not.
    target.read(&["domain", "redirects", "two.example", "--base", BASE]).await;
    target.read(&["domain", "redirects", "here.example", "--base", BASE]).await;

    let scratch = Scratch::new().unwrap();
    let list = source.read(&["domain", "list", "--json"]).await;
    let file = scratch.file("domains.json", &list).unwrap().display().to_string();
    let import = ["domain", "import", &*file, "--json"];
    let before = get(to.api(), "domains").await;
    let told = target.read_json(&import).await;
    assert_eq!((told["changes"].as_array().unwrap().len(), &told["dryRun"]), (19, &json!(true)), "{told}");
    assert_eq!(get(to.api(), "domains").await, before, "a dry run");
    let table = target.read(&["domain", "import", &file, "--yes"]).await;
    assert!(table.contains("two.example  baseUrlRedirect") && table.contains("(file)"), "{table}");
    assert_eq!(target.read(&["domain", "import", &file, "--yes"]).await, "no changes\n");

    for name in ["go.example", "two.example"] {
        assert_eq!(listed(&to, name).await, listed(&from, name).await);
    }
    assert_eq!(listed(&to, "t.test").await["ignoreCase"], true);
    assert_eq!(listed(&to, "here.example").await["redirects"]["baseUrlRedirect"], BASE);
    let wrong = scratch.file("wrong.json", "{}").unwrap().display().to_string();
    let failure = target.fail(&["domain", "import", &wrong], 64).await;
    assert!(failure.contains("expected the output of resolver domain list --json"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_links_lead_nowhere_that_a_rule_denies_until_it_is_removed() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let person = Person::at(&alone.resolver);
    assert_eq!(person.read(&["target", "list"]).await, "no rules: links may lead to any host\n");
    assert_eq!(person.read(&["target", "deny", "*.Evil.example"]).await, "*.evil.example: denied\n");
    let denied = async |url: &str| {
        let refused = person.fail(&["link", "create", url], 64).await;
        assert!(refused.contains("longUrl: the target rules of this service do not allow"), "{refused}");
    };
    denied("https://a.evil.example/").await;
    person.read(&["link", "create", "https://evil.example/"]).await;
    assert_eq!(person.read(&["target", "allow", "fine.evil.example"]).await, "fine.evil.example: allowed\n");
    person.read(&["link", "create", "https://fine.evil.example/"]).await;
    let list = person.read(&["target", "list"]).await;
    let expected = "pattern            links\n*.evil.example     denied\nfine.evil.example  allowed\n";
    assert_eq!(list, expected);
    let answer = person.read_json(&["target", "list", "--json"]).await;
    assert_eq!(answer, get(alone.api(), "targets").await);
    assert_eq!(answer["targets"]["data"][0], json!({ "pattern": "*.evil.example", "allowed": false }));

    person.read(&["target", "deny", "*"]).await;
    denied(URL).await;
    assert_eq!(person.read(&["target", "remove", "*"]).await, "*: removed\n");
    person.read(&["link", "create", URL]).await;
    assert_eq!(person.read(&["target", "remove", "*.evil.example"]).await, "*.evil.example: removed\n");
    person.read(&["link", "create", "https://a.evil.example/"]).await;
    let gone = person.fail(&["target", "remove", "*.evil.example"], 66).await;
    assert!(gone.contains("404") && gone.contains("*.evil.example"), "{gone}");
    for pattern in ["[::1]", "短い.example"] {
        person.read(&["target", "deny", pattern]).await;
        person.read(&["target", "remove", pattern]).await;
    }
    let left = get(alone.api(), "targets").await;
    assert_eq!(left["targets"]["data"], json!([{ "pattern": "fine.evil.example", "allowed": true }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_about_hosts_is_one_line_and_its_code_says_who_can_mend_it() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let mut person = Person::at(&alone.resolver);
    for name in ["one.example", "two.example"] {
        person.read(&["domain", "redirects", name, "--base", URL]).await;
    }
    let before = get(alone.api(), "domains").await;
    for (args, code, part) in [
        (&["domain", "edit", "one.example"][..], 64, "at least one flag"),
        (&["domain", "redirects", "three.example"], 64, "at least one flag"),
        // As a path segment this name would be the call that adds a domain.
        (&["domain", "edit", "redirects", "--name", "three.example"], 64, "NAME redirects"),
        (&["domain", "edit", "..", "--disable"], 64, "NAME .."),
        (&["domain", "edit", "one.example", "--name", "a b"], 64, "domain: expected a host name"),
        (&["domain", "edit", "one.example", "--name", "two.example"], 64, "409"),
        (&["domain", "edit", "DEFAULT", "--name", "three.example"], 64, "--public-url"),
        (&["domain", "edit", "three.example", "--disable"], 66, "\"three.example\""),
        (&["domain", "edit", "one.example/visits", "--disable"], 66, "404"),
        (&["domain", "redirects", "127.0.0.1", "--base", URL], 64, "domain: expected a host name"),
        (&["domain", "redirects", "one.example", "--base", "ftp://a.b"], 64, "baseUrlRedirect: expected"),
        (&["target", "deny", "https://a.b/"], 64, "pattern: expected a host such as example.com"),
        (&["target", "remove", ""], 64, "PATTERN"),
        (&["target", "remove", "a/b"], 66, "404"),
    ] {
        let failure = person.fail(args, code).await;
        assert!(failure.contains(part), "{args:?}: {failure}");
    }
    assert_eq!(get(alone.api(), "domains").await, before, "nothing has changed");
    assert_eq!(get(alone.api(), "targets").await["targets"]["data"], json!([]));

    person.key = alone.api_key(&["create", "--name", "reader", "--scopes", "read"]).await;
    person.read(&["domain", "list"]).await;
    for args in [&["domain", "edit", "one.example", "--disable"][..], &["target", "list"]] {
        let forbidden = person.fail(args, 64).await;
        assert!(forbidden.contains("403") && forbidden.contains("admin"), "{forbidden}");
    }
}
