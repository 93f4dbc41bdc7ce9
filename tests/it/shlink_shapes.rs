//! Requests of Shlink's clients and expectations of its own tests. The first word of each case is
//! its row in the list of differences between Shlink and this API.

use harness::{Answer, Api, Resolver};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::rest_calls::{Alone, plus};

const URL: &str = "https://example.com/page";

/// A call with a JSON body and its expected response: the status, and some members by JSON pointer.
struct Shape {
    row: &'static str,
    method: Method,
    path: &'static str,
    body: Value,
    status: u16,
    members: Vec<(&'static str, Value)>,
}

fn shape(
    row: &'static str,
    call: (Method, &'static str),
    body: Value,
    status: u16,
    members: &[(&'static str, Value)],
) -> Shape {
    Shape { row, method: call.0, path: call.1, body, status, members: members.to_vec() }
}

async fn start(args: &[&str]) -> Resolver {
    Resolver::embedded().unwrap().args(args.iter().copied()).start().await.unwrap()
}

async fn ask(api: &Api, method: Method, path: &str, body: &Value) -> Answer {
    let request = api.http().request(method, format!("{}/rest/{path}", api.url()));
    let request = request.header("X-Api-Key", api.key()).header(CONTENT_TYPE, "application/json");
    Answer::to(request.body(body.to_string())).await.unwrap()
}

async fn expect(api: &Api, shapes: Vec<Shape>) {
    for Shape { row, method, path, body, status, members } in shapes {
        let answer = ask(api, method.clone(), path, &body).await;
        assert_eq!(answer.status, status, "{row}: {method} {path} {body}: {answer:?}");
        for (pointer, expected) in members {
            let json = answer.json().unwrap();
            assert_eq!(json.pointer(pointer), Some(&expected), "{row}: {method} {path} {body}: {json}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_where_the_operator_allows_and_never_to_script() {
    let resolver = start(&["--allowed-schemes", "http,https,mailto,shlink"]).await;
    let create = || (Method::POST, "v3/short-urls");
    let mut shapes = Vec::new();
    for url in ["mailto:foo@example.com", "https://example.com", "shlink://some/path"] {
        let body = json!({ "longUrl": url, "customSlug": url.split(':').next() });
        shapes.push(shape("C9", create(), body, 200, &[("/longUrl", json!(url))]));
    }
    for url in [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "tel:+4912",
        "ftp://a.b/",
    ] {
        shapes.push(shape(
            "C9",
            create(),
            json!({ "longUrl": url }),
            400,
            &[("/invalidElements/0", json!("longUrl"))],
        ));
    }
    let rules = |url: &str| json!({ "redirectRules": [{ "longUrl": url, "conditions": [] }] });
    let set = || (Method::POST, "v3/short-urls/mailto/redirect-rules");
    let led = ("/redirectRules/0/longUrl", json!("shlink://rule"));
    shapes.push(shape("C9", set(), rules("shlink://rule"), 200, &[led]));
    shapes.push(shape("C9", set(), rules("javascript:alert(1)"), 400, &[]));
    expect(&resolver.api, shapes).await;
    for (slug, location) in [("shlink", "shlink://some/path"), ("mailto", "shlink://rule")] {
        assert_eq!(resolver.api.follow(slug).await.unwrap(), (302, Some(location.to_owned())), "C9: {slug}");
    }
}

const CREATE: (Method, &str) = (Method::POST, "v3/short-urls");
const EDIT: (Method, &str) = (Method::PATCH, "v3/short-urls/abc123");

/// Returns the body of a create with additional fields.
fn link(more: Value) -> Value {
    plus(json!({ "longUrl": URL }), &more)
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_read_as_shlink_reads_them() {
    let resolver = start(&[]).await;
    let wrong = |name: &str| ("/invalidElements", json!([name]));
    let code = |code: &str| ("/shortCode", json!(code));
    let most = |count: u64| ("/meta/maxVisits", json!(count));
    let invalid = ("/type", json!("https://shlink.io/api/error/invalid-data"));
    let with_code = || link(json!({ "customSlug": "abc123", "maxVisits": "5" }));
    let of_old_clients = || link(json!({ "validateUrl": true, "deviceLongUrls": { "android": URL } }));
    let prefixed = |prefix: &str| link(json!({ "pathPrefix": prefix, "customSlug": "x" }));
    let of_creates = json!({
        "findIfExists": true, "customSlug": "abc123", "domain": null, "shortCodeLength": null, "validateUrl": false,
        "title": "kept",
    });
    let shapes = vec![
        shape("C2", CREATE, json!([]), 400, &[invalid]),
        shape("C2", (Method::PUT, "v3/tags"), json!([]), 400, &[("/title", json!("Invalid data"))]),
        shape("C2", EDIT, json!([]), 404, &[code("abc123")]),
        shape("C3", CREATE, with_code(), 200, &[most(5)]),
        shape("C2", EDIT, json!([]), 200, &[code("abc123")]),
        shape("C3", CREATE, link(json!({ "shortCodeLength": "6" })), 200, &[]),
        shape("C3", EDIT, json!({ "maxVisits": "7" }), 200, &[most(7)]),
        shape("C3", EDIT, json!({ "maxVisits": "many" }), 400, &[wrong("maxVisits")]),
        shape("C4", CREATE, of_old_clients(), 200, &[]),
        shape("C4", CREATE, link(json!({ "maxVisit": 1 })), 400, &[wrong("maxVisit")]),
        shape("C4", CREATE, link(json!({ "meta": { "maxVisits": 1 } })), 400, &[wrong("meta")]),
        shape("C12", CREATE, prefixed("foo/b  ar-baz"), 200, &[code("foo-b--ar-bazx")]),
        shape("C12", CREATE, prefixed("a/b c/"), 200, &[code("a/b-c/x")]),
        shape("C4", EDIT, of_creates, 200, &[("/title", json!("kept")), code("abc123")]),
    ];
    expect(&resolver.api, shapes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_read_as_shlink_reads_them() {
    let resolver = start(&["--time-zone", "Europe/Berlin"]).await;
    let mut shapes = vec![shape("C6", CREATE, link(json!({ "customSlug": "abc123" })), 200, &[])];
    for (text, shown) in [
        ("2031-01-01 10:00:00", "2031-01-01T09:00:00+00:00"),
        ("2031-07-01T10:00", "2031-07-01T08:00:00+00:00"),
        ("2031-01-01", "2030-12-31T23:00:00+00:00"),
        ("2031-01-01T10:00:00-02:00", "2031-01-01T12:00:00+00:00"),
    ] {
        let body = json!({ "validSince": text });
        shapes.push(shape("C6", EDIT, body, 200, &[("/meta/validSince", json!(shown))]));
    }
    let condition = json!({ "type": "before-date", "matchKey": null, "matchValue": "2031-01-01 10:00:00" });
    let rules = json!({ "redirectRules": [{ "longUrl": URL, "conditions": [condition] }] });
    let of_rule = ("/redirectRules/0/conditions/0/matchValue", json!("2031-01-01T10:00:00+01:00"));
    shapes.push(shape("C6", (Method::POST, "v3/short-urls/abc123/redirect-rules"), rules, 200, &[of_rule]));
    expect(&resolver.api, shapes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_tag_is_called_what_it_was_renamed_to() {
    let resolver = start(&[]).await;
    let api = &resolver.api;
    api.create_with(&json!({ "longUrl": URL, "tags": ["foo", "bar"] })).await.unwrap();
    let rename = |old: &str, new: &str| json!({ "oldName": old, "newName": new });
    let put = || (Method::PUT, "v3/tags");
    let get = |path: &'static str, total: u64| {
        shape(
            "C1",
            (Method::GET, path),
            Value::Null,
            200,
            &[("/shortUrls/pagination/totalItems", json!(total))],
        )
    };
    let listed =
        |names: Value| shape("C1", (Method::GET, "v3/tags"), Value::Null, 200, &[("/tags/data", names)]);
    expect(
        api,
        vec![
            shape("C1", put(), rename("foo", "fooRenamed 2"), 204, &[]),
            listed(json!(["bar", "fooRenamed 2"])),
            get("v3/short-urls?tags[]=fooRenamed%202", 1),
            get("v3/short-urls?tags[]=fooRenamed%202&tags[]=BAR&tagsMode=all", 1),
            get("v3/short-urls?tags[]=fooRenamed%202&tags[]=baz&tagsMode=all", 0),
            get("v3/short-urls?excludeTags[]=fooRenamed%202", 0),
            get("v3/short-urls?searchTerm=foorenamed", 1),
            shape(
                "C1",
                (Method::GET, "v3/tags?searchTerm=FOOR"),
                Value::Null,
                200,
                &[("/tags/pagination/totalItems", json!(1))],
            ),
            shape("C1", (Method::GET, "v3/tags/fooRenamed%202/visits"), Value::Null, 200, &[]),
            shape("C1", put(), rename("FOO", "x"), 404, &[]),
            shape("C1", put(), rename("bar", "fooRenamed 2"), 409, &[]),
            shape("C1", (Method::DELETE, "v3/tags?tags[]=fooRenamed%202"), Value::Null, 204, &[]),
            listed(json!(["bar"])),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_key_is_not_asked_about_other_keys() {
    let alone = Alone::start(&[]).await;
    alone.api().create(URL).await.unwrap();
    let own = alone.with_new_key("own", &["--scopes", "create,read", "--own-links-only"]).await;
    own.create(URL).await.unwrap();
    for name in ["own", "initial", "nobody"] {
        for (api, expected) in [(&own, 1), (alone.api(), u64::from(name != "nobody"))] {
            let path = format!("v3/short-urls?apiKeyName={name}");
            let listed = ask(api, Method::GET, &path, &Value::Null).await.json().unwrap();
            assert_eq!(listed["shortUrls"]["pagination"]["totalItems"], expected, "C13: {name} {listed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_versions_of_the_api_are_answered_as_the_third() {
    let resolver = start(&[]).await;
    let invalid = json!("https://shlink.io/api/error/invalid-data");
    let missing = json!("https://shlink.io/api/error/tag-not-found");
    let taken = json!("https://shlink.io/api/error/non-unique-slug");
    let rename = json!({ "oldName": "invalid_tag", "newName": "foo" });
    let slug = |version: &str| json!({ "longUrl": URL, "customSlug": format!("a-{version}") });
    let mut shapes = Vec::new();
    for (version, links, tags) in [("v1", "v1/short-urls", "v1/tags"), ("v2", "v2/short-urls", "v2/tags")] {
        shapes.push(shape("C5", (Method::POST, links), slug(version), 200, &[("/longUrl", json!(URL))]));
        shapes.push(shape("C5", (Method::POST, links), slug(version), 400, &[("/type", taken.clone())]));
        shapes.push(shape(
            "C5",
            (Method::POST, links),
            json!({ "longUrl": null }),
            400,
            &[("/type", invalid.clone())],
        ));
        shapes.push(shape("C5", (Method::PUT, tags), rename.clone(), 404, &[("/type", missing.clone())]));
    }
    for path in [
        "v1/health",
        "v2/short-urls?page=1",
        "v1/short-urls/a-v1",
        "v2/short-urls/a-v2/visits",
        "v2/domains",
        "v1/tags/stats",
        "v2/visits",
    ] {
        shapes.push(shape("C5", (Method::GET, path), Value::Null, 200, &[]));
    }
    for path in ["v1/audit", "v2/targets", "v4/tags", "v1"] {
        shapes.push(shape(
            "C5",
            (Method::GET, path),
            Value::Null,
            404,
            &[("/type", json!("https://shlink.io/api/error/not-found"))],
        ));
    }
    expect(&resolver.api, shapes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_created_by_opening_an_address_where_the_operator_wants_it() {
    let resolver = start(&["--single-step-create"]).await;
    let path = |key: &str, more: &str| {
        format!("rest/v2/short-urls/shorten?{key}longUrl=https%3A%2F%2Fapp.shlink.io{more}")
    };
    let key = format!("apiKey={}&", resolver.api.key());
    for (more, kind) in
        [("&format=txt", "text/plain"), ("&format=json", "application/json"), ("", "application/json")]
    {
        let answer = resolver.api.get(&path(&key, more)).await.unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "C7: {answer:?}");
        let short_url = match kind {
            "text/plain" => answer.body.clone(),
            _ => answer.json().unwrap()["shortUrl"].as_str().unwrap().to_owned(),
        };
        let code = short_url.strip_prefix(resolver.api.url()).unwrap().trim_start_matches('/');
        let led = resolver.api.follow(code).await.unwrap();
        assert_eq!(led, (302, Some("https://app.shlink.io".to_owned())), "C7: {short_url}");
    }
    let refused = resolver.api.get(&path("", "")).await.unwrap();
    assert_eq!(refused.status, 401, "C7: {refused:?}");
    let detail = &refused.json().unwrap()["detail"];
    assert_eq!(detail, r#"Expected authentication to be provided in "apiKey" query param"#, "C7");
    let wrong = resolver.api.get(&path("apiKey=wrong&", "")).await.unwrap();
    assert_eq!(wrong.status, 401, "C7: {wrong:?}");

    let off = start(&[]).await;
    let answer = off.api.get(&path(&format!("apiKey={}&", off.api.key()), "")).await.unwrap();
    assert_eq!(answer.status, 401, "C7: off by default: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_its_id_and_gets_one_when_it_has_none() {
    let resolver = start(&[]).await;
    let code = resolver.api.create(URL).await.unwrap().code;
    let long = "x".repeat(129);
    for path in ["rest/health", "rest/v3/short-urls", "rest/nothing", "no-such-code", &code] {
        // The fast path leaves a request with a body to hyper, which has request ids.
        let ask = |id: Option<&str>| {
            let request = resolver.api.http().get(format!("{}/{path}", resolver.api.url())).body("{}");
            match id {
                Some(id) => request.header("X-Request-Id", id),
                None => request,
            }
        };
        for (given, kept) in
            [(Some("foobar"), true), (None, false), (Some(long.as_str()), false), (Some("a b"), false)]
        {
            let answer = Answer::to(ask(given)).await.unwrap();
            let told = answer.header("x-request-id").unwrap_or_default();
            assert_eq!(Some(told) == given, kept, "C11: {path} {given:?}: {told}");
            assert!((1..=128).contains(&told.len()), "C11: {path} {given:?}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_as_long_as_is_asked_for() {
    let resolver = start(&[]).await;
    for (more, len) in [
        (json!({ "shortCodeLength": 9 }), 9),
        (json!({ "shortCodeLength": 12 }), 12),
        (json!({ "shortCodeLength": 255 }), 255),
        (json!({ "shortCodeLength": 20, "strategy": "hash" }), 20),
        (json!({ "shortCodeLength": 12, "pathPrefix": "go-" }), 15),
        (json!({ "shortCodeLength": 10, "tags": ["a"], "findIfExists": true }), 10),
    ] {
        let body = plus(json!({ "longUrl": URL }), &more);
        for _ in 0..2 {
            let created = resolver.api.create_with(&body).await.unwrap();
            assert_eq!(created.code.len(), len, "C16: {body}: {}", created.code);
            assert_eq!(resolver.api.follow(&created.code).await.unwrap().0, 302, "C16: {body}");
        }
    }
    let create = || (Method::POST, "v3/short-urls");
    let wrong = ("/invalidElements", json!(["shortCodeLength"]));
    let body =
        |len: usize, prefix: &str| json!({ "longUrl": URL, "shortCodeLength": len, "pathPrefix": prefix });
    expect(
        &resolver.api,
        vec![
            shape("C16", create(), body(256, ""), 400, std::slice::from_ref(&wrong)),
            shape("C16", create(), body(255, "go-"), 400, &[wrong]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_taken_as_json_is() {
    let resolver = start(&[]).await;
    let api = &resolver.api;
    let send = async |method: Method, path: &str, body: &'static str| {
        let request = api.http().request(method, format!("{}/rest/v3/{path}", api.url()));
        let request = request.header("X-Api-Key", api.key()).body(body);
        Answer::to(request.header(CONTENT_TYPE, "application/x-www-form-urlencoded")).await.unwrap()
    };
    let form = "longUrl=https%3A%2F%2Fexample.com%2Fform&customSlug=form&tags[]=One&tags[]=two&maxVisits=7&crawlable=true\
        &title=A+title&validSince=&shortCodeLength=";
    let created = send(Method::POST, "short-urls", form).await;
    let link = created.json().unwrap();
    assert_eq!(created.status, 200, "C17: {created:?}");
    assert_eq!((&link["shortCode"], &link["tags"]), (&json!("form"), &json!(["one", "two"])), "C17");
    assert_eq!((&link["meta"]["maxVisits"], &link["crawlable"]), (&json!(7), &json!(true)), "C17");
    let edited = send(Method::PATCH, "short-urls/form", "title=&forwardQuery=0").await.json().unwrap();
    assert_eq!((&edited["title"], &edited["forwardQuery"]), (&Value::Null, &json!(false)), "C17");
    // curl sends JSON with the content type of a form unless it is told otherwise.
    let json = send(Method::POST, "short-urls", r#"{"longUrl":"https://example.com/curl"}"#).await;
    assert_eq!(json.status, 200, "C17: {json:?}");
    let wrong = send(Method::POST, "short-urls", "longUrl=nowhere&colour=red").await;
    assert_eq!(wrong.json().unwrap()["invalidElements"], json!(["longUrl", "colour"]), "C17");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_that_there_is_already_is_given_however_it_was_made() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let make = async |api: &Api, more: Value| {
        api.create_with(&plus(json!({ "longUrl": URL }), &more)).await.unwrap().code
    };
    let find = async |more: Value| {
        let mut more = more;
        more["findIfExists"] = json!(true);
        make(api, more).await
    };
    // Shlink's own cases, each created first and then requested.
    let now = json!({ "tags": ["boo", "far"], "validSince": "2026-11-22T10:00:00+00:00", "maxVisits": 7 });
    for body in [json!({}), json!({ "tags": ["boo", "far"] }), json!({ "customSlug": "my cool slug" }), now] {
        let made = make(api, body.clone()).await;
        assert_eq!(find(body.clone()).await, made, "C8: {body}");
    }
    let first = find(json!({})).await;
    assert_ne!(find(json!({ "maxVisits": 8 })).await, first, "C8: nothing of this limit was there");
    assert_eq!(find(json!({ "maxVisits": 8, "title": "x" })).await.len(), 6, "C8");
    assert_ne!(find(json!({ "longUrl": "https://example.com/other" })).await, first, "C8");

    let picked = make(api, json!({ "longUrl": "https://example.com/edited", "customSlug": "edited" })).await;
    let edit = json!({ "longUrl": "https://example.com/now" });
    assert_eq!(ask(api, Method::PATCH, "v3/short-urls/edited", &edit).await.status, 200);
    assert_eq!(find(json!({ "longUrl": "https://example.com/now" })).await, picked, "C8: an edited link");

    // A key restricted to its own links finds only those. So does one that may only create.
    for (name, args) in
        [("own", &["--scopes", "create,read", "--own-links-only"][..]), ("creator", &["--scopes", "create"])]
    {
        let limited = alone.with_new_key(name, args).await;
        let wish = json!({ "findIfExists": true });
        let own = make(&limited, wish.clone()).await;
        assert_ne!(own, first, "C8: {name}");
        assert_eq!(make(&limited, wish).await, own, "C8: {name}");
    }

    let all = ask(
        api,
        Method::GET,
        "v3/short-urls?longUrl=https%3A%2F%2Fexample.com%2Fpage&itemsPerPage=50",
        &Value::Null,
    );
    let all = all.await.json().unwrap();
    let links = all["shortUrls"]["data"].as_array().unwrap();
    assert!(links.len() > 5 && links.iter().all(|link| link["longUrl"] == URL), "C8: {all}");
    let none = ask(api, Method::GET, "v3/short-urls?longUrl=https%3A%2F%2Fexample.com%2Fpag", &Value::Null);
    assert_eq!(none.await.json().unwrap()["shortUrls"]["pagination"]["totalItems"], 0, "C8: exactly");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_field_that_is_wrong_is_the_one_that_is_named() {
    let resolver = start(&[]).await;
    for (item, field) in [
        (json!({ "longUrl": URL, "shortCodeLength": 0 }), "shortCodeLength"),
        (json!({ "longUrl": URL, "shortCodeLength": 8, "keyspace": "default" }), "shortCodeLength"),
        (json!({ "longUrl": URL, "strategy": "random" }), "strategy"),
        (json!({ "longUrl": URL, "pathPrefix": "ads.txt/" }), "pathPrefix"),
        (json!({ "longUrl": URL, "customSlug": "ads.txt" }), "customSlug"),
        (json!({ "longUrl": URL, "strategy": "hash", "keyspace": "default" }), "keyspace"),
        (json!({ "longUrl": URL, "findIfExists": true, "password": "x" }), "password"),
    ] {
        let told =
            ask(&resolver.api, Method::POST, "v3/short-urls/bulk", &json!([item])).await.json().unwrap();
        assert!(told["results"][0]["expected"][field].is_string(), "B6: {item}: {told}");
    }
    let document = resolver.api.get("rest/v3/openapi.json").await.unwrap();
    assert!(!document.body.contains("`admin` or `admin`"), "B6");
    let document = document.json().unwrap();
    assert!(document["components"]["schemas"]["BatchItem"]["properties"]["keyspace"].is_object(), "B6");
}
