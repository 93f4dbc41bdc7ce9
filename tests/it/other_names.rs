//! Paths that are no link's name: in other letters, with what a chat put behind them, and with a
//! path behind the name.

use std::collections::HashMap;

use futures_util::{StreamExt as _, stream};
use harness::{Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    rest_calls::{Alone, SOON, call, done, leads_to, plus, visit},
    rng::Rng,
};

/// Random paths of a run of all tests.
const SAMPLE: u32 = 5_000;
const TWO: &str = "two.test";
/// One client asks for many names that are not there.
const UNLIMITED: [&str; 2] = ["--limit", "unknown-codes-per-minute=0"];

#[tokio::test(flavor = "multi_thread")]
async fn other_names_are_found_on_sqlite() {
    let alone = Alone::start(&UNLIMITED).await;
    other_names_are_found(alone.api()).await;
    prefixes_are_found_as_a_plain_search_finds_them(alone.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_are_found_on_postgres() {
    let cluster = Cluster::builder().resolver_args(UNLIMITED).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    other_names_are_found(api).await;
    prefixes_are_found_as_a_plain_search_finds_them(api).await;
}

async fn pick(api: &Api, slug: &str, fields: Value) {
    let wish = plus(json!({ "customSlug": slug, "longUrl": format!("https://example.org/{slug}") }), &fields);
    api.create_with(&wish).await.unwrap();
}

async fn other_names_are_found(api: &Api) {
    let on_two = |slug: &str| format!("https://example.org/{slug}");
    pick(api, "sale", json!({ "domain": TWO })).await;
    pick(api, "Spring", json!({ "domain": TWO })).await;
    pick(api, "docs", json!({ "domain": TWO, "extraPath": "append" })).await;
    pick(api, "docs/intro", json!({ "domain": TWO })).await;
    let issue = "https://example.org/{1}/issues/{2}";
    pick(api, "issue", json!({ "domain": TWO, "extraPath": "fill", "longUrl": issue })).await;
    pick(api, "shared", json!({ "extraPath": "ignore" })).await;
    let minted = api.create_with(&json!({ "longUrl": "https://example.org/minted" })).await.unwrap().code;
    let lost = (404, None);

    // By default, only what a link itself allows is found.
    for (path, answer) in [
        ("sale/", lost.clone()),
        ("SALE", lost.clone()),
        ("sale/x", lost.clone()),
        ("docs/a/b?c=d", leads_to("https://example.org/docs/a/b?c=d")),
        ("docs/intro", leads_to(&on_two("docs/intro"))),
        ("docs/intro/x", leads_to("https://example.org/docs/intro/x")),
        ("docs", leads_to(&on_two("docs"))),
        ("issue/repo/7", leads_to("https://example.org/repo/issues/7")),
        ("issue/repo", leads_to("https://example.org/repo/issues/")),
        ("issue/repo/7/8", lost.clone()),
        ("issue/", leads_to("https://example.org/")),
        ("issue", leads_to("https://example.org/")),
        ("shared/what/ever", leads_to(&on_two("shared"))),
        ("docsx/a", lost.clone()),
    ] {
        assert_eq!(visit(api, TWO, path).await, answer, "{path}");
    }
    let settings = json!({ "ignoreCase": true, "ignoreTrailing": true, "extraPath": "ignore" });
    done(api, Method::PATCH, "domains/two.test", Some(settings.clone())).await;
    done(api, Method::PATCH, "domains/DEFAULT", Some(settings)).await;
    for (path, answer) in [
        ("sale/", leads_to(&on_two("sale"))),
        ("SALE", leads_to(&on_two("sale"))),
        ("Sale%29.", leads_to(&on_two("sale"))),
        ("sale%E3%80%82", leads_to(&on_two("sale"))),
        ("SALE%E2%80%8B", leads_to(&on_two("sale"))),
        ("sale%EF%BC%8C%E5%BF%AB", leads_to(&on_two("sale"))),
        ("sale%3Fa=b", leads_to(&on_two("sale"))),
        ("sale/x", leads_to(&on_two("sale"))),
        ("SALE/x/y/", leads_to(&on_two("sale"))),
        ("Spring", leads_to(&on_two("Spring"))),
        ("spring", lost.clone()),
        ("DOCS/A", leads_to("https://example.org/docs/A")),
        // Without the slash another name is exact.
        ("docs/intro/", leads_to(&on_two("docs/intro"))),
        ("Shared.", leads_to(&on_two("shared"))),
        ("%2C", lost.clone()),
    ] {
        assert_eq!(visit(api, TWO, path).await, answer, "{path}");
    }
    let to_minted = leads_to("https://example.org/minted");
    assert_eq!(api.follow(&format!("{minted},")).await.unwrap(), to_minted);
    assert_eq!(api.follow(&format!("{minted}/x")).await.unwrap(), to_minted);
    let in_other_letters: String = minted.chars().map(swapped).collect();
    assert_eq!(
        api.follow(&in_other_letters).await.unwrap().0,
        404,
        "minted codes differ in their letters' case"
    );
    codes_that_are_known_lead_to_no_slug_in_small_letters(api).await;
    links_that_do_not_redirect_are_passed_over_unless_taken_down(api).await;
}

/// Those who see a code could take its visitors with a slug, once its link is gone or before it is
/// there.
async fn codes_that_are_known_lead_to_no_slug_in_small_letters(api: &Api) {
    let has_capitals = |code: &String| code.contains(char::is_uppercase);
    let mint = async |domain: &str| loop {
        let wish = json!({ "longUrl": "https://example.org/gone", "domain": domain });
        let code = api.create_with(&wish).await.unwrap().code;
        if has_capitals(&code) {
            return code;
        }
    };
    let gone = async |domain: &str| {
        let code = mint(domain).await;
        let deleted = call(api, Method::DELETE, &format!("short-urls/{code}?domain={domain}"), None).await;
        deleted.success().unwrap();
        code
    };
    let renamed = mint("DEFAULT").await;
    let renaming = json!({ "customSlug": "renamed/now" });
    done(api, Method::PATCH, &format!("short-urls/{renamed}"), Some(renaming)).await;
    let reservation = done(api, Method::POST, "reservations", Some(json!({ "count": 20 }))).await;
    let codes = reservation["shortCodes"].as_array().unwrap().iter();
    let reserved = codes.map(|code| code.as_str().unwrap().to_owned()).find(has_capitals).unwrap();
    for (code, domain) in [
        (gone("DEFAULT").await, "DEFAULT"),
        (renamed, "DEFAULT"),
        (reserved, "DEFAULT"),
        (gone(TWO).await, TWO),
        (gone("DEFAULT").await, TWO),
    ] {
        let slug = code.to_lowercase();
        pick(api, &slug, json!({ "domain": domain })).await;
        let escaped: String = code.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [code.clone(), format!("{code}."), format!("{code}/x"), escaped] {
            let found =
                if domain == TWO { visit(api, TWO, &path).await } else { api.follow(&path).await.unwrap() };
            assert_eq!(found, (404, None), "{path} is not {slug} of {domain}");
        }
    }
    // It could be the code of a link that there is not yet.
    pick(api, "autumn", json!({})).await;
    for path in ["AUTUMN", "Autumn."] {
        assert_eq!(api.follow(path).await.unwrap(), leads_to("https://example.org/autumn"), "{path}");
    }
    // It is a code of the link itself.
    let code = mint("DEFAULT").await;
    let renaming = json!({ "customSlug": code.to_lowercase() });
    done(api, Method::PATCH, &format!("short-urls/{code}"), Some(renaming)).await;
    assert_eq!(api.follow(&code).await.unwrap(), leads_to("https://example.org/gone"), "{code}");
    // The link that was picked has left it.
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "ignoreCase": false }))).await;
    pick(api, "Spring", json!({})).await;
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "ignoreCase": true }))).await;
    call(api, Method::DELETE, "short-urls/Spring", None).await.success().unwrap();
    pick(api, "spring", json!({})).await;
    let found = async || api.follow("Spring").await.unwrap() == leads_to("https://example.org/spring");
    wait::until(SOON, "the next link has the other spelling", found).await.unwrap();
}

