//! The hosts that pages are served on: the public URL's, whatever becomes of its domain, and no
//! other name that leads to this server.

use harness::{Answer, Api, Resolver};
use reqwest::Method;
use serde_json::json;

use crate::rest_calls::{Alone, call, done, leads_to, visit};

const FORM: &str = "longUrl=https%3A%2F%2Fexample.com%2Fpage";

/// Requests a page on a host, and returns the status and the text.
async fn page(api: &Api, host: &str, path: &str) -> (u16, String) {
    let request = api.http().get(format!("{}{path}", api.url())).header("host", host);
    let answer = Answer::to(request).await.unwrap();
    (answer.status, answer.body)
}

/// Sends the form of the home page as a page on this host would.
async fn create(api: &Api, host: &str) -> u16 {
    let request = api.http().post(format!("{}/manage/create", api.url())).header("host", host);
    let request = request.header("origin", format!("http://{host}")).body(FORM);
    Answer::to(request.header("content-type", "application/x-www-form-urlencoded")).await.unwrap().status
}

async fn links(api: &Api) -> u64 {
    done(api, Method::GET, "short-urls", None).await["shortUrls"]["pagination"]["totalItems"]
        .as_u64()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_where_they_are_when_the_default_domain_is_disabled() {
    let alone = Alone::start_at("https://s.test").await;
    let limited = alone.with_new_key("limited", &["--scopes", "admin", "--domain", "DEFAULT"]).await;
    let api = alone.api();
    let code = api.create("https://example.com/page").await.unwrap().code;
    done(&limited, Method::PATCH, "domains/s.test", Some(json!({ "enabled": false }))).await;
    assert_eq!(visit(api, "s.test", &code).await.0, 404);
    for host in ["s.test", "S.Test", "s.test:443", "s.test:80", "s.test."] {
        let (status, location) = visit(api, host, "manage").await;
        assert_eq!((status, location.as_deref()), (303, Some("/_pages/sign-in?to=%2Fmanage")), "{host}");
        assert_eq!(page(api, host, "/_pages/sign-in").await.0, 200, "{host}");
    }
    done(api, Method::PATCH, "domains/s.test", Some(json!({ "enabled": true }))).await;
    assert_eq!(visit(api, "s.test", &code).await.0, 302);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_get_redirects_and_no_page() {
    let alone = Alone::start_at("https://s.test:8443").await;
    let api = alone.api();
    let wish = json!({ "longUrl": "https://example.com/page", "customSlug": "x", "domain": "two.test" });
    api.create_with(&wish).await.unwrap();
    api.create_with(&json!({ "longUrl": "https://example.com/page", "customSlug": "x" })).await.unwrap();
    // Without the port it is another host; a proxy may name this server as it likes.
    for host in ["s.test", "rebind.evil:8443", "127.0.0.1", "s.test:8443.evil", "evil@s.test:8443"] {
        for path in ["/manage", "/manage/create", "/cluster", "/_pages/sign-in"] {
            let (status, text) = page(api, host, path).await;
            assert_eq!(status, 421, "{host} {path}");
            assert!(text.contains(&format!("https://s.test:8443{path}")), "{text}");
        }
        assert_eq!(create(api, host).await, 421, "{host}");
        assert!(!page(api, host, "/").await.1.contains("longUrl"), "{host}");
    }
    assert_eq!(visit(api, "rebind.evil:8443", "x").await, leads_to("https://example.com/page"));
    // A domain of links leads to the pages.
    let there = (302, Some("https://s.test:8443/manage?page=2".to_owned()));
    assert_eq!(visit(api, "two.test", "manage?page=2").await, there);
    assert_eq!(create(api, "two.test").await, 421);
    // Visitors' pages look the same everywhere, and the API is for those who have a key.
    assert_eq!(page(api, "rebind.evil", "/_pages/assets/0/style.css").await.0, 200);
    let request = api.http().get(format!("{}/rest/v3/short-urls", api.url())).header("host", "rebind.evil");
    assert_eq!(Answer::to(request).await.unwrap().status, 401);
    // The form of the page is taken, and asks to sign in.
    assert_eq!(create(api, "s.test:8443").await, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_a_loopback_address_creates_no_link_there() {
    let resolver = Resolver::embedded().unwrap().args(["--public-create", "on"]).start().await.unwrap();
    let (api, port) = (&resolver.api, resolver.addr().port());
    for host in [format!("rebind.evil:{port}"), "rebind.evil".to_owned(), "192.0.2.1".to_owned()] {
        assert_eq!(create(api, &host).await, 421, "{host}");
        assert_eq!(page(api, &host, "/manage").await.0, 421, "{host}");
    }
    assert_eq!(links(api).await, 0);
    // Ports are often forwarded.
    for host in [resolver.addr().to_string(), format!("localhost:{port}"), "[::1]:1".to_owned()] {
        assert_eq!(create(api, &host).await, 200, "{host}");
    }
    assert_eq!(links(api).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_prefix_is_a_trusted_proxy() {
    let alone = Alone::start(&["--trusted-proxies", "127.0.0.1,::1"]).await;
    assert_eq!(call(alone.api(), Method::GET, "short-urls", None).await.status, 200);
}
