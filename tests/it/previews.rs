//! Requests that only look at a link (previews, HEAD, QR codes), for links that are limited, not
//! yet valid or expired.

use std::time::Duration;

use harness::{Answer, Resolver, wait};
use reqwest::{Method, header::USER_AGENT};
use serde_json::json;

use crate::{rest_calls::plus, visits::get};

const URL: &str = "https://example.com/secret";
const COUNTED_WITHIN: Duration = Duration::from_secs(30);
const PREVIEWS: [&str; 9] = [
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "WhatsApp/2.23.20.0",
    "TelegramBot (like TwitterBot)",
    "facebookexternalhit/1.1",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "Viber",
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
    "Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots",
    "Misskey/2024.5.0",
];

async fn start() -> Resolver {
    Resolver::embedded().unwrap().start().await.unwrap()
}

async fn look(resolver: &Resolver, method: Method, path: &str, user_agent: &str) -> Answer {
    let request = resolver.api.http().request(method, format!("{}/{path}", resolver.api.url()));
    Answer::to(request.header(USER_AGENT, user_agent)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_takes_no_use_of_a_limited_link_away_and_does_not_tell_where_it_leads() {
    let resolver = start().await;
    let code = resolver.api.create_with(&json!({ "longUrl": URL, "maxVisits": 1 })).await.unwrap().code;
    for user_agent in PREVIEWS {
        let page = look(&resolver, Method::GET, &code, user_agent).await;
        assert_eq!((page.status, page.header("location")), (200, None), "{user_agent}: {page:?}");
        assert!(!page.body.contains(URL) && page.body.contains("limited"), "{user_agent}: {page:?}");
    }
    let head = look(&resolver, Method::HEAD, &code, "curl/8").await;
    assert_eq!((head.status, head.header("location")), (200, None), "{head:?}");
    assert_eq!(resolver.api.follow(&code).await.unwrap(), (302, Some(URL.to_owned())));
    for (method, user_agent) in
        [(Method::GET, PREVIEWS[0]), (Method::HEAD, "curl/8"), (Method::GET, "curl/8")]
    {
        assert_eq!(look(&resolver, method, &code, user_agent).await.status, 404);
    }
    // A preview of a link without a limit is redirected like a visit.
    let free = resolver.api.create(URL).await.unwrap().code;
    for (method, user_agent) in [(Method::GET, PREVIEWS[0]), (Method::HEAD, "curl/8")] {
        let led = look(&resolver, method, &free, user_agent).await;
        assert_eq!((led.status, led.header("location")), (302, Some(URL)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefetch_is_no_visit_and_the_person_who_follows_is_redirected_and_counted() {
    let resolver = start().await;
    let limited = resolver.api.create_with(&json!({ "longUrl": URL, "maxVisits": 1 })).await.unwrap().code;
    let free = resolver.api.create(URL).await.unwrap().code;
    // A link that is in the cache is answered by the fast path.
    assert_eq!(resolver.api.follow(&free).await.unwrap().0, 302);
    for (name, value) in [
        ("Sec-Purpose", "prefetch"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Sec-Purpose", "prefetch;anonymous-client-ip"),
        ("sec-purpose", "PREFETCH"),
        ("Purpose", "prefetch"),
        ("Purpose", "preview"),
        ("X-Purpose", "preview"),
        ("X-Moz", "prefetch"),
    ] {
        for code in [&limited, &free] {
            let request = resolver.api.http().get(format!("{}/{code}", resolver.api.url()));
            let ahead = Answer::to(request.header(name, value)).await.unwrap();
            // A browser keeps no answer of this status, and asks again when the link is followed.
            assert_eq!((ahead.status, ahead.header("location")), (403, None), "{name}: {value}");
            assert_eq!(ahead.header("cache-control"), Some("no-store"));
        }
    }
    assert_eq!(resolver.api.follow(&limited).await.unwrap(), (302, Some(URL.to_owned())));
    assert_eq!(resolver.api.follow(&limited).await.unwrap().0, 404);
    assert_eq!(resolver.api.follow(&free).await.unwrap().0, 302);
    for (code, visits) in [(&limited, 1), (&free, 2)] {
        let counted = async || {
            let link = get(&resolver, resolver.api.key(), &format!("short-urls/{code}")).await;
            let summary = &link["visitsSummary"];
            assert!(summary["total"].as_u64() <= Some(visits), "{summary}");
            summary["nonBots"] == visits
        };
        wait::until(COUNTED_WITHIN, "the visits of people are counted", counted).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_can_be_printed_before_it_begins_and_not_when_it_is_over() {
    let resolver = start().await;
    let make = async |more: serde_json::Value| {
        resolver.api.create_with(&plus(json!({ "longUrl": URL }), &more)).await.unwrap().code
    };
    for (more, status) in [
        (json!({ "validSince": "2090-01-01" }), 200),
        (json!({ "validSince": "2090-01-01", "enabled": false }), 404),
        (json!({ "validUntil": "2020-01-01" }), 404),
    ] {
        let code = make(more.clone()).await;
        assert_eq!(resolver.api.get(&format!("{code}/qr-code")).await.unwrap().status, status, "{more}");
        assert_eq!(resolver.api.follow(&code).await.unwrap().0, 404, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_leave_no_moment_between_them_are_refused_and_a_time_that_has_passed_is_not() {
    let resolver = start().await;
    let create = async |since: &str, until: &str| {
        let body = json!({ "longUrl": URL, "validSince": since, "validUntil": until });
        resolver.api.try_create_with(&body).await.unwrap()
    };
    for (since, until) in [("2031-01-02", "2031-01-01"), ("2031-01-01", "2031-01-01")] {
        let refused = create(since, until).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json().unwrap()["invalidElements"], json!(["validUntil"]));
    }
    let created = create("2020-01-01", "2020-01-02").await;
    assert_eq!(created.status, 200, "{created:?}");
    let code = created.json().unwrap()["shortCode"].as_str().unwrap().to_owned();
    for (edit, status) in [
        (json!({ "validSince": "2020-01-03" }), 400),
        (json!({ "validUntil": "2019-12-31" }), 400),
        (json!({ "validUntil": "2021-01-01" }), 200),
        (json!({ "validSince": "2020-01-03" }), 200),
        (json!({ "validSince": "2031-01-01", "validUntil": null }), 200),
    ] {
        let path = format!("short-urls/{code}");
        let edited = crate::rest_calls::call(&resolver.api, Method::PATCH, &path, Some(edit.clone())).await;
        assert_eq!(edited.status, status, "{edit}: {edited:?}");
    }
}
