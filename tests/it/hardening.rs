//! Information and choices withheld from outsiders: others' links, the host of a redirect, slugs
//! that look like others, files.

use std::{fs, os::unix::fs::PermissionsExt as _};

use harness::{Api, Resolver, Scratch, secret};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, expect_invalid, expect_problem, leads_to, visit};

const URL: &str = "https://example.com/page";

async fn code_of(api: &Api, wish: &Value) -> String {
    api.create_with(wish).await.unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_reads_no_links_finds_only_its_own() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let creator = alone.with_new_key("creator", &["--scopes", "create"]).await;
    let reader = alone.with_new_key("reader", &["--scopes", "create,read"]).await;
    for wish in [json!({}), json!({ "customSlug": "promo" })] {
        let mut wish = wish;
        wish["longUrl"] = json!(URL);
        wish["findIfExists"] = json!(true);
        let mut titled = wish.clone();
        titled["title"] = json!("not for everybody");
        let found = code_of(admin, &titled).await;
        assert_eq!(code_of(&reader, &wish).await, found, "{wish}");
        if wish["customSlug"].is_string() {
            let taken = creator.try_create_with(&wish).await.unwrap();
            expect_problem(&taken, 400, "non-unique-slug");
            continue;
        }
        let own = code_of(&creator, &wish).await;
        assert_ne!(own, found);
        assert_eq!(code_of(&creator, &wish).await, own, "its own is given again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_stand_behind_the_host_only() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for target in ["https://example.com{ORIGINAL_PATH}", "{ORIGINAL_PATH}", "https://{DOMAIN}/"] {
        for field in ["baseUrlRedirect", "regular404Redirect", "invalidShortUrlRedirect"] {
            let edit = json!({ "domain": "DEFAULT", field: target });
            let refused = call(api, Method::PATCH, "domains/redirects", Some(edit)).await;
            expect_invalid(&refused, field);
        }
    }
    let edit = json!({ "domain": "DEFAULT", "regular404Redirect": "https://example.com/{ORIGINAL_PATH}" });
    done(api, Method::PATCH, "domains/redirects", Some(edit)).await;
    assert_eq!(visit(api, "s.test", "//@evil").await, leads_to("https://example.com/@evil"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slugs_that_could_pass_for_others_are_refused() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let pick =
        async |slug: &str| api.try_create_with(&json!({ "longUrl": URL, "customSlug": slug })).await.unwrap();
    for slug in ["pro\u{200b}mo", "promo\u{202e}gpj", "p\u{430}ypal", "go/p\u{430}ypal"] {
        let problem = expect_problem(&pick(slug).await, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!(["customSlug"]), "{slug:?}");
    }
    for slug in ["привіт", "短い", "iphone手机", "🦣🔥"] {
        assert_eq!(pick(slug).await.status, 200, "{slug}");
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(URL), "{slug}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_resolver_keeps_on_disk_is_its_owners_alone() {
    let scratch = Scratch::new().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
    let resolver = builder.start().await.unwrap();
    resolver.api.create(URL).await.unwrap();
    let folder = scratch.path().join("data");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for name in ["shortmint.db", "shortmint.db-wal", "ledger.json", "code.key"] {
        assert!(files.contains(&folder.join(name)), "{name} in {files:?}");
    }
    for file in files {
        let expected = if file.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&file), expected, "{}", file.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_reservations_of_a_key_have_only_so_many_codes() {
    let alone = Alone::start(&["--limit", "reserved-per-key=10"]).await;
    let [one, other] = [
        alone.with_new_key("one", &["--scopes", "reserve"]),
        alone.with_new_key("other", &["--scopes", "reserve"]),
    ];
    let (one, other) = (one.await, other.await);
    let reserve = async |api: &Api, count: u64| {
        call(api, Method::POST, "reservations", Some(json!({ "count": count }))).await
    };
    let id = reserve(&one, 7).await.success().unwrap().json().unwrap()["id"].as_str().unwrap().to_owned();
    expect_problem(&reserve(&one, 4).await, 409, "about:blank");
    assert_eq!(reserve(&one, 3).await.status, 200);
    assert_eq!(reserve(&other, 10).await.status, 200, "each key has its own");
    assert_eq!(call(&one, Method::DELETE, &format!("reservations/{id}"), None).await.status, 204);
    assert_eq!(reserve(&one, 7).await.status, 200, "what is given up is free again");
}
