//! Several domains on one service: which link a visitor follows on each, and how soon a change of a
//! domain shows on every resolver.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use harness::{Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, expect_problem, get, leads_to, listed, visit};

const PUBLIC_URL: &str = "https://s.test";
/// How soon a domain's own link replaces the default domain's link of the same code, with a margin
/// for a busy machine.
const SHADOWED_WITHIN: Duration = Duration::from_secs(5);

/// Creates a link whose long URL names its domain.
async fn pick(api: &Api, slug: &str, domain: Option<&str>) -> Value {
    let url = format!("https://example.com/{slug}?of={}", domain.unwrap_or("default"));
    let wish = json!({ "longUrl": url, "customSlug": slug, "domain": domain });
    api.create_with(&wish).await.unwrap().json
}

fn of(slug: &str, domain: &str) -> (u16, Option<String>) {
    leads_to(&format!("https://example.com/{slug}?of={domain}"))
}

async fn edit(api: &Api, domain: &str, change: Value) -> Value {
    done(api, Method::PATCH, &format!("domains/{domain}"), Some(change)).await
}

/// Returns the names of domains in list order.
async fn names(api: &Api) -> Vec<String> {
    let answer = get(api, "domains").await;
    let domains = answer["domains"]["data"].as_array().unwrap();
    domains.iter().map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_is_led_by_the_domains_own_link_or_else_by_the_default_ones_and_by_no_other() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    for domain in [None, Some("one.example"), Some("two.example:8080")] {
        let made = pick(api, "promo", domain).await;
        assert_eq!(made["domain"], json!(domain));
        let shown = format!("https://{}/promo", domain.unwrap_or("s.test"));
        assert_eq!(made["shortUrl"], shown, "the public URL's protocol unless the domain has its own");
        let taken = json!({ "longUrl": "https://example.com/", "customSlug": "promo", "domain": domain });
        let problem = expect_problem(&api.try_create_with(&taken).await.unwrap(), 400, "non-unique-slug");
        assert_eq!(problem["domain"].as_str(), domain);
    }
    pick(api, "only-one", Some("one.example")).await;
    pick(api, "only-default", Some("s.test")).await;
    for (host, path, expected) in [
        ("s.test", "promo", of("promo", "default")),
        ("nobody.example", "promo", of("promo", "default")),
        ("one.example", "promo", of("promo", "one.example")),
        ("ONE.Example", "promo", of("promo", "one.example")),
        ("one.example:443", "promo", of("promo", "one.example")),
        ("one.example:81", "promo", of("promo", "default")),
        ("sub.one.example", "promo", of("promo", "default")),
        ("two.example:8080", "promo", of("promo", "two.example:8080")),
        ("two.example", "promo", of("promo", "default")),
        ("one.example", "only-one", of("only-one", "one.example")),
        ("s.test", "only-one", (404, None)),
        ("two.example:8080", "only-one", (404, None)),
        ("one.example", "only-default", of("only-default", "s.test")),
    ] {
        // The second response may come from a cache.
        for _ in 0..2 {
            assert_eq!(visit(api, host, path).await, expected, "{host}/{path}");
        }
    }
    assert_eq!(names(api).await, ["s.test", "one.example", "two.example:8080"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn minted_codes_and_those_by_digest_belong_to_their_domain_too() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    for (domain, wish) in [
        (None, json!({})),
        (Some("one.example"), json!({})),
        (Some("one.example"), json!({ "strategy": "hash" })),
        (Some("one.example"), json!({ "pathPrefix": "go/" })),
        (Some("one.example"), json!({ "tags": ["t"], "findIfExists": true })),
        (Some("one.example"), json!({ "customSlug": "Abc123" })),
    ] {
        let mut request = wish.clone();
        request["longUrl"] = json!("https://example.com/");
        request["domain"] = json!(domain);
        let made = api.create_with(&request).await.unwrap();
        let there = leads_to("https://example.com/");
        let elsewhere = if domain.is_some() { (404, None) } else { there.clone() };
        assert_eq!(visit(api, domain.unwrap_or("s.test"), &made.code).await, there, "{request}");
        for host in ["s.test", "nobody.example"] {
            assert_eq!(visit(api, host, &made.code).await, elsewhere, "{request}");
        }
        let query = domain.map_or(String::new(), |domain| format!("?domain={domain}"));
        assert_eq!(get(api, &format!("short-urls/{}{query}", made.code)).await, made.json);
        let elsewhere = if domain.is_some() { "" } else { "?domain=one.example" };
        let missing = call(api, Method::GET, &format!("short-urls/{}{elsewhere}", made.code), None).await;
        expect_problem(&missing, 404, "short-url-not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_means_the_link_of_the_domain_that_it_names_and_no_other() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    for domain in [None, Some("one.example"), Some("two.example")] {
        pick(api, "promo", domain).await;
    }
    pick(api, "own", Some("one.example")).await;
    for (query, expected) in [
        ("domain=one.example", &["own", "promo"][..]),
        ("domain=ONE.example", &["own", "promo"]),
        ("domain=DEFAULT", &["promo"]),
        ("domain=s.test", &["promo"]),
        ("domain=none.example", &[]),
        ("searchTerm=ONE.EXAMPLE&orderBy=dateCreated-ASC&domain=one.example", &["promo", "own"]),
        ("", &["own", "promo", "promo", "promo"]),
    ] {
        assert_eq!(listed(api, query).await, expected, "{query}");
    }
    let promo = |query: &str| format!("short-urls/promo{query}");
    let title = |title: &str| Some(json!({ "title": title }));
    done(api, Method::PATCH, &promo("?domain=one.example"), title("One")).await;
    done(api, Method::PATCH, &promo("?domain=s.test"), title("Default")).await;
    for (query, shown) in
        [("", json!("Default")), ("?domain=one.example", json!("One")), ("?domain=two.example", Value::Null)]
    {
        assert_eq!(get(api, &promo(query)).await["title"], shown, "{query}");
    }
    let missing = call(api, Method::GET, &promo("?domain=none.example"), None).await;
    let problem = expect_problem(&missing, 404, "short-url-not-found");
    assert_eq!((&problem["shortCode"], &problem["domain"]), (&json!("promo"), &json!("none.example")));

    assert_eq!(call(api, Method::DELETE, &promo("?domain=one.example"), None).await.status, 204);
    assert_eq!(visit(api, "one.example", "promo").await, of("promo", "default"), "it is free again");
    assert_eq!(visit(api, "two.example", "promo").await, of("promo", "two.example"));
    pick(api, "promo", Some("one.example")).await;
    assert_eq!(visit(api, "one.example", "promo").await, of("promo", "one.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_keeps_its_links_under_another_name_and_begins_them_as_it_says() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    pick(api, "promo", Some("old.example")).await;
    pick(api, "promo", Some("other.example")).await;
    let edited = edit(api, "OLD.example", json!({ "domain": "New.Example", "protocol": "http" })).await;
    assert_eq!((&edited["domain"], &edited["protocol"]), (&json!("new.example"), &json!("http")));
    assert_eq!(visit(api, "new.example", "promo").await, of("promo", "old.example"));
    assert_eq!(visit(api, "old.example", "promo").await.0, 404);
    let shown = get(api, "short-urls/promo?domain=new.example").await;
    assert_eq!(shown["shortUrl"], "http://new.example/promo");
    edit(api, "new.example", json!({ "protocol": null })).await;
    let shown = get(api, "short-urls/promo?domain=new.example").await;
    assert_eq!(shown["shortUrl"], "https://new.example/promo");

    for taken in ["other.example", "s.test"] {
        let refused = call(api, Method::PATCH, "domains/new.example", Some(json!({ "domain": taken }))).await;
        expect_problem(&refused, 409, "about:blank");
    }
    for (name, change) in
        [("DEFAULT", json!({ "domain": "x.example" })), ("s.test", json!({ "protocol": "http" }))]
    {
        let refused = call(api, Method::PATCH, &format!("domains/{name}"), Some(change)).await;
        expect_problem(&refused, 400, "invalid-data");
    }
    assert_eq!(names(api).await, ["s.test", "new.example", "other.example"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_disabled_domain_lead_nowhere_until_it_is_enabled() {
    let alone = Alone::start_at(PUBLIC_URL).await;
    let api = alone.api();
    pick(api, "promo", Some("one.example")).await;
    pick(api, "shared", None).await;
    let led = async || {
        let mut led = Vec::new();
        for (host, path) in [("one.example", "promo"), ("one.example", "shared"), ("s.test", "shared")] {
            led.push(visit(api, host, path).await.0);
        }
        led
    };
    assert_eq!(led().await, [302, 302, 302]);
    assert_eq!(edit(api, "one.example", json!({ "enabled": false })).await["enabled"], false);
    assert_eq!(led().await, [404, 404, 302]);
    assert_eq!(get(api, "short-urls/promo?domain=one.example").await["enabled"], true, "the link itself is");
    edit(api, "one.example", json!({ "enabled": true })).await;
    edit(api, "DEFAULT", json!({ "enabled": false })).await;
    assert_eq!((led().await[0], led().await[2]), (302, 404));
    edit(api, "s.test", json!({ "enabled": true })).await;
    assert_eq!(led().await, [302, 302, 302]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_domain_shows_on_every_resolver_when_its_caller_is_answered() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    pick(&one, "shared", None).await;
    for round in 0..3 {
        let domain = format!("d{round}.example");
        let slug = format!("pick{round}");
        assert_eq!(visit(&other, &domain, "shared").await, of("shared", "default"));
        pick(&one, &slug, Some(&domain)).await;
        assert_eq!(visit(&other, &domain, &slug).await, of(&slug, &domain), "the domain is known");
        edit(&one, &domain, json!({ "enabled": false })).await;
        assert_eq!(visit(&other, &domain, &slug).await, (404, None));
        assert_eq!(visit(&other, "nobody.example", "shared").await, of("shared", "default"));
        edit(&other, &domain, json!({ "enabled": true, "domain": format!("new-{domain}") })).await;
        let renamed = format!("new-{domain}");
        assert_eq!(visit(&one, &renamed, &slug).await, of(&slug, &domain));
        assert_eq!(visit(&one, &domain, &slug).await, (404, None));
        let redirects = json!({ "domain": renamed, "baseUrlRedirect": "https://base.example/" });
        done(&one, Method::PATCH, "domains/redirects", Some(redirects)).await;
        assert_eq!(visit(&other, &renamed, "").await, leads_to("https://base.example/"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domains_new_link_takes_the_default_ones_place_on_every_resolver_that_is_asked_all_the_time() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    pick(&one, "first", Some("one.example")).await;
    for slug in ["promo", "Abc123"] {
        pick(&one, slug, None).await;
        let stop = Arc::new(AtomicBool::new(false));
        let hammering = tokio::spawn({
            let (other, stop) = (other.clone(), Arc::clone(&stop));
            async move {
                let mut is_own = false;
                while !stop.load(Ordering::Relaxed) {
                    let led = visit(&other, "one.example", slug).await;
                    assert!(
                        led == of(slug, "one.example") || !is_own && led == of(slug, "default"),
                        "{led:?}"
                    );
                    is_own |= led == of(slug, "one.example");
                }
            }
        });
        let before = async || visit(&other, "one.example", slug).await == of(slug, "default");
        wait::until(SHADOWED_WITHIN, "the default domain's link leads there", before).await.unwrap();
        pick(&one, slug, Some("one.example")).await;
        assert_eq!(
            visit(&one, "one.example", slug).await,
            of(slug, "one.example"),
            "its own is right at once"
        );
        let shown = async || visit(&other, "one.example", slug).await == of(slug, "one.example");
        wait::until(SHADOWED_WITHIN, "the domain's link leads there", shown).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        hammering.await.unwrap();
        assert_eq!(visit(&other, "two.example", slug).await, of(slug, "default"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_links_of_domains_lead_on_and_no_absence_is_reported() {
    let mut cluster = Cluster::builder().start().await.unwrap();
    let api = cluster.resolvers[0].api.clone();
    pick(&api, "own", Some("one.example")).await;
    pick(&api, "shared", None).await;
    let led = async || [visit(&api, "one.example", "own").await, visit(&api, "s.test", "shared").await];
    let expected = [of("own", "one.example"), of("shared", "default")];
    assert_eq!(led().await, expected);
    cluster.postgres.stop_fast().await.unwrap();
    // For 3 s, which is longer than a copy of the domains is trusted.
    for _ in 0..6 {
        assert_eq!(led().await, expected);
        for (host, path) in [("one.example", "none"), ("nobody.example", "none"), ("nobody.example", "own")] {
            assert_eq!(visit(&api, host, path).await.0, 503, "{host}/{path}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A stale copy of the domains still decides where known links lead, and reports no absence: the
/// host may have become a domain.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_that_there_is_no_link_on_a_host_that_may_have_become_a_domain() {
    let cluster = Cluster::builder().start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let own = api.url().strip_prefix("http://").unwrap();
    pick(api, "shared", None).await;
    pick(api, "promo", Some("one.example")).await;
    assert_eq!(visit(api, "nobody.example", "absent").await.0, 404);
    let mut client = cluster.postgres.client().await.unwrap();
    let lock = client.transaction().await.unwrap();
    lock.execute("LOCK TABLE settings_version IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let is_silent = async || visit(api, "nobody.example", "absent").await.0 == 503;
    wait::until(SHADOWED_WITHIN, "the copy is too old", is_silent).await.unwrap();
    assert_eq!(visit(api, "one.example", "absent").await.0, 503);
    assert_eq!(visit(api, "nobody.example", "shared").await, of("shared", "default"));
    assert_eq!(visit(api, "one.example", "promo").await, of("promo", "one.example"));
    assert_eq!(visit(api, own, "absent").await.0, 404, "the server's own host is no domain's");
    lock.rollback().await.unwrap();
    let is_sure = async || visit(api, "nobody.example", "absent").await.0 == 404;
    wait::until(SHADOWED_WITHIN, "the copy is new again", is_sure).await.unwrap();
}
