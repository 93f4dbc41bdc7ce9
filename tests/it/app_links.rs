//! App links: a domain serves the files by which systems open its links in apps, and rules lead
//! browsers within apps elsewhere.

use harness::{Answer, Api, Resolver, Scratch, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{
        Alone, Place, SOON, call, done, expect_problem, get, leads_to, on_either_store, plus, visit,
    },
};

const APPLE: &str = ".well-known/apple-app-site-association";
const ANDROID: &str = ".well-known/assetlinks.json";
const ONE: &str = "one.example";
const URL: &str = "https://example.com/page";
const SAFARI: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";
const CHROME: &str = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36";
const INSTAGRAM: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 337.0.3.23.54 (iPhone15,3; iOS 17_5; en_US; en; scale=3.00; 1290x2796; 615584364)";
const FACEBOOK: &str = "Mozilla/5.0 (Linux; Android 14; SM-A546B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/131.0.6778.81 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/491.0.0.59.78;]";
const TIKTOK: &str = "Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/120.0.6099.43 Mobile Safari/537.36 trill_310503 BytedanceWebview/d8a21c6";
const LINE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Safari Line/14.10.0";

/// Returns a file for Apple's systems. Its members are not in the order of the alphabet, which is
/// kept.
fn association(app: &str) -> Value {
    let id = format!("ABCDE12345.{app}");
    let details = json!({ "appIDs": [id], "components": [{ "/": "*", "#": "x" }] });
    json!({ "webcredentials": {}, "applinks": { "details": [details] } })
}

/// Returns a file for Android.
fn statements(app: &str) -> Value {
    let fingerprints = json!(["AB:CD"]);
    let target =
        json!({ "namespace": "android_app", "package_name": app, "sha256_cert_fingerprints": fingerprints });
    json!([{ "relation": ["delegate_permission/common.handle_all_urls"], "target": target }])
}

async fn edit(api: &Api, domain: &str, change: Value) -> Value {
    done(api, Method::PATCH, &format!("domains/{domain}"), Some(change)).await
}

async fn send(api: &Api, method: Method, host: &str, path: &str) -> Answer {
    let request = api.http().request(method, format!("{}/{path}", api.url())).header("host", host);
    Answer::to(request).await.unwrap()
}

/// Requests a file, which has to be there, as systems do.
async fn file(api: &Api, host: &str, path: &str) -> String {
    let answer = send(api, Method::GET, host, path).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("public,max-age=300"));
    let head = send(api, Method::HEAD, host, path).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")), "{head:?}");
    assert_eq!((head.body.as_str(), head.header("content-length")), ("", answer.header("content-length")));
    answer.body
}

async fn make(api: &Api, domain: &str, fields: Value) {
    api.create_with(&plus(json!({ "longUrl": URL, "domain": domain }), &fields)).await.unwrap();
}

on_either_store!(each_domain_has_its_own_files);

