//! Where visitors are led: the `Location` of every redirect, the visitor's query in it, and targets
//! that only a browser reads as another host.

mod browser;
mod generator;

use reqwest::Method;
use serde_json::json;

use crate::rest_calls::{Alone, call, done, expect_problem, leads_to, visit};

const FIELDS: [&str; 3] = ["baseUrlRedirect", "regular404Redirect", "invalidShortUrlRedirect"];

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_target_does_not_hide_its_host() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let deny = json!({ "pattern": "denied.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(deny)).await;
    let long = format!("https://{}/", "a.".repeat(600));
    for target in [
        "//denied.example/p",
        "///denied.example/p",
        "/\\denied.example/p",
        "\\\\denied.example",
        "\\/denied.example",
        "https:denied.example",
        "https:/denied.example",
        "https:\\\\denied.example",
        "https://user@ok.example/",
        "https://ok.example\\@denied.example/",
        "https://DENIED.example../",
        "https://%64enied.example/",
        "https://ｄｅｎｉｅｄ。example/",
        "https://denied.example:8443/{ORIGINAL_PATH}",
        &long,
    ] {
        for field in FIELDS {
            let edit = json!({ "domain": "tenant.test", field: target });
            let refused = call(api, Method::PATCH, "domains/redirects", Some(edit)).await;
            let problem = expect_problem(&refused, 400, "invalid-data");
            assert_eq!(problem["invalidElements"], json!([field]), "{target}");
        }
    }
    for target in ["https://ok.example/?to=//denied.example", "/lost", "lost?x", "https://ok.example./"] {
        let edit = json!({ "domain": "tenant.test", "invalidShortUrlRedirect": target });
        done(api, Method::PATCH, "domains/redirects", Some(edit)).await;
        assert_eq!(visit(api, "tenant.test", "none").await, leads_to(target));
    }
    for pattern in ["tenant.test..", "ok.example."] {
        let deny = json!({ "pattern": pattern, "allowed": false });
        done(api, Method::PUT, "targets", Some(deny)).await;
    }
    assert_eq!(visit(api, "tenant.test", "none").await, (404, None), "the rule is newer than the target");
    let edit = json!({ "domain": "tenant.test", "baseUrlRedirect": "/lost" });
    let refused = call(api, Method::PATCH, "domains/redirects", Some(edit)).await;
    let problem = expect_problem(&refused, 400, "invalid-data");
    assert_eq!(problem["invalidElements"], json!(["baseUrlRedirect"]), "it stays on a denied host");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_location_is_always_a_uri_and_the_link_stays_as_it_was_written() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for (long_url, location) in [
        ("https://e.example/a|b^c`d{e}\"f<g>", "https://e.example/a%7Cb%5Ec%60d%7Be%7D%22f%3Cg%3E"),
        ("https://e.example/a\\b?c\\d#e\\f", "https://e.example/a/b?c%5Cd#e%5Cf"),
        ("https://e.example/?q[]=100%&x=%zz%41", "https://e.example/?q%5B%5D=100%25&x=%25zz%41"),
        ("https://bücher.example/ü?ü#ü", "https://xn--bcher-kva.example/%C3%BC?%C3%BC#%C3%BC"),
        ("https://%65.example:8080/a", "https://e.example:8080/a"),
        ("http://[::1]:81/[x]#[y]", "http://[::1]:81/%5Bx%5D#%5By%5D"),
        ("https://E.example/%7e/../b?c=%20+d", "https://E.example/%7e/../b?c=%20+d"),
        ("mailto:a\"b@x.y", "mailto:a%22b@x.y"),
    ] {
        let created = api.create(long_url).await.unwrap();
        assert_eq!(created.json["longUrl"], json!(long_url));
        for _ in 0..2 {
            assert_eq!(api.follow(&created.code).await.unwrap(), leads_to(location), "{long_url}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitors_query_is_merged_into_web_addresses_only() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for (long_url, query, location) in [
        ("tel:+123", "fbclid=1", "tel:+123"),
        ("mailto:a@b.example?subject=x", "bcc=c@d.example", "mailto:a@b.example?subject=x"),
        ("https://e.example/?a=1&&b=2", "c=3", "https://e.example/?a=1&&b=2&c=3"),
        ("https://e.example/?q[]=1", "q%5B%5D=2", "https://e.example/?q%5B%5D=2"),
        ("https://e.example/?a+b=1", "a%20b=2", "https://e.example/?a%20b=2"),
        ("HTTPS://e.example", "x=%7c%", "HTTPS://e.example?x=%7c%25"),
    ] {
        let code = api.create(long_url).await.unwrap().code;
        let rule = json!({ "redirectRules": [{ "longUrl": long_url, "conditions": [
            { "type": "query-param", "matchKey": "rule", "matchValue": "1" }] }] });
        let ruled = api.create("https://other.example/").await.unwrap().code;
        done(api, Method::POST, &format!("short-urls/{ruled}/redirect-rules"), Some(rule)).await;
        assert_eq!(api.follow(&format!("{code}?{query}")).await.unwrap(), leads_to(location), "{query}");
        let by_rule = api.follow(&format!("{ruled}?{query}&rule=1")).await.unwrap().1.unwrap();
        let expected =
            if location.starts_with(['t', 'm']) { location.to_owned() } else { format!("{location}&rule=1") };
        assert_eq!(by_rule, expected, "by a rule");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_in_a_fallback_target_is_decoded_and_then_escaped_once() {
    let flags = [
        ["--fallback", "invalid-short-url=https://e.example/search?q={ORIGINAL_PATH}"],
        ["--fallback", "regular-404=https://e.example/{ORIGINAL_PATH}#{ORIGINAL_PATH}"],
    ];
    let alone = Alone::start(flags.as_flattened()).await;
    let api = alone.api();
    for (path, location) in [
        ("%C3%BCber", "https://e.example/search?q=%2F%C3%BCber"),
        ("x.%C3%BC", "https://e.example/search?q=%2Fx%2E%C3%BC"),
        ("a//%2e%2f%5c%23%3F%2541", "https://e.example/a//.%2F%5C%23%3F%2541#a//.%2F%5C%23%3F%2541"),
    ] {
        assert_eq!(visit(api, "s.test", path).await, leads_to(location), "{path}");
    }
}
