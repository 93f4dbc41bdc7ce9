//! A key of a domain learns nothing of a link that left it, and codes say nothing of others' links.

use harness::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, call, done, get, visit};

const HERE: &str = "here.example";
const SECRET: &str = "secret.example";

async fn with_domains(names: [&str; 2]) -> Alone {
    let alone = Alone::start(&[]).await;
    for name in names {
        let fallbacks = json!({ "domain": name, "regular404Redirect": "https://example.com/" });
        done(alone.api(), Method::PATCH, "domains/redirects", Some(fallbacks)).await;
    }
    alone
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domains_key_is_not_told_where_a_link_went() {
    let alone = with_domains([HERE, SECRET]).await;
    let key = alone.with_new_key("here", &["--domain", HERE]).await;
    let wish = json!({ "longUrl": "https://one.example/", "tags": ["mine"] });
    let create = async || {
        let request = key.post().header("X-Api-Key", key.key()).header("Idempotency-Key", "k1").json(&wish);
        harness::Answer::to(request).await.unwrap()
    };
    let first: Value = create().await.success().unwrap().json().unwrap();
    let code = first["shortCode"].as_str().unwrap();
    assert_eq!(visit(&key, HERE, code).await.0, 302);
    let tagged = json!({ "tags": ["other"] });
    done(alone.api(), Method::PATCH, &format!("short-urls/{code}?domain={HERE}"), Some(tagged)).await;
    let again: Value = create().await.success().unwrap().json().unwrap();
    assert_eq!((&again["shortCode"], &again["tags"]), (&json!(code), &json!(["other"])), "as it is by now");

    let away = json!({ "domain": SECRET });
    done(alone.api(), Method::POST, &format!("short-urls/{code}/move?domain={HERE}"), Some(away)).await;
    let gone = create().await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND, "{gone:?}");
    assert!(!gone.body.contains(SECRET) && !gone.body.contains("one.example"), "{gone:?}");
    let visits = format!("domains/{HERE}/visits");
    wait::until(SOON, "the visit is stored", async || {
        get(&key, &visits).await["visits"]["pagination"]["totalItems"] == 1
    })
    .await
    .unwrap();
    let visits = get(&key, &visits).await;
    let url = visits["visits"]["data"][0]["visitedUrl"].as_str().unwrap();
    assert!(url.ends_with(&format!("{HERE}/{code}")), "{visits}");
}

/// Whoever guesses a target would otherwise learn by the code whether others have shortened it.
#[tokio::test(flavor = "multi_thread")]
async fn codes_by_digest_tell_nothing_of_other_tenants_links() {
    let alone = with_domains([HERE, SECRET]).await;
    let code = async |key: &harness::Api, wish: Value| {
        let answer = call(key, Method::POST, "short-urls", Some(wish)).await;
        answer.success().unwrap().json().unwrap()["shortCode"].as_str().unwrap().to_owned()
    };
    let hashed = |url: &str| json!({ "longUrl": url, "strategy": "hash" });
    let prefixed = |url: &str| json!({ "longUrl": url, "strategy": "hash", "pathPrefix": "p-" });
    let [one, other] = [
        alone.with_new_key("one", &["--own-links-only"]).await,
        alone.with_new_key("other", &["--own-links-only"]).await,
    ];
    let [here, secret] = [
        alone.with_new_key("here", &["--domain", HERE]).await,
        alone.with_new_key("secret", &["--domain", SECRET]).await,
    ];
    for (owner, asker) in [(&one, &other), (&here, &one), (&here, &secret)] {
        let url = format!("https://victim.example/{}", owner.key());
        let theirs = code(owner, hashed(&url)).await;
        // Of a URL that nobody has shortened, the code with a prefix continues like that without.
        let free = format!("https://nobody.example/{}", asker.key());
        for url in [&url, &free] {
            let mine = code(asker, hashed(url)).await;
            assert_ne!(mine, theirs);
            assert_eq!(code(asker, prefixed(url)).await, format!("p-{mine}"), "as if nobody had it");
        }
    }
}
