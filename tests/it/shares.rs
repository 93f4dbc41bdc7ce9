//! Rules with shares: each leads its percentage of the visitors, and a visitor to the same target.

use std::{
    env,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::Range,
    path::Path,
    time::Duration,
};

use cli::code_key_file;
use futures_util::future::join_all;
use harness::{Answer, Api, Cluster, Resolver, Scratch, wait};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    pages::Browser,
    rest_calls::{SOON, done, get},
};

/// The default number of visitors who are counted; `SHORTMINT_SHARES` sets another one.
const VISITORS: u32 = 3_000;
/// The number of those who come again.
const AGAIN: u32 = 200;
/// Connections at a time, and requests that each of them sends at once.
const CONNECTIONS: usize = 16;
const AT_ONCE: usize = 50;
/// The targets of the first rule and of the second one, and the link's own.
const TARGETS: [&str; 3] = ["https://a.example/", "https://b.example/", "https://own.example/"];
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
/// Visitors come through a proxy, which says their addresses.
const TRUSTED: [&str; 2] = ["--trusted-proxies", "127.0.0.0/8"];

async fn set(api: &Api, code: &str, shares: &[&str]) {
    let rule = |(target, share): (&&str, &&str)| {
        let condition = json!({ "type": "share", "matchValue": share });
        json!({ "longUrl": target, "conditions": [condition] })
    };
    let rules: Vec<Value> = TARGETS.iter().zip(shares).map(rule).collect();
    let path = format!("short-urls/{code}/redirect-rules");
    done(api, Method::POST, &path, Some(json!({ "redirectRules": rules }))).await;
}

fn address(visitor: u32) -> String {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + visitor).to_string()
}

fn place(location: Option<&str>) -> usize {
    TARGETS.iter().position(|target| Some(*target) == location).unwrap()
}

fn request(to: SocketAddr, path: &str, headers: &str) -> String {
    format!("GET /{path} HTTP/1.1\r\nHost: {to}\r\n{headers}\r\n")
}

