//! Guards of links (passwords, limits, validity), the fallbacks for visitors whose request matched
//! no link, and idempotent creates.

use std::collections::HashSet;

use harness::{Answer, Api, Cluster, Created, wait};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::rest_calls::{Alone, SOON, call, done, expect_invalid, expect_problem, leads_to, visit};

const URL: &str = "https://example.com/page";

/// Creates a link under a custom slug, with the other fields of `wish`.
async fn pick(api: &Api, slug: &str, mut wish: Value) -> Value {
    (wish["longUrl"], wish["customSlug"]) = (json!(URL), json!(slug));
    api.create_with(&wish).await.unwrap().json
}

async fn edit(api: &Api, code: &str, change: Value) -> Value {
    done(api, Method::PATCH, &format!("short-urls/{code}"), Some(change)).await
}

/// Submits the password form of a link, as a browser does.
async fn unlock(api: &Api, path: &str, form: &str) -> Answer {
    let request = api.http().post(format!("{}/{path}", api.url()));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    Answer::to(request.body(form.to_owned())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_with_a_password_leads_only_those_on_who_know_it() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let password = "öffne dich & tritt ein";
    let form = "password=%C3%B6ffne+dich+%26%20tritt+ein";
    for (slug, wish, location) in [
        ("secret", json!({}), URL.to_owned()),
        ("secret308", json!({ "redirectStatus": 308 }), URL.to_owned()),
        ("secret?q=1", json!({}), format!("{URL}?q=1")),
    ] {
        let code = slug.split('?').next().unwrap();
        if slug == code {
            let mut wish = wish.clone();
            wish["password"] = json!(password);
            let made = pick(api, code, wish).await;
            assert_eq!(made["hasPassword"], true);
            assert!(!made.to_string().contains("argon2"), "the hash is nobody's business: {made}");
        }
        let asked = api.get(slug).await.unwrap();
        assert_eq!((asked.status, asked.header("cache-control")), (200, Some("no-store")));
        assert!(asked.body.contains("<form method=\"post\"") && !asked.body.contains(URL), "{}", asked.body);
        for (form, status) in [
            ("password=wrong", 403),
            ("password=", 403),
            ("password=%FF", 403),
            ("", 400),
            ("pass=word", 400),
            (&*format!("password={}", "x".repeat(1_100)), 400),
        ] {
            let refused = unlock(api, slug, form).await;
            assert_eq!((refused.status, refused.header("location")), (status, None), "{form}");
        }
        let opened = unlock(api, slug, form).await;
        assert_eq!((opened.status, opened.header("location")), (303, Some(&*location)));
    }
    edit(api, "secret", json!({ "password": null })).await;
    assert_eq!(api.follow("secret").await.unwrap(), leads_to(URL));
    edit(api, "secret", json!({ "password": "another" })).await;
    assert_eq!(api.follow("secret").await.unwrap().0, 200);
    assert_eq!(unlock(api, "secret", form).await.status, 403);
    assert_eq!(unlock(api, "secret", "password=another").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_sent_on_to_a_fallback_target() {
    let flags = ["--redirect-status", "307", "--fallback", "invalid-short-url=https://fallback.example/"];
    let alone = Alone::start(&flags).await;
    let api = alone.api();
    pick(api, "over", json!({ "password": "right", "validUntil": "2020-01-01" })).await;
    assert_eq!(api.get("over").await.unwrap().status, 307);
    for slug in ["over", "none"] {
        let answer = unlock(api, slug, "password=right").await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("https://fallback.example/")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_of_a_password_are_slowed_down_for_their_link_and_their_client() {
    let alone = Alone::start(&["--trusted-proxies", "127.0.0.0/8"]).await;
    let api = alone.api();
    for slug in ["one", "other"] {
        pick(api, slug, json!({ "password": "right" })).await;
    }
    let guess = async |slug: &str, client: &str, form: &'static str| {
        let request = api.http().post(format!("{}/{slug}", api.url())).header("x-forwarded-for", client);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        Answer::to(request.body(form)).await.unwrap()
    };
    for _ in 0..30 {
        assert_eq!(guess("one", "192.0.2.1", "password=right").await.status, 303, "it costs nothing");
    }
    for _ in 0..10 {
        assert_eq!(guess("one", "192.0.2.1", "password=wrong").await.status, 403);
    }
    assert_eq!(
        guess("one", "192.0.2.1", "password=right").await.status,
        303,
        "slowed down, and not locked out"
    );
    // No more than the forms of one client that are read at a time: beyond those, the refusal is
    // about the forms and not about the guesses.
    let many = (0..14).map(|_| guess("one", "192.0.2.1", "password=wrong"));
    let answers = futures_util::future::join_all(many).await;
    let refused = answers.iter().find(|answer| answer.status == 429).expect("few guesses wait at a time");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=7).contains(&seconds), "{refused:?}");
    assert!(refused.body.contains("Too many passwords were tried for this link"), "{refused:?}");
    assert_eq!(guess("other", "192.0.2.1", "password=wrong").await.status, 403);
    assert_eq!(guess("one", "192.0.2.2", "password=right").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_from_one_ipv6_network_are_those_of_one_client_and_its_right_password_gets_through() {
    let alone = Alone::start(&["--trusted-proxies", "127.0.0.0/8"]).await;
    let api = alone.api();
    pick(api, "one", json!({ "password": "right" })).await;
    let guess = async |host: u16, form: &'static str| {
        let request = api.http().post(format!("{}/one", api.url()));
        let request = request.header("x-forwarded-for", format!("2001:db8::{host:x}"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        Answer::to(request.body(form)).await.unwrap()
    };
    let answers = futures_util::future::join_all((0..40).map(|host| guess(host, "password=wrong"))).await;
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!(refused >= 20, "each address would have a budget of its own: {refused}");
    assert_eq!(guess(0x99, "password=right").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_and_a_limit_and_a_time_are_asked_for_together() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    pick(api, "limited", json!({ "password": "right", "maxVisits": 1 })).await;
    for _ in 0..3 {
        assert_eq!(api.follow("limited").await.unwrap().0, 200, "to be asked is no visit");
        assert_eq!(unlock(api, "limited", "password=wrong").await.status, 403);
    }
    assert_eq!(unlock(api, "limited", "password=right").await.status, 303);
    assert_eq!(unlock(api, "limited", "password=right").await.status, 404);
    let spent = api.get("limited").await.unwrap();
    assert!(spent.status == 404 && !spent.body.contains("password"), "{spent:?}");
    pick(api, "over", json!({ "password": "right", "validUntil": "2020-01-01" })).await;
    pick(api, "plain", json!({})).await;
    assert_eq!(api.follow("over").await.unwrap().0, 404);
    for (path, status) in [("over", 404), ("none", 404), ("plain", 303), ("", 405)] {
        assert_eq!(unlock(api, path, "password=right").await.status, status, "{path}");
    }
    let json = api.http().post(format!("{}/limited", api.url())).json(&json!({ "password": "right" }));
    assert_eq!(Answer::to(json).await.unwrap().status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_link_redirects_with_its_own_status_and_permanent_ones_can_still_be_edited() {
    let alone = Alone::start(&["--redirect-status", "307"]).await;
    let api = alone.api();
    for (status, cached) in
        [(301, Some("private,max-age=30")), (302, None), (307, None), (308, Some("private,max-age=30"))]
    {
        let made = api.create_with(&json!({ "longUrl": URL, "redirectStatus": status })).await.unwrap();
        assert_eq!(made.json["redirectStatus"], status);
        for _ in 0..2 {
            let answer = api.get(&made.code).await.unwrap();
            assert_eq!((answer.status, answer.header("location")), (status, Some(URL)));
            assert_eq!(answer.header("cache-control"), cached);
        }
        assert_eq!(
            edit(api, &made.code, json!({ "redirectStatus": null })).await["redirectStatus"],
            Value::Null
        );
        assert_eq!(api.follow(&made.code).await.unwrap().0, 307, "as all others");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leads_nowhere_any_more_is_gone_where_that_is_told_and_else_not_found() {
    for (flags, gone) in [(&[][..], 404), (&["--tell-gone"], 410)] {
        let alone = Alone::start(flags).await;
        let api = alone.api();
        pick(api, "off", json!({ "enabled": false })).await;
        pick(api, "over", json!({ "validUntil": "2020-01-01" })).await;
        pick(api, "secret", json!({ "password": "x", "enabled": false })).await;
        pick(api, "twice", json!({ "maxVisits": 2 })).await;
        assert_eq!(api.follow("twice").await.unwrap().0, 302);
        assert_eq!(api.follow("twice").await.unwrap().0, 302);
        let minted = api.create(URL).await.unwrap().code;
        assert_eq!(api.follow(&minted).await.unwrap().0, 302);
        let deleted = call(api, Method::DELETE, &format!("short-urls/{minted}"), None).await;
        assert_eq!(deleted.status, 204);
        for path in ["off", "over", "secret", "twice", &minted] {
            assert_eq!(api.follow(path).await.unwrap(), (gone, None), "{path}");
        }
        for path in ["none", "zzzzzz", "a//b"] {
            assert_eq!(api.follow(path).await.unwrap(), (404, None), "{path}");
        }
        // A link that has not begun is not gone, however it is asked for.
        let later = json!({ "password": "x", "validSince": "2090-01-01", "enabled": false });
        pick(api, "later", later).await;
        assert_eq!(api.follow("later").await.unwrap(), (404, None));
        assert_eq!(api.follow("later/qr-code").await.unwrap(), (404, None));
        assert_eq!(unlock(api, "later", "password=x").await.status, 404);
        assert_eq!(unlock(api, "secret", "password=x").await.status, gone);
        assert_eq!(edit(api, "off", json!({ "enabled": true })).await["enabled"], true);
        assert_eq!(api.follow("off").await.unwrap(), leads_to(URL));
        assert_eq!(edit(api, "off", json!({ "enabled": false })).await["enabled"], false);
        assert_eq!(api.follow("off").await.unwrap().0, gone, "the answer in the cache is not given");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_and_rules_that_are_set_on_one_resolver_stand_on_another_that_has_the_link_in_its_cache() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let code = one.create(URL).await.unwrap().code;
    for (change, status) in [
        (json!({ "enabled": false }), 404),
        (json!({ "enabled": true, "password": "x" }), 200),
        (json!({ "password": null, "redirectStatus": 308 }), 308),
        (json!({ "redirectStatus": null, "validSince": "2090-01-01" }), 404),
        (json!({ "validSince": null }), 302),
    ] {
        edit(&one, &code, change.clone()).await;
        assert_eq!(one.follow(&code).await.unwrap().0, status, "its own is right at once: {change}");
        let shown = async || other.follow(&code).await.unwrap().0 == status;
        wait::until(SOON, &format!("{change} shows"), shown).await.unwrap();
    }
    let ruled = "https://rule.example/";
    let rules = json!({ "redirectRules": [{ "longUrl": ruled, "conditions": [] }] });
    done(&one, Method::POST, &format!("short-urls/{code}/redirect-rules"), Some(rules)).await;
    assert_eq!(one.follow(&code).await.unwrap(), leads_to(ruled), "its own are right at once");
    let shown = async || other.follow(&code).await.unwrap() == leads_to(ruled);
    wait::until(SOON, "the rules show", shown).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_visitors_are_sent_where_their_domain_says_or_else_the_flags() {
    let flags = [
        ["--fallback", "base-url=https://all.example/base"],
        ["--fallback", "regular-404=https://all.example/404?from={DOMAIN}"],
        ["--fallback", "invalid-short-url=https://all.example/{ORIGINAL_PATH}"],
    ];
    let alone = Alone::start(flags.as_flattened()).await;
    let api = alone.api();
    let of_domain = json!({
        "domain": "one.example",
        "baseUrlRedirect": "https://one.test/",
        "invalidShortUrlRedirect": "https://one.test/lost?p={ORIGINAL_PATH}&d={DOMAIN}",
    });
    let shown = done(api, Method::PATCH, "domains/redirects", Some(of_domain)).await;
    assert_eq!(shown["regular404Redirect"], Value::Null);
    pick(api, "off", json!({ "enabled": false })).await;
    let default = api.url().strip_prefix("http://").unwrap();
    let from_default = default.replace('.', "%2E").replace(':', "%3A");
    for (host, path, url) in [
        (default, "", "https://all.example/base"),
        (default, "a//b", &format!("https://all.example/404?from={from_default}")),
        (default, "none", "https://all.example/none"),
        (default, "none/of/them?x=1", "https://all.example/none/of/them"),
        (default, "off", "https://all.example/off"),
        ("one.example", "", "https://one.test/"),
        ("one.example", "a//b", "https://all.example/404?from=one%2Eexample"),
        ("one.example", "x/y", "https://one.test/lost?p=%2Fx%2Fy&d=one%2Eexample"),
        ("one.example", "off", "https://one.test/lost?p=%2Foff&d=one%2Eexample"),
    ] {
        assert_eq!(visit(api, host, path).await, leads_to(url), "{host}/{path}");
    }
    for path in ["robots.txt", "favicon.ico", "rest/v3/nothing"] {
        assert_eq!(visit(api, "one.example", path).await.1, None, "{path}");
    }
    let cleared = json!({ "domain": "one.example", "baseUrlRedirect": "", "invalidShortUrlRedirect": null });
    done(api, Method::PATCH, "domains/redirects", Some(cleared)).await;
    assert_eq!(visit(api, "one.example", "").await, leads_to("https://all.example/base"));
    assert_eq!(visit(api, "one.example", "x/y").await, leads_to("https://all.example/x/y"));
    let repeats = "https://one.test/{ORIGINAL_PATH}?{ORIGINAL_PATH}";
    let repeats = json!({ "domain": "one.example", "regular404Redirect": repeats });
    done(api, Method::PATCH, "domains/redirects", Some(repeats)).await;
    assert_eq!(visit(api, "one.example", "a//b").await, leads_to("https://one.test/a//b?%2Fa%2F%2Fb"));
    let too_long = format!("a//{}", "x".repeat(5_000));
    let next = leads_to("https://all.example/404?from=one%2Eexample");
    assert_eq!(visit(api, "one.example", &too_long).await, next, "twice that path does not fit");
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_a_keyspace_without_a_link_lead_to_its_fallback_wherever_they_are_asked_for() {
    let flags = [
        ["--keyspaces", "web=6:A-Z,press=5:0-9:hand-picked"],
        ["--fallback", "keyspace:web=https://web.example/?p={ORIGINAL_PATH}"],
        ["--fallback", "keyspace:press=https://press.example/"],
        ["--fallback", "invalid-short-url=https://all.example/"],
    ];
    let alone = Alone::start(&[flags.as_flattened(), &["--tell-gone"]].concat()).await;
    let api = alone.api();
    let of_domain = json!({ "domain": "one.example", "invalidShortUrlRedirect": "https://one.test/" });
    done(api, Method::PATCH, "domains/redirects", Some(of_domain)).await;
    let [web, press] = ["https://web.example/?p=%2FABCDEF", "https://press.example/"];
    for (host, path, url) in [
        ("s.test", "ABCDEF", web),
        ("s.test", "12345", press),
        ("s.test", "abcdef", "https://all.example/"),
        ("s.test", "1234", "https://all.example/"),
        ("one.example", "ABCDEF", web),
        ("one.example", "12345", press),
        ("one.example", "abcdef", "https://one.test/"),
    ] {
        assert_eq!(visit(api, host, path).await, leads_to(url), "{host}/{path}");
    }
    // A hand-picked keyspace is never minted from, but slugs can be picked from it.
    let minted = json!({ "longUrl": URL, "keyspace": "press" });
    expect_invalid(&api.try_create_with(&minted).await.unwrap(), "keyspace");
    let reserved =
        call(api, Method::POST, "reservations", Some(json!({ "count": 1, "keyspace": "press" }))).await;
    expect_problem(&reserved, 400, "invalid-data");
    for _ in 0..50 {
        let code = api.create(URL).await.unwrap().code;
        assert!(code.len() == 6 && code.starts_with(|first: char| first.is_ascii_uppercase()), "{code}");
    }
    assert_eq!(pick(api, "12345", json!({})).await["shortCode"], "12345");
    assert_eq!(api.follow("12345").await.unwrap(), leads_to(URL));
    edit(api, "12345", json!({ "enabled": false })).await;
    assert_eq!(api.follow("12345").await.unwrap(), (410, None), "there was a link: no fallback hides that");
    let default = api.url().trim_start_matches("http://");
    let of_default = json!({ "domain": default, "invalidShortUrlRedirect": "https://own.test/" });
    done(api, Method::PATCH, "domains/redirects", Some(of_default)).await;
    assert_eq!(api.follow("12345").await.unwrap(), leads_to("https://own.test/"), "its domain knows better");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_of_a_hand_picked_keyspace_is_known_to_every_resolver_when_its_creator_is_answered() {
    let cluster = Cluster::builder().resolvers(2).keyspaces("web=6:A-Z,press=5:0-9:hand-picked");
    let cluster = cluster.start().await.unwrap();
    for n in 0..10 {
        let (slug, [one, other]) =
            (format!("{n:05}"), [n % 2, (n + 1) % 2].map(|at| &cluster.resolvers[at].api));
        assert_eq!(other.follow(&slug).await.unwrap().0, 404, "nobody has it yet");
        pick(one, &slug, json!({})).await;
        assert_eq!(other.follow(&slug).await.unwrap(), leads_to(URL));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_begins_with_the_prefix_that_is_asked_for() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for (mut wish, begin, len) in [
        (json!({ "pathPrefix": "go/" }), "go/", 11),
        (json!({ "pathPrefix": "/go/", "shortCodeLength": 3 }), "go/", 6),
        (json!({ "pathPrefix": "sale-", "strategy": "hash" }), "sale-", 13),
        (json!({ "pathPrefix": " a b/", "customSlug": "c d" }), "a-b/c-d", 7),
        (json!({ "pathPrefix": "ü/" }), "ü/", 11),
        (json!({ "pathPrefix": "" }), "", 6),
        (json!({ "pathPrefix": null }), "", 6),
    ] {
        wish["longUrl"] = json!(URL);
        let code = api.create_with(&wish).await.unwrap().code;
        assert!(code.starts_with(begin) && code.len() == len, "{wish}: {code}");
        assert_eq!(api.follow(&code).await.unwrap(), leads_to(URL), "{code}");
    }
    let again = json!({ "longUrl": URL, "pathPrefix": "again/", "findIfExists": true });
    let first = api.create_with(&again).await.unwrap();
    assert_eq!(api.create_with(&again).await.unwrap(), first);
}

/// Creates a link with an idempotency key.
async fn create_once(api: &Api, key: &str, wish: &Value) -> Answer {
    let request = api.post().header("X-Api-Key", api.key()).header("Idempotency-Key", key);
    Answer::to(request.json(wish)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_sent_again_makes_one_link_and_another_one_under_its_key_is_refused() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for (key, wish) in [
        ("plain", json!({ "longUrl": URL })),
        ("slug", json!({ "longUrl": URL, "customSlug": "picked" })),
        ("mintable", json!({ "longUrl": URL, "customSlug": "Abc123" })),
        ("digest", json!({ "longUrl": URL, "strategy": "hash" })),
        ("domain", json!({ "longUrl": URL, "domain": "one.example" })),
        ("password", json!({ "longUrl": URL, "password": "x", "tags": ["t"] })),
        (&"k".repeat(255), json!({ "longUrl": URL, "maxVisits": 1 })),
    ] {
        let first = create_once(api, key, &wish).await.success().unwrap();
        let again = create_once(api, key, &wish).await.success().unwrap();
        assert_eq!(again.json().unwrap(), first.json().unwrap(), "{key}");
        let mut other = wish.clone();
        other["title"] = json!("another");
        expect_problem(&create_once(api, key, &other).await, 422, "about:blank");
    }
    let code = |answer: Answer| Created::read(&answer.success().unwrap()).unwrap().code;
    let wish = json!({ "longUrl": URL });
    let first = code(create_once(api, "edited", &wish).await);
    edit(api, &first, json!({ "title": "edited since" })).await;
    assert_eq!(code(create_once(api, "edited", &wish).await), first);
    assert_ne!(code(create_once(api, "another", &wish).await), first);
    let other = alone.with_new_key("other", &[]).await;
    assert_ne!(code(create_once(&other, "edited", &wish).await), first, "a key's calls are its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_free_again_after_its_time() {
    let alone = Alone::start(&["--tune", "idempotency-keys=1s"]).await;
    let api = alone.api();
    create_once(api, "key", &json!({ "longUrl": URL })).await.success().unwrap();
    let other = json!({ "longUrl": "https://example.org/" });
    let is_free = async || create_once(api, "key", &other).await.status == 200;
    wait::until(SOON, "the key is free", is_free).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_send_the_same_create_at_once_all_get_one_link() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    for (key, wish) in [
        ("minted", json!({ "longUrl": URL })),
        ("picked", json!({ "longUrl": URL, "customSlug": "picked" })),
        ("digest", json!({ "longUrl": URL, "strategy": "hash" })),
        ("domain", json!({ "longUrl": URL, "domain": "one.example" })),
    ] {
        let mut clients = JoinSet::new();
        for client in 0..32 {
            let (api, wish) = (cluster.resolvers[client % 2].api.clone(), wish.clone());
            clients.spawn(async move {
                let answer = create_once(&api, key, &wish).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                Created::read(&answer).unwrap().code
            });
        }
        let codes: HashSet<String> = clients.join_all().await.into_iter().collect();
        assert_eq!(codes.len(), 1, "{key}: {codes:?}");
    }
    let sql = cluster.postgres.client().await.unwrap();
    let rows: i64 = sql.query_one("SELECT count(*) FROM link", &[]).await.unwrap().get(0);
    assert_eq!(rows, 4);
}
