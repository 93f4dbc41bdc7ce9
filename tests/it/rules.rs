//! Redirect rules: the first rule that matches a visitor decides where the link leads.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, expect_problem, get, leads_to};

const URL: &str = "https://example.com/page?a=1";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

fn condition(kind: &str, key: Option<&str>, value: Option<&str>) -> Value {
    json!({ "type": kind, "matchKey": key, "matchValue": value })
}

/// Returns a rule whose URL contains its name.
fn rule(name: &str, conditions: &[Value]) -> Value {
    json!({ "longUrl": url_of(name), "conditions": conditions })
}

fn url_of(name: &str) -> String {
    format!("https://{name}.example/")
}

async fn set(api: &Api, code: &str, rules: &[Value]) -> Value {
    let path = format!("short-urls/{code}/redirect-rules");
    done(api, Method::POST, &path, Some(json!({ "redirectRules": rules }))).await
}

/// Requests a path with these headers. Returns the status and the `Location` of the response.
async fn visit(api: &Api, path: &str, headers: &[(&str, &str)]) -> (u16, Option<String>) {
    let request = api.http().get(format!("{}/{path}", api.url()));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = Answer::to(request).await.unwrap();
    (answer.status, answer.header("location").map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rule_that_a_visitor_meets_leads_and_else_the_link_itself() {
    let alone =
        Alone::start(&["--proxy-headers", "country=X-Country", "--trusted-proxies", "127.0.0.0/8"]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    assert_eq!(visit(api, &code, &[]).await, leads_to(URL), "it is in the caches");
    let german = condition("language", None, Some("de"));
    let rules = [
        rule("past", &[condition("before-date", None, Some("2020-01-01"))]),
        rule("future", &[condition("after-date", None, Some("2090-01-01T00:00:00+01:00"))]),
        rule("ios", &[condition("device", None, Some("ios"))]),
        rule("both", &[german.clone(), condition("query-param", Some("x"), Some("1"))]),
        rule("german", &[german]),
        rule("austria", &[condition("geolocation-country-code", None, Some("AT"))]),
        rule("city", &[condition("geolocation-city-name", None, Some("Wien"))]),
        rule("network", &[condition("ip-address", None, Some("192.0.2.0/24"))]),
        rule("any", &[condition("any-value-query-param", Some("any"), None)]),
        rule("bare", &[condition("valueless-query-param", Some("bare"), None)]),
        rule("firefox", &[condition("browser", None, Some("firefox"))]),
    ];
    set(api, &code, &rules).await;
    for (query, header, name) in [
        ("", ("user-agent", IPHONE), "ios"),
        ("", ("user-agent", FIREFOX), "firefox"),
        ("", ("accept-language", "de-AT,en;q=0.5"), "german"),
        ("?x=1", ("accept-language", "de"), "both"),
        ("", ("x-country", "at"), "austria"),
        ("", ("x-forwarded-for", "192.0.2.7"), "network"),
        ("?any", ("x-country", "DE"), "any"),
        ("?any=7", ("x-country", ""), "any"),
        ("?bare&any=1", ("accept-language", "fr"), "any"),
        ("?bare", ("accept-language", "fr"), "bare"),
    ] {
        let led = visit(api, &format!("{code}{query}"), &[header]).await;
        assert_eq!(led, leads_to(&format!("{}{query}", url_of(name))), "{query} {header:?}");
    }
    for (query, header) in [
        ("", ("accept-language", "en,de;q=0.5")),
        ("", ("x-forwarded-for", "192.0.3.7")),
        ("?x=1", ("x-country", "ATX")),
        ("?bare=1", ("user-agent", "curl/8.0")),
        ("?Any", ("x-country", "DE")),
    ] {
        let led = visit(api, &format!("{code}{query}"), &[header]).await;
        let expected = format!("{URL}{}", query.replacen('?', "&", 1));
        assert_eq!(led, leads_to(&expected), "{query} {header:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_visitor_is_says_the_proxy_or_else_a_database_of_places() {
    let fixture = |name: &str| format!("{}/fixtures/places/{name}.mmdb", env!("CARGO_MANIFEST_DIR"));
    // The first database has countries for IPv4 and IPv6, the second has cities for IPv4.
    let places = [fixture("country"), fixture("flat")].join(",");
    let alone = Alone::start(&[
        "--places",
        &places,
        "--proxy-headers",
        "country=X-Country",
        "--trusted-proxies",
        "127.0.0.0/8",
    ])
    .await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let rules = [
        rule("berlin", &[condition("geolocation-city-name", None, Some("berlin"))]),
        rule("china", &[condition("geolocation-country-code", None, Some("CN"))]),
        rule("france", &[condition("geolocation-country-code", None, Some("FR"))]),
    ];
    set(api, &code, &rules).await;
    for (address, country, name) in [
        ("192.0.2.7", "", Some("berlin")),
        ("198.51.100.7", "", Some("china")),
        ("198.51.100.7", "fr", Some("france")),
        ("2001:db8::7", "", Some("france")),
        ("2001:db8::7", "DE", None),
        ("203.0.114.7", "", None),
        ("127.0.0.1", "", None),
    ] {
        let led = visit(api, &code, &[("x-forwarded-for", address), ("x-country", country)]).await;
        assert_eq!(led, leads_to(&name.map_or(URL.to_owned(), url_of)), "{address} {country}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_a_trusted_proxy_says_where_a_visitor_is() {
    let alone = Alone::start(&["--proxy-headers", "country=X-Country"]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let here = condition("ip-address", None, Some("127.0.*.*"));
    let abroad = condition("geolocation-country-code", None, Some("AT"));
    let elsewhere = condition("ip-address", None, Some("192.0.2.7"));
    set(api, &code, &[rule("abroad", &[abroad]), rule("elsewhere", &[elsewhere]), rule("here", &[here])])
        .await;
    let forged = [("x-country", "AT"), ("x-forwarded-for", "192.0.2.7")];
    assert_eq!(visit(api, &code, &forged).await, leads_to(&url_of("here")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_replaced_as_a_whole_and_shown_with_their_places() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let path = format!("short-urls/{code}/redirect-rules");
    let shown = json!({ "defaultLongUrl": URL, "redirectRules": [] });
    assert_eq!(get(api, &path).await, shown);
    let language = condition("language", None, Some("en_US"));
    let device = condition("device", Some("a key without a use"), Some("chromeos"));
    let mut late = rule("late", &[]);
    late["priority"] = json!(1);
    let given = [rule("early", &[language.clone(), device]), late, rule("never", &[])];
    let expected = json!({ "defaultLongUrl": URL, "redirectRules": [
        { "longUrl": url_of("early"), "priority": 1,
          "conditions": [language, condition("device", None, Some("chromeos"))] },
        { "longUrl": url_of("late"), "priority": 2, "conditions": [] },
        { "longUrl": url_of("never"), "priority": 3, "conditions": [] },
    ] });
    assert_eq!(set(api, &code, &given).await, expected);
    assert_eq!(get(api, &path).await, expected);
    assert_eq!(visit(api, &code, &[]).await, leads_to(&url_of("late")), "no conditions are always met");
    let link = get(api, &format!("short-urls/{code}")).await;
    assert_eq!((&link["hasRedirectRules"], &link["version"]), (&json!(true), &json!(1)));
    done(api, Method::PATCH, &format!("short-urls/{code}"), Some(json!({ "title": "x" }))).await;
    assert_eq!(get(api, &path).await, expected, "another edit leaves rules alone");

    assert_eq!(set(api, &code, &[]).await, shown);
    assert_eq!(visit(api, &code, &[]).await, leads_to(URL));
    assert_eq!(get(api, &format!("short-urls/{code}")).await["hasRedirectRules"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_an_older_version_overwrite_nothing() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let replace = async |tag: &str, name: &str| {
        let request = api.http().post(format!("{}/rest/v3/short-urls/{code}/redirect-rules", api.url()));
        let request = request.header("X-Api-Key", api.key()).header("If-Match", tag);
        Answer::to(request.json(&json!({ "redirectRules": [rule(name, &[])] }))).await.unwrap()
    };
    replace("\"0\"", "mine").await.success().unwrap();
    expect_problem(&replace("\"0\"", "theirs").await, 412, "about:blank");
    assert_eq!(visit(api, &code, &[]).await, leads_to(&url_of("mine")));
    replace("\"1\"", "theirs").await.success().unwrap();
    assert_eq!(visit(api, &code, &[]).await, leads_to(&url_of("theirs")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_has_up_to_a_hundred_rules_with_twenty_conditions_each() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    let mut rules: Vec<Value> =
        (0..99).map(|n| rule(&format!("r{n}"), &[condition("device", None, Some("chromeos"))])).collect();
    rules.push(rule("last", &[]));
    set(api, &code, &rules).await;
    assert_eq!(visit(api, &code, &[]).await, leads_to(&url_of("last")));
    let mut conditions: Vec<Value> =
        (0..20).map(|n| condition("query-param", Some(&format!("k{n}")), Some("v"))).collect();
    set(api, &code, &[rule("all", &conditions)]).await;
    let query: String = (0..20).map(|n| format!("&k{n}=v")).collect();
    assert_eq!(
        visit(api, &format!("{code}?{}", &query[1..]), &[]).await.1.unwrap()[..20],
        url_of("all")[..20]
    );
    assert_eq!(visit(api, &format!("{code}?{}", &query[6..]), &[]).await.1.unwrap()[..20], URL[..20]);
    conditions.push(condition("device", None, Some("ios")));
    let path = format!("short-urls/{code}/redirect-rules");
    let body = json!({ "redirectRules": [rule("all", &conditions)] });
    expect_problem(&call(api, Method::POST, &path, Some(body)).await, 400, "invalid-data");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_links_limit_counts_whichever_rule_leads() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = api.create_with(&json!({ "longUrl": URL, "maxVisits": 2 })).await.unwrap().code;
    set(api, &code, &[rule("firefox", &[condition("browser", None, Some("firefox"))])]).await;
    assert_eq!(visit(api, &code, &[("user-agent", FIREFOX)]).await, leads_to(&url_of("firefox")));
    assert_eq!(visit(api, &code, &[]).await, leads_to(URL));
    for agent in [FIREFOX, "curl/8.0"] {
        assert_eq!(visit(api, &code, &[("user-agent", agent)]).await, (404, None));
    }
}
