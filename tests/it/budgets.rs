//! Budgets of a client without a key, of a key and of the process: bodies, lists, bulk calls,
//! responses and QR codes. The file also covers the form of a request.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{Answer, Api, Cluster, Resolver, raw};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};

use crate::rest_calls::{Alone, SOON, call, expect_problem};

const MANY: &str = "/rest/v3/reservations/00000000000000000000000000000000/short-urls";
const BULK: &str = "/rest/v3/short-urls/bulk";

/// Returns the head of a call with a body of `length` bytes.
fn head(path: &str, key: Option<&str>, length: usize) -> String {
    let key = key.map_or(String::new(), |key| format!("X-Api-Key: {key}\r\n"));
    format!("POST {path} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: {length}\r\n\r\n")
}

/// Sends bytes and returns the status of the response. The connection stays open.
async fn status_of(stream: &mut TcpStream, bytes: &[u8]) -> u16 {
    stream.write_all(bytes).await.unwrap();
    let mut answer = [0; 12];
    timeout(SOON, stream.read_exact(&mut answer)).await.expect("the server responds in time").unwrap();
    raw::status(std::str::from_utf8(&answer).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_key_a_call_is_refused_before_its_body_is_read() {
    let alone = Alone::start(&[]).await;
    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    let address = alone.resolver.addr();
    for (key, expected) in [(None, 401), (Some("0123456789abcdef"), 401), (Some(reader.key()), 403)] {
        let calls = (0..30).map(|_| async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The rest of the body is never sent.
            status_of(&mut stream, format!("{}[", head(MANY, key, 4 << 20)).as_bytes()).await
        });
        assert_eq!(join_all(calls).await, [expected; 30]);
    }
    let mut asking = TcpStream::connect(address).await.unwrap();
    let expects = head(MANY, None, 4 << 20).replace("Host", "Expect: 100-continue\r\nHost");
    assert_eq!(status_of(&mut asking, expects.as_bytes()).await, 401, "and none is asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_holds_a_share_of_all_bodies_and_others_go_on() {
    let alone = Alone::start(&[]).await;
    let greedy = alone.with_new_key("greedy", &["--scopes", "reserve"]).await;
    let begun = format!("{}{}", head(MANY, Some(greedy.key()), 4 << 20), " ".repeat((4 << 20) - 1));
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(alone.resolver.addr()).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        held.push(stream);
    }
    // The calls that were not refused wait for the last byte of their body.
    let mut refused = Vec::new();
    for stream in &mut held {
        let mut answer = [0; 12];
        let read = timeout(Duration::from_secs(2), stream.read_exact(&mut answer)).await;
        if read.is_ok_and(|read| read.is_ok()) {
            refused.push(raw::status(std::str::from_utf8(&answer).unwrap()).unwrap());
        }
    }
    assert!(refused.len() >= 4 && refused.iter().all(|status| *status == 429), "{refused:?}");
    alone.api().create("https://example.com/page").await.unwrap();
}

fn item(number: usize, bytes: usize) -> Value {
    json!({ "longUrl": format!("https://example.com/{number}/{}", "x".repeat(bytes)) })
}

async fn bulk(api: &Api, items: impl Iterator<Item = Value>) -> Answer {
    let body: String = items.map(|item| format!("{item}\n")).collect();
    let request = api.http().post(format!("{}{BULK}", api.url())).header("X-Api-Key", api.key());
    Answer::to(request.timeout(SOON).body(body)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_comes_in_pieces_and_few_are_under_way_for_one_key() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let api = &resolver.api;
    let created = bulk(api, (0..3_000).map(|number| item(number, 7_000))).await;
    assert_eq!(created.body.matches("\"created\"").count(), 3_000);
    let path = "short-urls?itemsPerPage=-1&orderBy=dateCreated-ASC";
    let list = call(api, Method::GET, path, None).await.json().unwrap();
    let links = list["shortUrls"]["data"].as_array().unwrap();
    let mut numbers: Vec<&str> =
        links.iter().map(|link| link["longUrl"].as_str().unwrap().split('/').nth(3).unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 3_000);
    let pagination = &list["shortUrls"]["pagination"];
    assert_eq!(
        (&pagination["itemsInCurrentPage"], &pagination["totalItems"]),
        (&json!(3_000), &json!(3_000))
    );

    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(resolver.addr()).await.unwrap();
        let request = format!("GET /rest/v3/{path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {}\r\n\r\n", api.key());
        assert_eq!(status_of(&mut stream, request.as_bytes()).await, 200);
        unread.push(stream);
    }
    let fifth = call(api, Method::GET, path, None).await;
    expect_problem(&fifth, 429, "about:blank");
    assert_eq!(fifth.header("retry-after"), Some("1"));
    let short = call(api, Method::GET, "short-urls?itemsPerPage=10", None).await;
    assert_eq!((short.status, short.header("cache-control")), (200, Some("no-store")));
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_calls_of_one_key_leave_room_for_another() {
    let alone = Alone::start(&[]).await;
    let greedy = alone.with_new_key("greedy", &["--scopes", "create"]).await;
    let begun = format!("{}{{", head(BULK, Some(greedy.key()), 1_000));
    let mut calls = Vec::new();
    for _ in 0..12 {
        let mut stream = TcpStream::connect(alone.resolver.addr()).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        calls.push(stream);
    }
    // Four of the calls, those that arrived first, wait for their bodies. The time limit is shorter
    // than the time that a body may pause.
    let answers = calls.iter_mut().map(|call| timeout(Duration::from_secs(5), status_of(call, b"")));
    let refused: Vec<u16> = join_all(answers).await.into_iter().flatten().collect();
    assert_eq!(refused, [429; 8]);
    let other = bulk(alone.api(), (0..3).map(|number| item(number, 1))).await;
    assert_eq!(other.body.matches("\"created\"").count(), 3, "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_is_given_up() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let mut stream = TcpStream::connect(resolver.addr()).await.unwrap();
    let begun = format!("{}{}\n", head(BULK, Some(resolver.api.key()), 1_000), item(1, 1));
    stream.write_all(begun.as_bytes()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let trickling = tokio::spawn(async move {
        while to.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(500)).await;
        }
    });
    let mut told = String::new();
    while !told.contains("expected the rest of the body in time") {
        let mut piece = [0; 1_024];
        let count = timeout(SOON, from.read(&mut piece)).await.expect("more arrives in time").unwrap();
        assert!(count > 0, "closed after {told}");
        told.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(told.contains("\"created\""), "what came before is kept: {told}");
    trickling.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitors_query_goes_along_only_within_bounds() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let own: String = (0..200).map(|number| format!("&p{number}=1")).collect();
    let long_url = format!("https://example.com/?a=1{own}");
    let wish = json!({ "longUrl": long_url, "forwardQuery": true });
    let code = resolver.api.create_with(&wish).await.unwrap().code;
    let query = |count: usize| (0..count).map(|_| "b&").collect::<String>();
    let (status, location) = resolver.api.follow(&format!("{code}?{}", query(900))).await.unwrap();
    assert!(status == 302 && location.unwrap().matches("&b").count() == 900);
    for too_much in [query(1_001), query(7_000), format!("b={}", "x".repeat(8_000))] {
        let followed = resolver.api.follow(&format!("{code}?{too_much}")).await.unwrap();
        assert_eq!(followed, (302, Some(long_url.clone())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once_and_answers_of_the_api_are_not_to_be_stored() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    for (version, hosts, expected) in [
        ("1.1", "", 400),
        ("1.1", "Host: a.test\r\nHost: a.test\r\n", 400),
        ("1.1", "Host: a.test\r\nHost: b.test\r\n", 400),
        ("1.1", "Host: a.test\r\n", 204),
        ("1.0", "", 204),
        ("1.0", "Host: a.test\r\nHost: b.test\r\n", 400),
    ] {
        let request = format!("GET /favicon.ico HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        let answer = raw::exchange(resolver.addr(), request.as_bytes()).await.unwrap();
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(status, expected, "{version} {hosts:?}: {answer}");
    }
    for path in ["rest/v3/short-urls", "rest/v3/nothing", "rest/health"] {
        let answer = resolver.api.get(path).await.unwrap();
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_a_budget_of_pictures() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let code = resolver.api.create("https://example.com/page").await.unwrap().code;
    let mut refused = false;
    for _ in 0..600 {
        let picture = resolver.api.get(&format!("{code}/qr-code?size=50")).await.unwrap();
        refused = picture.status == 429 && picture.header("retry-after").is_some();
        if refused {
            assert!(picture.body.contains("too many requests from here"), "{picture:?}");
            break;
        }
        assert_eq!(picture.status, 200);
    }
    assert!(refused);
    assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302, "redirects go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_thousands_of_wrong_fields_is_told_of_a_few() {
    let alone = Alone::start(&[]).await;
    let mut body = json!({ "longUrl": "https://example.com" });
    for number in 0..2_000 {
        body[format!("field{number}")] = json!(1);
    }
    let refused = call(alone.api(), Method::POST, "short-urls", Some(body)).await;
    expect_problem(&refused, 400, "invalid-data");
    let told = refused.json().unwrap()["invalidElements"].as_array().unwrap().clone();
    assert_eq!((told.len(), told.last()), (17, Some(&json!("(the others)"))));
}

/// Lists and edits wait for a locked table. Lists have their own connection pool, and one key may
/// use half of it and half of the general pool. API key lookups have a third pool.
#[tokio::test(flavor = "multi_thread")]
async fn lists_that_take_long_keep_neither_other_keys_nor_their_lists_waiting() {
    let cluster = Cluster::builder().start().await.unwrap();
    let resolver = cluster.resolver("lists").unwrap().start().await.unwrap();
    let api = &resolver.api;
    let mut sql = cluster.postgres.client().await.unwrap();
    // Each domain's slugs are looked for on nodes of Citus.
    sql.execute("INSERT INTO domain (id, authority) VALUES (1, 'one.example')", &[]).await.unwrap();
    let lock = sql.transaction().await.unwrap();
    lock.execute("LOCK TABLE slug, tag IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let other = cluster.postgres.client().await.unwrap();
    let waiting = async |what: &str| {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ $1";
        other.query_one(sql, &[&what]).await.unwrap().get::<_, i64>(0)
    };
    let lists = (0..12).map(|_| call(api, Method::GET, "domains", None));
    // As many edits as the general pool has connections.
    let edits = (0..8).map(|number| {
        let names = json!({ "oldName": format!("old{number}"), "newName": format!("new{number}") });
        call(api, Method::PUT, "tags", Some(names))
    });
    let meanwhile = async {
        // Longer than the second for which a key lookup is cached.
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!((waiting("FROM slug").await, waiting("FROM tag").await), (2, 4));
        let known = timeout(Duration::from_millis(1_000), call(api, Method::GET, "mercure-info", None)).await;
        assert_eq!(known.expect("the key is looked up while the others wait").status, 200);
        lock.rollback().await.unwrap();
    };
    let (listed, _, ()) = tokio::join!(join_all(lists), join_all(edits), meanwhile);
    let done = listed.iter().filter(|answer| answer.status == 200).count();
    assert!(done >= 2, "the first ones were given their turn: {done} of {}", listed.len());
}

/// Unread long responses count towards the budget of their key.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_bounded_for_a_key() {
    let alone = Alone::start(&[]).await;
    let tags: Vec<String> = (0..100).map(|number| format!("{number:03}{}", "t".repeat(250))).collect();
    for part in 0..120 {
        let tags: Vec<String> = tags.iter().map(|tag| format!("{part:03}{}", &tag[..240])).collect();
        let body = json!({ "longUrl": "https://example.com", "tags": tags });
        assert_eq!(call(alone.api(), Method::POST, "short-urls", Some(body)).await.status, 200);
    }
    let (key, mut unread) = (alone.api().key(), Vec::new());
    let request = format!("GET /rest/v3/tags HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n");
    for _ in 0..100 {
        // With a small receive buffer on the client's side the kernel holds little of a response.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(alone.resolver.addr()).await.unwrap();
        let status = status_of(&mut stream, request.as_bytes()).await;
        unread.push(stream);
        if status == 429 {
            return;
        }
        assert_eq!(status, 200);
    }
    panic!("a hundred answers of three megabytes each were kept for one key");
}

/// Reservations hold connections that writes need, so the calls of one key are serialized.
#[tokio::test(flavor = "multi_thread")]
async fn reservations_of_one_key_keep_no_other_key_waiting() {
    let cluster = Cluster::builder().start().await.unwrap();
    let resolver = cluster.resolver("reservations").unwrap().start().await.unwrap();
    let api = &resolver.api;
    let mut sql = cluster.postgres.client().await.unwrap();
    let lock = sql.transaction().await.unwrap();
    lock.execute("LOCK TABLE reservation IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let other = cluster.postgres.client().await.unwrap();
    let calls = (0..12).map(|_| call(api, Method::GET, "reservations", None));
    let meanwhile = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
             AND query ~ 'FROM reservation'";
        let waiting = async || other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0);
        let two = harness::wait::until(SOON, "two wait", async || waiting().await == 2);
        two.await.unwrap();
        let names = json!({ "oldName": "old", "newName": "new" });
        let renamed = timeout(Duration::from_secs(3), call(api, Method::PUT, "tags", Some(names))).await;
        assert_eq!(renamed.expect("a write finds a connection").status, 404);
        assert_eq!(waiting().await, 2, "and no third one has come");
        lock.rollback().await.unwrap();
    };
    let (listed, ()) = tokio::join!(join_all(calls), meanwhile);
    assert!(listed.iter().all(|answer| matches!(answer.status, 200 | 429)), "{listed:?}");
    assert!(listed.iter().filter(|answer| answer.status == 200).count() >= 2);
}

/// The client sends `Expect: 100-continue` and then a slow body, at an acceptable rate.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_was_asked_for_may_take_as_long_as_any_other() {
    let alone = Alone::start(&[]).await;
    let key = alone.with_new_key("filler", &["--scopes", "reserve"]).await;
    let mut stream = TcpStream::connect(alone.resolver.addr()).await.unwrap();
    let (pieces, piece) = (26, " ".repeat(64 << 10));
    let head = head(MANY, Some(key.key()), pieces * piece.len());
    let expects = head.replace("Host", "Expect: 100-continue\r\nHost");
    assert_eq!(status_of(&mut stream, expects.as_bytes()).await, 100);
    let mut rest = [0; 13];
    stream.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b" Continue\r\n\r\n");
    for _ in 0..pieces {
        stream.write_all(piece.as_bytes()).await.expect("the connection is not closed");
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(status_of(&mut stream, b"").await, 404, "there is no such reservation");
}
