//! The pages of webhooks, without scripts: what a form changes, and what a page shows once.

use harness::{Api, Resolver, wait};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    pages::Browser,
    rest_calls::{SOON, get},
};

/// Nothing listens there.
const RECEIVER: &str = "http://127.0.0.1:9/hook";

async fn webhooks(api: &Api) -> Vec<Value> {
    get(api, "webhooks").await["webhooks"]["data"].as_array().unwrap().clone()
}

/// Returns the secret that a page shows.
fn secret(page: &str) -> &str {
    let (_, rest) = page.split_once("id=\"secret\" class=\"target\">").expect("the page shows a secret");
    rest.split('<').next().unwrap()
}

async fn start() -> Resolver {
    let flags = ["--webhooks", "network=127.0.0.0/8,http"];
    Resolver::embedded().unwrap().args(flags).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_added_edited_disabled_and_deleted() {
    let resolver = start().await;
    let browser = Browser::open(&resolver.api).await;
    let (list, fields) = ("/manage/webhooks", format!("url={RECEIVER}&description=Ours"));
    let (status, _, page) = browser.send(list, &format!("do=create&{fields}")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(page.contains("Choose at least one event.") && page.contains(RECEIVER), "{page}");
    let wrong = format!("do=create&{fields}&events=link.created&domain=none.example");
    assert_eq!(browser.send(list, &wrong).await.0, StatusCode::NOT_FOUND);
    assert!(webhooks(&resolver.api).await.is_empty());

    let right = format!("do=create&{fields}&events=link.created&tag=news&domain=&shortCode=");
    let (status, _, page) = browser.send(list, &right).await;
    assert_eq!(status, StatusCode::OK);
    let made = secret(&page).to_owned();
    assert!(made.starts_with("whsec_"), "{made}");
    let found = webhooks(&resolver.api).await;
    assert_eq!((&found[0]["events"], &found[0]["tag"]), (&json!(["link.created"]), &json!("news")));
    let one = format!("{list}/{}", found[0]["id"]);
    for path in [list, &one] {
        let page = browser.page(path).await;
        assert!(page.contains(RECEIVER) && page.contains("Tag: news") && !page.contains(&made), "{page}");
    }

    let edit = format!("do=edit&url={RECEIVER}/2&events=link.deleted&events=link.created&description=");
    assert_eq!(browser.send(&one, &edit).await.1, format!("{one}?stored"));
    assert_eq!(browser.send(&one, "do=disable").await.1, format!("{one}?stored"));
    let found = webhooks(&resolver.api).await;
    assert_eq!(found[0]["url"], format!("{RECEIVER}/2"));
    assert_eq!(found[0]["events"], json!(["link.deleted", "link.created"]));
    assert_eq!((&found[0]["description"], &found[0]["enabled"]), (&Value::Null, &json!(false)));
    let (status, _, page) = browser.send(&one, "do=test").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(page.contains("it gets no test event"), "{page}");
    browser.send(&one, "do=enable").await;
    assert_eq!(webhooks(&resolver.api).await[0]["enabled"], true);

    assert_eq!(browser.send(&one, "do=delete").await.1, format!("{list}?stored"));
    assert!(webhooks(&resolver.api).await.is_empty());
    assert_eq!(browser.send(&one, "do=enable").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_replaced_once_by_a_form_that_is_sent_twice() {
    let resolver = start().await;
    let browser = Browser::open(&resolver.api).await;
    let create = format!("do=create&url={RECEIVER}&events=link.created");
    let (_, _, page) = browser.send("/manage/webhooks", &create).await;
    let first = secret(&page).to_owned();
    let one = format!("/manage/webhooks/{}", webhooks(&resolver.api).await[0]["id"]);
    let page = browser.page(&one).await;
    let (_, version) = page.split_once("name=\"version\" value=\"").unwrap();
    let rotate = format!("do=rotate&version={}", version.split('"').next().unwrap());
    let (status, _, page) = browser.send(&one, &rotate).await;
    assert_eq!(status, StatusCode::OK);
    assert_ne!(secret(&page), first);
    let (status, _, page) = browser.send(&one, &rotate).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(page.contains("its secret was not replaced") && !page.contains("whsec_"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_fails_is_seen_in_the_list_and_sent_again() {
    let resolver = start().await;
    let browser = Browser::open(&resolver.api).await;
    let create = format!("do=create&url={RECEIVER}&events=link.created");
    browser.send("/manage/webhooks", &create).await;
    assert!(browser.page("/manage/webhooks").await.contains("None in the last week"));
    let id = webhooks(&resolver.api).await[0]["id"].clone();
    let one = format!("/manage/webhooks/{id}");
    assert_eq!(browser.send(&one, "do=test").await.1, format!("{one}?sent"));
    assert!(browser.page(&format!("{one}?sent")).await.contains("The event is queued."));
    let fails = async || browser.page("/manage/webhooks").await.contains(">Failing<");
    wait::until(SOON, "the webhook fails", fails).await.unwrap();
    let deliveries = get(&resolver.api, &format!("webhooks/{id}/deliveries")).await;
    let delivery = &deliveries["deliveries"]["data"][0];
    let page = browser.page(&one).await;
    assert!(page.contains("Next attempt: ") && page.contains("<td>Test</td>"), "{page}");
    let again = format!("do=redeliver&delivery={}", delivery["id"]);
    assert_eq!(browser.send(&one, &again).await.1, format!("{one}?sent"));
    assert_eq!(browser.send(&one, "do=redeliver&delivery=0").await.0, StatusCode::NOT_FOUND);
}
