//! A service below a path of its host, `--public-url https://example.com/s`: links, the API, pages
//! and the command line have the path, and other domains do not.

use std::collections::BTreeSet;

use harness::{Answer, Api, Resolver, raw};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::{
    cli::Person,
    pages::form_token,
    rest_calls::{call, done, get, leads_to, visit},
};

const LONG_URL: &str = "https://to.example/page";
const FORM: &str = "application/x-www-form-urlencoded";
/// The attributes of pages that lead to other addresses, each of which is requested.
const LEADS: [&str; 3] = [" href=\"", " src=\"", " data-live=\""];
/// Pages with all kinds of addresses, without the first slash. The last two do not exist.
const PAGES: [&str; 18] = [
    "",
    "{code}+",
    "manage",
    "manage?deleted=true",
    "manage/create",
    "manage/link/{code}",
    "manage/rules/{code}",
    "manage/statistics?of=link&code={code}",
    "manage/tags",
    "manage/domains",
    "manage/bulk",
    "manage/reservations",
    "manage/targets",
    "manage/keys",
    "manage/audit",
    "manage/qr-sheet",
    "nothing",
    "manage/nothing",
];

/// Starts a resolver below `/s`. Returns it, whose own client is at the root, and a client below.
async fn start() -> (Resolver, Api) {
    let builder = Resolver::embedded().unwrap().args(["--limit", "threads=1", "--compat", "yourls"]);
    let url = format!("http://{}/s", builder.listen());
    let resolver = builder.public_url(&url).start().await.unwrap();
    let below = Api::new(resolver.api.http(), url, resolver.api.key().to_owned());
    (resolver, below)
}

async fn send(request: RequestBuilder) -> Answer {
    Answer::to(request).await.unwrap()
}

