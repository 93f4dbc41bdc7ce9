//! Social previews, which crawlers of chats and social networks get instead of a redirect, and
//! titles that are fetched from the pages that links lead to.

use std::net::SocketAddr;

use harness::{Answer, Api, Scratch, installed::node, wait};
use reqwest::{Method, header::USER_AGENT};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

use crate::rest_calls::{Alone, SOON, call, done, expect_invalid, get, plus};

const URL: &str = "https://example.com/target";
const ATTACK: &str = "Über \"us\" & 'them' ><script>alert(1)</script>";
const UNFURLERS: [&str; 6] = [
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Mozilla/5.0 (Macintosh) AppleWebKit/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
    "WhatsApp/2.23.20.0 A",
];
const OTHERS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "curl/8",
    "",
];

/// Status, headers and body of an answer, without what differs from one answer to the next.
type Seen = (u16, Vec<(String, String)>, String);

async fn look(api: &Api, method: Method, slug: &str, user_agent: &str) -> Answer {
    let request = api.http().request(method, format!("{}/{slug}", api.url()));
    Answer::to(request.header(USER_AGENT, user_agent)).await.unwrap()
}

async fn see(api: &Api, slug: &str, user_agent: &str) -> Seen {
    let answer = look(api, Method::GET, slug, user_agent).await;
    let differs = |name: &str| matches!(name, "date" | "x-request-id");
    let headers = answer.headers.iter().filter(|(name, _)| !differs(name.as_str()));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.sort();
    (answer.status, headers, answer.body.replace(slug, "SLUG"))
}

fn preview() -> Value {
    json!({ "title": ATTACK, "description": "two\nlines", "image": "https://example.com/a.png?x=1&y=2" })
}

/// Creates two links that differ only in that the first one has a preview.
async fn make_both(api: &Api, name: &str, fields: &Value) -> [String; 2] {
    let slugs = [format!("with-{name}"), format!("sans-{name}")];
    for (slug, preview) in slugs.iter().zip([preview(), Value::Null]) {
        let wish = plus(json!({ "longUrl": URL, "customSlug": slug, "preview": preview }), fields);
        api.create_with(&wish).await.unwrap();
    }
    slugs
}

