//! The fast path answers every byte stream as hyper does.
//!
//! Two resolvers with the same links, one of them with `--tune fast-path=off`, receive the same
//! generated streams: valid, odd and hostile requests, pipelined and cut anywhere. Statuses,
//! headers and bodies have to be equal, with three exceptions: the date; the request id, which the
//! fast path omits; and the length of a redirect's empty body, which hyper omits in responses to
//! HEAD.
//!
//! `SHORTMINT_FUZZ_STREAMS` and `SHORTMINT_FUZZ_SEED` set the number of streams and the seed.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use cli::code_key_file;
use futures_util::{StreamExt, stream};
use harness::{Resolver, Scratch};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
    time::{sleep, timeout},
};

use crate::rng::Rng;

/// The default number of streams in a run.
const STREAMS: u64 = 4_000;
/// The number of concurrent connections to each resolver.
const AT_ONCE: usize = 48;
/// How fast a stream is sent and how long its responses may take.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pace {
    /// The pause after each piece.
    pause: Duration,
    /// The read timeout. A response that has not arrived by then counts as missing.
    patience: Duration,
}

/// The paces of the attempts. A difference has to appear at the slow pace too before it counts.
///
/// hyper parses a head that began in an earlier read only once its end has arrived (hyper #3764).
/// So whether it refuses a malformed head without an end depends on whether two pieces arrive in
/// one read, with the fast path or without it. After the short pause a busy machine may read them
/// together on one side only.
const PACES: [Pace; 2] = [
    Pace { pause: Duration::from_millis(1), patience: Duration::from_millis(300) },
    Pace { pause: Duration::from_millis(250), patience: Duration::from_secs(3) },
];
/// The size of hyper's first read in bytes.
const FIRST_READ: usize = 8 * 1024;
/// The number of links with minted codes, the only ones that the fast path caches.
const KNOWN: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_stream_of_bytes_is_answered_as_hyper_answers_it() {
    let number = |name: &str, default| env::var(name).map_or(default, |text| text.parse().unwrap());
    let (streams, seed) = (number("SHORTMINT_FUZZ_STREAMS", STREAMS), number("SHORTMINT_FUZZ_SEED", 1));
    // With the same code key, the first numbers have the same codes in both resolvers.
    let scratch = Scratch::new().unwrap();
    let key = scratch.path().join("code-key");
    code_key_file::create(&key).unwrap();
    let ((fast, codes), (slow, others)) = (start("on", &key).await, start("off", &key).await);
    assert_eq!(codes, others);
    let (fast, slow, codes) = (fast.addr(), slow.addr(), &codes);
    let shown = Arc::new(std::sync::Mutex::new(Shown::default()));
    stream::iter(0..streams)
        .for_each_concurrent(AT_ONCE, |number| {
            let shown = Arc::clone(&shown);
            async move {
                let pieces = generate(&mut Rng(seed.wrapping_mul(1_000_003).wrapping_add(number)), codes);
                for pace in PACES {
                    let (one, other) = tokio::join!(
                        converse(fast, number, &pieces, pace),
                        converse(slow, number, &pieces, pace)
                    );
                    if one == other {
                        shown.lock().unwrap().note(&one);
                        return;
                    }
                    if pace == PACES[1] {
                        let sent = String::from_utf8_lossy(&pieces.concat()).into_owned();
                        panic!("stream {number} of seed {seed}: {sent:?} in {} pieces\nfast path: {one:#?}\nhyper: {other:#?}", pieces.len());
                    }
                }
            }
        })
        .await;
    let shown = shown.lock().unwrap();
    println!("seed {seed}: {streams} streams without a difference, {shown:?}");
    let Shown { redirects, other, .. } = *shown;
    assert!(redirects > streams / 2 && other > streams / 20, "the streams are of both kinds: {shown:?}");
}

/// Counts of the responses in a run.
#[derive(Debug, Default)]
struct Shown {
    redirects: u64,
    other: u64,
    silent: u64,
}

impl Shown {
    fn note(&mut self, answers: &[Vec<String>]) {
        let redirects = answers.iter().filter(|answer| answer[0].contains(" 302 ")).count() as u64;
        self.redirects += redirects;
        self.other += answers.len() as u64 - redirects;
        self.silent += u64::from(answers.is_empty());
    }
}