/// Requests a URL as a browser does.
async fn show(api: &Api, url: &str, name: &'static str, value: &str) -> Answer {
    send(api.http().get(url).header("accept", "text/html").header(name, value)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_the_api_are_below_the_path() {
    let (resolver, api) = start().await;
    let link = api.create_with(&json!({ "longUrl": LONG_URL, "crawlable": true })).await.unwrap();
    assert_eq!(link.short_url, format!("{}/{}", api.url(), link.code));
    assert_eq!(send(api.http().get(&link.short_url)).await.header("location"), Some(LONG_URL));
    let head = send(api.http().head(&link.short_url)).await;
    assert_eq!((head.status, head.header("location")), (302, Some(LONG_URL)));
    let picture = api.get(&format!("{}/qr-code?format=svg", link.code)).await.unwrap();
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/svg+xml")));
    // A name may begin like the path.
    api.create_with(&json!({ "longUrl": LONG_URL, "customSlug": "s/x" })).await.unwrap();
    assert_eq!(api.follow("s/x").await.unwrap(), leads_to(LONG_URL));
    // With and without the path, but not with a part of it.
    for client in [&api, &resolver.api] {
        assert_eq!(client.get("rest/health").await.unwrap().status, 200);
        assert_eq!(client.follow(&link.code).await.unwrap(), leads_to(LONG_URL));
    }
    assert_eq!(resolver.api.follow(&format!("s{}", link.code)).await.unwrap().0, 404);
    let (_, bare) = link.short_url.split_once("://").unwrap();
    for url in [link.code.as_str(), link.short_url.as_str(), bare] {
        let explained = get(&api, &format!("explain?url={url}")).await;
        assert_eq!(explained["answer"]["location"], LONG_URL, "{url}: {explained}");
    }
    assert_eq!(get(&api, "openapi.json").await["servers"][0]["url"], api.url());
    let robots = api.get("robots.txt").await.unwrap().body;
    assert!(robots.ends_with(&format!("Allow: /s/{}\nDisallow: /s/\n", link.code)), "{robots}");
    // The path of a target without a host is one of the host.
    let lost = json!({ "domain": "DEFAULT", "invalidShortUrlRedirect": "/lost" });
    done(&api, Method::PATCH, "domains/redirects", Some(lost)).await;
    assert_eq!(api.follow("unknown").await.unwrap(), leads_to("/lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_urls_may_lead_to_the_rest_of_the_host() {
    let (resolver, api) = start().await;
    let link = api.create(LONG_URL).await.unwrap();
    let elsewhere = format!("{}/{}", resolver.api.url(), link.code);
    let own = json!({ "longUrl": link.short_url });
    assert_eq!(call(&api, Method::POST, "short-urls", Some(own)).await.status, 400);
    api.create(&elsewhere).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn short_urls_have_the_path_in_explanations_and_in_other_apis() {
    let (_resolver, api) = start().await;
    let link = api.create(LONG_URL).await.unwrap();
    for path in ["manage", "yourls-api.php"] {
        let refused = call(&api, Method::GET, &format!("explain?url={}/{path}", api.url()), None).await;
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
    }
    let expand = format!("yourls-api.php?action=expand&format=json&shorturl={}", link.short_url);
    let request = api.http().get(format!("{}/{expand}", api.url())).header("X-Api-Key", api.key());
    let expanded = send(request).await.json().unwrap();
    assert_eq!(expanded["longurl"], LONG_URL, "{expanded}");
}

/// The fast path alone omits the request id. The last request is none of its own.
#[tokio::test(flavor = "multi_thread")]
async fn known_links_take_the_fast_path() {
    let (resolver, api) = start().await;
    let link = api.create(LONG_URL).await.unwrap();
    for _ in 0..2 {
        assert_eq!(api.follow(&link.code).await.unwrap(), leads_to(LONG_URL));
    }
    let (addr, code) = (resolver.addr(), &link.code);
    let request = |end: &str| format!("GET /s/{code} HTTP/1.1\r\nHost: {addr}\r\n{end}\r\n");
    let requests = request("").repeat(3) + &request("Connection: close\r\n");
    let answers = raw::exchange(addr, requests.as_bytes()).await.unwrap();
    assert_eq!(answers.matches(&format!("location: {LONG_URL}\r\n")).count(), 4, "{answers}");
    assert_eq!(answers.matches("x-request-id: ").count(), 1, "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_every_page_is_below_the_path() {
    let (_resolver, api) = start().await;
    let link = api.create(LONG_URL).await.unwrap();
    let url = api.url();
    let lost = api.get("manage").await.unwrap();
    let sign_in = Some("/s/_pages/sign-in?to=%2Fmanage");
    assert_eq!((lost.status, lost.header("location")), (303, sign_in));
    let request = api.http().post(format!("{url}/_pages/sign-in")).header("content-type", FORM);
    let signed_in = send(request.body(format!("apiKey={}", api.key()))).await;
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/s/manage")));
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.contains("; Path=/s;"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let token = form_token(&format!("{url}/manage"), cookie).await;

    let mut leads = BTreeSet::new();
    for path in PAGES {
        let path = path.replace("{code}", &link.code);
        let shown = show(&api, &format!("{url}/{path}"), "cookie", cookie).await;
        let expected = if path.ends_with("nothing") { 404 } else { 200 };
        assert_eq!(shown.status, expected, "{path}: {shown:?}");
        leads.extend(leads_of(&path, &shown.body));
    }
    let form = format!("longUrl=https%3A%2F%2Fto.example%2Fnew&formToken={token}");
    let create = api.http().post(format!("{url}/manage/create")).header("content-type", FORM);
    let created = send(create.header("cookie", cookie).body(form)).await;
    assert_eq!(created.status, 200, "{created:?}");
    assert!(created.body.contains(&format!("href=\"{url}/")), "{created:?}");
    leads.extend(leads_of("created", &created.body));

    assert!(leads.len() > 40, "addresses are found: {leads:?}");
    for lead in leads {
        let (root, _) = url.rsplit_once('/').unwrap();
        let answer = show(&api, &format!("{root}{lead}"), "cookie", cookie).await;
        assert!(matches!(answer.status, 200 | 302 | 303), "{lead}: {answer:?}");
        let to = answer.header("location").unwrap_or("/s/");
        assert!(to.starts_with("/s/") || to == LONG_URL, "{lead}: {answer:?}");
    }
}

/// Returns the addresses that a page leads to. All of its own host, those of forms too, have to be
/// below the path.
fn leads_of(path: &str, page: &str) -> Vec<String> {
    let attributes: Vec<&str> = page.split("=\"/").collect();
    for pair in attributes.windows(2) {
        let name = pair[0].rsplit(' ').next().unwrap();
        // The value of a field is the user's, or read again by a handler that has no path.
        assert!(name == "value" || pair[1].starts_with("s/"), "{path}: {name}=\"/{:.60}", pair[1]);
    }
    let of = |attribute: &&str| {
        let values = page.split(*attribute).skip(1).map(|rest| rest.split('"').next().unwrap());
        let own = values.filter(|value| value.starts_with('/'));
        own.map(|value| value.replace("&amp;", "&").replace("&#38;", "&")).collect::<Vec<_>>()
    };
    LEADS.iter().flat_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_domains_stay_at_their_root() {
    let (resolver, api) = start().await;
    let wish = json!({ "longUrl": LONG_URL, "customSlug": "x", "domain": "two.test" });
    assert_eq!(api.create_with(&wish).await.unwrap().short_url, "http://two.test/x");
    assert_eq!(visit(&resolver.api, "two.test", "x").await, leads_to(LONG_URL));
    assert_eq!(visit(&resolver.api, "two.test", "s/x").await, (404, None));
    let page = show(&api, &format!("{}/gone", resolver.api.url()), "host", "two.test").await;
    assert!(page.body.contains("href=\"/_pages/assets/") && !page.body.contains("\"/s/"), "{page:?}");
    let there = (302, Some(format!("{}/manage", api.url())));
    assert_eq!(visit(&resolver.api, "two.test", "manage").await, there);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_takes_a_server_with_a_path() {
    let (resolver, api) = start().await;
    for server in [api.url().to_owned(), format!("{}/", api.url())] {
        let mut person = Person::at(&resolver);
        person.server = server;
        let printed = person.read(&["link", "create", LONG_URL]).await;
        let code = printed.trim_end().strip_prefix(&format!("{}/", api.url())).unwrap();
        let shown = person.read_json(&["link", "get", code, "--json"]).await;
        assert_eq!(shown["longUrl"], LONG_URL);
    }
}