#[tokio::test(flavor = "multi_thread")]
async fn crawlers_get_the_preview_and_all_others_what_they_get_without_one() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let [with, without] = make_both(api, "free", &json!({})).await;
    for user_agent in OTHERS {
        let (own, plain) = (see(api, &with, user_agent).await, see(api, &without, user_agent).await);
        assert_eq!(own, plain, "{user_agent}");
        assert_eq!(own.0, 302);
    }
    for user_agent in UNFURLERS {
        let page = look(api, Method::GET, &with, user_agent).await;
        assert_eq!((page.status, page.header("location")), (200, None), "{user_agent}: {page:?}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(page.header("cache-control"), Some("private,max-age=30"));
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        assert!(!page.body.contains("<script") && !page.body.contains(URL), "{}", page.body);
        assert!(page.body.contains("Über &#34;us&#34; &#38; &#39;them&#39;"), "{}", page.body);
        assert_eq!(look(api, Method::GET, &without, user_agent).await.header("location"), Some(URL));
    }
    let head = look(api, Method::HEAD, &with, UNFURLERS[0]).await;
    assert_eq!((head.status, &*head.body), (200, ""));
    // They count as the redirects of crawlers do.
    let path = format!("short-urls/{with}");
    let counted = async || get(api, &path).await["visitsSummary"]["bots"] == UNFURLERS.len() + 2;
    wait::until(SOON, "the previews are counted", counted).await.unwrap();

    let explain = format!("explain?url=/{with}&userAgent=facebookexternalhit/1.1");
    let explanation = get(api, &explain).await;
    assert_eq!(explanation["answer"], json!({ "status": 200, "location": null, "page": "social-preview" }));
    let last = explanation["steps"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["step"], &last["outcome"]), (&json!("preview"), &json!("own")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_spends_no_visit_and_reveals_nothing_of_a_link_that_leads_nowhere() {
    let alone = Alone::start(&["--tell-gone"]).await;
    let api = alone.api();
    let [once, plain] = make_both(api, "once", &json!({ "maxVisits": 1 })).await;
    for user_agent in UNFURLERS {
        let page = look(api, Method::GET, &once, user_agent).await;
        assert!(page.status == 200 && page.body.contains("og:title"), "{page:?}");
    }
    for slug in [&once, &plain] {
        assert_eq!(look(api, Method::GET, slug, "curl/8").await.header("location"), Some(URL));
    }
    let mut pairs = vec![[once, plain]];
    for (name, fields) in [
        ("locked", json!({ "password": "hush" })),
        ("early", json!({ "validSince": "2090-01-01" })),
        ("over", json!({ "validUntil": "2020-01-01" })),
        ("off", json!({ "enabled": false })),
        ("taken", json!({})),
        ("denied", json!({ "longUrl": "https://denied.example/" })),
    ] {
        pairs.push(make_both(api, name, &fields).await);
    }
    for slug in ["with-taken", "sans-taken"] {
        let reason = Some(json!({ "reason": "phishing" }));
        done(api, Method::POST, &format!("short-urls/{slug}/block"), reason).await;
    }
    let denied = json!({ "pattern": "denied.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(denied)).await;
    for [with, without] in pairs {
        let (own, plain) = (see(api, &with, UNFURLERS[0]).await, see(api, &without, UNFURLERS[0]).await);
        assert_eq!(own, plain, "{with}");
        assert!(!own.2.contains("us&#34;") && !own.2.contains("og:"), "{with}: {own:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_is_replaced_as_a_whole_and_cleared() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    api.create_with(&json!({ "longUrl": URL, "customSlug": "own", "title": "Of the link" })).await.unwrap();
    let path = "short-urls/own";
    for (change, stored) in [
        (
            json!({ "image": "https://e.example/a.png" }),
            json!({ "title": null, "description": null, "image": "https://e.example/a.png" }),
        ),
        (json!({ "title": " T " }), json!({ "title": "T", "description": null, "image": null })),
        (Value::Null, Value::Null),
        (json!({ "description": "D" }), json!({ "title": null, "description": "D", "image": null })),
        (json!({ "title": "", "image": null }), Value::Null),
    ] {
        let edited = done(api, Method::PATCH, path, Some(json!({ "preview": change }))).await;
        assert_eq!(edited["preview"], stored, "{change}");
    }
    // The title of the link stands in for one of the preview.
    done(api, Method::PATCH, path, Some(json!({ "preview": { "description": "D" } }))).await;
    let page = look(api, Method::GET, "own", UNFURLERS[0]).await;
    assert!(page.body.contains("<title>Of the link</title>"), "{page:?}");
    let refused = call(api, Method::PATCH, path, Some(json!({ "fetchTitle": true }))).await;
    expect_invalid(&refused, "fetchTitle");
}

/// Unfurls a link as a chat does, with unfurl.js from npm (`tests/sdk/compat`), which `tests/run`
/// installs.
#[tokio::test(flavor = "multi_thread")]
async fn a_library_that_unfurls_links_finds_every_part() {
    let (scratch, alone) = (Scratch::new().unwrap(), Alone::start(&[]).await);
    let api = alone.api();
    let [with, _] = make_both(api, "unfurled", &json!({})).await;
    let short_url = format!("{}/{with}", api.url());
    let node = node(&scratch, "sdk/compat/unfurl.mjs", "compat").unwrap().arg(&short_url);
    let found: Value =
        serde_json::from_str(&node.run(SOON).await.unwrap().success().unwrap().stdout).unwrap();
    let open_graph = &found["open_graph"];
    assert_eq!((&found["title"], &open_graph["title"]), (&json!(ATTACK), &json!(ATTACK)), "{found}");
    assert_eq!(open_graph["description"], "two\nlines");
    assert_eq!(open_graph["url"], short_url);
    assert_eq!(open_graph["images"][0]["url"], "https://example.com/a.png?x=1&y=2");
    assert_eq!(found["twitter_card"]["card"], "summary_large_image");
}

/// A page on the loopback interface, with the heads of the requests for it.
struct Page {
    address: SocketAddr,
    requests: mpsc::Receiver<String>,
}

impl Page {
    async fn serve(host: &str, answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind(format!("{host}:0")).await.unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.into());
        let (seen, requests) = mpsc::channel(100);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4_096];
                let length = stream.read(&mut head).await.unwrap_or_default();
                seen.send(String::from_utf8_lossy(&head[..length]).into_owned()).await.unwrap();
                stream.write_all(&answer).await.ok();
            }
        });
        Self { address, requests }
    }
}

async fn wait_for_title(api: &Api, slug: &str, title: &str) {
    let path = format!("short-urls/{slug}");
    let is_there = async || get(api, &path).await["title"] == title;
    wait::until(SOON, "the title is fetched", is_there).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_title_is_fetched_after_the_create_and_only_for_a_link_without_one() {
    let alone = Alone::start(&["--webhooks", "network=127.0.0.0/8"]).await;
    let api = alone.api();
    let latin = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=ISO-8859-1\r\n\r\n\
        <html><head><title>\xc4pfel &amp;\n Birnen &lt;frisch&#62;</title>";
    let mut page = Page::serve("127.0.0.1", latin.to_vec()).await;
    let long_url = format!("http://{}/page#part", page.address);
    let wish = |slug: &str, more: Value| plus(json!({ "longUrl": long_url, "customSlug": slug }), &more);
    for (slug, more) in [("unasked", json!({})), ("titled", json!({ "title": "Mine", "fetchTitle": true }))] {
        api.create_with(&wish(slug, more)).await.unwrap();
    }
    let created = api.create_with(&wish("asked", json!({ "fetchTitle": true }))).await.unwrap();
    assert_eq!((&created.json["title"], &created.json["version"]), (&Value::Null, &json!(0)));
    wait_for_title(api, "asked", "Äpfel & Birnen <frisch>").await;
    assert!(page.requests.recv().await.unwrap().starts_with("GET /page HTTP/1.1\r\n"));
    let items = json!([wish("bulk", json!({ "fetchTitle": true }))]);
    done(api, Method::POST, "short-urls/bulk", Some(items)).await;
    wait_for_title(api, "bulk", "Äpfel & Birnen <frisch>").await;
    page.requests.recv().await.unwrap();
    assert!(page.requests.try_recv().is_err(), "no other link had its page read");
    for (slug, title) in [("unasked", Value::Null), ("titled", json!("Mine"))] {
        assert_eq!(get(api, &format!("short-urls/{slug}")).await["title"], title);
    }
    let link = get(api, "short-urls/asked").await;
    assert_eq!((&link["version"], &link["editedBy"]), (&json!(1), &link["createdBy"]));
}

/// The operator lets webhooks into a network. Titles of links of others are not read there.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_of_webhooks_is_for_titles_of_operators_only() {
    let alone = Alone::start(&["--webhooks", "network=127.0.0.0/8"]).await;
    let scopes = ["--scopes", "create,read,edit"];
    let tenant = alone.with_new_key("tenant", &scopes).await;
    let limited = alone.with_new_key("limited", &["--scopes", "admin", "--own-links-only"]).await;
    let titled = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>Title</title>";
    let mut page = Page::serve("127.0.0.1", titled).await;
    for (api, name) in [(&tenant, "tenant"), (&limited, "limited"), (alone.api(), "operator")] {
        let long_url = format!("http://{}/{name}", page.address);
        let wish = json!({ "longUrl": long_url, "customSlug": name, "fetchTitle": true });
        api.create_with(&wish).await.unwrap();
    }
    wait_for_title(alone.api(), "operator", "Title").await;
    for name in ["tenant", "limited"] {
        assert_eq!(get(alone.api(), &format!("short-urls/{name}")).await["title"], Value::Null, "{name}");
    }
    assert!(page.requests.recv().await.unwrap().starts_with("GET /operator HTTP/1.1\r\n"));
    assert!(page.requests.try_recv().is_err(), "no other page was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_title_is_fetched_from_an_address_that_is_not_public_in_whichever_form() {
    // One address is allowed, so that the test sees when titles are fetched.
    let alone = Alone::start(&["--webhooks", "network=127.0.0.2/32"]).await;
    let api = alone.api();
    let titled = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>Title</title>";
    let (mut private, public) =
        (Page::serve("127.0.0.1", titled).await, Page::serve("127.0.0.2", titled).await);
    let port = private.address.port();
    let hosts = "127.0.0.1 2130706433 0177.0.0.1 0x7f.1 [::ffff:127.0.0.1] [::1] localhost";
    let mut urls: Vec<String> = hosts.split(' ').map(|host| format!("http://{host}:{port}/")).collect();
    let to = &urls[0];
    let leads = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    let mut leads = Page::serve("127.0.0.2", leads).await;
    urls.push(format!("http://{}/", leads.address));
    let mut codes = Vec::new();
    for url in &urls {
        let wish = json!({ "longUrl": url, "fetchTitle": true });
        codes.push(api.create_with(&wish).await.unwrap().code);
    }
    leads.requests.recv().await.unwrap();
    let wish = json!({ "longUrl": format!("http://{}/", public.address), "fetchTitle": true });
    let last = api.create_with(&wish).await.unwrap().code;
    wait_for_title(api, &last, "Title").await;
    for (code, url) in codes.iter().zip(&urls) {
        assert_eq!(get(api, &format!("short-urls/{code}")).await["title"], Value::Null, "{url}");
    }
    assert!(private.requests.try_recv().is_err(), "the private page was read");
}
