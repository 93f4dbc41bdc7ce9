//! The REST API in Shlink's exact shapes, so that Shlink's clients need no change.

use harness::{Answer, Created, Resolver};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::rest_calls::{call, expect_problem};

const LONG_URL: &str = "https://example.com/page?x=1";

#[tokio::test(flavor = "multi_thread")]
async fn a_created_link_is_answered_in_shlinks_shape_and_so_is_the_same_link_read_back() {
    let resolver = start().await;
    let request =
        json!({ "longUrl": LONG_URL, "title": "A \"page\"", "crawlable": true, "forwardQuery": false });
    for (request, settings) in [
        (json!({ "longUrl": LONG_URL }), r#""title":null,"crawlable":false,"forwardQuery":true"#),
        (request, r#""title":"A \"page\"","crawlable":true,"forwardQuery":false"#),
    ] {
        let created = resolver.api.try_create_with(&request).await.unwrap();
        assert_eq!(created.status, 200, "{created:?}");
        assert_eq!(created.header("content-type"), Some("application/json"));
        expect_link(&created, &resolver, settings);

        let code = Created::read(&created).unwrap().code;
        let read = call(&resolver.api, Method::GET, &format!("short-urls/{code}"), None).await;
        assert_eq!((read.status, &read.body), (200, &created.body));
        assert_eq!(read.header("content-type"), Some("application/json"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_have_their_default_value_change_nothing() {
    let resolver = start().await;
    let request = json!({
        "longUrl": LONG_URL, "customSlug": null, "maxVisits": null, "validSince": null, "validUntil": null,
        "domain": null, "title": null, "tags": [], "findIfExists": false, "crawlable": false, "forwardQuery": true,
    });
    let created = resolver.api.try_create_with(&request).await.unwrap();
    assert_eq!(created.status, 200, "{created:?}");
    expect_link(&created, &resolver, r#""title":null,"crawlable":false,"forwardQuery":true"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_code_is_not_found_under_its_own_name() {
    let resolver = start().await;
    let answer = call(&resolver.api, Method::GET, "short-urls/abc123", None).await;
    expect_problem(&answer, 404, "short-url-not-found");
    let expected = json!({
        "type": "https://shlink.io/api/error/short-url-not-found",
        "title": "Short URL not found",
        "status": 404,
        "detail": "No URL found with short code \"abc123\"",
        "shortCode": "abc123",
    });
    assert_eq!(answer.json().unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_every_allowed_kind_are_kept_as_they_were_written() {
    let resolver = start().await;
    let longest = format!("https://example.com/{}", "a".repeat(8_192 - "https://example.com/".len()));
    for long_url in [
        "http://example.com",
        "https://EXAMPLE.com:8443/A?b=%20+c&d#E",
        "http://[2001:db8::1]/",
        "http://192.0.2.1:81/",
        "https://xn--bcher-kva.example/",
        "https://example.com/?next=http://user@x.y/",
        &longest,
    ] {
        let created = resolver.api.create(long_url).await.unwrap();
        assert_eq!(created.json["longUrl"], long_url);
        let followed = resolver.api.follow(&created.code).await.unwrap();
        assert_eq!(followed, (302, Some(long_url.to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_key() {
    let resolver = start().await;
    for path in ["rest/health", "rest/v3/health"] {
        let answer = resolver.api.get(path).await.unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/health+json")));
        let health = answer.json().unwrap();
        assert_eq!(health["status"], "pass");
        // The level of Shlink's API, by which its clients choose their features.
        assert!(health["version"].as_str().is_some_and(|version| version.starts_with("5.")), "{health}");
        for link in ["about", "project"] {
            assert!(
                health["links"][link].as_str().is_some_and(|url| url.starts_with("https://")),
                "{health}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_of_the_api_is_not_found() {
    let resolver = start().await;
    for path in ["rest/v3/nothing", "rest/v3/", "rest/v9/short-urls", "rest/nothing"] {
        let request = resolver.api.http().get(format!("{}/{path}", resolver.api.url()));
        let answer = ask(request.header("X-Api-Key", resolver.api.key())).await;
        expect_problem(&answer, 404, "not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browsers_preflight_is_answered_without_a_key() {
    let resolver = start().await;
    let url = format!("{}/rest/v3/short-urls", resolver.api.url());
    let request = resolver.api.http().request(Method::OPTIONS, url).header("Origin", "https://app.example");
    let request = request.header("Access-Control-Request-Method", "POST");
    let answer = ask(request.header("Access-Control-Request-Headers", "x-api-key,content-type")).await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("x-api-key,content-type"));
    assert_eq!(answer.header("access-control-max-age"), Some("3600"));
    let methods = answer.header("access-control-allow-methods").unwrap();
    assert!(methods.split(',').any(|method| method.trim() == "POST"), "{methods}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_another_origin_may_be_read_there_and_refusals_too() {
    let resolver = start().await;
    let create =
        || resolver.api.post().json(&json!({ "longUrl": LONG_URL })).header("Origin", "https://app.example");
    let created = ask(create().header("X-Api-Key", resolver.api.key())).await;
    let refused = ask(create()).await;
    for (answer, status) in [(created, 200), (refused, 401)] {
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some("*")));
    }
}

async fn start() -> Resolver {
    Resolver::embedded().unwrap().start().await.unwrap()
}

async fn ask(request: RequestBuilder) -> Answer {
    Answer::to(request).await.unwrap()
}

/// Asserts that the body equals the expected link byte for byte. A comparison of parsed JSON would
/// not notice another order of members.
fn expect_link(answer: &Answer, resolver: &Resolver, settings: &str) {
    let created = Created::read(answer).unwrap();
    let (code, date) = (&created.code, created.json["dateCreated"].as_str().unwrap());
    assert!(code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{code}");
    assert!(has_form(date, "0000-00-00T00:00:00+") && date.ends_with("+00:00"), "{date}");
    let url = resolver.api.url();
    let expected = format!(
        "{{\"shortUrl\":\"{url}/{code}\",\"shortCode\":\"{code}\",\"longUrl\":\"{LONG_URL}\",\
         \"dateCreated\":\"{date}\",\"tags\":[],\
         \"meta\":{{\"validSince\":null,\"validUntil\":null,\"maxVisits\":null}},\"domain\":null,{settings},\
         \"visitsSummary\":{{\"total\":0,\"nonBots\":0,\"bots\":0}},\"hasRedirectRules\":false,\
         \"description\":null,\"enabled\":true,\"redirectStatus\":null,\"extraPath\":null,\"expiredUrl\":null,\"preview\":null,\
         \"hasPassword\":false,\"createdBy\":\"initial\",\"editedBy\":null,\"editedAt\":null,\"version\":0,\"deletedAt\":null,\"blocked\":null,\"lastVisit\":null,\
         \"externalId\":null}}"
    );
    assert_eq!(answer.body, expected);
}

/// Returns whether the text starts with this form, in which `0` stands for any digit, and has the
/// length of a time without a fraction.
fn has_form(text: &str, form: &str) -> bool {
    let fits =
        |(byte, expected): (u8, u8)| if expected == b'0' { byte.is_ascii_digit() } else { byte == expected };
    text.len() == "2016-08-21T20:34:16+00:00".len() && text.bytes().zip(form.bytes()).all(fits)
}
