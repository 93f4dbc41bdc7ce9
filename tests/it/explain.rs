//! `explain` says what a redirect then does, counts nothing, and tells a limited key nothing of the
//! links of others.
//!
//! The tests run a few hundred random requests on each store. `SHORTMINT_EXPLAIN=10000` runs as
//! many.

use harness::{Answer, Api, Cluster};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::{
    cli::Person,
    pages::sign_in,
    rest_calls::{Alone, call, done, expect_problem, plus},
    rng::Rng,
};

const SAMPLE: usize = 400;
const FLAGS: [&str; 4] =
    ["--limit", "unknown-codes-per-minute=0", "--fallback", "keyspace:default=https://codes.example/"];
const TWO: &str = "two.test";
const OFF: &str = "off.test";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const CRAWLER: &str = "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)";
const NAMES: &str = "plain Capital ruled secret few some many over ended ended-denied used-up early off taken \
                     gone denied kept docs docs/intro issue zzzzzz";

async fn pick(api: &Api, slug: &str, domain: Option<&str>, fields: &Value) {
    let long_url = format!("https://example.org/{slug}");
    let wish = plus(json!({ "customSlug": slug, "longUrl": long_url, "domain": domain }), fields);
    api.create_with(&wish).await.unwrap();
}

/// Makes the same links on the default domain and on another one, which has fallbacks and other
/// names; and a domain that is disabled.
async fn make_links(api: &Api) {
    let condition = |kind: &str, key: Option<&str>, value: Option<&str>| json!({ "type": kind, "matchKey": key, "matchValue": value });
    let rule = |name: &str, conditions: Value| json!({ "longUrl": format!("https://{name}.example/?own=1"), "conditions": conditions });
    let rules = json!({ "redirectRules": [
        rule("past", json!([condition("before-date", None, Some("2020-01-01"))])),
        rule("denied", json!([condition("query-param", Some("x"), Some("2"))])),
        rule("ios", json!([condition("device", None, Some("ios")), condition("language", None, Some("de"))])),
        rule("german", json!([condition("language", None, Some("de"))])),
        rule("here", json!([
            condition("ip-address", None, Some("127.0.0.0/8")),
            condition("any-value-query-param", Some("x"), None),
        ])),
        rule("third", json!([condition("share", None, Some("33"))])),
        rule("firefox", json!([condition("browser", None, Some("firefox"))])),
    ] });
    for domain in [None, Some(TWO)] {
        for (slug, fields) in [
            ("plain", json!({})),
            ("Capital", json!({ "redirectStatus": 307 })),
            ("ruled", json!({})),
            ("secret", json!({ "password": "hush", "maxVisits": 9 })),
            ("few", json!({ "maxVisits": 2 })),
            ("some", json!({ "maxVisits": 20 })),
            ("many", json!({ "maxVisits": 100_000 })),
            ("over", json!({ "validUntil": "2020-01-01" })),
            ("ended", json!({ "validUntil": "2020-01-01", "expiredUrl": "https://over.example/" })),
            ("ended-denied", json!({ "validUntil": "2020-01-01", "expiredUrl": "https://denied.example/" })),
            ("used-up", json!({ "maxVisits": 2, "expiredUrl": "https://over.example/" })),
            ("early", json!({ "validSince": "2090-01-01" })),
            ("off", json!({ "enabled": false })),
            ("taken", json!({})),
            ("gone", json!({})),
            ("denied", json!({ "longUrl": "https://denied.example/" })),
            ("kept", json!({ "forwardQuery": false, "longUrl": "https://example.org/kept?x=0" })),
            ("docs", json!({ "extraPath": "append" })),
            ("docs/intro", json!({})),
            ("issue", json!({ "extraPath": "fill", "longUrl": "https://example.org/{1}/issues/{2}" })),
        ] {
            pick(api, slug, domain, &fields).await;
        }
        let of = |path: &str| format!("short-urls/{path}?domain={}", domain.unwrap_or("DEFAULT"));
        done(api, Method::POST, &of("ruled/redirect-rules"), Some(rules.clone())).await;
        done(api, Method::POST, &of("taken/block"), Some(json!({ "reason": "phishing" }))).await;
        assert_eq!(call(api, Method::DELETE, &of("gone"), None).await.status, 204);
    }
    pick(api, "plain", Some(OFF), &json!({})).await;
    done(api, Method::PATCH, "domains/off.test", Some(json!({ "enabled": false }))).await;
    let settings = json!({
        "ignoreCase": true, "ignoreTrailing": true, "extraPath": "ignore",
        "expiredUrl": "https://two.example/over", "queryTemplate": "own={domain}&x=7&c={code}",
    });
    done(api, Method::PATCH, "domains/two.test", Some(settings)).await;
    let lost = "https://lost.example/{ORIGINAL_PATH}?of={DOMAIN}";
    let redirects = json!({
        "domain": TWO, "baseUrlRedirect": "https://base.example/", "invalidShortUrlRedirect": lost,
        "regular404Redirect": "https://denied.example/",
    });
    done(api, Method::PATCH, "domains/redirects", Some(redirects)).await;
    let denied = json!({ "pattern": "denied.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(denied)).await;
}

async fn explain(api: &Api, fields: &[(&str, &str)]) -> Answer {
    let url = Url::parse_with_params(&format!("{}/rest/v3/explain", api.url()), fields).unwrap();
    Answer::to(api.http().get(url).header("X-Api-Key", api.key())).await.unwrap()
}

async fn explained(api: &Api, fields: &[(&str, &str)]) -> Value {
    explain(api, fields).await.success().unwrap().json().unwrap()
}

fn some_path(random: &mut Rng) -> String {
    let names: Vec<&str> = NAMES.split(' ').collect();
    let name = random.pick(&names).to_owned();
    let path = match random.below(10) {
        0 => name.to_uppercase(),
        1 => format!("{name}."),
        2 => format!("{name}/"),
        3 => format!("{name}/a"),
        4 => format!("{}/a/%62", name.to_lowercase()),
        5 => format!("{name}+"),
        6 => ["", "/a", "%2E", "a%00b", "nothing", "z/z"][random.below(6)].to_owned(),
        _ => name,
    };
    let query = random.pick(&["", "", "?x=1", "?x=2", "?own=2&x", "?", "?%C3%BC=%20"]);
    path + query
}

/// Explains random requests, and sends each of them.
async fn explanations_say_what_redirects_do(api: &Api) {
    make_links(api).await;
    let count = std::env::var("SHORTMINT_EXPLAIN").map_or(SAMPLE, |count| count.parse().unwrap());
    let mut random = Rng::new(7);
    let default = api.url().strip_prefix("http://").unwrap().to_owned();
    let (mut led, mut refused) = (0, 0);
    for _ in 0..count {
        let host = random.pick(&[default.as_str(), TWO, TWO, OFF, "unknown.test"]);
        let path = some_path(&mut random);
        let user_agent = random.pick(&["curl/8", IPHONE, FIREFOX, CRAWLER]);
        let languages = random.pick(&["en", "de-AT,en;q=0.5", "fr, de;q=0.3"]);
        let url = format!("http://{host}/{path}");
        let fields = [("url", url.as_str()), ("userAgent", user_agent), ("acceptLanguage", languages)];
        let explanation = explained(api, &fields).await;
        let request = api.http().get(format!("{}/{path}", api.url())).header("host", host);
        let request = request.header("user-agent", user_agent).header("accept-language", languages);
        let answer = Answer::to(request).await.unwrap();
        let (status, location) = (&explanation["answer"]["status"], &explanation["answer"]["location"]);
        assert_eq!(
            (status.as_u64(), location.as_str()),
            (Some(u64::from(answer.status)), answer.header("location")),
            "{fields:?}: {explanation:#}"
        );
        assert!(explanation["steps"].as_array().unwrap().len() > 1, "{explanation}");
        assert_eq!(location.is_null(), explanation["answer"]["page"].is_string(), "{explanation}");
        if location.is_null() { refused += 1 } else { led += 1 }
    }
    let bare = explained(api, &[("url", "Two.Test/plain")]).await;
    assert_eq!(bare["steps"][0]["detail"], TWO, "{bare}");
    assert!(led > count / 5 && refused > count / 5, "both are tried: {led} and {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_say_what_redirects_do_on_sqlite() {
    explanations_say_what_redirects_do(Alone::start(&FLAGS).await.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_say_what_redirects_do_on_postgres() {
    let cluster = Cluster::builder().resolver_args(FLAGS).start().await.unwrap();
    explanations_say_what_redirects_do(&cluster.resolvers[0].api).await;
}

/// Returns the steps of an explanation as `step outcome detail`.
fn steps(explanation: &Value) -> Vec<String> {
    let step = |step: &Value| {
        let text = |name: &str| step[name].as_str().unwrap().to_owned();
        format!("{} {} {}", text("step"), text("outcome"), text("detail")).trim_end().to_owned()
    };
    explanation["steps"].as_array().unwrap().iter().map(step).collect()
}

/// An example of a visit, the steps of its explanation, and the answer.
type Explained = (&'static [(&'static str, &'static str)], Vec<&'static str>, Value);

fn examples() -> [Explained; 6] {
    [
        (
            &[("url", "ruled?a=1"), ("acceptLanguage", "de"), ("at", "2030-01-01")],
            vec![
                "name exact /ruled",
                "state live",
                "rule differs 1: before-date 2020-01-01",
                "rule matches 2",
                "target allowed https://german.example/",
                "query forwarded a=1",
                "visits left 2",
            ],
            json!({ "status": 302, "location": "https://german.example/?a=1", "page": null }),
        ),
        (
            &[("url", "ruled"), ("at", "2032-01-01")],
            vec!["name exact /ruled", "state expired 2031-01-01T00:00:00Z", "fallback none"],
            json!({ "status": 404, "location": null, "page": "not-found" }),
        ),
        (
            &[("url", "over?a=1")],
            vec![
                "name exact /over",
                "state expired 2020-01-01T00:00:00Z",
                "fallback expired-link https://over.example/",
            ],
            json!({ "status": 302, "location": "https://over.example/", "page": null }),
        ),
        (
            &[("url", "secret")],
            vec![
                "name exact /secret",
                "state live",
                "password asked",
                "target allowed https://example.org/secret",
            ],
            json!({ "status": 200, "location": null, "page": "password" }),
        ),
        (
            &[("url", "/no/such/name")],
            vec!["name unknown /no/such/name /no/such /no", "fallback none"],
            json!({ "status": 404, "location": null, "page": "not-found" }),
        ),
        (
            &[("url", "/ruled/x")],
            vec!["name refused /ruled", "name unknown /ruled/x /ruled", "fallback none"],
            json!({ "status": 404, "location": null, "page": "not-found" }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_is_told_with_its_reason_and_nothing_is_counted() {
    let alone = Alone::start(&["--limit", "unknown-codes-per-minute=1"]).await;
    let (api, host) = (alone.api(), alone.api().url().strip_prefix("http://").unwrap());
    make_links_of_steps(api).await;
    let counters = ["resolver_redirects_total", "resolver_visits_total", "resolver_not_found_total"];
    let mut before = Vec::new();
    for counter in counters {
        before.push(alone.resolver.metric(counter).await);
    }
    for (fields, expected, answer) in examples() {
        for _ in 0..3 {
            let explanation = explained(api, fields).await;
            let told = steps(&explanation);
            assert_eq!(told[0], format!("domain default {host}"));
            assert!(told[1..] == expected[..] && explanation["answer"] == answer, "{explanation:#}");
        }
    }
    let unknown = explained(api, &[("url", "http://unknown.test/ruled")]).await;
    assert_eq!(steps(&unknown)[0], format!("domain unknown unknown.test → {host}"));
    for (counter, before) in counters.into_iter().zip(before) {
        assert_eq!(alone.resolver.metric(counter).await, before, "{counter}");
    }
    // Both visits are left, and the budget of unknown codes.
    for status in [302, 302, 404] {
        assert_eq!(api.follow("ruled").await.unwrap().0, status);
    }
    assert_eq!(api.follow("nothing").await.unwrap().0, 404);
    wrong_examples_are_refused(api).await;
    it_is_explained_on_the_command_line_and_on_a_page(&alone).await;
}

async fn make_links_of_steps(api: &Api) {
    let fields = json!({ "maxVisits": 2, "validUntil": "2031-01-01" });
    pick(api, "ruled", None, &fields).await;
    let of = |name: &str, kind: &str, value: &str| {
        let condition = json!({ "type": kind, "matchKey": null, "matchValue": value });
        json!({ "longUrl": format!("https://{name}.example/"), "conditions": [condition] })
    };
    let rules = [of("past", "before-date", "2020-01-01"), of("german", "language", "de")];
    let rules = Some(json!({ "redirectRules": rules }));
    done(api, Method::POST, "short-urls/ruled/redirect-rules", rules).await;
    pick(api, "secret", None, &json!({ "password": "hush" })).await;
    let fields = json!({ "validUntil": "2020-01-01", "expiredUrl": "https://over.example/" });
    pick(api, "over", None, &fields).await;
}

async fn wrong_examples_are_refused(api: &Api) {
    for (fields, wrong) in [
        (&[][..], "url"),
        (&[("url", "/rest/v3/health")][..], "url"),
        (&[("url", "ruled/qr-code")][..], "url"),
        (&[("url", "http://[")][..], "url"),
        (&[("url", "ruled"), ("ip", "1.2.3")][..], "ip"),
        (&[("url", "ruled"), ("country", "DEU")][..], "country"),
        (&[("url", "ruled"), ("at", "tomorrow")][..], "at"),
    ] {
        let problem = expect_problem(&explain(api, fields).await, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!([wrong]), "{fields:?}");
    }
}

async fn it_is_explained_on_the_command_line_and_on_a_page(alone: &Alone) {
    let person = Person::at(&alone.resolver);
    let table = person.read(&["link", "explain", "secret", "--user-agent", "curl"]).await;
    assert!(table.contains("password  asked") && table.ends_with("answer: 200 password\n"), "{table}");
    let (api, cookie) = (alone.api(), sign_in(alone.api().url(), alone.api().key()).await);
    let page = async |path: &str| {
        let request = api.http().get(format!("{}/manage{path}", api.url())).header("cookie", &cookie);
        Answer::to(request.header("user-agent", "Reader/1")).await.unwrap()
    };
    for (query, status, part) in [
        ("shortUrl=secret&language=de", 200, "This link has a password"),
        ("shortUrl=secret", 200, "href=\"/manage/link/secret\""),
        ("shortUrl=no%2Fsuch%3Fa%3D1", 200, "No link has the name. Tried: /no/such /no"),
        ("shortUrl=http%3A%2F%2Fother.test%2Fsecret", 200, "No domain has this host"),
        ("shortUrl=over%3Fa%3D1", 200, "own address for after its end is used. https://over.example/"),
        ("shortUrl=secret&at=2030-13-01", 400, "The time has to be a date"),
        ("shortUrl=secret&ip=1.2.3", 400, "The IP address has to be written"),
        ("shortUrl=%2Frest%2Fv3%2Fhealth", 400, "Enter a short URL"),
        ("", 200, "name=\"userAgent\" value=\"Reader/1\""),
        ("userAgent=", 200, "name=\"userAgent\" value=\"\""),
    ] {
        let explained = page(&format!("/explain?{query}")).await;
        assert!(explained.status == status && explained.body.contains(part), "{query}: {explained:?}");
    }
    // The page of a link leads to it, and so does a search without a result.
    let link = page("/link/secret").await.body;
    let to = "/manage/explain?shortUrl=";
    assert!(link.contains(&format!("{to}http%3A%2F%2F")) && link.contains("%2Fsecret\""), "{link}");
    assert!(page("?search=a%2Fb").await.body.contains(&format!("{to}a%2Fb\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takedown_is_told_with_its_reason_and_a_denial_with_its_pattern_to_operators() {
    const DENIED: &str = "target denied https://a.denied.example/";
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    let url = json!({ "longUrl": "https://a.denied.example/" });
    for (slug, fields) in [("taken", &json!({})), ("denied", &url), ("ruled", &url)] {
        pick(api, slug, None, fields).await;
    }
    let unmet = json!({ "type": "language", "matchKey": null, "matchValue": "de" });
    let rules = json!({ "redirectRules": [{ "longUrl": "https://fine.example/", "conditions": [unmet] }] });
    done(api, Method::POST, "short-urls/ruled/redirect-rules", Some(rules)).await;
    let reason = Some(json!({ "reason": "phishing" }));
    done(api, Method::POST, "short-urls/taken/block", reason).await;
    let taken = steps(&explained(&reader, &[("url", "taken")]).await);
    assert!(taken[2].starts_with("state blocked ") && taken[2].ends_with("Z (phishing)"), "{taken:?}");

    let rule = json!({ "pattern": "*.denied.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(rule)).await;
    for name in ["denied", "ruled"] {
        let denied = async |by: &Api| steps(&explained(by, &[("url", name)]).await);
        assert!(denied(api).await.ends_with(&[DENIED.into(), "target pattern *.denied.example".into()]));
        assert!(denied(&reader).await.ends_with(&[DENIED.into()]), "no operator reads the rules");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_key_learns_nothing_of_the_links_of_others() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let own = alone.with_new_key("own", &["--scopes", "create,read", "--own-links-only"]).await;
    let lacking = alone.with_new_key("lacking", &["--scopes", "create"]).await;
    for (slug, fields) in [
        ("theirs", json!({})),
        ("locked", json!({ "password": "hush" })),
        ("over", json!({ "validUntil": "2020-01-01" })),
        ("deep", json!({ "extraPath": "append" })),
    ] {
        pick(admin, slug, None, &fields).await;
    }
    pick(admin, "theirs", Some(OFF), &json!({})).await;
    pick(&own, "mine", None, &json!({ "password": "mine" })).await;
    pick(&own, "late", Some(OFF), &json!({})).await;
    done(admin, Method::PATCH, "domains/off.test", Some(json!({ "enabled": false }))).await;
    let base = admin.url();
    for name in ["nothing", "theirs", "locked", "over", "deep"] {
        let refused = expect_problem(&explain(&own, &[("url", name)]).await, 404, "short-url-not-found");
        let absent = call(&own, Method::GET, &format!("short-urls/{name}"), None).await;
        assert_eq!(refused, expect_problem(&absent, 404, "short-url-not-found"), "{name}");
        let whole = explain(&own, &[("url", &format!("{base}/{name}"))]).await;
        assert_eq!(expect_problem(&whole, 404, "short-url-not-found"), refused, "{name}");
    }
    let elsewhere = ["http://off.test/theirs", "off.test/theirs", "http://off.test/"];
    for url in ["/", "deep/a", "deep+", "theirs+", "a//b"].into_iter().chain(elsewhere) {
        expect_problem(&explain(&own, &[("url", url)]).await, 404, "short-url-not-found");
    }
    // Its own links are explained, also one on a domain that is disabled.
    let mine = explained(&own, &[("url", "mine")]).await;
    assert_eq!(mine["answer"]["page"], "password", "{mine}");
    let late = explained(&own, &[("url", "http://off.test/late")]).await;
    assert_eq!(steps(&late)[0], "domain disabled off.test");
    expect_problem(&explain(&lacking, &[("url", "mine")]).await, 403, "about:blank");
    assert!(steps(&explained(admin, &[("url", "theirs")]).await).contains(&"name exact /theirs".to_owned()));
}
