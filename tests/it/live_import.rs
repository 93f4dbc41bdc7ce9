//! `resolver import --url`: links come from running sources, which answer as Shlink, Kutt, YOURLS
//! and Dub do, and whose lists change meanwhile; and from this project's own server.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use harness::{Api, wait};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    imports::{Operator, counts},
    rest_calls::{self, Alone, done, get},
    webhooks::{Received, read},
};

const SOON: Duration = Duration::from_secs(60);
const KEY: &str = "the-source-key";
const REFUSED: Option<i32> = Some(65);

/// A running source.
#[derive(Clone)]
struct Source {
    system: &'static str,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The codes and long URLs of the links, the oldest first.
    links: Vec<(String, String)>,
    /// The statuses of the next answers in place of a page.
    faults: VecDeque<u16>,
    /// The number of pages that were asked for.
    pages: usize,
    /// The page before which a link of the first page is deleted and one is created.
    changes_before: Option<usize>,
    /// The page that is never answered.
    hangs_at: Option<usize>,
}

impl Source {
    /// Starts a source with so many links, of which the one with the code `c7` has a rule.
    async fn start(system: &'static str, count: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let links = (0..count).map(|number| (format!("c{number}"), url(number))).collect();
        let state = Arc::new(Mutex::new(State { links, ..State::default() }));
        let source = Self { system, address: listener.local_addr().unwrap(), state };
        let serving = source.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let source = serving.clone();
                tokio::spawn(async move { source.serve(BufReader::new(stream)).await });
            }
        });
        source
    }

    async fn serve(&self, mut stream: BufReader<TcpStream>) {
        let Some(request) = read(&mut stream).await else { return };
        let Some((status, header, body)) = self.answer(&request) else {
            return std::future::pending().await;
        };
        let length = body.len();
        let body = if request.method == "HEAD" { "" } else { body.as_str() };
        let head = format!("HTTP/1.1 {status} X\r\n{header}connection: close\r\n");
        let answer = format!("{head}content-length: {length}\r\n\r\n{body}");
        let _ = stream.write_all(answer.as_bytes()).await;
    }

    /// Returns status, header and body of an answer; `None` if there is none.
    fn answer(&self, request: &Received) -> Option<(u16, String, String)> {
        let url = Url::parse(&format!("http://{}{}", self.address, request.target)).unwrap();
        let number = |name: &str| {
            let pair = url.query_pairs().find(|(key, _)| *key == name);
            pair.and_then(|(_, value)| value.parse::<usize>().ok())
        };
        let plain = |status: u16, body: String| Some((status, String::new(), body));
        let is_of_all = || url.query().unwrap().starts_with("showArchived=true&search=https%3A%2F%2F");
        let (first, length) = match (self.system, url.path()) {
            ("shlink", "/rest/v3/short-urls") => {
                let length = number("itemsPerPage").unwrap();
                ((number("page").unwrap() - 1) * length, length)
            }
            ("kutt", "/api/v2/links") => (number("skip").unwrap(), number("limit").unwrap().min(50)),
            ("yourls", "/yourls-api.php") => (number("start").unwrap(), number("limit").unwrap()),
            ("dub", "/links/count") if is_of_all() => (0, 0),
            ("dub", "/links") if is_of_all() => {
                let length = number("pageSize").unwrap();
                ((number("page").unwrap() - 1) * length, length)
            }
            ("shlink", "/rest/v3/short-urls/c7/redirect-rules") => {
                return plain(200, rules().to_string());
            }
            (_, path) => return self.redirect(&path[1..]),
        };
        let mut state = self.state.lock().unwrap();
        let is_allowed = match self.system {
            "dub" => request.header("authorization") == format!("Bearer {KEY}"),
            "yourls" => request.body == format!("signature={KEY}"),
            _ => request.header("x-api-key") == KEY,
        };
        if !is_allowed && self.system == "dub" {
            let error = json!({ "code": "unauthorized", "message": "Wrong key" });
            return plain(401, json!({ "error": error }).to_string());
        }
        if !is_allowed {
            return plain(401, json!({ "title": "Invalid API key", "detail": "Wrong key" }).to_string());
        }
        if let Some(status) = state.faults.pop_front() {
            return Some((status, "retry-after: 1\r\n".to_owned(), "<html>".to_owned()));
        }
        if length == 0 {
            return plain(200, state.links.len().to_string());
        }
        state.pages += 1;
        if state.hangs_at == Some(state.pages) {
            return None;
        }
        if state.changes_before == Some(state.pages) {
            let removed = if self.system == "shlink" { 0 } else { state.links.len() - 1 };
            state.links.remove(removed);
            state.links.push(("new".to_owned(), "https://example.com/new".to_owned()));
        }
        plain(200, self.page(&state.links, first, length).to_string())
    }

    fn redirect(&self, code: &str) -> Option<(u16, String, String)> {
        let state = self.state.lock().unwrap();
        let found = state.links.iter().find(|(known, _)| known == code);
        Some(match found {
            Some((_, to)) => (302, format!("location: {to}\r\n"), String::new()),
            None => (404, String::new(), "not found".to_owned()),
        })
    }

    fn page(&self, links: &[(String, String)], first: usize, length: usize) -> Value {
        let total = links.len();
        let item = |(code, to): &(String, String)| self.item(code, to);
        let oldest = links.iter().skip(first).take(length).map(item);
        let newest: Vec<Value> = links.iter().rev().skip(first).take(length).map(item).collect();
        match self.system {
            "shlink" => json!({ "shortUrls": { "data": oldest.collect::<Vec<_>>(), "pagination": {
                "currentPage": first / length + 1, "pagesCount": total.div_ceil(length),
                "itemsPerPage": length, "itemsInCurrentPage": total.saturating_sub(first).min(length),
                "totalItems": total } } }),
            "kutt" => json!({ "total": total, "limit": length, "skip": first, "data": newest }),
            "dub" => newest.into(),
            _ => {
                let named = newest.into_iter().enumerate();
                let named = named.map(|(place, item)| (format!("link_{}", place + 1), item));
                let mut answer = json!({ "stats": { "total_links": total.to_string(), "total_clicks": "0" },
                    "statusCode": "200", "message": "success" });
                let links: serde_json::Map<String, Value> = named.collect();
                if !links.is_empty() {
                    answer["links"] = links.into();
                }
                answer
            }
        }
    }

    fn item(&self, code: &str, to: &str) -> Value {
        let short = format!("http://{}/{code}", self.address);
        let max_visits = (code == "c9").then_some(100);
        match self.system {
            "shlink" => json!({ "shortCode": code, "shortUrl": short, "longUrl": to,
                "dateCreated": "2024-03-01T10:00:00+00:00", "tags": ["old"], "domain": null, "title": code,
                "meta": { "validSince": null, "validUntil": null, "maxVisits": max_visits },
                "crawlable": false, "forwardQuery": true, "hasRedirectRules": code == "c7",
                "visitsSummary": { "total": 3, "nonBots": 3, "bots": 0 } }),
            "kutt" => json!({ "id": code, "address": code, "banned": false, "password": false, "link": short,
                "created_at": "2024-03-01T10:00:00.000Z", "updated_at": "2024-03-01T10:00:00.000Z",
                "description": code, "expire_in": null, "target": to, "visit_count": 3, "domain": null }),
            "dub" => json!({ "id": format!("link_{code}"), "domain": self.address.to_string(), "key": code,
                "url": to, "externalId": null, "archived": false, "expiresAt": null, "expiredUrl": null,
                "disabledAt": null, "password": null, "proxy": false, "title": code, "description": null,
                "rewrite": false, "doIndex": false, "ios": null, "android": null, "geo": null, "tags": [],
                "folderId": null, "comments": null, "shortLink": short, "utm_source": null, "clicks": 3,
                "createdAt": "2024-03-01T10:00:00.000Z", "updatedAt": "2024-03-01T10:00:00.000Z" }),
            _ => json!({ "shorturl": short, "url": to, "title": code, "timestamp": "2024-03-01 10:00:00",
                "ip": "192.0.2.1", "clicks": "3" }),
        }
    }

    /// Returns the arguments of an import from here.
    fn args<'a>(&self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let args = ["import", "--from", self.system, "--url", url, "--source-key", KEY, "--json"];
        [&args[..], more].concat()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }
}

