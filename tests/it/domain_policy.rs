//! Permissions to add, change, list and remove domains, and the targets that a short domain
//! refuses.

use harness::{Api, Cluster};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, expect_problem, get, leads_to, listed, visit};

const PUBLIC_URL: &str = "https://s.test";
/// All scopes but `reserve`, `domains` and `admin`.
const SCOPES: &str = "create,read,edit,delete,visits";

/// Tries to create a link under a custom slug of a domain.
async fn try_pick(api: &Api, slug: &str, domain: Option<&str>, long_url: &str) -> harness::Answer {
    let wish = json!({ "longUrl": long_url, "customSlug": slug, "domain": domain });
    api.try_create_with(&wish).await.unwrap()
}

async fn pick(api: &Api, slug: &str, domain: Option<&str>) -> Value {
    let url = format!("https://example.org/{slug}?of={}", domain.unwrap_or("default"));
    try_pick(api, slug, domain, &url).await.success().unwrap().json().unwrap()
}

async fn names(api: &Api, query: &str) -> Vec<String> {
    let answer = get(api, &format!("domains{query}")).await;
    let domains = answer["domains"]["data"].as_array().unwrap();
    domains.iter().map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_its_schemes_own_port_is_the_host_itself() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    pick(api, "promo", None).await;
    pick(api, "promo", Some("one.example")).await;
    for domain in ["s.test:443", "s.test:80", "S.Test", "one.example:443", "one.example:80"] {
        let taken = try_pick(api, "promo", Some(domain), "https://evil.example/").await;
        expect_problem(&taken, 400, "non-unique-slug");
    }
    assert_eq!(names(api, "").await, ["s.test", "one.example"], "no domain was added");
    for host in ["s.test:443", "S.TEST.:80", "s.test:"] {
        let led = visit(api, host, "promo").await;
        assert_eq!(led, leads_to("https://example.org/promo?of=default"), "{host}");
    }
    assert_eq!(
        visit(api, "One.example:443", "promo").await,
        leads_to("https://example.org/promo?of=one.example")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_key_with_that_scope_adds_domains_and_only_so_many() {
    let alone = Alone::start(&["--limit", "domains=2"]).await;
    let admin = alone.api();
    let own = alone.with_new_key("own", &["--scopes", SCOPES, "--own-links-only"]).await;
    let adder = alone.with_new_key("adder", &["--scopes", "create,domains"]).await;
    let refused = try_pick(&own, "x", Some("github.example"), "https://example.org/").await;
    let problem = expect_problem(&refused, 403, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains("\"domains\""), "{problem}");
    pick(&adder, "x", Some("one.example")).await;
    pick(&own, "y", Some("one.example")).await;
    pick(admin, "x", Some("two.example")).await;
    for api in [&adder, admin] {
        let full = try_pick(api, "x", Some("three.example"), "https://example.org/").await;
        let problem = expect_problem(&full, 409, "about:blank");
        assert!(problem["detail"].as_str().unwrap().contains("--limit domains"), "{problem}");
    }
    let redirects = json!({ "domain": "three.example", "baseUrlRedirect": "https://example.org/" });
    let full = call(admin, Method::PATCH, "domains/redirects", Some(redirects)).await;
    expect_problem(&full, 409, "about:blank");
    assert_eq!(names(admin, "?all=true").await[1..], ["one.example", "two.example"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_links_is_removed_on_every_resolver_and_its_name_is_free_again() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    pick(&one, "shared", None).await;
    pick(&one, "promo", Some("one.example")).await;
    let remove = async |name: &str| call(&one, Method::DELETE, &format!("domains/{name}"), None).await;
    let problem = expect_problem(&remove("one.example").await, 409, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains("links"), "{problem}");
    expect_problem(&remove("DEFAULT").await, 409, "about:blank");
    expect_problem(&remove("none.example").await, 404, "domain-not-found");
    done_without_body(&one, "short-urls/promo?domain=one.example").await;
    let disable = Some(json!({ "enabled": false }));
    done(&one, Method::PATCH, "domains/one.example", disable).await;
    assert_eq!(visit(&other, "one.example", "shared").await.0, 404, "the domain is disabled");
    done_without_body(&one, "domains/one.example").await;
    let shared = leads_to("https://example.org/shared?of=default");
    assert_eq!(visit(&other, "one.example", "shared").await, shared, "it is nobody's host now");
    expect_problem(&remove("one.example").await, 404, "domain-not-found");
    let deleted = get(&one, "short-urls?deleted=true").await["shortUrls"]["data"][0].clone();
    assert_eq!((&deleted["shortCode"], &deleted["domain"]), (&json!("promo"), &json!("(removed)")));
    let log = get(&one, "audit").await["audit"]["data"].clone();
    let of_link = log.as_array().unwrap().iter().find(|entry| entry["action"] == "delete-link").unwrap();
    assert_eq!((&of_link["subject"], &of_link["domain"]), (&json!("promo"), &json!("(removed)")));
    let restore = "short-urls/promo/restore?domain=one.example";
    expect_problem(&call(&one, Method::POST, restore, None).await, 404, "short-url-not-found");
    pick(&one, "promo", Some("one.example")).await;
    let own = leads_to("https://example.org/promo?of=one.example");
    assert_eq!(visit(&other, "one.example", "promo").await, own);
}

/// The code of a deleted link is never reused, on a domain of its own either.
#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_removed_once_its_minted_links_are_deleted() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    let wish = json!({ "longUrl": "https://example.org/minted", "domain": "one.example" });
    let code = api.create_with(&wish).await.unwrap().code;
    let remove = async || call(api, Method::DELETE, "domains/one.example", None).await;
    let on_its_domain = |action: &str| format!("short-urls/{code}{action}?domain=one.example");
    expect_problem(&remove().await, 409, "about:blank");
    done_without_body(api, &on_its_domain("")).await;
    assert_eq!(visit(api, "one.example", &code).await.0, 404);
    assert_eq!(names(api, "").await, ["s.test"], "nothing is on the domain");
    let again = try_pick(api, &code, Some("one.example"), "https://example.org/").await;
    expect_problem(&again, 400, "non-unique-slug");
    let restored = done(api, Method::POST, &on_its_domain("/restore"), None).await;
    assert_eq!(restored["shortCode"], json!(code));
    assert_eq!(visit(api, "one.example", &code).await, leads_to("https://example.org/minted"));
    expect_problem(&remove().await, 409, "about:blank");
    done_without_body(api, &on_its_domain("")).await;

    let reason = Some(json!({ "reason": "phishing" }));
    done(api, Method::POST, &on_its_domain("/block"), reason).await;
    let problem = expect_problem(&remove().await, 409, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains("blocked"), "{problem}");
    done(api, Method::POST, &on_its_domain("/unblock"), None).await;
    done_without_body(api, "domains/one.example").await;
    pick(api, "other", Some("one.example")).await;
    let restored = call(api, Method::POST, &on_its_domain("/restore"), None).await;
    expect_problem(&restored, 404, "short-url-not-found");
    assert_eq!(visit(api, "one.example", &code).await.0, 404);
    assert_eq!(visit(api, "s.test", &code).await.0, 404);
}

async fn done_without_body(api: &Api, path: &str) {
    assert_eq!(call(api, Method::DELETE, path, None).await.status, 204, "{path}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limited_admin_keys_change_no_domain_of_others_and_rename_none() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let admin = alone.api();
    pick(admin, "promo", None).await;
    pick(admin, "promo", Some("one.example")).await;
    let own = alone.with_new_key("own", &["--own-links-only"]).await;
    let one = alone.with_new_key("one", &["--domain", "one.example"]).await;
    let before = names_and_settings(admin).await;
    for domain in ["s.test", "DEFAULT", "one.example", "new.example"] {
        let redirects = json!({ "domain": domain, "baseUrlRedirect": "https://evil.example/" });
        let refused = call(&own, Method::PATCH, "domains/redirects", Some(redirects)).await;
        expect_problem(&refused, 403, "about:blank");
        for change in [json!({ "enabled": false }), json!({ "domain": "evil.example" })] {
            let refused = call(&own, Method::PATCH, &format!("domains/{domain}"), Some(change)).await;
            expect_problem(&refused, 403, "about:blank");
        }
    }
    for name in ["github.example", "s.test:443", "one.example"] {
        let rename = Some(json!({ "domain": name }));
        let refused = call(&one, Method::PATCH, "domains/one.example", rename).await;
        expect_problem(&refused, 403, "about:blank");
    }
    for api in [&own, &one] {
        let refused = call(api, Method::DELETE, "domains/one.example", None).await;
        expect_problem(&refused, 403, "about:blank");
    }
    assert_eq!(names_and_settings(admin).await, before);
    assert_eq!(visit(admin, "s.test", "promo").await.0, 302);
    let disable = Some(json!({ "enabled": false }));
    assert_eq!(done(&one, Method::PATCH, "domains/one.example", disable).await["enabled"], false);
    let enable = || Some(json!({ "enabled": true }));
    let refused = call(&one, Method::PATCH, "domains/one.example", enable()).await;
    expect_problem(&refused, 403, "about:blank");
    assert_eq!(done(admin, Method::PATCH, "domains/one.example", enable()).await["enabled"], true);
}

async fn names_and_settings(api: &Api) -> Value {
    get(api, "domains").await
}

/// The cases are those of Shlink's own tests of `/domains` and `/domains/{domain}/visits`.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_the_domains_that_it_may_know_of() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let admin = alone.api();
    let author = alone.with_new_key("author", &["--scopes", "read,visits,create", "--own-links-only"]).await;
    pick(admin, "promo", Some("one.example")).await;
    pick(admin, "promo", Some("two.example")).await;
    pick(admin, "empty", Some("empty.example")).await;
    done_without_body(admin, "short-urls/empty?domain=empty.example").await;
    let redirects = json!({ "domain": "detached.example", "regular404Redirect": "https://example.org/" });
    done(admin, Method::PATCH, "domains/redirects", Some(redirects)).await;
    pick(&author, "mine", Some("two.example")).await;
    let domain = alone.with_new_key("domain", &["--scopes", "read,visits", "--domain", "one.example"]).await;

    let all = ["s.test", "detached.example", "one.example", "two.example"];
    assert_eq!(names(admin, "").await, all);
    assert_eq!(names(admin, "?all=true").await.len(), 5);
    for query in ["", "?all=true"] {
        assert_eq!(names(&author, query).await, ["s.test", "two.example"], "{query}");
        assert_eq!(names(&domain, query).await, ["one.example"], "{query}");
    }
    for (api, name, status) in [
        (admin, "empty.example", 200),
        (admin, "none.example", 404),
        (&author, "DEFAULT", 200),
        (&author, "two.example", 200),
        (&author, "one.example", 404),
        (&domain, "DEFAULT", 200),
        (&domain, "s.test", 200),
        (&domain, "one.example", 200),
        (&domain, "two.example", 404),
    ] {
        let answer = call(api, Method::GET, &format!("domains/{name}/visits"), None).await;
        assert_eq!(answer.status, status, "{name}");
    }
    assert!(listed(&domain, "domain=DEFAULT").await.is_empty());
    done_without_body(admin, "short-urls/mine?domain=two.example").await;
    assert_eq!(names(&author, "").await, ["s.test"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_refused_where_a_short_link_of_the_service_could_be_and_nowhere_else() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    pick(api, "promo", Some("github.example")).await;
    for (long_url, is_taken) in [
        ("https://s.test/abc", true),
        ("http://S.test:443/x/y?z", true),
        ("https://s.test/", false),
        ("https://s.test", false),
        ("https://s.test/rest/v3/openapi.json", false),
        ("https://github.example/promo", false),
        ("https://github.example/some/project", false),
    ] {
        let answer = api.try_create(long_url).await.unwrap();
        assert_eq!(answer.status, if is_taken { 400 } else { 200 }, "{long_url}: {answer:?}");
    }
    let itself = "https://GitHub.example:443/%70romo2";
    let circle = try_pick(api, "promo2", Some("github.example"), itself).await;
    assert_eq!(expect_problem(&circle, 400, "invalid-data")["invalidElements"], json!(["longUrl"]));
    pick(api, "promo2", Some("github.example")).await;
    let link = "short-urls/promo2?domain=github.example";
    let circle = call(api, Method::PATCH, link, Some(json!({ "longUrl": itself }))).await;
    expect_problem(&circle, 400, "invalid-data");
    let rules = json!({ "redirectRules": [{ "longUrl": itself, "conditions": [] }] });
    let circle =
        call(api, Method::POST, "short-urls/promo2/redirect-rules?domain=github.example", Some(rules)).await;
    expect_problem(&circle, 400, "invalid-data");
}