async fn links_that_do_not_redirect_are_passed_over_unless_taken_down(api: &Api) {
    // What is behind a name leads past a link that is gone, and not past one that was taken down.
    assert_eq!(call(api, Method::DELETE, "short-urls/docs/intro?domain=two.test", None).await.status, 204);
    assert_eq!(visit(api, TWO, "docs/intro").await, leads_to("https://example.org/docs/intro"));
    let reason = Some(json!({ "reason": "phishing" }));
    done(api, Method::POST, "short-urls/docs/block?domain=two.test", reason).await;
    for path in ["docs", "DOCS", "docs/", "docs/a"] {
        assert_eq!(visit(api, TWO, path).await.0, 410, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_link_catches_all_paths_where_its_domain_says_so() {
    const HOST: &str = "four.test";
    let alone = Alone::start(&UNLIMITED).await;
    let api = alone.api();
    let domain = async |change: Value| {
        done(api, Method::PATCH, "domains/four.test", Some(change)).await;
    };
    let fill = json!({ "domain": HOST, "extraPath": "fill", "longUrl": "https://example.org/pull/{rest}" });
    pick(api, "*", fill).await;
    pick(api, "own", json!({ "domain": HOST })).await;
    for path in ["", "7", "a/b"] {
        assert_ne!(visit(api, HOST, path).await.0, 302, "{path}");
    }
    domain(json!({ "catchAll": true })).await;
    let condition = json!({ "type": "path", "matchValue": "/v#.#" });
    let language = json!({ "type": "language", "matchValue": "de" });
    let rule = |url: &str, conditions: Value| json!({ "longUrl": url, "conditions": conditions });
    let rules = json!({ "redirectRules": [
        rule("https://example.org/german", json!([condition, language])),
        rule("https://example.org/{2}/{1}", json!([condition])),
    ] });
    done(api, Method::POST, "short-urls/*/redirect-rules?domain=four.test", Some(rules)).await;
    for (path, url) in [
        ("", "https://example.org/pull/"),
        ("7", "https://example.org/pull/7"),
        ("a/b/?c=d", "https://example.org/pull/a/b/?c=d"),
        ("v1.30", "https://example.org/30/1"),
        ("own", "https://example.org/own"),
        ("own/x", "https://example.org/pull/own/x"),
    ] {
        assert_eq!(visit(api, HOST, path).await, leads_to(url), "{path}");
        let explained = call(api, Method::GET, &format!("explain?url=http://{HOST}/{path}"), None).await;
        assert_eq!(explained.json().unwrap()["answer"]["location"], url, "{path}");
    }
    // The domain's own target for its root is nearer.
    let base = json!({ "domain": HOST, "baseUrlRedirect": "https://example.org/base" });
    done(api, Method::PATCH, "domains/redirects", Some(base)).await;
    assert_eq!(visit(api, HOST, "").await, leads_to("https://example.org/base"));
    assert_eq!(visit(api, HOST, "7").await, leads_to("https://example.org/pull/7"));
    assert_eq!(visit(api, TWO, "7").await.0, 404, "other domains have no such link");
    domain(json!({ "catchAll": false })).await;
    assert_eq!(visit(api, HOST, "7").await.0, 404);
}

/// The resolver's query for settings fails while its creates are answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_hears_of_no_settings_keeps_no_slug_in_capitals() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let database = cluster.postgres.client().await.unwrap();
    let role = "CREATE ROLE deaf LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO deaf;
                GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO deaf";
    database.batch_execute(role).await.unwrap();
    let url = cluster.postgres.url();
    let (_, server) = url.split_once('@').unwrap();
    let deaf = cluster.resolver("deaf").unwrap().database(&format!("postgres://deaf@{server}"));
    let deaf = deaf.start().await.unwrap();
    database.batch_execute("REVOKE ALL ON settings_version FROM deaf").await.unwrap();
    let is_unsure = async || deaf.api.follow("zzzz").await.unwrap().0 == 503;
    wait::until(SOON, "the copy of the settings is too old", is_unsure).await.unwrap();
    let ignore = json!({ "ignoreCase": true });
    done(&cluster.resolvers[0].api, Method::PATCH, "domains/DEFAULT", Some(ignore)).await;

    let wish = |slug: &str| json!({ "customSlug": slug, "longUrl": "https://example.org/" });
    pick(&deaf.api, "small-letters", json!({})).await;
    let refused = deaf.api.try_create_with(&wish("Summer-Sale")).await.unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    database.batch_execute("GRANT ALL ON settings_version TO deaf").await.unwrap();
    let made = async || {
        let answer = deaf.api.try_create_with(&wish("Summer-Sale")).await.unwrap();
        answer.json().is_ok_and(|link| link["shortCode"] == "summer-sale")
    };
    wait::until(SOON, "it has heard that case is ignored", made).await.unwrap();
}

fn swapped(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

/// Asks for random paths of few letters, and compares each answer with that of a search among all
/// links, the longest name first. `SHORTMINT_PATHS=1000000` asks for as many.
async fn prefixes_are_found_as_a_plain_search_finds_them(api: &Api) {
    const HOST: &str = "three.test";
    let mut random = Rng::new(39);
    let path = |random: &mut Rng| {
        let segments: Vec<&str> = (0..=random.below(5)).map(|_| random.pick(&["a", "b", "c"])).collect();
        segments.join("/")
    };
    let mut links = HashMap::new();
    for mode in ["refuse", "ignore", "append", "fill"].into_iter().cycle().take(60) {
        let name = path(&mut random);
        if links.contains_key(&name) {
            continue;
        }
        let template = if mode == "fill" { "/{1}?{rest}" } else { "" };
        let long_url = format!("https://example.org/{}{template}", name.replace('/', "-"));
        pick(api, &name, json!({ "domain": HOST, "extraPath": mode, "longUrl": long_url })).await;
        links.insert(name, (mode, long_url));
    }
    let expected = |path: &str| {
        let segments: Vec<&str> = path.split('/').collect();
        (1..=segments.len()).rev().filter(|len| *len == segments.len() || *len <= 4).find_map(|len| {
            let (mode, long_url) = links.get(&segments[..len].join("/"))?;
            let behind = &segments[len..];
            match *mode {
                "fill" if behind.is_empty() => Some(long_url.replace("{1}?{rest}", "")),
                "fill" => {
                    let rest = behind[1..].join("%2F");
                    Some(long_url.replace("{1}", behind[0]).replace("{rest}", &rest))
                }
                _ if behind.is_empty() => Some(long_url.clone()),
                "ignore" => Some(long_url.clone()),
                "append" => Some(format!("{long_url}/{}", behind.join("/"))),
                _ => None,
            }
        })
    };
    let count = std::env::var("SHORTMINT_PATHS").map_or(SAMPLE, |count| count.parse().unwrap());
    let paths: Vec<String> = (0..count).map(|_| path(&mut random)).collect();
    let asked = stream::iter(&paths).map(async |path| (path, visit(api, HOST, path).await));
    let answers: Vec<_> = asked.buffer_unordered(16).collect().await;
    for (path, answer) in answers {
        let expected = expected(path).map_or((404, None), |url| leads_to(&url));
        assert_eq!(answer, expected, "{path}");
    }
}
