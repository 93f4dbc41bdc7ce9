//! `robots.txt`: crawlers may follow the links marked `crawlable` and no others.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Place, done, on_either_store, plus};

async fn robots(api: &Api, host: &str) -> Vec<String> {
    let request = api.http().get(format!("{}/robots.txt", api.url())).header("host", host);
    let answer = Answer::to(request).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    let rules = answer.body.lines().skip_while(|line| *line != "User-agent: *").skip(1);
    rules.map(str::to_owned).collect()
}

async fn make(api: &Api, wish: Value) -> String {
    let whole = plus(json!({ "longUrl": "https://example.com/", "crawlable": true }), &wish);
    api.create_with(&whole).await.unwrap().code
}

on_either_store!(crawlers_may_follow_the_links_that_say_so);

/// Checks `robots.txt` on two domains. A text is cached for a minute, so the first request comes
/// after all links exist.
async fn crawlers_may_follow_the_links_that_say_so(place: Place) {
    let [api, _] = &place.apis();
    let minted = make(api, json!({})).await;
    make(api, json!({ "crawlable": false })).await;
    make(api, json!({ "customSlug": "über/a*b" })).await;
    make(api, json!({ "customSlug": "over", "validUntil": "2020-01-01" })).await;
    make(api, json!({ "customSlug": "off", "enabled": false })).await;
    make(api, json!({ "customSlug": "there", "domain": "one.example" })).await;
    let gone = make(api, json!({ "customSlug": "gone" })).await;
    let delete = api.http().delete(format!("{}/rest/v3/short-urls/{gone}", api.url()));
    assert_eq!(Answer::to(delete.header("X-Api-Key", api.key())).await.unwrap().status, 204);

    let own = ["Allow: /%C3%BCber/a%2Ab".to_owned(), format!("Allow: /{minted}")];
    let all = ["Disallow: /".to_owned()];
    assert_eq!(robots(api, "s.test").await, [&own[..], &all].concat());
    let there = ["Allow: /there".to_owned()];
    assert_eq!(robots(api, "one.example").await, [&there[..], &own, &all].concat());
    make(api, json!({ "customSlug": "later" })).await;
    assert_eq!(robots(api, "s.test").await.len(), 3, "believed for a while");
    for (host, domain) in [("s.test", "domains/DEFAULT"), ("one.example", "domains/one.example")] {
        let before = robots(api, host).await;
        done(api, Method::PATCH, domain, Some(json!({ "crawlable": true }))).await;
        let no_links = ["Disallow: /rest/", "Disallow: /manage", "Disallow: /cluster$"];
        assert_eq!(robots(api, host).await, no_links, "{host}");
        done(api, Method::PATCH, domain, Some(json!({ "crawlable": false }))).await;
        assert_eq!(robots(api, host).await, before, "{host}");
    }
    done(api, Method::PATCH, "domains/one.example", Some(json!({ "enabled": false }))).await;
    assert_eq!(robots(api, "one.example").await, all, "its links lead nowhere");
}