async fn start(fast_path: &str, key: &Path) -> (Resolver, Vec<String>) {
    let limits = ["--limit", "connections-per-client=0,unknown-codes-per-minute=0,threads=1"];
    let builder = Resolver::embedded().unwrap().public_url("http://s.test").code_key_file(key).args(limits);
    let resolver = builder.args(["--tune", &format!("fast-path={fast_path}")]).start().await.unwrap();
    let mut codes = Vec::new();
    for number in 0..KNOWN {
        let forwards = number == 0;
        let link = json!({ "longUrl": format!("https://to.example/{number}?x=1"), "forwardQuery": forwards });
        codes.push(resolver.api.create_with(&link).await.unwrap().code);
    }
    let blocked = json!({ "longUrl": "https://to.example/off", "customSlug": "disabled", "enabled": false });
    resolver.api.create_with(&blocked).await.unwrap();
    let secret = json!({ "longUrl": "https://to.example/in", "customSlug": "secret", "password": "open" });
    resolver.api.create_with(&secret).await.unwrap();
    // The fast path answers only links that its thread has answered before.
    for code in codes.iter().chain(&codes) {
        resolver.api.follow(code).await.unwrap();
    }
    (resolver, codes)
}

/// Generates a stream of requests, cut into pieces. The last request asks to close the connection.
fn generate(rng: &mut Rng, codes: &[String]) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..=rng.below(4) {
        request(rng, codes, &mut bytes);
    }
    if rng.one_in(8) {
        for _ in 0..=rng.below(3) {
            spoil(rng, &mut bytes);
        }
    }
    if rng.one_in(12) {
        // hyper counts its first read from where it takes over. So with more bytes, its answer to a
        // malformed head without an end depends on how many requests the fast path has answered.
        bytes.truncate(rng.below(bytes.len().min(FIRST_READ)));
    } else {
        let last = format!("GET /{} HTTP/1.1\r\nHost: s.test\r\nConnection: close\r\n\r\n", codes[0]);
        bytes.extend(last.bytes());
    }
    // hyper drops the part of an unread body that has arrived, and closes the connection if more
    // follows. So what becomes of the next request depends on how the bytes arrive, through hyper
    // alone too.
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let has_body = ["content-length", "transfer-encoding"].iter().any(|name| text.contains(name));
    let most = if has_body { 1 } else { 4 };
    let mut cuts: Vec<usize> = (0..rng.below(most)).map(|_| rng.below(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
}

fn request(rng: &mut Rng, codes: &[String], bytes: &mut Vec<u8>) {
    let odd = rng.one_in(5);
    let method = if odd {
        rng.pick(&["GET", "HEAD", "POST", "get", "OPTIONS", "PUT", "BREW", "GET\t", ""])
    } else {
        rng.pick(&["GET", "GET", "GET", "HEAD"])
    };
    let mut path = match rng.below(if odd { 12 } else { 5 }) {
        0..=3 => format!("/{}", codes[rng.below(codes.len())]),
        4 => format!("/{}", rng.pick(&["unknown", "disabled", "secret", "a/b", "A", ""])),
        5 => "/ünïcode".to_owned(),
        6 => format!("http://s.test/{}", codes[1]),
        7 => "*".to_owned(),
        8 => format!("//{}", codes[1]),
        9 => format!("/{}%00", codes[1]),
        // Near 16 KiB the response depends on how the bytes arrive, through hyper alone too.
        10 if rng.one_in(4) => format!("/{}", "x".repeat(40_000)),
        10 => format!("/{}", "x".repeat(rng.below(12_000))),
        _ => format!("/{} b", codes[1]),
    };
    if rng.one_in(4) {
        path += rng.pick(&["?", "?q=1", "?a=b&c=%20", "?\"", "?<x>", "#part", "?a#b", "?x=1?y"]);
    }
    let version = if odd {
        rng.pick(&["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", ""])
    } else {
        "HTTP/1.1"
    };
    let end = if odd && rng.one_in(4) { "\n" } else { "\r\n" };
    bytes.extend(format!("{method} {path} {version}{end}").bytes());
    if !(odd && rng.one_in(6)) {
        let host = rng.pick(&["s.test", "s.test", "S.TEST:80", "other.example"]);
        bytes.extend(format!("{}: {host}{end}", rng.pick(&["Host", "host", "HOST"])).bytes());
    }
    for _ in 0..rng.below(4) {
        let is_strange = odd || rng.one_in(12);
        header(rng, is_strange, bytes);
        bytes.extend(end.bytes());
    }
    if odd && rng.one_in(10) {
        for number in 0..rng.below(120) {
            bytes.extend(format!("X-{number}: {number}\r\n").bytes());
        }
    }
    bytes.extend(end.bytes());
}

fn header(rng: &mut Rng, is_strange: bool, bytes: &mut Vec<u8>) {
    let plain = [
        "User-Agent: curl/8.0",
        "Accept: */*",
        "Accept-Language: de, en;q=0.5",
        "Referer: https://from.example/",
        "Cookie: a=b; c=d",
        "Connection: keep-alive",
        "X-Forwarded-For: 192.0.2.7",
        "Forwarded: for=192.0.2.7",
        "Cache-Control: no-cache",
    ];
    let strange = [
        "Sec-Purpose: prefetch",
        "Connection: close",
        "Connection: Upgrade, keep-alive",
        "Upgrade: h2c",
        "Content-Length: 0",
        "Content-Length: 5",
        "Content-Length: +1",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Expect: 100-continue",
        "Host: second.test",
        "Host:",
        "User-Agent: one\r\nUser-Agent: two",
        "Name : space",
        " folded",
        "no colon",
        ": no name",
        "X-Bytes: \u{fc}\u{1}",
        "Range: bytes=0-1",
        "If-None-Match: *",
    ];
    bytes.extend(if is_strange { rng.pick(&strange) } else { rng.pick(&plain) }.bytes());
}

/// Changes, removes, inserts or duplicates bytes at a random position.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len());
    match rng.below(4) {
        0 => bytes[at] = rng.next().to_le_bytes()[0],
        1 => drop(bytes.remove(at)),
        2 => bytes.insert(at, rng.next().to_le_bytes()[0]),
        _ => {
            let end = (at + rng.below(40)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
    }
}

/// Sends the pieces over a new connection. Returns the responses up to its end or the timeout.
async fn converse(to: SocketAddr, number: u64, pieces: &[Vec<u8>], pace: Pace) -> Vec<Vec<String>> {
    let socket = TcpSocket::new_v4().unwrap();
    // The ports of a single address would run out: the side that closes first keeps a port for a
    // minute.
    let [.., a, b] = (number % 60_000).to_be_bytes();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 1, a, b.clamp(1, 254)), 0))).unwrap();
    let stream = socket.connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut from, mut to) = stream.into_split();
    let sending = async {
        for piece in pieces {
            if to.write_all(piece).await.is_err() {
                break;
            }
            sleep(pace.pause).await;
        }
        // Keeps the connection open until the responses have arrived.
        std::future::pending::<()>().await;
    };
    let mut answered = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(Ok(count @ 1..)) = timeout(pace.patience, from.read(&mut buffer)).await {
            answered.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::select! { () = sending => {}, () = reading => {} }
    answers(&String::from_utf8_lossy(&answered))
}

/// Splits the bytes into responses, each as lines: the status, the headers in the order of their
/// names, the body.
fn answers(text: &str) -> Vec<Vec<String>> {
    let parts: Vec<&str> = text.split("HTTP/1.").collect();
    let answer = |part: &&str| {
        let (head, body) = part.split_once("\r\n\r\n").unwrap_or((part, "(cut)"));
        let mut lines = head.split("\r\n").map(str::to_ascii_lowercase);
        let status = format!("http/1.{}", lines.next().unwrap_or_default());
        let is_redirect = status.contains(" 302 ");
        let is_told = |line: &String| {
            let is_empty_body = is_redirect && line == "content-length: 0";
            !is_empty_body && !line.starts_with("date:") && !line.starts_with("x-request-id:")
        };
        let mut headers: Vec<String> = lines.filter(is_told).collect();
        headers.sort_unstable();
        [vec![status], headers, vec![body.to_owned()]].concat()
    };
    parts.iter().skip(1).map(answer).collect()
}
