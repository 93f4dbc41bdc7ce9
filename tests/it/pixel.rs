//! `/{code}/track`: the tracking pixel, whose requests are visits of the link and no redirects.

use harness::{Api, wait};
use reqwest::{Method, header::USER_AGENT};
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, get};

const URL: &str = "https://example.com/secret";

/// Requests a pixel, checks that it is the same as every other, and returns its bytes.
async fn pixel(api: &Api, method: Method, path: &str) -> Vec<u8> {
    let request = api.http().request(method, format!("{}/{path}", api.url()));
    let answer = request.header(USER_AGENT, "mail").send().await.unwrap();
    let header = |name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let told =
        (answer.status().as_u16(), header("content-type"), header("cache-control"), header("location"));
    assert_eq!(told, (200, Some("image/gif".to_owned()), Some("no-store".to_owned()), None), "{path}");
    answer.bytes().await.unwrap().to_vec()
}

/// Waits until a list has this number of visits, and returns them.
async fn visits(api: &Api, path: &str, count: usize) -> Vec<Value> {
    let mut page = Value::Null;
    wait::until(SOON, "the visits are stored", async || {
        page = get(api, path).await["visits"].clone();
        page["pagination"]["totalItems"].as_u64() >= Some(count as u64)
    })
    .await
    .unwrap();
    let visits = page["data"].as_array().unwrap().clone();
    assert_eq!(visits.len(), count, "{visits:?}");
    visits
}

fn texts(visits: &[Value], field: &str) -> Vec<Value> {
    visits.iter().map(|visit| visit[field].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pixel_counts_as_a_visit_of_its_link_and_tells_nothing_of_it() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let create = async |body: Value| api.create_with(&body).await.unwrap().code;
    let plain = create(json!({ "longUrl": URL })).await;
    let secret = create(json!({ "longUrl": URL, "password": "open sesame" })).await;
    let off = create(json!({ "longUrl": URL, "enabled": false })).await;
    let gif = pixel(api, Method::GET, &format!("{plain}/track")).await;
    assert_eq!((gif.len(), &gif[..6]), (43, &b"GIF89a"[..]));
    for path in [format!("{secret}/track"), format!("{off}/track"), "no/such-slug/track".to_owned()] {
        assert_eq!(pixel(api, Method::GET, &path).await, gif, "{path}");
    }
    assert!(pixel(api, Method::HEAD, &format!("{plain}/track")).await.is_empty());
    assert_eq!(api.follow(&plain).await.unwrap(), (302, Some(URL.to_owned())));

    let of_plain = visits(api, &format!("short-urls/{plain}/visits"), 2).await;
    assert_eq!(texts(&of_plain, "redirectUrl"), [json!(URL), Value::Null], "the latest first");
    let (link, tracked) = (format!("https://s.test/{plain}"), format!("https://s.test/{plain}/track"));
    assert_eq!(texts(&of_plain, "visitedUrl"), [json!(link), json!(tracked)]);
    assert_eq!(of_plain[1]["userAgent"], "mail");
    assert_eq!(visits(api, &format!("short-urls/{secret}/visits"), 1).await[0]["redirectUrl"], Value::Null);
    let orphans = visits(api, "visits/orphan", 2).await;
    assert_eq!(texts(&orphans, "type"), [json!("invalid_short_url"), json!("invalid_short_url")]);
    let paths = ["no/such-slug".to_owned(), off].map(|path| json!(format!("https://s.test/{path}/track")));
    assert_eq!(texts(&orphans, "visitedUrl"), paths);
    let stats = get(api, &format!("stats?shortCode={plain}")).await;
    assert_eq!(stats["visits"]["total"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pixel_takes_no_use_of_a_limited_link_away() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let once = api.create_with(&json!({ "longUrl": URL, "maxVisits": 1 })).await.unwrap().code;
    let track = format!("{once}/track");
    pixel(api, Method::GET, &track).await;
    pixel(api, Method::GET, &track).await;
    assert_eq!(api.follow(&once).await.unwrap(), (302, Some(URL.to_owned())));
    assert_eq!(api.follow(&once).await.unwrap().0, 404);
    pixel(api, Method::GET, &track).await;
    visits(api, &format!("short-urls/{once}/visits"), 3).await;
    visits(api, "visits/orphan", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pixel_follows_the_operators_rules_for_visits() {
    let alone = Alone::start(&["--visits-skip", "param=nostat,orphans"]).await;
    let api = alone.api();
    let code = api.create(URL).await.unwrap().code;
    for path in [format!("{code}/track?nostat"), "no/such-slug/track".to_owned(), format!("{code}/track")] {
        pixel(api, Method::GET, &path).await;
    }
    visits(api, &format!("short-urls/{code}/visits"), 1).await;
    visits(api, "visits/orphan", 0).await;
}
