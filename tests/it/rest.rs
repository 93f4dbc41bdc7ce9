//! The REST API in Shlink's exact shapes, so that Shlink's clients need no change.

use harness::{Answer, Created, Resolver};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

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
        let read = get(&resolver, &format!("rest/v3/short-urls/{code}")).await;
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
    let answer = get(&resolver, "rest/v3/short-urls/abc123").await;
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
async fn a_request_without_the_right_key_is_refused() {
    let resolver = start().await;
    let link = format!("{}/rest/v3/short-urls/abc123", resolver.api.url());
    let create = || resolver.api.post().json(&json!({ "longUrl": LONG_URL }));
    let read = || resolver.api.http().get(&link);
    for request in [create(), read(), create().header("X-Api-Key", "")] {
        let problem = expect_problem(&ask(request).await, 401, "missing-authentication");
        assert_eq!(problem["expectedHeaders"], json!(["X-Api-Key"]));
    }
    let wrong = "0".repeat(resolver.api.key().len());
    for request in [create().header("X-Api-Key", &wrong), read().header("X-Api-Key", &wrong)] {
        expect_problem(&ask(request).await, 401, "invalid-api-key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_object_is_malformed_and_an_empty_one_has_no_fields() {
    let resolver = start().await;
    for body in [
        "{",
        "[7]",
        "7",
        "longUrl=https://example.com/",
        "{\"longUrl\": \"https://example.com/\"} x",
        "\u{0}",
    ] {
        let request = resolver.api.post().header("X-Api-Key", resolver.api.key());
        let request = request.header("Content-Type", "application/json").body(body);
        expect_problem(&ask(request).await, 400, "malformed-request-body");
    }
    let empty = ask(resolver.api.post().header("X-Api-Key", resolver.api.key())).await;
    assert_eq!(expect_problem(&empty, 400, "invalid-data")["invalidElements"], json!(["longUrl"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_url_that_breaks_a_rule_is_named() {
    let resolver = start().await;
    let own = format!("{}/abc123", resolver.api.url());
    let too_long = format!("https://example.com/{}", "a".repeat(8_192));
    let texts = [
        "",
        " ",
        "foo.com",
        "//example.com/",
        "https://",
        "ftp://x.y/",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://user:pw@example.com/",
        "http://user@example.com/",
        "http://exa mple.com/",
        "https://example.com/a b",
        "https://example.com/\u{0}",
        "https://example.com/a\nb",
        "https://example.com/a\r\nSet-Cookie: a=b",
        "https://exa\tmple.com/",
        "https://example.com/\u{7f}",
        "https://example.com/\u{85}a",
        &too_long,
        &own,
    ];
    let values =
        [json!({}), json!({ "longUrl": null }), json!({ "longUrl": 7 }), json!({ "longUrl": [LONG_URL] })];
    let texts = texts.map(|text| json!({ "longUrl": text }));
    for request in values.iter().chain(&texts) {
        expect_invalid(&resolver, request, "longUrl").await;
    }
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
async fn a_field_that_is_not_known_or_not_supported_is_named_and_not_ignored() {
    let resolver = start().await;
    for (field, value) in [
        ("colour", json!("red")),
        ("customSlug", json!(7)),
        ("customSlug", json!("a?b")),
        ("maxVisits", json!(0)),
        ("maxVisits", json!(1.5)),
        ("maxVisits", json!("5.5")),
        ("shortCodeLength", json!(0)),
        ("shortCodeLength", json!(256)),
        ("shortCodeLength", json!("five")),
        ("strategy", json!("guess")),
        ("keyspace", json!("none")),
        ("keyspace", json!(1)),
        ("validSince", json!("soon")),
        ("validUntil", json!(2030)),
        ("tags", json!("a")),
        ("tags", json!([""])),
        ("tags", json!(vec!["a"; 101])),
        ("domain", json!("127.0.0.1")),
        ("domain", json!("a b")),
        ("domain", json!(7)),
        ("pathPrefix", json!("a?")),
        ("description", json!(7)),
        ("enabled", json!("no")),
        ("redirectStatus", json!(303)),
        ("redirectStatus", json!("303")),
        ("extraPath", json!("up")),
        ("extraPath", json!(1)),
        ("extraPath", json!("fill")),
        ("expiredUrl", json!("ftp://x.y/")),
        ("expiredUrl", json!(1)),
        ("preview", json!("T")),
        ("fetchTitle", json!(2)),
        ("password", json!("")),
        ("password", json!(7)),
        ("findIfExists", json!(2)),
        ("crawlable", json!("yes")),
        ("forwardQuery", json!("on")),
        ("title", json!(7)),
    ] {
        let mut request = json!({ "longUrl": LONG_URL });
        request[field] = value;
        expect_invalid(&resolver, &request, field).await;
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
        expect_problem(&get(&resolver, path).await, 404, "not-found");
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

/// Sends a GET with a valid API key.
async fn get(resolver: &Resolver, path: &str) -> Answer {
    let request = resolver.api.http().get(format!("{}/{path}", resolver.api.url()));
    ask(request.header("X-Api-Key", resolver.api.key())).await
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

async fn expect_invalid(resolver: &Resolver, request: &Value, field: &str) {
    let answer = resolver.api.try_create_with(request).await.unwrap();
    let problem = expect_problem(&answer, 400, "invalid-data");
    assert_eq!(problem["invalidElements"], json!([field]), "{request}: {problem}");
}

/// Asserts a problem by RFC 9457 of one of Shlink's types and returns it.
fn expect_problem(answer: &Answer, status: u16, kind: &str) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let problem = answer.json().unwrap();
    assert_eq!(problem["type"], format!("https://shlink.io/api/error/{kind}"), "{problem}");
    assert_eq!(problem["status"], status, "{problem}");
    for field in ["title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {problem}");
    }
    problem
}
