//! The public listener: redirects, errors, limits for slow and oversized requests, and connections.

use std::{collections::BTreeSet, time::Duration};

use harness::{Answer, Connection, Resolver, raw, wait};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::Method;

const SOON: Duration = Duration::from_secs(30);
/// The resolver's limit of ten seconds for a head, with a margin for a busy machine.
const SLOW_HEADER_CLOSED_WITHIN: Duration = Duration::from_secs(20);

const LONG_URL: &str = "https://example.com/path?q=a%20b+c#top";

#[tokio::test(flavor = "multi_thread")]
async fn get_and_head_redirect_to_the_url_as_it_was_written() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    for method in [Method::GET, Method::HEAD] {
        let answer = send(&resolver, method.clone(), &code).await;
        assert_eq!((answer.status, answer.header("location")), (302, Some(LONG_URL)), "{method}");
        if method == Method::HEAD {
            assert_eq!(answer.body, "");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_code_of_a_link_is_not_found() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    // A code that was never minted: only one link exists.
    let unknown = if code == "abc123" { "abc124" } else { "abc123" };
    let too_long = "a".repeat(2_000);
    let impossible = ["a", "abc12", "abc1234", "abc-12", "abc%20d", "%C3%A4bc12", "..%2fabc", &too_long];
    let slashes = ["a/b", &format!("{code}/"), &format!("{code}/x"), "/abc123"];
    for path in [&[unknown][..], &impossible, &slashes].concat() {
        for method in [Method::GET, Method::HEAD] {
            let answer = send(&resolver, method.clone(), path).await;
            assert_eq!(answer.status, 404, "{method} /{path}: {answer:?}");
            assert_eq!(answer.header("location"), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_visitors_query_goes_along_and_wins_over_the_links_own() {
    let resolver = start().await;
    for (long_url, query, location) in [
        ("https://example.com/", "x=1", "https://example.com/?x=1"),
        (
            "https://example.com/a?kept=1&own=2#part",
            "own=3&x=4",
            "https://example.com/a?kept=1&own=3&x=4#part",
        ),
        ("https://example.com/#part", "x=a%20b", "https://example.com/?x=a%20b#part"),
        ("https://example.com/?kept=1", "", "https://example.com/?kept=1"),
    ] {
        let code = resolver.api.create(long_url).await.unwrap().code;
        let followed = resolver.api.follow(&format!("{code}?{query}")).await.unwrap();
        assert_eq!(followed, (302, Some(location.to_owned())), "{long_url} with {query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_whether_it_says_its_length_or_not() {
    let resolver = start().await;
    let head = format!(
        "POST /rest/v3/short-urls HTTP/1.1\r\nHost: {}\r\nX-Api-Key: {}\r\nContent-Type: application/json\r\n",
        resolver.addr(),
        resolver.api.key(),
    );
    let announced = format!("{head}Content-Length: 4194304\r\n\r\n{}", " ".repeat(4_194_304));
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(64));
    for request in [announced, chunked] {
        let answer = raw::exchange(resolver.addr(), request.as_bytes()).await.unwrap();
        assert_eq!(raw::status(&answer).unwrap(), 413, "{answer}");
    }
    resolver.api.create(LONG_URL).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_block_that_is_too_large_is_refused() {
    let resolver = start().await;
    let one_huge = format!("X-Padding: {}\r\n", "a".repeat(64 * 1024));
    let many = (0..2_000).map(|n| format!("X-Padding-{n}: {n}\r\n")).collect::<String>();
    for headers in [one_huge, many] {
        let request = format!("GET /abc123 HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", resolver.addr());
        let answer = raw::exchange(resolver.addr(), request.as_bytes()).await.unwrap();
        assert_eq!(raw::status(&answer).unwrap(), 431, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_ends_its_header_is_closed_and_others_are_served_meanwhile() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    let addr = resolver.addr();
    resolver.api.follow(&code).await.unwrap();
    // One connection starts with the incomplete head, the other sends it after a redirect.
    let cut = request("GET", "abc123", "X-Never");
    let sent = [cut[..cut.len() - 4].to_owned(), request("GET", &code, "") + &cut[..cut.len() - 4]];
    let slow = tokio::spawn(async move {
        let closed = |bytes: String| async move {
            raw::wait_closed(addr, bytes.as_bytes(), SLOW_HEADER_CLOSED_WITHIN).await
        };
        let [first, second] = sent.map(closed);
        tokio::try_join!(first, second).map(drop)
    });
    while !slow.is_finished() {
        assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
        tokio::time::sleep(harness::wait::POLL_INTERVAL).await;
    }
    slow.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_get_that_is_redirected_is_a_visit_and_nothing_else_is() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    let asked = [
        (Method::GET, code.clone()),
        (Method::GET, code.clone()),
        (Method::GET, format!("{code}?ref=letter")),
        (Method::HEAD, code.clone()),
        (Method::GET, "nosuch".to_owned()),
    ];
    for (method, path) in asked {
        send(&resolver, method, &path).await;
    }
    // Only the first request has to read the link from the store.
    let counts = [
        ("resolver_visits_total", 3.0),
        ("resolver_redirects_total", 4.0),
        ("resolver_cache_hits_total", 3.0),
    ];
    for (what, count) in counts {
        let counted = async || resolver.metric(what).await == Some(count);
        wait::until(SOON, "each is counted", counted).await.unwrap();
    }
    assert_eq!(resolver.metric("resolver_visits_dropped_total").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_the_same_whichever_way_its_connection_goes() {
    for status in ["301", "302", "307", "308"] {
        let resolver =
            Resolver::embedded().unwrap().args(["--redirect-status", status]).start().await.unwrap();
        let code = resolver.api.create(LONG_URL).await.unwrap().code;
        // The fast path answers only links that were requested before.
        resolver.api.follow(&code).await.unwrap();
        for method in ["GET", "HEAD"] {
            let plain = request(method, &code, "");
            // A request that offers another protocol is answered by hyper, which can handle the
            // offer.
            let offering = request(method, &code, "Connection: upgrade\r\nUpgrade: h2c\r\n");
            let last = request("GET", "robots.txt", "Connection: close\r\n");
            let answered = raw::exchange(resolver.addr(), [&*plain, &offering, &last].concat().as_bytes())
                .await
                .unwrap();
            let answers: Vec<&str> = answered.split("HTTP/1.1 ").collect();
            // In responses to HEAD hyper omits the length of the body.
            let length = if method == "HEAD" { "content-length: 0\r\n" } else { "" };
            assert_eq!(lines(&answers[1].replace(length, "")), lines(answers[2]), "{answered}");
            assert!(answers[1].starts_with(status) && answers[1].contains(LONG_URL), "{answered}");
            let [length, location] = ["content-length", "location"].map(|name| answers[1].find(name));
            assert!(length.is_some() && length < location, "the short way was not taken: {answered}");
            let date = answers[1].lines().find_map(|line| line.strip_prefix("date: ")).unwrap();
            assert!(date.ends_with(" GMT"), "{date}");
            let age = Timestamp::now() - DateTimeParser::new().parse_timestamp(date).unwrap();
            assert!((0..60).contains(&age.get_seconds()), "{date}");
        }
    }
}

/// Returns the lines of a response as a set, without two headers: the date, which may have changed
/// in between, and the request id, which the fast path omits.
fn lines(answer: &str) -> BTreeSet<&str> {
    let differs = |line: &&str| line.starts_with("date: ") || line.starts_with("x-request-id: ");
    answer.lines().filter(|line| !differs(line)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_together_are_answered_in_their_order_whatever_they_ask_for() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    resolver.api.follow(&code).await.unwrap();
    let link = request("GET", &code, "");
    let asked = [
        (&link, "302"),
        (&link, "302"),
        (&request("GET", "nosuch", ""), "404"),
        (&link, "302"),
        (&request("POST", &code, "Content-Length: 3\r\n").replace("\r\n\r\n", "\r\n\r\na=b"), "405"),
        (&link, "302"),
        (&request("GET", "rest/health", ""), "200"),
        (&request("GET", &code, "Connection: close\r\n"), "302"),
    ];
    let bytes = asked.map(|(request, _)| request.as_str()).concat();
    let answered = raw::exchange(resolver.addr(), bytes.as_bytes()).await.unwrap();
    let statuses: Vec<&str> = answered.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, asked.map(|(_, status)| status), "{answered}");
}

fn request(method: &str, path: &str, headers: &str) -> String {
    format!("{method} /{path} HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_stays_open_for_longer_than_a_header_may_take() {
    let resolver = start().await;
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    // One connection requests only a cached link, the other requested something else first.
    resolver.api.follow(&code).await.unwrap();
    let mut connection = Connection::open(resolver.addr()).await.unwrap();
    let mut other = Connection::open(resolver.addr()).await.unwrap();
    assert_eq!(other.get("/rest/health").await.unwrap().status, 200);
    assert_eq!(connection.get(&format!("/{code}")).await.unwrap().status, 302);
    // A fixed sleep is right here: the elapsed time itself is the subject.
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(connection.get(&format!("/{code}")).await.unwrap().status, 302);
    assert_eq!(other.get(&format!("/{code}")).await.unwrap().status, 302);
}

async fn start() -> Resolver {
    Resolver::embedded().unwrap().start().await.unwrap()
}

async fn send(resolver: &Resolver, method: Method, path: &str) -> Answer {
    Answer::to(resolver.api.http().request(method, format!("{}/{path}", resolver.api.url()))).await.unwrap()
}
