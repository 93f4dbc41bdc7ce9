//! API keys: restrictions, expiry, rotation and rate limits. Also the rules for targets, and the
//! audit log.

use std::time::Duration;

use harness::{Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rest_calls::{Alone, SOON, call, done, expect_problem, get, listed, visit};

const URL: &str = "https://example.com/page";
/// How soon every resolver refuses a revoked key, with a margin for a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(3);
/// All scopes but `domains` and `admin`.
const ALL_BUT_ADMIN: &str = "create,read,edit,delete,visits,reserve";

async fn status(api: &Api) -> u16 {
    call(api, Method::GET, "tags", None).await.status
}

async fn is_refused(api: &Api) -> bool {
    status(api).await == 401
}

async fn create(api: &Api, slug: &str, domain: Option<&str>) -> Value {
    let wish = json!({ "longUrl": URL, "customSlug": slug, "domain": domain });
    api.create_with(&wish).await.unwrap().json
}

/// Asserts that every call for a single link is refused as if the link did not exist.
async fn expect_hidden(api: &Api, code: &str, query: &str) {
    for (method, below, body) in [
        (Method::GET, "", None),
        (Method::PATCH, "", Some(json!({ "title": "mine" }))),
        (Method::DELETE, "", None),
        (Method::GET, "/redirect-rules", None),
        (Method::POST, "/redirect-rules", Some(json!({ "redirectRules": [] }))),
        (Method::GET, "/visits", None),
        (Method::DELETE, "/visits", None),
    ] {
        let path = format!("short-urls/{code}{below}{query}");
        let answer = call(api, method.clone(), &path, body).await;
        let problem = expect_problem(&answer, 404, "short-url-not-found");
        assert_eq!(problem["shortCode"], code, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_its_own_links_neither_sees_nor_changes_those_of_others() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let own = alone.with_new_key("own", &["--scopes", ALL_BUT_ADMIN, "--own-links-only"]).await;
    let before = create(admin, "foreign", None).await;
    create(&own, "mine", None).await;
    let minted = own.create(URL).await.unwrap().code;
    expect_hidden(&own, "foreign", "").await;
    assert_eq!(get(admin, "short-urls/foreign").await, before, "nothing has changed");
    for (query, expected) in [
        ("orderBy=dateCreated-ASC", &["mine", &*minted][..]),
        ("searchTerm=foreign", &[]),
        ("apiKeyName=initial&orderBy=dateCreated-ASC", &["mine", &minted]),
        ("apiKeyName=own&orderBy=dateCreated-ASC", &["mine", &minted]),
        ("orderBy=shortCode-ASC&searchTerm=mine", &["mine"]),
    ] {
        assert_eq!(listed(&own, query).await, expected, "{query}");
    }
    assert_eq!(listed(admin, "apiKeyName=own").await.len(), 2);
    assert_eq!(listed(admin, "").await.len(), 3);
    done(&own, Method::PATCH, "short-urls/mine", Some(json!({ "title": "x" }))).await;
    assert_eq!(call(&own, Method::DELETE, "short-urls/mine", None).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_domain_makes_links_there_and_knows_of_no_others() {
    let alone = Alone::start_at("https://s.test").await;
    let admin = alone.api();
    let scopes = ["--scopes", ALL_BUT_ADMIN];
    let one = alone.with_new_key("one", &[&scopes[..], &["--domain", "one.example"]].concat()).await;
    let default = alone.with_new_key("default", &[&scopes[..], &["--domain", "DEFAULT"]].concat()).await;
    for domain in [None, Some("one.example"), Some("two.example")] {
        create(admin, "promo", domain).await;
    }
    for (api, own, foreign) in [
        (&one, Some("one.example"), ["", "?domain=two.example"]),
        (&default, None, ["?domain=one.example", "?domain=two.example"]),
    ] {
        for query in foreign {
            expect_hidden(api, "promo", query).await;
        }
        for (nr, domain) in
            [None, Some("one.example"), Some("two.example"), Some("new.example")].iter().enumerate()
        {
            let made = create(api, &format!("made-{nr}"), *domain).await;
            assert_eq!(made["domain"].as_str(), own, "{domain:?}: whatever was asked for");
        }
        let query = own.map_or(String::new(), |domain| format!("?domain={domain}"));
        assert_eq!(get(api, &format!("short-urls/promo{query}")).await["domain"].as_str(), own);
        assert_eq!(listed(api, "searchTerm=promo").await, ["promo"]);
        assert!(listed(api, "domain=two.example").await.is_empty());
        let domains = get(api, "domains").await;
        let domains = domains["domains"]["data"].as_array().unwrap();
        assert_eq!((domains.len(), domains[0]["domain"].as_str()), (1, own.or(Some("s.test"))));
        let items = json!([{ "longUrl": URL }, { "longUrl": URL, "domain": "new.example" }]);
        let bulk = done(api, Method::POST, "short-urls/bulk", Some(items)).await;
        let base = format!("https://{}/", own.unwrap_or("s.test"));
        for result in bulk["results"].as_array().unwrap() {
            let short_url = result["shortUrl"].as_str();
            assert!(short_url.is_some_and(|short_url| short_url.starts_with(&base)), "{own:?}: {result}");
        }
    }
    assert_eq!(visit(admin, "one.example", "made-0").await.0, 302);
    let names = get(admin, "domains").await;
    assert_eq!(names["domains"]["data"].as_array().unwrap().len(), 3, "new.example was not made");

    let manager = alone.with_new_key("manager", &["--domain", "one.example"]).await;
    let redirects = |domain: &str| json!({ "domain": domain, "baseUrlRedirect": "https://base.example/" });
    for domain in ["two.example", "Two.Example", "s.test", "DEFAULT", "new.example"] {
        let refused = call(&manager, Method::PATCH, "domains/redirects", Some(redirects(domain))).await;
        expect_problem(&refused, 404, "domain-not-found");
        for change in [json!({ "enabled": false }), json!({ "domain": "other.example" })] {
            let refused = call(&manager, Method::PATCH, &format!("domains/{domain}"), Some(change)).await;
            let problem = expect_problem(&refused, 404, "domain-not-found");
            assert_eq!(problem["authority"], domain, "as it was written, whether it exists or not");
        }
    }
    done(&manager, Method::PATCH, "domains/redirects", Some(redirects("one.example"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_good_until_it_expires_and_a_rotated_ones_old_secret_for_as_long_as_it_is_kept() {
    let alone = Alone::start(&[]).await;
    let (begun, time) = (Instant::now(), Duration::from_secs(4));
    let short = alone.with_new_key("short", &["--scopes", "read", "--expires-in", "4s"]).await;
    assert_eq!(status(&short).await, 200);
    wait::until(SOON, "the key expires", async || is_refused(&short).await).await.unwrap();
    assert!(begun.elapsed() >= time, "it was good for its time");

    let first = alone.with_new_key("client", &["--scopes", "read,create", "--own-links-only"]).await;
    create(&first, "mine", None).await;
    let rotate = ["rotate", "--name", "client"];
    let kept = [&rotate[..], &["--keep-old-for", "1h"]].concat();
    let second = alone.api().with_key(&alone.api_key(&kept).await);
    assert_ne!(first.key(), second.key());
    for api in [&first, &second] {
        assert_eq!(listed(api, "").await, ["mine"], "the limits and the links stay");
    }
    let begun = Instant::now();
    let kept = [&rotate[..], &["--keep-old-for", "4s"]].concat();
    let third = alone.api().with_key(&alone.api_key(&kept).await);
    assert_eq!(status(&second).await, 200);
    wait::until(REFUSED_WITHIN, "the secret before the last is refused", async || is_refused(&first).await)
        .await
        .unwrap();
    wait::until(SOON, "the last one is refused", async || is_refused(&second).await).await.unwrap();
    assert!(begun.elapsed() >= time, "it was kept for its time");
    let fourth = alone.api().with_key(&alone.api_key(&rotate).await);
    assert_eq!(listed(&fourth, "").await, ["mine"]);
    wait::until(REFUSED_WITHIN, "the old secret is refused", async || is_refused(&third).await)
        .await
        .unwrap();
    assert_eq!(status(&fourth).await, 200);
    let listed = alone.api_key(&["list", "--json"]).await;
    for api in [&short, &first, &second, &third, &fourth] {
        assert!(!listed.contains(api.key()));
    }
    let keys: Value = serde_json::from_str(&listed).unwrap();
    let key = keys.as_array().unwrap().iter().find(|key| key["name"] == "client").unwrap();
    assert_eq!((&key["scopes"], &key["limits"]), (&json!("create,read"), &json!({ "ownLinksOnly": true })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_or_rotated_is_refused_by_every_resolver_that_has_just_believed_it() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let database = cluster.database_url();
    let api_key = async |args: &[&str]| {
        let args = [&["api-key"], args, &["--database", &database]].concat();
        let finished = cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap();
        finished.stdout.trim().to_owned()
    };
    for (name, end) in [("revoked", "revoke"), ("rotated", "rotate")] {
        let key = api_key(&["create", "--name", name, "--scopes", "read"]).await;
        let apis = [0, 1].map(|index| cluster.resolvers[index].api.with_key(&key));
        for api in &apis {
            assert_eq!(status(api).await, 200);
        }
        let new = api_key(&[end, "--name", name]).await;
        for api in &apis {
            wait::until(REFUSED_WITHIN, "it is refused", async || is_refused(api).await).await.unwrap();
        }
        if end == "rotate" {
            assert_eq!(status(&apis[0].with_key(&new)).await, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_calls_too_often_is_told_so_and_before_that_how_much_is_left() {
    let flags = ["--limit", "calls-per-key=4,calls-per-client=6", "--trusted-proxies", "127.0.0.0/8"];
    let alone = Alone::start(&flags).await;
    let admin = alone.api();
    let three = alone.with_new_key("three", &["--calls-per-minute", "3"]).await;
    let free = alone.with_new_key("free", &["--calls-per-minute", "0"]).await;
    for (api, client, policy, count) in [
        (admin, "192.0.2.1", "key", 4_u64),
        (&three, "192.0.2.2", "key", 3),
        (&free, "192.0.2.3", "client", 6),
    ] {
        for left in (0..count).rev() {
            let answer = from(api, client).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.header("ratelimit-policy"), Some(&*format!("\"{policy}\";q={count};w=60")));
            let told = answer.header("ratelimit").unwrap();
            let wait = told.strip_prefix(&format!("\"{policy}\";r={left};t=")).expect(told);
            assert!(wait.parse::<u64>().unwrap() <= 60, "{told}");
        }
        let refused = from(api, client).await;
        expect_problem(&refused, 429, "about:blank");
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60 / count + 1).contains(&seconds), "{seconds}");
        assert_eq!(refused.header("ratelimit-policy"), Some(&*format!("\"{policy}\";q={count};w=60")));
        let told = refused.header("ratelimit").unwrap();
        let full_in: u64 = told.strip_prefix(&format!("\"{policy}\";r=0;t=")).expect(told).parse().unwrap();
        assert!((60 - 60 / count..=60).contains(&full_in), "{told}");
    }
    expect_problem(&from(&three, "192.0.2.9").await, 429, "about:blank");
    assert_eq!(from(&free, "192.0.2.9").await.status, 200, "each client has its own");
    assert_eq!(admin.get("rest/health").await.unwrap().status, 200, "needs no key, and is not counted");
}

/// Calls the API through a trusted proxy on behalf of this client address.
async fn from(api: &Api, client: &str) -> harness::Answer {
    let request = api.http().get(format!("{}/rest/v3/tags", api.url())).header("X-Api-Key", api.key());
    harness::Answer::to(request.header("X-Forwarded-For", client)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_keys_is_slowed_down_and_nobody_else() {
    let alone = Alone::start(&["--trusted-proxies", "127.0.0.0/8"]).await;
    assert_eq!(from(alone.api(), "192.0.2.1").await.status, 200, "known as a good key from here on");
    let new = alone.with_new_key("new", &[]).await;
    let guess =
        async |guess: usize| from(&alone.api().with_key(&format!("{guess:032}")), "192.0.2.1").await.status;
    for number in 0..120 {
        assert_eq!(guess(number).await, 401, "{number}");
    }
    let more = futures_util::future::join_all((120..160).map(guess)).await;
    assert!(more.iter().all(|status| matches!(status, 401 | 429)) && more.contains(&429), "{more:?}");
    assert_eq!(from(alone.api(), "192.0.2.1").await.status, 200, "whoever has a good key is not slowed down");
    assert_eq!(from(&new, "192.0.2.1").await.status, 200, "one that was never seen waits, and passes");
    assert_eq!(from(&alone.api().with_key("wrong"), "192.0.2.2").await.status, 401);
}

async fn can_lead_to(api: &Api, host: &str) -> bool {
    let answer = api.try_create(&format!("https://{host}/")).await.unwrap();
    if answer.status != 200 {
        let problem = expect_problem(&answer, 400, "invalid-data");
        assert_eq!(
            problem["expected"]["longUrl"],
            "the target rules of this service do not allow links to this host"
        );
    }
    answer.status == 200
}

async fn set_target(api: &Api, pattern: &str, allowed: bool) -> Value {
    done(api, Method::PUT, "targets", Some(json!({ "pattern": pattern, "allowed": allowed }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_targets_holds_on_every_resolver_when_its_caller_is_answered() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    assert_eq!(set_target(&one, " *.Evil.example", false).await["pattern"], "*.evil.example");
    set_target(&one, "203.0.113.7", false).await;
    for (host, expected) in [
        ("evil.example", true),
        ("a.evil.example", false),
        ("A.B.EVIL.example.", false),
        ("notevil.example", true),
        ("203.0.113.7", false),
        ("0xcb.0x71.7.7", true),
        ("3405803783", false),
    ] {
        for api in [&one, &other] {
            assert_eq!(can_lead_to(api, host).await, expected, "{host}");
        }
    }
    set_target(&other, "fine.evil.example", true).await;
    assert!(can_lead_to(&one, "other.example").await, "an exception makes no list");
    set_target(&other, "*", false).await;
    for api in [&one, &other] {
        assert!(can_lead_to(api, "fine.evil.example").await);
        assert!(!can_lead_to(api, "b.evil.example").await);
        assert!(!can_lead_to(api, "other.example").await, "now it is a list of what is allowed");
    }
    assert_eq!(call(&one, Method::DELETE, "targets/%2A", None).await.status, 204);
    assert_eq!(call(&one, Method::DELETE, "targets/fine.evil.example", None).await.status, 204);
    assert!(can_lead_to(&other, "other.example").await);
    assert!(!can_lead_to(&other, "fine.evil.example").await);
    let expected = json!([
        { "pattern": "*.evil.example", "allowed": false },
        { "pattern": "203.0.113.7", "allowed": false },
    ]);
    assert_eq!(get(&other, "targets").await["targets"]["data"], expected);
    let again = call(&other, Method::DELETE, "targets/fine.evil.example", None).await;
    expect_problem(&again, 404, "about:blank");
    assert_eq!(call(&other, Method::DELETE, "targets/%2A.evil.example", None).await.status, 204);
    assert!(can_lead_to(&one, "a.evil.example").await);
}

/// Makes a write of every kind, and some that fail. Returns the secret of the rotated key.
async fn change_everything(alone: &Alone, editor: &Api) -> String {
    let admin = alone.api();
    let wish = json!({ "longUrl": URL, "customSlug": "x", "tags": ["a"], "password": "hush hush", "domain": "one.example" });
    editor.create_with(&wish).await.unwrap();
    let link = "short-urls/x?domain=one.example";
    done(editor, Method::PATCH, link, Some(json!({ "title": "T", "password": "hush again" }))).await;
    let rules = json!({ "redirectRules": [{ "longUrl": "https://example.org/", "conditions": [] }] });
    done(editor, Method::POST, "short-urls/x/redirect-rules?domain=one.example", Some(rules)).await;
    call(admin, Method::PUT, "tags", Some(json!({ "oldName": "a", "newName": "b" })))
        .await
        .success()
        .unwrap();
    call(admin, Method::DELETE, "tags?tags[]=b", None).await.success().unwrap();
    done(admin, Method::PATCH, "domains/one.example", Some(json!({ "enabled": false }))).await;
    set_target(admin, "bad.example", false).await;
    call(admin, Method::DELETE, "targets/bad.example", None).await.success().unwrap();
    call(editor, Method::DELETE, link, None).await.success().unwrap();
    alone.api_key(&["create", "--name", "other"]).await;
    let secret = alone.api_key(&["rotate", "--name", "other"]).await;
    alone.api_key(&["revoke", "--name", "other"]).await;
    // Failed writes do not appear in the audit log.
    call(admin, Method::DELETE, link, None).await;
    call(admin, Method::PATCH, "short-urls/none", Some(json!({ "title": "T" }))).await;
    call(admin, Method::DELETE, "targets/none.example", None).await;
    secret
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_who_wrote_what_and_no_secret() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let editor = alone.with_new_key("editor", &["--scopes", "create,edit,delete,domains"]).await;
    let begun = get(admin, "audit").await["audit"]["data"][0]["id"].as_i64().unwrap();
    let secret = change_everything(&alone, &editor).await;

    let log = get(admin, "audit").await["audit"].clone();
    assert_eq!(log["before"], Value::Null);
    let entries = log["data"].as_array().unwrap();
    let new: Vec<&Value> =
        entries.iter().rev().filter(|entry| entry["id"].as_i64().unwrap() > begun).collect();
    let told = |entry: &Value| {
        (entry["apiKey"].as_str().map(str::to_owned), entry["action"].as_str().unwrap().to_owned())
    };
    let expected = [
        (Some("editor"), "add-domain"),
        (Some("editor"), "edit-link"),
        (Some("editor"), "edit-link"),
        (Some("initial"), "rename-tag"),
        (Some("initial"), "delete-tag"),
        (Some("initial"), "edit-domain"),
        (Some("initial"), "set-target"),
        (Some("initial"), "remove-target"),
        (Some("editor"), "delete-link"),
        (None, "create-key"),
        (None, "rotate-key"),
        (None, "revoke-key"),
    ];
    let expected = expected.map(|(key, action)| (key.map(str::to_owned), action.to_owned()));
    assert_eq!(new.iter().map(|entry| told(entry)).collect::<Vec<_>>(), expected);
    assert_eq!((&new[1]["details"]["title"], &new[1]["details"]["hasPassword"]), (&json!("T"), &json!(true)));
    assert_eq!(
        (&new[5]["subject"], &new[5]["details"]),
        (
            &json!("one.example"),
            &json!({ "domain": "one.example", "enabled": false, "trackVisitors": true,
                "ignoreCase": false, "ignoreTrailing": false, "catchAll": false, "crossOrigin": false,
                "crawlable": false, "confirmLimited": false,
                "changed": { "enabled": { "from": true, "to": false } } })
        )
    );
    assert_eq!(
        (&new[6]["subject"], &new[6]["details"]),
        (&json!("bad.example"), &json!({ "allowed": false }))
    );
    assert_eq!(new[11]["subject"], "other");
    let text = log.to_string();
    for hidden in ["hush", "argon2", &secret, editor.key(), admin.key()] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let older = get(admin, &format!("audit?before={}", new[1]["id"])).await;
    assert_eq!(older["audit"]["data"][0], *new[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_read_page_by_page() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    create(api, "x", None).await;
    for n in 0..205 {
        done(api, Method::PATCH, "short-urls/x", Some(json!({ "title": n.to_string() }))).await;
    }
    let (mut titles, mut pages, mut query) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = get(api, &format!("audit{query}")).await["audit"].clone();
        let entries = page["data"].as_array().unwrap();
        pages.push(entries.len());
        titles.extend(
            entries
                .iter()
                .filter(|entry| entry["action"] == "edit-link")
                .map(|entry| entry["details"]["title"].clone()),
        );
        match page["before"].as_i64() {
            Some(before) => query = format!("?before={before}"),
            None => break,
        }
    }
    assert_eq!((&pages[..2], pages.len()), (&[100, 100][..], 3), "{pages:?}");
    let expected: Vec<Value> = (0..205).rev().map(|n| json!(n.to_string())).collect();
    assert_eq!(titles, expected);
}
