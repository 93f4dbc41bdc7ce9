//! Requests for links that are no plain visits: other methods than GET and HEAD, which some links
//! pass on, and scripts of other origins, which some domains let in.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, done, leads_to, plus, visit};

const URL: &str = "https://example.com/hook";
const TWO: &str = "two.example";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");
const HERE: (&str, &str) = ("sec-fetch-site", "same-origin");
const ORIGIN: (&str, &str) = ("origin", "https://app.example");

async fn pick(api: &Api, slug: &str, fields: Value) {
    api.create_with(&plus(json!({ "longUrl": URL, "customSlug": slug }), &fields)).await.unwrap();
}

async fn send(api: &Api, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let request = api.http().request(method, format!("{}/{path}", api.url())).body(body.to_owned());
    Answer::to(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_keeps_the_method_takes_every_one_and_counts_it() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let methods = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];
    for status in [307, 308] {
        let slug = format!("hook-{status}");
        pick(api, &slug, json!({ "redirectStatus": status, "maxVisits": methods.len() })).await;
        for method in &methods {
            let answer = send(api, method.clone(), &slug, &[JSON], "{\"a\":1}").await;
            assert_eq!((answer.status, answer.header("location")), (status, Some(URL)), "{method}");
        }
        let answer = send(api, Method::POST, &slug, &[JSON], "{}").await;
        assert_eq!((answer.status, answer.header("location")), (404, None), "its visits are used up");
    }
    pick(api, "plain", json!({})).await;
    pick(api, "locked", json!({ "redirectStatus": 307, "password": "right" })).await;
    for slug in ["plain", "locked", "none"] {
        for method in &methods {
            let answer = send(api, method.clone(), slug, &[JSON], "{}").await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method} {slug}");
        }
    }
    pick(api, "hook", json!({ "redirectStatus": 307 })).await;
    assert_eq!(send(api, Method::TRACE, "hook", &[], "").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_passed_on_unless_it_may_have_a_password_for_this_service() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    pick(api, "hook", json!({ "redirectStatus": 307 })).await;
    pick(api, "locked", json!({ "redirectStatus": 307, "password": "right" })).await;
    for (slug, headers, status) in [
        ("hook", &[FORM][..], 307),
        ("hook", &[FORM, ("sec-fetch-site", "cross-site"), ORIGIN], 307),
        ("hook", &[FORM, HERE], 303),
        ("hook", &[FORM, ORIGIN], 303),
        ("locked", &[FORM], 303),
        ("locked", &[FORM, HERE], 303),
    ] {
        let answer = send(api, Method::POST, slug, headers, "password=right").await;
        assert_eq!((answer.status, answer.header("location")), (status, Some(URL)), "{slug} {headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_other_origins_follow_the_links_of_a_domain_that_lets_them() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    pick(api, "here", json!({})).await;
    pick(api, "there", json!({ "domain": TWO })).await;
    let allowed = async |method: Method, host: &str, path: &str| {
        let headers = [("host", host), ORIGIN, ("access-control-request-method", "PUT")];
        let answer = send(api, method, path, &headers, "").await;
        (answer.status, answer.header("access-control-allow-origin").map(str::to_owned))
    };
    let any = Some("*".to_owned());
    let minted = api.create(URL).await.unwrap().code;
    for (host, path) in [("s.test", "here"), ("s.test", &*minted), (TWO, "there"), (TWO, &*minted)] {
        for (lets, from_all) in [(false, None), (true, any.clone()), (false, None)] {
            done(api, Method::PATCH, &format!("domains/{host}"), Some(json!({ "crossOrigin": lets }))).await;
            // The second one is known.
            for _ in 0..2 {
                assert_eq!(allowed(Method::GET, host, path).await, (302, from_all.clone()), "{host} {path}");
            }
            assert_eq!(allowed(Method::GET, host, "none").await, (404, from_all.clone()), "{host}");
            let asked = if lets { (204, from_all) } else { (405, None) };
            assert_eq!(allowed(Method::OPTIONS, host, path).await, asked, "{host} {path}");
        }
    }
    done(api, Method::PATCH, "domains/two.example", Some(json!({ "crossOrigin": true }))).await;
    assert_eq!(allowed(Method::GET, "s.test", "here").await, (302, None), "each domain for itself");
    assert_eq!(visit(api, TWO, "there").await, leads_to(URL));

    // A preflight is no visit, whether or not it is answered.
    pick(api, "once", json!({ "redirectStatus": 307, "maxVisits": 1 })).await;
    assert_eq!(allowed(Method::OPTIONS, "s.test", "once").await, (405, None));
    assert_eq!(allowed(Method::PUT, "s.test", "once").await, (307, None), "its visit is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_names_the_methods_that_the_link_takes() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "crossOrigin": true }))).await;
    let minted = api.create(URL).await.unwrap().code;
    pick(api, "hook", json!({ "redirectStatus": 308 })).await;
    pick(api, "found", json!({ "redirectStatus": 302 })).await;
    pick(api, "locked", json!({ "redirectStatus": 307, "password": "right" })).await;
    let (some, all) = ("GET,HEAD", "GET,POST,PUT,PATCH,DELETE");
    let links = [("hook", all), ("found", some), ("locked", some), ("none", some), (&*minted, some)];
    for (path, methods) in links {
        let headers = [ORIGIN, ("access-control-request-method", "PUT")];
        let answer = send(api, Method::OPTIONS, path, &headers, "").await;
        let named = answer.header("access-control-allow-methods");
        assert_eq!((answer.status, named), (204, Some(methods)), "{path}");
        let put = send(api, Method::PUT, path, &[ORIGIN, JSON], "{}").await;
        assert_eq!(put.status != 405, methods.contains("PUT"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_confirms_before_a_visit_of_a_limit_is_used_up() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    pick(api, "once", json!({ "maxVisits": 1 })).await;
    pick(api, "hook", json!({ "maxVisits": 1, "redirectStatus": 307 })).await;
    pick(api, "often", json!({})).await;
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "confirmLimited": true }))).await;
    for _ in 0..3 {
        let page = send(api, Method::GET, "once", &[("accept", "text/html")], "").await;
        assert_eq!((page.status, page.header("location")), (200, None));
        assert!(page.body.contains("method=\"post\"") && !page.body.contains(URL), "{page:?}");
    }
    let go_on = async || send(api, Method::POST, "once", &[FORM, HERE], "password=").await;
    let first = go_on().await;
    assert_eq!((first.status, first.header("location")), (303, Some(URL)));
    assert_eq!(go_on().await.status, 404);
    assert_eq!(api.follow("once").await.unwrap().0, 404);
    assert_eq!(send(api, Method::POST, "hook", &[JSON], "{}").await.status, 307, "no program opens ahead so");
    assert_eq!(api.follow("often").await.unwrap(), leads_to(URL));
}
