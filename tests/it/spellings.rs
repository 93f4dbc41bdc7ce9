//! Codes of a keyspace whose alphabet has one case and no look-alikes are found in every spelling.

use harness::{Api, Cluster, load::next_long_url, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, call, done, expect_problem, get, leads_to, listed, visit};

const KEYSPACES: &str = "default=6:0-9A-Za-z,spoken=7:0-9a-z:crockford,printed=8:0-9a-z:crockford:check";
/// One client asks for many names that are not there.
const ARGS: [&str; 4] = ["--keyspaces", KEYSPACES, "--limit", "unknown-codes-per-minute=0"];
const ALPHABET: &str = "0123456789abcdefghjkmnpqrstvwxyz";
const TWO: &str = "two.test";

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_found_in_every_spelling_on_sqlite() {
    let alone = Alone::start(&ARGS).await;
    codes_are_found_in_every_spelling(alone.api()).await;
    a_printed_code_that_is_typed_wrong_leads_nowhere(alone.api()).await;
    slugs_that_are_codes_are_kept_as_they_are_minted(alone.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_found_in_every_spelling_on_postgres() {
    let cluster = Cluster::builder().resolver_args(ARGS).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    codes_are_found_in_every_spelling(api).await;
    a_printed_code_that_is_typed_wrong_leads_nowhere(api).await;
    slugs_that_are_codes_are_kept_as_they_are_minted(api).await;
}

/// Adds a domain to the body of a create; `None` is the default one.
fn on(domain: Option<&str>, mut wish: Value) -> Value {
    if let Some(domain) = domain {
        wish["domain"] = json!(domain);
    }
    wish
}

/// Follows a path on a domain.
async fn follow(api: &Api, domain: Option<&str>, path: &str) -> (u16, Option<String>) {
    match domain {
        Some(host) => visit(api, host, path).await,
        None => api.follow(path).await.unwrap(),
    }
}

/// Creates links until a code has a letter and a digit that letters look like. Returns that code.
async fn mint(api: &Api, long_url: &str, domain: Option<&str>) -> String {
    let wish = on(domain, json!({ "longUrl": long_url, "keyspace": "spoken" }));
    loop {
        let code = api.create_with(&wish).await.unwrap().code;
        assert!(code.len() == 7 && code.chars().all(|one| ALPHABET.contains(one)), "{code}");
        if code.contains(['0', '1']) && code.contains(char::is_alphabetic) {
            return code;
        }
    }
}

/// Returns other spellings of a code that has a letter and a zero or a one.
fn spellings(code: &str) -> [String; 4] {
    let alike = |zero: &str, one: &str| code.replace('0', zero).replace('1', one);
    [code.to_uppercase(), alike("o", "l"), alike("O", "I"), alike("O", "i").to_uppercase()]
}

async fn codes_are_found_in_every_spelling(api: &Api) {
    for domain in [None, Some(TWO)] {
        let url = next_long_url();
        let code = mint(api, &url, domain).await;
        let query = domain.map_or(String::new(), |domain| format!("?domain={domain}"));
        let mut visits = 0_u64;
        // The first request reads the link. The second one takes the fast path, on the default
        // domain. The others have the link in the cache.
        for path in [&code, &code].into_iter().chain(&spellings(&code)) {
            assert_eq!(follow(api, domain, path).await, leads_to(&url), "{path} is {code}");
            visits += 1;
        }
        // A link of the default domain is one of all domains.
        if domain.is_none() {
            api.create_with(&json!({ "longUrl": url, "domain": TWO })).await.unwrap();
            for path in spellings(&code) {
                assert_eq!(visit(api, TWO, &path).await, leads_to(&url), "{path} is {code}");
                visits += 1;
            }
        }
        assert!(listed(api, "itemsPerPage=100").await.contains(&code));
        for name in spellings(&code) {
            let link = get(api, &format!("short-urls/{name}{query}")).await;
            assert_eq!((&link["shortCode"], &link["longUrl"]), (&json!(code), &json!(url)));
            let path = format!("short-urls/{name}/visits{query}");
            let is_counted = async || get(api, &path).await["visits"]["pagination"]["totalItems"] == visits;
            wait::until(SOON, "the visits are counted", is_counted).await.unwrap();

            let edited = next_long_url();
            let edit = Some(json!({ "longUrl": edited }));
            done(api, Method::PATCH, &format!("short-urls/{name}{query}"), edit).await;
            for path in [&code, &name] {
                assert_eq!(follow(api, domain, path).await, leads_to(&edited), "{path} is {code}");
                visits += 1;
            }
            let back = Some(json!({ "longUrl": url }));
            done(api, Method::PATCH, &format!("short-urls/{code}{query}"), back).await;
        }
        for path in [format!("{}u", &code[..6]), format!("{code}0"), code[..6].to_owned()] {
            assert_eq!(follow(api, domain, &path).await, (404, None), "{path}");
        }
    }
}

/// Every link of the keyspace could be the one that a typing error hits.
async fn a_printed_code_that_is_typed_wrong_leads_nowhere(api: &Api) {
    let url = next_long_url();
    let wish = json!({ "longUrl": url, "keyspace": "printed" });
    let code = api.create_with(&wish).await.unwrap().code;
    assert_eq!(code.len(), 8, "{code}");
    for typed in [code.clone(), code.to_uppercase()] {
        assert_eq!(follow(api, None, &typed).await, leads_to(&url), "{typed}");
    }
    for place in 0..code.len() {
        let mut typed: Vec<char> = code.chars().collect();
        typed[place] = if typed[place] == '7' { '8' } else { '7' };
        let typed: String = typed.into_iter().collect();
        assert_eq!(follow(api, None, &typed).await, (404, None), "{typed} for {code}");
    }

    let last = if code.ends_with('7') { '8' } else { '7' };
    let typed = format!("{}{last}", &code[..7]);
    let pick = |domain| on(domain, json!({ "longUrl": url, "customSlug": typed }));
    let refused = expect_problem(&api.try_create_with(&pick(None)).await.unwrap(), 400, "invalid-data");
    assert!(refused["expected"]["customSlug"].as_str().unwrap().contains("keyspace printed"), "{refused}");
    let path = format!("short-urls/{code}");
    let renamed = call(api, Method::PATCH, &path, Some(json!({ "customSlug": typed.to_uppercase() }))).await;
    expect_problem(&renamed, 400, "invalid-data");
    assert_eq!(api.create_with(&pick(Some(TWO))).await.unwrap().code, typed, "on another domain");
    let path = format!("short-urls/{typed}/move?domain={TWO}");
    let moved = call(api, Method::POST, &path, Some(json!({ "domain": "DEFAULT" }))).await;
    expect_problem(&moved, 400, "invalid-data");
}

async fn slugs_that_are_codes_are_kept_as_they_are_minted(api: &Api) {
    // A link of the default domain would be found on the other one too.
    for domain in [Some(TWO), None] {
        let url = next_long_url();
        let pick = |slug: &str| on(domain, json!({ "longUrl": url, "customSlug": slug }));
        assert_eq!(api.create_with(&pick("Website")).await.unwrap().code, "webs1te");
        let again = api.try_create_with(&pick("WEBSLTE")).await.unwrap();
        expect_problem(&again, 400, "non-unique-slug");
        for path in ["webs1te", "Website", "WEBSITE", "weBslte"] {
            assert_eq!(follow(api, domain, path).await, leads_to(&url), "{path}");
        }
        let query = domain.map_or(String::new(), |domain| format!("?domain={domain}"));
        let named = |name: &str| format!("short-urls/{name}{query}");
        assert_eq!(call(api, Method::DELETE, &named("WEBSITE"), None).await.status, 204);
        assert_eq!(follow(api, domain, "website").await, (404, None));
        assert_eq!(api.create_with(&pick("WebSite")).await.unwrap().code, "webs1te");
        // A name with a `u` is no code of the keyspace.
        for (from, to, kept) in [
            ("WEBSITE", "websItE", "webs1te"),
            ("Website", "Summary", "Summary"),
            ("Summary", "WebLink", "web11nk"),
            ("WEBLINK", "Website", "webs1te"),
        ] {
            let renamed = done(api, Method::PATCH, &named(from), Some(json!({ "customSlug": to }))).await;
            assert_eq!(renamed["shortCode"], kept, "{to}");
            assert_eq!(follow(api, domain, to).await, leads_to(&url), "{to}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slug_that_is_older_than_the_keyspace_keeps_its_visitors() {
    let cluster = Cluster::builder().start().await.unwrap();
    let [old, new] = [next_long_url(), next_long_url()];
    let wish = json!({ "longUrl": old, "customSlug": "Website", "domain": TWO });
    assert_eq!(cluster.resolvers[0].api.create_with(&wish).await.unwrap().code, "Website");

    let later = cluster.resolver("later").unwrap().keyspaces(KEYSPACES).start().await.unwrap();
    let wish = json!({ "longUrl": new, "customSlug": "WEBSITE", "domain": TWO });
    assert_eq!(later.api.create_with(&wish).await.unwrap().code, "webs1te");
    for api in [&later.api, &cluster.resolvers[0].api] {
        assert_eq!(visit(api, TWO, "Website").await, leads_to(&old));
        for path in ["webs1te", "website", "WEBSLTE"] {
            assert_eq!(visit(api, TWO, path).await, leads_to(&new), "{path}");
        }
    }
}

/// What releases do with a keyspace whose definition they cannot read, as this one would.
#[tokio::test(flavor = "multi_thread")]
async fn no_code_is_denied_while_there_is_a_keyspace_of_a_later_release() {
    let cluster =
        Cluster::builder().resolver_args(["--limit", "unknown-codes-per-minute=0"]).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let url = next_long_url();
    let code = api.create(&url).await.unwrap().code;
    assert_eq!(api.follow(&code).await.unwrap(), leads_to(&url));
    let later = "INSERT INTO keyspace (index, name, definition) VALUES (9, 'later', 'later=7:a-z:later');
                 UPDATE settings_version SET version = version + 1";
    cluster.postgres.client().await.unwrap().batch_execute(later).await.unwrap();
    let is_unsure = async || api.follow("website").await.unwrap().0 == 503;
    wait::until(SOON, "the copy of the keyspaces is too old", is_unsure).await.unwrap();
    assert_eq!(api.follow(&code).await.unwrap(), leads_to(&url));
    assert_eq!(api.follow("no-code").await.unwrap().0, 404);
    let slug = json!({ "longUrl": url, "customSlug": "website" });
    assert_eq!(api.try_create_with(&slug).await.unwrap().status, 503);
}