fn url(number: usize) -> String {
    format!("https://example.com/page/{number}")
}

fn rules() -> Value {
    json!({ "defaultLongUrl": "https://example.com/page/7", "redirectRules": [{ "priority": 1,
        "longUrl": "https://example.com/ios",
        "conditions": [{ "type": "device", "matchKey": null, "matchValue": "ios" }] }] })
}

/// Runs an import, and returns the exit code, the JSON and the standard error.
async fn import(operator: &Operator, args: &[&str]) -> (Option<i32>, Value, String) {
    let finished = operator.command(args).await;
    (finished.code(), serde_json::from_str(&finished.stdout).unwrap_or_default(), finished.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_of_a_source_comes_although_it_fails_and_changes_meanwhile() {
    for (system, count) in [("shlink", 1_100), ("kutt", 120), ("yourls", 1_100), ("dub", 250)] {
        let (operator, source) = (Operator::new().await, Source::start(system, count).await);
        source.change(|state| {
            state.links[3].1 = "ftp://example.com/".to_owned();
            state.faults = [429, 500].into();
            state.changes_before = Some(2);
        });
        let (url, total) = (source.url(), count as u64);
        let args = source.args(&url, &[]);
        let (code, told, stderr) = import(&operator, &args).await;
        // The link that was deleted came with the first page, and another one later.
        let expected = (REFUSED, [total + 1, total, 0, 0, 1]);
        assert_eq!((code, counts(&told)), expected, "{system}: {told} {stderr}");
        assert_eq!(told["complete"], true, "{system}: {told}");
        assert_eq!(told["leftOut"], json!({}), "{system}: {told}");
        let (code, told, stderr) = import(&operator, &args).await;
        let expected = (REFUSED, [total, 0, total - 1, 0, 1]);
        assert_eq!((code, counts(&told)), expected, "{system}: {told} {stderr}");

        let server = operator.serve("links").await;
        assert_eq!(rest_calls::count(&server.api).await, count, "{system}");
        let link = get(&server.api, "short-urls/c7").await;
        assert_eq!((&link["domain"], &link["visitsSummary"]["total"]), (&Value::Null, &json!(3)), "{link}");
        if system == "shlink" {
            assert_eq!(link["tags"], json!(["old"]), "{link}");
            let here = get(&server.api, "short-urls/c7/redirect-rules").await;
            assert_eq!(here["redirectRules"], rules()["redirectRules"], "{here}");
        }

        source.change(|state| state.links[5].1 = "https://example.com/elsewhere".to_owned());
        let changed = source.state.lock().unwrap().links[5].0.clone();
        let args = source.args(&url, &["--verify", server.api.url()]);
        let (code, told, stderr) = import(&operator, &args).await;
        let expected = (REFUSED, [total, 0, total - 2, 0, 2]);
        assert_eq!((code, counts(&told)), expected, "{system}: {told} {stderr}");
        let compared = &told["comparison"];
        let parts = ["same", "different", "missing", "unanswered"].map(|name| compared[name].as_u64());
        assert_eq!(parts, [Some(total - 2), Some(1), Some(1), Some(0)], "{system}: {compared}");
        let listed = compared["differences"].as_array().unwrap();
        let different = listed.iter().find(|link| link["shortCode"] == changed).unwrap();
        assert_eq!(different["there"]["location"], "https://example.com/elsewhere", "{different}");
        assert!(different["here"]["location"].as_str().unwrap().contains("/page/"), "{different}");
        let missing = listed.iter().find(|link| link["shortCode"] != changed).unwrap();
        assert_eq!((&missing["there"]["status"], &missing["here"]["status"]), (&json!(302), &json!(404)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_from_a_source_that_was_killed_is_run_again() {
    let (operator, source) = (Operator::new().await, Source::start("shlink", 2_200).await);
    let server = operator.serve("links").await;
    source.change(|state| state.hangs_at = Some(5));
    let url = source.url();
    let args = source.args(&url, &[]);
    let mut killed = operator.launch(&args).await.spawn().unwrap();
    let are_here = async || rest_calls::count(&server.api).await >= 500;
    wait::until(SOON, "the first links are here", are_here).await.unwrap();
    killed.kill_now().unwrap();
    source.change(|state| state.hangs_at = None);
    let (code, told, stderr) = import(&operator, &args).await;
    let [read, stored, there, before, refused] = counts(&told);
    assert_eq!((code, read, stored + there), (Some(0), 2_200, 2_200), "{told} {stderr}");
    assert!(there >= 500 && stored > 0 && [before, refused] == [0, 0], "{told}");
    let (code, told, stderr) = import(&operator, &args).await;
    assert_eq!((code, counts(&told)), (Some(0), [2_200, 0, 2_200, 0, 0]), "{told} {stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_refuses_is_reported_with_the_page() {
    let (operator, source) = (Operator::new().await, Source::start("shlink", 1_100).await);
    let url = source.url();
    let wrong = ["import", "--from", "shlink", "--url", &url, "--source-key", "wrong", "--json"];
    let (code, _, stderr) = import(&operator, &wrong).await;
    assert_eq!(code, Some(64), "{stderr}");
    assert!(stderr.contains("page 1") && stderr.contains("401 Wrong key"), "{stderr}");
    let (code, _, stderr) = import(&operator, &source.args(&url, &["links.json"])).await;
    assert!(code == Some(64) && stderr.contains("cannot be used with"), "{stderr}");
    let kutt = ["import", "--from", "kutt", "--url", &url, "--source-key", KEY];
    let (code, _, stderr) = import(&operator, &kutt).await;
    assert!(code == Some(64) && stderr.contains("page 1") && stderr.contains("404"), "{stderr}");
    let dub = Source::start("dub", 1).await.url();
    let dub = ["import", "--from", "dub", "--url", &dub, "--source-key", "wrong"];
    let (code, _, stderr) = import(&operator, &dub).await;
    assert!(code == Some(64) && stderr.contains("401 Wrong key"), "{stderr}");
    let (_, told, _) = import(&operator, &source.args(&url, &[])).await;
    assert_eq!(told["stored"], 1_100, "nothing was stored before: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_this_project_is_a_source_in_each_of_its_apis() {
    let source = Alone::start(&["--compat", "yourls,kutt"]).await;
    for link in [
        json!({ "longUrl": "https://example.com/a", "customSlug": "a/ü", "title": "A", "tags": ["x", "y"],
            "validUntil": "2090-01-01T00:00:00+00:00", "crawlable": true }),
        json!({ "longUrl": "https://example.com/b", "domain": "other.example", "customSlug": "b" }),
        json!({ "longUrl": "https://example.com/c", "forwardQuery": false }),
    ] {
        source.api().create_with(&link).await.unwrap();
    }
    let rule = json!({ "redirectRules": rules()["redirectRules"] });
    let path = "redirect-rules?domain=other.example";
    done(source.api(), Method::POST, &format!("short-urls/b/{path}"), Some(rule)).await;

    for system in ["shlink", "kutt", "yourls"] {
        let operator = Operator::new().await;
        let server = operator.serve(system).await;
        let (url, key) = (source.api().url(), source.api().key());
        let args = ["import", "--from", system, "--url", url, "--source-key", key, "--json", "--verify"];
        let (code, told, stderr) = import(&operator, &[&args[..], &[server.api.url()]].concat()).await;
        assert_eq!((code, counts(&told)), (Some(0), [3, 3, 0, 0, 0]), "{system}: {told} {stderr}");
        assert_eq!(told["comparison"]["same"], 3, "{system}: {told}");
        if system == "shlink" {
            assert_eq!(told["leftOut"], json!({}), "{told}");
            assert_eq!(links(&server.api).await, links(source.api()).await);
            let here = get(&server.api, &format!("short-urls/b/{path}")).await;
            assert_eq!(here, get(source.api(), &format!("short-urls/b/{path}")).await);
        }
    }
}

/// Returns the members of links that an import brings along.
async fn links(api: &Api) -> Vec<Value> {
    let answer = get(api, "short-urls?orderBy=longUrl-ASC").await;
    let members = [
        "shortCode",
        "longUrl",
        "dateCreated",
        "tags",
        "meta",
        "domain",
        "title",
        "crawlable",
        "forwardQuery",
        "hasRedirectRules",
        "enabled",
    ];
    let links = answer["shortUrls"]["data"].as_array().unwrap().iter();
    links.map(|link| members.iter().map(|name| (*name, link[name].clone())).collect::<Value>()).collect()
}