async fn each_domain_has_its_own_files(place: Place) {
    let [api, _] = &place.apis();
    make(api, ONE, json!({ "customSlug": "promo" })).await;
    let (of_default, of_one) = (association("default"), association("one"));
    let both = json!({ "appleAppSiteAssociation": of_one, "assetLinks": statements("one") });
    let edited = edit(api, ONE, both).await;
    assert_eq!((&edited["appleAppSiteAssociation"], &edited["assetLinks"]), (&of_one, &statements("one")));
    for path in [APPLE, ANDROID] {
        assert_eq!(visit(api, "s.test", path).await, (404, None), "{path}: other domains have none");
    }
    edit(api, "DEFAULT", json!({ "appleAppSiteAssociation": of_default })).await;
    assert_eq!(file(api, "s.test", APPLE).await, of_default.to_string());
    assert_eq!(file(api, ONE, APPLE).await, of_one.to_string());
    assert_eq!(file(api, ONE, ANDROID).await, statements("one").to_string());
    assert_eq!(visit(api, "s.test", ANDROID).await, (404, None));
    for path in ["apple-app-site-association", ".well-known/assetlinks.json/", ".well-known/other"] {
        assert_eq!(visit(api, ONE, path).await, (404, None), "{path}");
    }
    assert_eq!(visit(api, ONE, "promo").await, leads_to(URL));

    let listed = get(api, "domains").await["domains"]["data"].clone();
    assert_eq!(listed[0]["appleAppSiteAssociation"], of_default);
    assert_eq!((&listed[0]["assetLinks"], &listed[1]["assetLinks"]), (&Value::Null, &statements("one")));
    edit(api, ONE, json!({ "enabled": false })).await;
    assert_eq!(visit(api, ONE, APPLE).await, (404, None), "its links lead nowhere");
    let cleared = edit(api, ONE, json!({ "enabled": true, "appleAppSiteAssociation": null })).await;
    assert_eq!(cleared["appleAppSiteAssociation"], Value::Null);
    assert_eq!(visit(api, ONE, APPLE).await, (404, None));
    file(api, ONE, ANDROID).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_a_path_of_a_file_is_as_any_other() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, ONE, json!({ "customSlug": "*", "extraPath": "ignore" })).await;
    edit(api, ONE, json!({ "catchAll": true })).await;
    assert_eq!(visit(api, ONE, ANDROID).await, leads_to(URL));
    edit(api, ONE, json!({ "assetLinks": [] })).await;
    assert_eq!(file(api, ONE, ANDROID).await, "[]");
    assert_eq!(visit(api, ONE, APPLE).await, leads_to(URL));
    edit(api, ONE, json!({ "assetLinks": null })).await;
    assert_eq!(visit(api, ONE, ANDROID).await, leads_to(URL));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_no_visit() {
    // One thread records visits in their order.
    let alone = Alone::start(&["--limit", "threads=1"]).await;
    let api = alone.api();
    edit(api, "DEFAULT", json!({ "assetLinks": statements("app") })).await;
    for _ in 0..3 {
        file(api, "s.test", ANDROID).await;
    }
    assert_eq!(visit(api, "s.test", "no/such-link").await.0, 404);
    let orphans = async || get(api, "visits/orphan").await["visits"].clone();
    let is_stored = async || orphans().await["pagination"]["totalItems"] != 0;
    wait::until(SOON, "the visit without a link is stored", is_stored).await.unwrap();
    let visits = orphans().await;
    assert_eq!(visits["pagination"]["totalItems"], 1, "{visits}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_no_system_reads_are_refused() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let with_comment = |length: usize| {
        let mut file = association("app");
        file["comment"] = json!("x".repeat(length));
        file
    };
    let most = 128 * 1024 - with_comment(0).to_string().len();
    for (field, value) in [
        ("appleAppSiteAssociation", json!({ "webcredentials": { "apps": [] } })),
        ("appleAppSiteAssociation", with_comment(most + 1)),
        ("assetLinks", association("app")),
        ("assetLinks", json!([{ "relation": ["x"] }])),
    ] {
        let refused = call(api, Method::PATCH, "domains/DEFAULT", Some(json!({ field: value }))).await;
        assert_eq!(expect_problem(&refused, 400, "invalid-data")["invalidElements"], json!([field]));
    }
    assert_eq!(visit(api, "s.test", APPLE).await, (404, None));
    edit(api, "DEFAULT", json!({ "appleAppSiteAssociation": with_comment(most) })).await;
    assert_eq!(file(api, "s.test", APPLE).await.len(), 128 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_keys_that_edit_the_domain_set_its_files() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    for domain in [ONE, "two.example"] {
        make(admin, domain, json!({ "customSlug": "promo" })).await;
    }
    edit(admin, ONE, json!({ "assetLinks": statements("own") })).await;
    let editor = alone.with_new_key("editor", &["--scopes", "read,create,edit"]).await;
    let own = alone.with_new_key("own", &["--own-links-only"]).await;
    let two = alone.with_new_key("two", &["--domain", "two.example"]).await;
    let set = async |api: &Api, domain: &str| {
        let (apple, android) = (association("other"), statements("other"));
        let change = json!({ "appleAppSiteAssociation": apple, "assetLinks": android });
        call(api, Method::PATCH, &format!("domains/{domain}"), Some(change)).await
    };
    for domain in [ONE, "DEFAULT"] {
        for api in [&editor, &own] {
            assert_eq!(set(api, domain).await.status, 403, "{domain}");
        }
        expect_problem(&set(&two, domain).await, 404, "domain-not-found");
    }
    assert_eq!(file(admin, ONE, ANDROID).await, statements("own").to_string());
    assert_eq!(visit(admin, ONE, APPLE).await, (404, None));
    assert_eq!(visit(admin, "s.test", APPLE).await, (404, None));
    assert_eq!(set(&two, "two.example").await.status, 200);
    assert_eq!(file(admin, "two.example", ANDROID).await, statements("other").to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_digests_of_the_files() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for change in [json!([]), statements("first"), statements("first"), Value::Null] {
        edit(api, "DEFAULT", json!({ "assetLinks": change })).await;
    }
    let log = get(api, "audit").await["audit"]["data"].clone();
    let changed = |back: usize| &log[back]["details"]["changed"];
    let empty = "2 bytes, SHA-256 4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
    let first = changed(0)["assetLinks"]["from"].as_str().unwrap();
    let length = statements("first").to_string().len();
    assert!(first.starts_with(&format!("{length} bytes, SHA-256 ")), "{log}");
    assert_eq!(*changed(0), json!({ "assetLinks": { "from": first, "to": null } }));
    assert_eq!(*changed(1), json!({}));
    assert_eq!(*changed(2), json!({ "assetLinks": { "from": empty, "to": first } }));
    assert_eq!(*changed(3), json!({ "assetLinks": { "from": null, "to": empty } }));
    assert!(!log.to_string().contains("fingerprints"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_at_the_root_of_a_host_and_not_below_its_path() {
    let builder = Resolver::embedded().unwrap();
    let url = format!("http://{}/s", builder.listen());
    let resolver = builder.public_url(&url).start().await.unwrap();
    let api = &resolver.api;
    edit(api, "DEFAULT", json!({ "assetLinks": [] })).await;
    let host = url.trim_start_matches("http://").trim_end_matches("/s");
    assert_eq!(file(api, host, ANDROID).await, "[]");
    assert_eq!(visit(api, host, &format!("s/{ANDROID}")).await, (404, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_sends_files_and_says_which_a_domain_has() {
    let alone = Alone::start(&[]).await;
    let (person, scratch) = (Person::at(&alone.resolver), Scratch::new().unwrap());
    let path = scratch.path().join("assetlinks.json");
    let text = path.to_str().unwrap();
    std::fs::write(&path, format!("\u{feff}{:#}\n", statements("app"))).unwrap();
    let table = person.read(&["domain", "edit", "DEFAULT", "--asset-links", text]).await;
    let shown =
        |table: &str| ["Apple app links", "Android app links"].map(|name| row(table, name) == Some("yes"));
    assert_eq!(shown(&table), [false, true], "{table}");
    assert_eq!(file(alone.api(), "s.test", ANDROID).await, statements("app").to_string());
    let table = person.read(&["domain", "edit", "DEFAULT", "--no-asset-links"]).await;
    assert_eq!(shown(&table), [false, false], "{table}");
    std::fs::write(&path, "{").unwrap();
    for (file, reason) in [(text, "expected JSON"), ("/no/such/file", "No such file")] {
        let refused = person.fail(&["domain", "edit", "DEFAULT", "--asset-links", file], 64).await;
        assert!(refused.contains("--asset-links") && refused.contains(reason), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_leads_browsers_within_apps_elsewhere_on_both_paths() {
    for fast_path in ["on", "off"] {
        let alone = Alone::start(&["--tune", &format!("fast-path={fast_path}")]).await;
        let api = alone.api();
        let code = api.create(URL).await.unwrap().code;
        let follow = async |user_agent: &str| {
            let request = api.http().get(format!("{}/{code}", api.url())).header("user-agent", user_agent);
            let answer = Answer::to(request).await.unwrap();
            (answer.status, answer.header("location").map(str::to_owned))
        };
        assert_eq!(follow(INSTAGRAM).await, leads_to(URL), "it is in the caches");
        let condition =
            |kind: &str, value: &str| json!({ "type": kind, "matchKey": null, "matchValue": value });
        let rule = |url: &str, conditions: Value| json!({ "longUrl": url, "conditions": conditions });
        let (in_app, android) = (condition("browser", "in-app"), condition("device", "android"));
        let (chrome, ios) = (condition("browser", "chrome"), condition("device", "ios"));
        let rules = json!({ "redirectRules": [
            rule("https://out.example/android", json!([in_app, android])),
            rule("https://out.example/ios", json!([in_app])),
            rule("https://chrome.example/", json!([chrome])),
            rule("https://ios.example/", json!([ios])),
        ] });
        let path = format!("short-urls/{code}/redirect-rules");
        let set = done(api, Method::POST, &path, Some(rules)).await;
        assert_eq!(set["redirectRules"][1]["conditions"], json!([in_app]));
        for (user_agent, url) in [
            (INSTAGRAM, "https://out.example/ios"),
            (LINE, "https://out.example/ios"),
            (FACEBOOK, "https://out.example/android"),
            (TIKTOK, "https://out.example/android"),
            (CHROME, "https://chrome.example/"),
            (SAFARI, "https://ios.example/"),
            ("curl/8.0", URL),
        ] {
            assert_eq!(follow(user_agent).await, leads_to(url), "{fast_path} {user_agent}");
        }
    }
}
