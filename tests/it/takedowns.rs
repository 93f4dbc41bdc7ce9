//! Takedowns by an operator, of one link or of all links to a host, and who may lift them.

use std::time::Duration;

use harness::{Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    pages::Browser,
    rest_calls::{Alone, SOON, call, done, expect_problem, get, leads_to, visit},
};

const URL: &str = "https://evil.example/page";
/// The response to visitors of a link that was taken down.
const TAKEN_DOWN: (u16, Option<String>) = (410, None);

async fn make(api: &Api, mut wish: Value) -> String {
    wish["longUrl"] = json!(URL);
    api.create_with(&wish).await.unwrap().code
}

async fn block(api: &Api, code: &str) -> Value {
    let reason = Some(json!({ "reason": " phishing, ticket 7 " }));
    done(api, Method::POST, &format!("short-urls/{code}/block"), reason).await
}

async fn unblock(api: &Api, code: &str) -> Value {
    done(api, Method::POST, &format!("short-urls/{code}/unblock"), None).await
}

async fn set_target(api: &Api, pattern: &str, allowed: bool) {
    done(api, Method::PUT, "targets", Some(json!({ "pattern": pattern, "allowed": allowed }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_denied_host_is_not_shown_as_live() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let code = make(api, json!({ "customSlug": "denied" })).await;
    let browser = Browser::open(api).await;
    for (allowed, state) in [(true, "live\">Live<"), (false, "denied\">Denied by a target rule<")] {
        set_target(api, "evil.example", allowed).await;
        assert_eq!(api.follow(&code).await.unwrap().0 == 302, allowed);
        for path in ["/manage", "/manage/link/denied", "/manage/rules/denied"] {
            let page = browser.page(path).await;
            assert!(page.contains(&format!("class=\"state state-{state}/span>")), "{path}: {page}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_took_down_only_an_operator_brings_back() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let scopes = ["--scopes", "create,read,edit,delete,visits", "--own-links-only"];
    let tenant = alone.with_new_key("tenant", &scopes).await;
    let limited = alone.with_new_key("limited", &["--domain", "DEFAULT"]).await;
    for wish in [json!({}), json!({ "customSlug": "Abc123" }), json!({ "customSlug": "summer/sale" })] {
        let code = make(&tenant, wish.clone()).await;
        assert_eq!(admin.follow(&code).await.unwrap(), leads_to(URL));
        for api in [&tenant, &limited] {
            let reason = Some(json!({ "reason": "mine" }));
            let refused = call(api, Method::POST, &format!("short-urls/{code}/block"), reason).await;
            expect_problem(&refused, 403, "about:blank");
        }
        let blocked = block(admin, &code).await;
        assert_eq!(blocked["blocked"]["reason"], "phishing, ticket 7", "{blocked}");
        assert!(blocked["blocked"]["date"].is_string() && blocked["enabled"] == true, "{blocked}");
        assert_eq!(get(&tenant, &format!("short-urls/{code}")).await, blocked);
        assert_eq!(admin.follow(&code).await.unwrap(), TAKEN_DOWN);
        assert_eq!(visit(admin, "s.test", &format!("{code}/qr-code")).await, TAKEN_DOWN);

        let path = format!("short-urls/{code}");
        for change in [json!({ "enabled": true }), json!({ "longUrl": "https://example.org/" })] {
            done(&tenant, Method::PATCH, &path, Some(change)).await;
        }
        let rules = json!({ "redirectRules": [{ "longUrl": URL, "conditions": [] }] });
        done(&tenant, Method::POST, &format!("{path}/redirect-rules"), Some(rules)).await;
        for api in [&tenant, admin] {
            expect_problem(&call(api, Method::DELETE, &path, None).await, 409, "about:blank");
        }
        for api in [&tenant, &limited] {
            let refused = call(api, Method::POST, &format!("{path}/unblock"), None).await;
            expect_problem(&refused, 403, "about:blank");
        }
        let restored = call(&tenant, Method::POST, &format!("{path}/restore"), None).await;
        expect_problem(&restored, 404, "short-url-not-found");
        if let Some(slug) = wish.get("customSlug") {
            let again = json!({ "longUrl": URL, "customSlug": slug });
            expect_problem(&tenant.try_create_with(&again).await.unwrap(), 400, "non-unique-slug");
        }
        assert_eq!(admin.follow(&code).await.unwrap(), TAKEN_DOWN);
        assert_eq!(unblock(admin, &code).await["blocked"], Value::Null);
        assert_eq!(admin.follow(&code).await.unwrap(), leads_to(URL));
        assert_eq!(call(&tenant, Method::DELETE, &path, None).await.status, 204);
    }
    let log = get(admin, "audit").await;
    let actions: Vec<&str> =
        log["audit"]["data"].as_array().unwrap().iter().map(|one| one["action"].as_str().unwrap()).collect();
    for (action, times) in [("block-link", 3), ("unblock-link", 3)] {
        assert_eq!(actions.iter().filter(|other| **other == action).count(), times, "{log}");
    }
    for wrong in [json!({}), json!({ "reason": " " }), json!({ "reason": "x", "until": "y" })] {
        let refused = call(admin, Method::POST, "short-urls/any/block", Some(wrong)).await;
        expect_problem(&refused, 400, "invalid-data");
    }
    let missing = call(admin, Method::POST, "short-urls/none/unblock", None).await;
    expect_problem(&missing, 404, "short-url-not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_link_that_is_taken_down_stays_so_when_its_owner_restores_it() {
    let alone = Alone::start(&["--fallback", "invalid-short-url=https://all.example/"]).await;
    let admin = alone.api();
    let tenant = alone.with_new_key("tenant", &["--scopes", "create,read,delete"]).await;
    for wish in [json!({}), json!({ "customSlug": "Abc123" }), json!({ "customSlug": "summer/sale" })] {
        let code = make(&tenant, wish).await;
        let path = format!("short-urls/{code}");
        assert_eq!(call(&tenant, Method::DELETE, &path, None).await.status, 204);
        assert!(block(admin, &code).await["deletedAt"].is_string());
        let again = json!({ "longUrl": URL, "customSlug": code });
        expect_problem(&tenant.try_create_with(&again).await.unwrap(), 400, "non-unique-slug");
        assert_eq!(admin.follow(&code).await.unwrap(), TAKEN_DOWN, "its name is held");
        let restored = done(&tenant, Method::POST, &format!("{path}/restore"), None).await;
        assert_eq!(restored["blocked"]["reason"], "phishing, ticket 7", "{restored}");
        assert_eq!(admin.follow(&code).await.unwrap(), TAKEN_DOWN, "and not sent to the fallback");
        unblock(admin, &code).await;
        assert_eq!(admin.follow(&code).await.unwrap(), leads_to(URL));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_link_that_is_taken_down_holds_its_name_until_the_block_is_lifted() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    for (host, domain) in [("s.test", Value::Null), ("own.example", json!("own.example"))] {
        let query = domain.as_str().map_or(String::new(), |name| format!("?domain={name}"));
        let wish = json!({ "longUrl": URL, "customSlug": "summer/sale", "domain": domain });
        one.create_with(&wish).await.unwrap();
        assert_eq!(visit(&other, host, "summer/sale").await, leads_to(URL));
        assert_eq!(
            call(&one, Method::DELETE, &format!("short-urls/summer/sale{query}"), None).await.status,
            204
        );
        let reason = Some(json!({ "reason": "phishing" }));
        done(&one, Method::POST, &format!("short-urls/summer/sale/block{query}"), reason).await;
        for api in [&one, &other] {
            expect_problem(&api.try_create_with(&wish).await.unwrap(), 400, "non-unique-slug");
            let is_down = async || visit(api, host, "summer/sale").await == TAKEN_DOWN;
            wait::until(SOON, "visitors are told", is_down).await.unwrap();
        }
        done(&one, Method::POST, &format!("short-urls/summer/sale/unblock{query}"), None).await;
        other.create_with(&wish).await.unwrap();
        for api in [&one, &other] {
            let leads = async || visit(api, host, "summer/sale").await == leads_to(URL);
            wait::until(SOON, "it is free again", leads).await.unwrap();
        }
    }
}

/// The link is requested all the time, so that it is in the cache of every thread.
#[tokio::test(flavor = "multi_thread")]
async fn links_to_a_host_that_is_denied_lead_nowhere_on_every_resolver_until_the_rule_is_gone() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let plain = make(&one, json!({})).await;
    let others = [
        make(&one, json!({ "customSlug": "summer/sale" })).await,
        make(&one, json!({ "maxVisits": 1_000 })).await,
        make(&one, json!({ "password": "secret" })).await,
    ];
    let fine = one.create("https://fine.example/").await.unwrap().code;
    let elsewhere = one.create("https://fine.example/").await.unwrap().code;
    let rules = json!({ "redirectRules": [{ "longUrl": URL, "conditions": [] }] });
    done(&one, Method::POST, &format!("short-urls/{elsewhere}/redirect-rules"), Some(rules)).await;
    let all = || others.iter().chain([&plain, &elsewhere]);
    let shows_rule = async || other.follow(&elsewhere).await.unwrap() == leads_to(URL);
    wait::until(SOON, "the link's rules are known", shows_rule).await.unwrap();
    for _ in 0..3 {
        for _ in 0..100 {
            for api in [&one, &other] {
                assert_eq!(api.follow(&plain).await.unwrap(), leads_to(URL));
            }
        }
        set_target(&one, "evil.example", false).await;
        for api in [&one, &other] {
            for code in all() {
                assert_eq!(api.follow(code).await.unwrap(), TAKEN_DOWN, "{code}: when the call is answered");
            }
            assert_eq!(api.follow(&fine).await.unwrap(), leads_to("https://fine.example/"));
        }
        assert_eq!(call(&other, Method::DELETE, "targets/evil.example", None).await.status, 204);
        for api in [&one, &other] {
            for code in all().filter(|code| **code != others[2]) {
                assert_eq!(api.follow(code).await.unwrap(), leads_to(URL), "{code}");
            }
            assert_eq!(api.follow(&others[2]).await.unwrap().0, 200, "its password is asked for");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_holds_for_restores_and_edits_and_by_option_not_for_redirects() {
    for (flags, shown) in [(&[][..], TAKEN_DOWN), (&["--tune", "target-rules=creation"], leads_to(URL))] {
        let alone = Alone::start(flags).await;
        let api = alone.api();
        let [kept, deleted, off, ruled] = [(); 4].map(|()| make(api, json!({})));
        let (kept, deleted, off, ruled) = (kept.await, deleted.await, off.await, ruled.await);
        let ruled = format!("short-urls/{ruled}");
        let rules = json!({ "redirectRules": [{ "longUrl": URL, "conditions": [] }] });
        done(api, Method::POST, &format!("{ruled}/redirect-rules"), Some(rules)).await;
        assert_eq!(call(api, Method::DELETE, &format!("short-urls/{deleted}"), None).await.status, 204);
        let off = format!("short-urls/{off}");
        for path in [&off, &ruled] {
            done(api, Method::PATCH, path, Some(json!({ "enabled": false }))).await;
        }
        set_target(api, "evil.example", false).await;
        assert_eq!(api.follow(&kept).await.unwrap(), shown, "{flags:?}");
        let page = Browser::open(api).await.page(&format!("/manage/link/{kept}")).await;
        let is_live = page.contains("class=\"state state-live\"");
        assert_eq!(is_live, shown != TAKEN_DOWN, "{flags:?}: {page}");
        let restore = format!("short-urls/{deleted}/restore");
        for (method, path, body) in [
            (Method::POST, &restore, None),
            (Method::PATCH, &off, Some(json!({ "enabled": true }))),
            (Method::PATCH, &off, Some(json!({ "longUrl": URL }))),
            // Its redirect rule still leads to the denied host, whatever its long URL.
            (Method::PATCH, &ruled, Some(json!({ "enabled": true, "longUrl": "https://fine.example/" }))),
        ] {
            expect_problem(&call(api, method, path, body).await, 400, "invalid-data");
        }
        set_target(api, "evil.example", true).await;
        done(api, Method::POST, &restore, None).await;
        done(api, Method::PATCH, &off, Some(json!({ "enabled": true }))).await;
        assert_eq!(api.follow(&kept).await.unwrap(), leads_to(URL));
        assert_eq!(api.follow(&deleted).await.unwrap(), leads_to(URL));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takedown_shows_on_a_resolver_that_has_the_link_in_its_cache() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let code = make(&one, json!({})).await;
    for _ in 0..2 {
        assert_eq!(other.follow(&code).await.unwrap(), leads_to(URL));
        block(&one, &code).await;
        assert_eq!(one.follow(&code).await.unwrap(), TAKEN_DOWN);
        let is_down = async || other.follow(&code).await.unwrap() == TAKEN_DOWN;
        wait::until(Duration::from_secs(5), "it is down everywhere", is_down).await.unwrap();
        unblock(&one, &code).await;
        let is_back = async || other.follow(&code).await.unwrap() == leads_to(URL);
        wait::until(Duration::from_secs(5), "it is back everywhere", is_back).await.unwrap();
    }
}
