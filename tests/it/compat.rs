//! The APIs of YOURLS, Kutt v2 and Bitly v4. Their clients drive a resolver as a person would
//! (`tests/sdk/compat`; `tests/run` installs them); the rest are plain requests.

use std::{collections::HashSet, path::Path};

use futures_util::future::join_all;
use harness::{Answer, Api, Launch, ROOT, Resolver, Scratch, installed::node};
use reqwest::{Method, RequestBuilder, Url, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::{
    k8s::in_venv,
    rest_calls::{Alone, SOON, call, done, get},
};

const ALL: [&str; 2] = ["--compat", "yourls,kutt,bitly"];
const PAGE: &str = "https://example.com/page";
/// Scopes of a key for an address.
const OWN: [&str; 3] = ["--scopes", "create,read,visits", "--own-links-only"];

async fn sent(request: RequestBuilder) -> Answer {
    Answer::to(request).await.unwrap()
}

/// Returns the address of YOURLS' API with these parameters.
fn address(api: &Api, pairs: &[(&str, &str)]) -> Url {
    Url::parse_with_params(&format!("{}/yourls-api.php", api.url()), pairs).unwrap()
}

/// Asks YOURLS' API in the way of n8n's node: a GET with all in the query, and an empty object.
async fn n8n(api: &Api, pairs: &[(&str, &str)]) -> Answer {
    let more = [("signature", api.key()), ("format", "json")];
    sent(api.http().get(address(api, &[pairs, &more].concat())).json(&json!({}))).await
}

async fn yourls_form(api: &Api, pairs: &[(&str, &str)]) -> Answer {
    let form = address(api, pairs).query().unwrap_or_default().to_owned();
    let request = api.http().post(address(api, &[])).body(form);
    sent(request.header(CONTENT_TYPE, "application/x-www-form-urlencoded")).await
}

async fn bitly(api: &Api, method: Method, path: &str, body: Option<Value>) -> Answer {
    let request = api.http().request(method, format!("{}/v4/{path}", api.url())).bearer_auth(api.key());
    sent(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn python_clients_of_yourls_kutt_and_bitly_find_all_that_they_ask_for() {
    let (scratch, alone) = (Scratch::new().unwrap(), Alone::start(&ALL).await);
    let own = alone.with_new_key("own", &OWN).await;
    let python = Launch::new(&scratch, "python", in_venv("python"));
    let python = python.arg(Path::new(ROOT).join("tests/sdk/compat/drive.py"));
    expect_all(python.args([own.url(), alone.api().key(), own.key()])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_client_of_kutt_finds_all_that_it_asks_for() {
    drive_by_node("drive.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_client_of_bitly_with_its_host_redirected_finds_all_that_it_asks_for() {
    drive_by_node("drive_bitly.mjs").await;
}

async fn drive_by_node(name: &str) {
    let (scratch, alone) = (Scratch::new().unwrap(), Alone::start(&ALL).await);
    let node = node(&scratch, &format!("sdk/compat/{name}"), "compat").unwrap();
    expect_all(node.args([alone.api().url(), alone.api().key()])).await;
}

async fn expect_all(program: Launch) {
    let finished = program.run(SOON).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("checks hold"), "{}", finished.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn n8n_shortens_expands_and_counts_with_a_key_for_its_own_links() {
    let alone = Alone::start(&ALL).await;
    let (admin, own) = (alone.api(), alone.with_new_key("n8n", &OWN).await);
    let made = n8n(&own, &[("url", PAGE), ("action", "shorturl"), ("keyword", "n8n")]).await;
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json().unwrap();
    let short_url = format!("{}/n8n", own.url());
    assert_eq!((&made["status"], &made["shorturl"]), (&json!("success"), &json!(short_url)));
    let expanded = n8n(&own, &[("shorturl", &*short_url), ("action", "expand")]).await.json().unwrap();
    assert_eq!(expanded["longurl"], PAGE);
    let stats = n8n(&own, &[("shorturl", "n8n"), ("action", "url-stats")]).await.json().unwrap();
    assert_eq!(stats["link"]["clicks"], "0");

    // YOURLS has one link for each URL.
    let again = n8n(&own, &[("url", PAGE), ("action", "shorturl")]).await;
    let told = again.json().unwrap();
    assert_eq!((again.status, &told["status"], &told["code"]), (400, &json!("fail"), &json!("error:url")));
    assert_eq!((&told["shorturl"], &told["url"]["keyword"]), (&json!(short_url), &json!("n8n")));

    // Of others' links it learns nothing, and an address is no place for their keys.
    admin.create_with(&json!({ "longUrl": PAGE, "customSlug": "foreign" })).await.unwrap();
    let hidden = n8n(&own, &[("shorturl", "foreign"), ("action", "expand")]).await;
    assert_eq!((hidden.status, &hidden.json().unwrap()["errorCode"]), (404, &json!("404")));
    for scopes in ["admin", "create,read", "create,edit", "create,delete"] {
        let key = alone.with_new_key(&scopes.replace(',', "-"), &["--scopes", scopes]).await;
        let refused = n8n(&key, &[("url", PAGE), ("action", "shorturl")]).await;
        assert_eq!(refused.status, 403, "{scopes}: {refused:?}");
        let url = format!("https://example.com/{scopes}");
        let form = [("url", &*url), ("action", "shorturl"), ("signature", key.key()), ("format", "json")];
        assert_eq!(yourls_form(&key, &form).await.status, 200, "in a body any key does: {scopes}");
    }
    let creator = alone.with_new_key("creator", &["--scopes", "create"]).await;
    let made = n8n(&creator, &[("url", "https://example.com/creator"), ("action", "shorturl")]).await;
    assert_eq!(made.status, 200, "{made:?}");
    let refused = n8n(&creator, &[("shorturl", "n8n"), ("action", "expand")]).await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

/// A client that gives up waiting sends its call again, while the first one is still under way.
#[tokio::test(flavor = "multi_thread")]
async fn calls_for_one_url_at_the_same_time_make_one_link() {
    let alone = Alone::start(&ALL).await;
    let (api, at_once) = (alone.api(), 16);
    let (yourls, reused) = ("https://example.com/yourls", "https://example.com/reused");
    let body = json!({ "long_url": PAGE });
    let made = (0..at_once).map(|_| bitly(api, Method::POST, "shorten", Some(body.clone())));
    let made = join_all(made).await;
    let form = [("url", yourls), ("action", "shorturl"), ("signature", api.key()), ("format", "json")];
    let added = join_all((0..at_once).map(|_| yourls_form(api, &form))).await;
    let kutt = || {
        let request = api.http().post(format!("{}/api/v2/links", api.url())).header("X-API-Key", api.key());
        sent(request.json(&json!({ "target": reused, "reuse": true })))
    };
    let kept = join_all((0..at_once).map(|_| kutt())).await;
    for (answers, member) in [(made, "link"), (added, "shorturl"), (kept, "link")] {
        let names: HashSet<String> =
            answers.iter().map(|answer| answer.json().unwrap()[member].to_string()).collect();
        assert_eq!(names.len(), 1, "{answers:?}");
    }
    let all = get(api, "short-urls").await;
    assert_eq!(all["shortUrls"]["pagination"]["totalItems"], 3, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn yourls_has_three_formats_and_says_why_a_key_is_refused() {
    let alone = Alone::start(&ALL).await;
    let (api, key) = (alone.api(), alone.api().key());
    let form = |format: &'static str| {
        let url = "https://example.com/?a=1&b=2";
        [("signature", key), ("action", "shorturl"), ("url", url), ("format", format)]
    };
    let made = yourls_form(api, &form("simple")).await;
    assert_eq!(made.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(made.header("x-content-type-options"), Some("nosniff"));
    assert!(made.body.starts_with(&format!("{}/", api.url())), "{made:?}");
    let xml = yourls_form(api, &form("")).await;
    assert_eq!((xml.status, xml.header("content-type")), (400, Some("application/xml; charset=utf-8")));
    assert!(xml.body.contains("<code>error:url</code>"), "{}", xml.body);
    assert!(xml.body.contains("<url>https://example.com/?a=1&amp;b=2</url>"), "{}", xml.body);
    // PHP's curl sends an array in parts.
    let part = |(name, value): (&str, &str)| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts: String = form("json").into_iter().map(part).collect();
    let request = api.http().post(address(api, &[])).body(parts + "--x--\r\n");
    let again = sent(request.header(CONTENT_TYPE, "multipart/form-data; boundary=x")).await;
    assert_eq!(again.json().unwrap()["code"], "error:url", "{again:?}");

    for (pairs, message) in [
        (&[][..], "Please log in"),
        (&[("signature", "wrong")], "Provided API key does not exist or is invalid."),
        (&[("username", "me"), ("password", "wrong")], "Provided API key does not exist or is invalid."),
        (&[("signature", key), ("timestamp", "1")], "Signatures with a timestamp are not supported."),
    ] {
        let refused = yourls_form(api, &[pairs, &[("format", "json")]].concat()).await;
        let told = refused.json().unwrap();
        assert_eq!((refused.status, &told["errorCode"]), (403, &json!("403")), "{pairs:?}");
        assert!(told["message"].as_str().unwrap().starts_with(message), "{pairs:?}: {told}");
    }
    let odd = [("signature", key), ("action", "shorturl"), ("url", PAGE), ("keyword", "a?b")];
    let refused = yourls_form(api, &odd).await;
    assert!(refused.body.contains("error:keyword") && refused.body.contains("(keyword: "), "{refused:?}");
    let header = api.http().get(format!("{}/yourls-api.php?action=db-stats&format=json", api.url()));
    let totals = sent(header.header("X-Api-Key", key)).await.json().unwrap();
    assert_eq!(totals["db-stats"], json!({ "total_links": 1, "total_clicks": 0 }));
}

async fn kutt(api: &Api, method: Method, path: &str, body: Option<Value>) -> Answer {
    let request = api.http().request(method, format!("{}/api/v2/{path}", api.url()));
    let request = request.header("X-API-KEY", api.key());
    sent(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kutt_lists_from_any_position_and_finds_by_id_only_for_keys_that_read() {
    let alone = Alone::start(&ALL).await;
    let api = alone.api();
    for number in 1..=5 {
        api.create_with(&json!({ "longUrl": format!("{PAGE}/{number}") })).await.unwrap();
    }
    let listed = async |skip: u64, limit: u64| {
        let list = kutt(api, Method::GET, &format!("links?skip={skip}&limit={limit}"), None).await;
        let list = list.json().unwrap();
        assert_eq!(list["total"], 5, "{skip} {limit}");
        let ids = list["data"].as_array().unwrap().iter().map(|link| link["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    let all = listed(0, 9).await;
    for (skip, limit, expected) in [
        (0, 2, &all[..2]),
        (1, 2, &all[1..3]),
        (1, 3, &all[1..4]),
        (3, 2, &all[3..]),
        (4, 3, &all[4..]),
        (7, 3, &[][..]),
        (u64::MAX, 1, &[][..]),
    ] {
        assert_eq!(listed(skip, limit).await, expected, "{skip} {limit}");
    }

    // Ids follow each other, so they would give all codes away.
    let path = format!("links/{}", all[0]);
    let edit = Some(json!({ "description": "mine" }));
    for scopes in ["create,edit", "create,delete"] {
        let blind = alone.with_new_key(&scopes.replace(',', "-"), &["--scopes", scopes]).await;
        for (method, body) in [(Method::PATCH, edit.clone()), (Method::DELETE, None)] {
            let refused = kutt(&blind, method, &path, body).await;
            assert_eq!(refused.status, 403, "{scopes}: {refused:?}");
        }
    }
    let edited = kutt(api, Method::PATCH, &path, edit).await;
    assert_eq!((edited.status, &edited.json().unwrap()["description"]), (200, &json!("mine")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_its_own_links_finds_no_others_by_ids_names_or_urls() {
    let alone = Alone::start(&ALL).await;
    let admin = alone.api();
    let scopes = ["--scopes", "create,read,edit,delete,visits", "--own-links-only"];
    let own = alone.with_new_key("own", &scopes).await;
    let foreign = json!({ "longUrl": PAGE, "customSlug": "foreign", "title": "secret" });
    admin.create_with(&foreign).await.unwrap();
    let listed = kutt(admin, Method::GET, "links", None).await.json().unwrap();
    let id = listed["data"][0]["id"].as_str().unwrap();

    let edit = || Some(json!({ "description": "mine", "title": "mine" }));
    for (method, path, body) in [
        (Method::GET, format!("links/{id}/stats"), None),
        (Method::PATCH, format!("links/{id}"), edit()),
        (Method::DELETE, format!("links/{id}"), None),
    ] {
        let hidden = kutt(&own, method.clone(), &path, body).await;
        assert_eq!(hidden.status, 404, "{method} {path}: {hidden:?}");
    }
    for (method, path, body) in [
        (Method::GET, "bitlinks/bit.ly/foreign", None),
        (Method::PATCH, "bitlinks/bit.ly/foreign", edit()),
        (Method::GET, "bitlinks/bit.ly/foreign/clicks", None),
        (Method::POST, "expand", Some(json!({ "bitlink_id": "bit.ly/foreign" }))),
    ] {
        let hidden = bitly(&own, method.clone(), path, body).await;
        assert_eq!(hidden.status, 404, "{method} {path}: {hidden:?}");
    }
    let made = bitly(&own, Method::POST, "shorten", Some(json!({ "long_url": PAGE }))).await;
    assert_eq!(made.status, 201, "the link of another key is not returned: {made:?}");
    let reused = kutt(&own, Method::POST, "links", Some(json!({ "target": PAGE, "reuse": true }))).await;
    assert_eq!(reused.status, 200, "{reused:?}");
    assert_eq!(reused.json().unwrap()["link"], made.json().unwrap()["link"]);
    let listed = kutt(&own, Method::GET, "links", None).await.json().unwrap();
    assert_eq!((&listed["total"], listed["data"].as_array().unwrap().len()), (&json!(1), 1));
    assert!(!listed.to_string().contains("foreign"), "{listed}");
    let kept = bitly(admin, Method::GET, "bitlinks/bit.ly/foreign", None).await.json().unwrap();
    assert_eq!((&kept["title"], &kept["long_url"]), (&json!("secret"), &json!(PAGE)));
}

#[tokio::test(flavor = "multi_thread")]
async fn bitly_shortens_creates_edits_expands_and_counts() {
    let alone = Alone::start(&ALL).await;
    let api = alone.api();
    let host = api.url().strip_prefix("http://").unwrap();
    // As a client with its host redirected, which knows no domain but Bitly's.
    let wish = json!({ "long_url": PAGE, "domain": "bit.ly", "group_guid": "Ba1bc23dE4F" });
    let made = bitly(api, Method::POST, "shorten", Some(wish.clone())).await;
    let link = made.json().unwrap();
    assert_eq!((made.status, &link["long_url"], &link["archived"]), (201, &json!(PAGE), &json!(false)));
    let id = link["id"].as_str().unwrap();
    assert_eq!((id.split('/').next(), &link["link"]), (Some(host), &json!(format!("http://{id}"))));
    let again = bitly(api, Method::POST, "shorten", Some(wish)).await;
    assert_eq!((again.status, &again.json().unwrap()), (200, &link));

    let wish = json!({ "long_url": PAGE, "title": "A title", "tags": ["a", "b"], "keyword": "promo" });
    let made = bitly(api, Method::POST, "bitlinks", Some(wish.clone())).await;
    assert_eq!((made.status, &made.json().unwrap()["id"]), (201, &json!(format!("{host}/promo"))));
    let taken = bitly(api, Method::POST, "bitlinks", Some(wish)).await;
    assert_eq!((taken.status, &taken.json().unwrap()["message"]), (400, &json!("KEYWORD_UNAVAILABLE")));
    let path = format!("bitlinks/{host}/promo");
    let edit = json!({ "title": "Another", "tags": ["c"] });
    let edited = bitly(api, Method::PATCH, &path, Some(edit)).await.json().unwrap();
    assert_eq!((&edited["title"], &edited["tags"]), (&json!("Another"), &json!(["c"])));
    for path in [&*path, "bitlinks/bit.ly/promo", &*path.replace("/promo", "%2Fpromo")] {
        let shown = bitly(api, Method::GET, path, None).await;
        assert_eq!((shown.status, shown.json().unwrap()), (200, edited.clone()), "{path}");
    }
    let wish = json!({ "bitlink_id": "https://bit.ly/promo" });
    let expanded = bitly(api, Method::POST, "expand", Some(wish)).await.json().unwrap();
    assert_eq!((&expanded["long_url"], &expanded["id"]), (&json!(PAGE), &edited["id"]));

    let summary = bitly(api, Method::GET, &format!("{path}/clicks/summary?unit=month&units=-1"), None).await;
    let summary = summary.json().unwrap();
    assert_eq!((&summary["total_clicks"], &summary["units"]), (&json!(0), &json!(-1)), "{summary}");
    let clicks = bitly(api, Method::GET, &format!("{path}/clicks?unit=day&units=7"), None).await;
    assert_eq!(clicks.json().unwrap()["link_clicks"], json!([]));
    for facet in ["countries", "devices", "referrers", "referring_domains"] {
        let metrics = bitly(api, Method::GET, &format!("{path}/{facet}?unit=day&units=7"), None).await;
        let metrics = metrics.json().unwrap();
        assert_eq!((&metrics["facet"], &metrics["metrics"]), (&json!(facet), &json!([])), "{metrics}");
    }
    let user = bitly(api, Method::GET, "user", None).await.json().unwrap();
    let groups = bitly(api, Method::GET, "groups", None).await.json().unwrap();
    assert_eq!(user["login"], "initial");
    assert_eq!(user["default_group_guid"], groups["groups"][0]["guid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_another_type_are_not_lost() {
    let alone = Alone::start(&ALL).await;
    let api = alone.api();
    let wish = json!({ "target": PAGE, "customurl": "typed", "password": 1234, "expire_in": "2 minutes" });
    let kutt = api.http().post(format!("{}//api/v2/links", api.url())).header("X-API-KEY", api.key());
    let made = sent(kutt.json(&wish)).await;
    let link = made.json().unwrap();
    assert_eq!((made.status, &link["password"]), (201, &json!(true)), "{link}");
    assert!(link["expire_in"].is_string(), "{link}");
    let wish = json!({ "long_url": format!("{PAGE}?typed"), "title": 7, "tags": "a, b" });
    let made = bitly(api, Method::POST, "bitlinks", Some(wish)).await.json().unwrap();
    assert_eq!((&made["title"], &made["tags"]), (&json!("7"), &json!(["a", "b"])), "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bitly_names_the_field_that_is_wrong_and_refuses_other_keys() {
    let alone = Alone::start(&ALL).await;
    let api = alone.api();
    let refused = bitly(api, Method::POST, "shorten", Some(json!({ "long_url": "example" }))).await;
    let told = refused.json().unwrap();
    let errors = json!([{ "field": "long_url", "error_code": "invalid" }]);
    assert_eq!((refused.status, &told["message"]), (400, &json!("INVALID_ARG_LONG_URL")));
    assert_eq!((&told["errors"], &told["resource"]), (&errors, &json!("bitlinks")));
    for (method, path, status) in [
        (Method::GET, "bitlinks/bit.ly/none", 404),
        (Method::GET, "bitlinks/bit.ly/none/clicks", 404),
        (Method::GET, "campaigns", 404),
        (Method::DELETE, "bitlinks/bit.ly/none", 404),
        (Method::GET, "bitlinks/none", 400),
    ] {
        assert_eq!(bitly(api, method.clone(), path, None).await.status, status, "{method} {path}");
    }
    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    for key in [&reader, &api.with_key("wrong")] {
        let refused = bitly(key, Method::POST, "shorten", Some(json!({ "long_url": PAGE }))).await;
        assert_eq!((refused.status, &refused.json().unwrap()["message"]), (403, &json!("FORBIDDEN")));
    }
    let malformed = api.http().post(format!("{}/v4/shorten", api.url())).bearer_auth(api.key()).body("{");
    assert_eq!(sent(malformed).await.status, 400);
    let long = json!({ "long_url": format!("{PAGE}?{}", "x".repeat(9_000)) });
    assert_eq!(bitly(api, Method::POST, "shorten", Some(long)).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_is_off_has_no_path_and_one_that_is_on_has_no_links() {
    let off = Resolver::embedded().unwrap().start().await.unwrap();
    for slug in ["yourls-api.php", "api/v2/health", "v4/user"] {
        off.api.create_with(&json!({ "longUrl": PAGE, "customSlug": slug })).await.unwrap();
        assert_eq!(off.api.follow(slug).await.unwrap(), (302, Some(PAGE.to_owned())), "{slug}");
    }
    let only_bitly = Alone::start(&["--compat", "bitly"]).await;
    let create = async |slug: &str| {
        let wish = json!({ "longUrl": PAGE, "customSlug": slug });
        call(only_bitly.api(), Method::POST, "short-urls", Some(wish)).await.status
    };
    for slug in ["v4/user", "v4/x"] {
        assert_eq!(create(slug).await, 400, "{slug}");
    }
    for slug in ["v4", "v4x/y", "api/v2/links", "V4/x"] {
        assert_eq!(create(slug).await, 200, "{slug}");
    }
    let ignore = Some(json!({ "ignoreCase": true }));
    done(only_bitly.api(), Method::PATCH, "domains/DEFAULT", ignore).await;
    assert_eq!(create("V4/y").await, 400, "it would be kept in small letters");
    let prefixed = json!({ "longUrl": PAGE, "pathPrefix": "v4/bitlinks/" });
    assert_eq!(call(only_bitly.api(), Method::POST, "short-urls", Some(prefixed)).await.status, 400);
    assert_eq!(only_bitly.api().follow("v4/user").await.unwrap().0, 403);
    assert_eq!(only_bitly.api().follow("api/v2/links").await.unwrap().0, 302);
}
