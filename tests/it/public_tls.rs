//! The public listener with TLS: HTTP/2 and HTTP/1.1 answer alike, certificates change without a
//! restart, and a client that misuses a connection keeps no other one out.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use harness::{Authority, Resolver, Scratch, SecretFolder, net, wait};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{
    Request, StatusCode, Version,
    body::{Bytes, Frame},
    client::conn::http2::SendRequest,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tls::{ClientTls, TlsFiles, Verify};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const SOON: Duration = Duration::from_secs(30);
/// Requests that are begun and taken back at once.
const TAKEN_BACK: usize = 5_000;

struct Served {
    resolver: Resolver,
    files: SecretFolder,
    scratch: Scratch,
}

impl Served {
    async fn start(authority: &Authority) -> Self {
        let scratch = Scratch::new().unwrap();
        let pair = authority.issue(&[&net::address().to_string()]).unwrap();
        let files = SecretFolder::create(scratch.path().join("public"), authority.pem(), &pair).unwrap();
        let builder = Resolver::embedded().unwrap();
        let url = format!("https://{}", builder.listen());
        let args = ["--tls", &files.entries(&["cert", "key"])];
        let resolver = builder.public_url(&url).args(args).start().await.unwrap();
        Self { resolver, files, scratch }
    }

    async fn http2(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        connect(&client(self.files.file("ca.crt").into()), self.resolver.addr()).await
    }

    fn request(&self, path: &str) -> Request<Full<Bytes>> {
        let uri = format!("https://{}{path}", self.resolver.addr());
        Request::get(uri).body(Full::default()).unwrap()
    }
}

/// Returns a client that trusts the authority in a file, and follows its changes.
fn client(ca: PathBuf) -> ClientTls {
    ClientTls::new(TlsFiles { ca: Some(ca), ..TlsFiles::default() }, Verify::Full).unwrap()
}

/// Opens a connection over HTTP/2.
async fn connect(tls: &ClientTls, to: SocketAddr) -> io::Result<SendRequest<Full<Bytes>>> {
    let stream = tls.connect(&to.ip().to_string(), TcpStream::connect(to).await?).await?;
    let opened = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = opened.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_creates_and_follows_links_many_at_a_time_and_plaintext_is_not_answered() {
    let served = Served::start(&Authority::new("public").unwrap()).await;
    let mut http2 = served.http2().await.unwrap();
    let create = Request::post(format!("https://{}/rest/v3/short-urls", served.resolver.addr()));
    let create = create.header("x-api-key", served.resolver.api.key());
    let body = json!({ "longUrl": "https://example.com/" }).to_string();
    let created = http2.send_request(create.body(Full::from(body)).unwrap()).await.unwrap();
    assert_eq!((created.status(), created.version()), (StatusCode::OK, Version::HTTP_2));
    let link: Value =
        serde_json::from_slice(&created.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let code = link["shortCode"].as_str().unwrap();
    assert!(link["shortUrl"].as_str().unwrap().starts_with("https://"), "{link}");

    // More than a connection may have at a time: the others wait for their turn.
    let path = format!("/{code}");
    let follow = |_| {
        let (mut http2, request) = (http2.clone(), served.request(&path));
        tokio::spawn(async move { http2.send_request(request).await.unwrap() })
    };
    let answers: Vec<_> = (0..100).map(follow).collect();
    for answer in answers {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), StatusCode::FOUND);
        assert_eq!(answer.headers()["location"], "https://example.com/");
    }
    let contradicted = served.request(&path).into_parts().0.uri;
    let contradicted = Request::get(contradicted).header("host", "other.example");
    let answer = http2.send_request(contradicted.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);

    let mut plain = TcpStream::connect(served.resolver.addr()).await.unwrap();
    plain.write_all(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n").as_bytes()).await.unwrap();
    let mut answered = Vec::new();
    let _ = plain.read_to_end(&mut answered).await;
    assert!(!String::from_utf8_lossy(&answered).contains("HTTP/1.1"), "{answered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_of_another_authority_is_served_without_a_restart() {
    let first = Authority::new("first").unwrap();
    let served = Served::start(&first).await;
    let mut open = served.http2().await.unwrap();
    let unchanged = served.scratch.path().join("first.pem");
    std::fs::write(&unchanged, first.pem()).unwrap();
    let old = client(unchanged);
    connect(&old, served.resolver.addr()).await.unwrap();
    let next = Authority::new("second").unwrap();
    let pair = next.issue(&[&net::address().to_string()]).unwrap();
    served.files.replace(next.pem(), &pair).unwrap();
    wait::until(SOON, "the new certificate is served", async || served.http2().await.is_ok()).await.unwrap();
    assert!(connect(&old, served.resolver.addr()).await.is_err());
    // A connection outlives the certificate that it was opened with.
    let robots = open.send_request(served.request("/robots.txt")).await.unwrap();
    assert_eq!(robots.status(), StatusCode::OK);
    let page = served.resolver.metrics().await.unwrap();
    assert!(page.contains("resolver_certificate_expiry_timestamp_seconds{certificate=\"public\"}"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_its_requests_back_at_once_keeps_no_other_out() {
    let served = Served::start(&Authority::new("public").unwrap()).await;
    let mut other = served.http2().await.unwrap();
    let flooding = served.http2().await.unwrap();
    for number in 0..TAKEN_BACK {
        let mut flooding = flooding.clone();
        if flooding.is_closed() {
            break;
        }
        let mut request = Box::pin(flooding.send_request(served.request(&format!("/a{number}"))));
        // Polled once, which sends it; its drop resets the stream.
        let _ = futures_util::poll!(&mut request);
    }
    let answer = other.send_request(served.request("/zzzzzz")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

/// A bulk call waits for its batches while its body arrives, in frames of one line each.
#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_call_whose_lines_are_frames_of_their_own_is_answered_beside_others() {
    const LINES: usize = 6_000;
    let served = Served::start(&Authority::new("public").unwrap()).await;
    let tls = client(served.files.file("ca.crt").into());
    let address = served.resolver.addr();
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = tls.connect(&address.ip().to_string(), stream).await.unwrap();
    let opened = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (http2, connection) = opened.unwrap();
    tokio::spawn(connection);
    let call = async |mut http2: SendRequest<_>, name: &str| {
        let line = |number| format!("{{\"longUrl\": \"https://example.com/{name}/{number}\"}}\n");
        let lines: Vec<_> = (0..LINES).map(line).collect();
        let frames =
            futures_util::stream::iter(lines).map(|line| Ok::<_, io::Error>(Frame::data(Bytes::from(line))));
        let request = Request::post(format!("https://{address}/rest/v3/short-urls/bulk"))
            .header("x-api-key", served.resolver.api.key())
            .body(StreamBody::new(frames))
            .unwrap();
        let answer = http2.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let answer = answer.into_body().collect().await.expect("the connection lasts").to_bytes();
        String::from_utf8(answer.to_vec())
            .unwrap()
            .lines()
            .filter(|line| line.contains("\"created\""))
            .count()
    };
    let calls = ["a", "b", "c"].map(|name| call(http2.clone(), name));
    assert_eq!(futures_util::future::join_all(calls).await, [LINES; 3]);
}