/// Sends requests for redirects over a connection at once. Returns the heads of the answers, which
/// have no bodies.
async fn exchange(stream: &mut TcpStream, requests: &[String]) -> Vec<String> {
    stream.write_all(requests.concat().as_bytes()).await.unwrap();
    let (mut answers, mut buffer) = (String::new(), vec![0; 16 * 1024]);
    while answers.matches("\r\n\r\n").count() < requests.len() {
        let len = timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(len > 0, "closed within the answers: {answers}");
        answers.push_str(&String::from_utf8_lossy(&buffer[..len]));
    }
    answers.split_terminator("\r\n\r\n").map(str::to_owned).collect()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    headers.filter(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

/// Returns the place in [`TARGETS`] of what each visitor is led to.
async fn follow(to: SocketAddr, code: &str, visitors: Range<u32>) -> Vec<usize> {
    let visitors: Vec<u32> = visitors.collect();
    let of_connection = visitors.len().div_ceil(CONNECTIONS);
    let connections = visitors.chunks(of_connection).map(|some| follow_over_one(to, code, some));
    join_all(connections).await.concat()
}

async fn follow_over_one(to: SocketAddr, code: &str, visitors: &[u32]) -> Vec<usize> {
    let visit = |visitor: &u32| {
        let headers = format!("User-Agent: {AGENT}\r\nX-Forwarded-For: {}\r\n", address(*visitor));
        request(to, code, &headers)
    };
    let mut stream = TcpStream::connect(to).await.unwrap();
    let mut led = Vec::with_capacity(visitors.len());
    for some in visitors.chunks(AT_ONCE) {
        let requests: Vec<String> = some.iter().map(visit).collect();
        let answers = exchange(&mut stream, &requests).await;
        led.extend(answers.iter().map(|head| place(header(head, "location"))));
    }
    led
}

async fn explain(api: &Api, code: &str, visitor: u32) -> usize {
    let ip = address(visitor);
    let fields = [("url", code), ("ip", ip.as_str()), ("userAgent", AGENT)];
    let url = Url::parse_with_params(&format!("{}/rest/v3/explain", api.url()), fields).unwrap();
    let answer = Answer::to(api.http().get(url).header("X-Api-Key", api.key())).await.unwrap();
    place(answer.success().unwrap().json().unwrap()["answer"]["location"].as_str())
}

/// Returns the number of visits that the statistics have of each of the [`TARGETS`].
async fn counted(api: &Api, code: &str) -> [u64; 3] {
    let stats = get(api, &format!("stats?shortCode={code}&dimensions=rule")).await;
    let values = stats["dimensions"]["rule"].as_array().unwrap();
    let total = |rule: &str| values.iter().find(|one| one["value"] == rule)?["total"].as_u64();
    ["1", "2", ""].map(|rule| total(rule).unwrap_or(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_are_divided_and_each_resolver_leads_a_visitor_to_the_same_target() {
    let visitors = env::var("SHORTMINT_SHARES").map_or(VISITORS, |text| text.parse().unwrap());
    let cluster = Cluster::builder().resolvers(2).resolver_args(TRUSTED).start().await.unwrap();
    let [one, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    let [to_one, to_other] = [0, 1].map(|index| cluster.resolvers[index].addr());
    let code = one.create(TARGETS[2]).await.unwrap().code;
    set(&one, &code, &["30", "20"]).await;
    let led = follow(to_one, &code, 0..visitors).await;
    let mut counts = [0_u32; 3];
    led.iter().for_each(|target| counts[*target] += 1);
    let expected = [0.3, 0.2, 0.5].map(|share| share * f64::from(visitors));
    let chi: f64 =
        counts.iter().zip(expected).map(|(count, one)| (f64::from(*count) - one).powi(2) / one).sum();
    println!("chi-square {chi} of {visitors} visitors: {counts:?}");
    // Two degrees of freedom: one in a million is above 27.6.
    assert!(chi < 27.6, "chi-square {chi}: {counts:?}");
    let again = follow(to_one, &code, 0..AGAIN).await;
    assert!(led.starts_with(&again));
    assert_eq!(follow(to_other, &code, 0..AGAIN).await, again);
    for visitor in 0..50 {
        assert_eq!(explain(&other, &code, visitor).await, again[usize::try_from(visitor).unwrap()]);
    }
    let visits = led.iter().chain(&again).chain(&again);
    let mut expected = [0_u64; 3];
    visits.for_each(|target| expected[*target] += 1);
    let is_counted = async || counted(&one, &code).await == expected;
    let patience = SOON + Duration::from_millis(visitors.into());
    wait::until(patience, "the visits of each target are counted", is_counted).await.unwrap();

    // The first share takes over the second one and keeps its visitors.
    set(&one, &code, &["50"]).await;
    let expected: Vec<usize> = again.iter().map(|target| if *target == 1 { 0 } else { *target }).collect();
    assert_eq!(follow(to_one, &code, 0..AGAIN).await, expected);
}

/// Starts a resolver with a plain link, which its fast path knows unless it is off, and one with
/// shares. Returns their codes.
async fn start(fast_path: &str, key: &Path) -> (Resolver, [String; 2]) {
    let tune = format!("fast-path={fast_path}");
    let builder = Resolver::embedded().unwrap().code_key_file(key).args(TRUSTED);
    let builder = builder.args(["--limit", "threads=1", "--tune", &tune]);
    let resolver = builder.start().await.unwrap();
    let api = &resolver.api;
    let [plain, shared] = [api.create(TARGETS[2]).await, api.create(TARGETS[2]).await];
    let codes = [plain, shared].map(|created| created.unwrap().code);
    set(api, &codes[1], &["30", "20"]).await;
    for _ in 0..2 {
        api.follow(&codes[0]).await.unwrap();
    }
    (resolver, codes)
}

/// Returns the headers of many visitors, who differ in address, agent or both.
fn headers_of_visitors() -> Vec<String> {
    let mut visitors = Vec::new();
    for agent in ["", "curl/8.0", "Br\u{f6}wser", AGENT] {
        for number in 0..100_u16 {
            let network = Ipv6Addr::from([0x2001, 0xdb8, 0, number, 0, 0, 0, 1]);
            let address = if number % 2 == 0 { address(number.into()) } else { network.to_string() };
            visitors.push(format!("User-Agent: {agent}\r\nX-Forwarded-For: {address}\r\n"));
        }
    }
    visitors
}

/// Visits a plain link and one with shares over a new connection. Returns whether the fast path
/// answered the first, and what the second led to. The fast path sends no request id.
async fn visit_both(to: SocketAddr, codes: &[String; 2], headers: &str) -> (bool, usize) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let requests = [&codes[0], &codes[1]].map(|code| request(to, code, headers));
    let answers = exchange(&mut stream, &requests).await;
    (header(&answers[0], "x-request-id").is_none(), place(header(&answers[1], "location")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_is_led_to_the_same_target_behind_the_fast_path_and_by_hyper_alone() {
    // With the same code key, the first numbers have the same codes in both resolvers.
    let scratch = Scratch::new().unwrap();
    let key = scratch.path().join("code-key");
    code_key_file::create(&key).unwrap();
    let ((fast, codes), (slow, others)) = (start("on", &key).await, start("off", &key).await);
    assert_eq!(codes, others);
    let (mut by_fast_path, mut seen) = (0, [0; 3]);
    let visitors = headers_of_visitors();
    for headers in &visitors {
        let (is_fast, target) = visit_both(fast.addr(), &codes, headers).await;
        assert_eq!(visit_both(slow.addr(), &codes, headers).await, (false, target), "{headers}");
        by_fast_path += usize::from(is_fast);
        seen[target] += 1;
    }
    assert!(by_fast_path > visitors.len() / 2, "{by_fast_path} connections began in the fast path");
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_targets_ends_with_a_winner_who_leads_every_visitor() {
    let resolver = Resolver::embedded().unwrap().args(TRUSTED).start().await.unwrap();
    let (api, to) = (&resolver.api, resolver.addr());
    let code = api.create(TARGETS[2]).await.unwrap().code;
    let link = format!("short-urls/{code}");
    let all_led_to = async |target: usize| {
        let led = follow(to, &code, 0..AGAIN).await;
        assert!(led.iter().all(|one| *one == target), "{target}: {led:?}");
    };
    let begin = async || {
        set(api, &code, &["30", "20"]).await;
        let led = follow(to, &code, 0..AGAIN).await;
        assert!((0..3).all(|target| led.contains(&target)), "{led:?}");
    };

    // With the button of the page.
    begin().await;
    let form = format!("version={}&do=win&rule=2", get(api, &link).await["version"]);
    let (status, ..) = Browser::open(api).await.send(&format!("/manage/rules/{code}"), &form).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let rules = get(api, &format!("{link}/redirect-rules")).await;
    let winner = json!({ "longUrl": TARGETS[1], "priority": 1, "conditions": [] });
    assert_eq!(rules["redirectRules"], json!([winner]));
    all_led_to(1).await;

    // With the API, which needs no rule for that.
    begin().await;
    done(api, Method::PATCH, &link, Some(json!({ "longUrl": TARGETS[0] }))).await;
    set(api, &code, &[]).await;
    all_led_to(0).await;
}
