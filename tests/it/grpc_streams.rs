//! Streams of creates over gRPC: every request is answered, or the stream's status says how many
//! are.

mod clients;

use std::{convert::Infallible, net::SocketAddr, pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt as _, future::join_all, stream};
use harness::{Resolver, net::free_addr};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use proto::links::v1::{CreateLinkRequest, CreateLinkResult, create_link_result::Result as Created};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

/// Requests of a stream.
const REQUESTS: usize = 500;
/// Streams of one connection whose answers nobody reads at first.
const UNREAD: usize = 16;
const WITHIN: Duration = Duration::from_secs(60);

/// The body of a call: each message is a DATA frame of its own.
type Requests = StreamBody<Frames>;
type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

struct Served {
    resolver: Resolver,
    address: SocketAddr,
}

impl Served {
    async fn start() -> Self {
        let address = free_addr().unwrap();
        let builder = Resolver::embedded().unwrap().args(["--grpc-listen", &address.to_string()]);
        Self { resolver: builder.start().await.unwrap(), address }
    }

    /// Opens a connection whose answers wait in the server after `window` bytes.
    async fn connect(&self, window: u32) -> SendRequest<Requests> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Begins a stream of creates.
    async fn create(
        &self,
        connection: &mut SendRequest<Requests>,
        requests: impl Stream<Item = CreateLinkRequest> + Send + 'static,
    ) -> Response<Incoming> {
        let requests: Frames = Box::pin(requests.map(|request| framed(&request)));
        let request = Request::post(format!("http://{}/shortmint.links.v1.Links/CreateLinks", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-api-key", self.resolver.api.key())
            .body(StreamBody::new(requests))
            .unwrap();
        connection.ready().await.unwrap();
        let answer = timeout(WITHIN, connection.send_request(request)).await;
        answer.expect("the head of the answer arrives in time").unwrap()
    }

    async fn stored(&self) -> u64 {
        let page = crate::rest_calls::get(&self.resolver.api, "short-urls?itemsPerPage=1").await;
        page["shortUrls"]["pagination"]["totalItems"].as_u64().unwrap()
    }
}

fn framed(request: &CreateLinkRequest) -> Result<Frame<Bytes>, Infallible> {
    let mut message = vec![0];
    message.extend(u32::try_from(request.encoded_len()).unwrap().to_be_bytes());
    message.extend(request.encode_to_vec());
    Ok(Frame::data(message.into()))
}

fn numbered(number: usize) -> CreateLinkRequest {
    CreateLinkRequest { long_url: format!("https://example.com/{number}"), ..CreateLinkRequest::default() }
}

/// The answers of a stream, and its status.
struct Ended {
    results: Vec<CreateLinkResult>,
    status: String,
    answered: Option<String>,
}

async fn read(answer: Response<Incoming>) -> Ended {
    let collected = timeout(WITHIN, answer.into_body().collect()).await;
    let collected = collected.expect("the stream ends in time").expect("the connection lasts");
    let trailers = collected.trailers().expect("a status").clone();
    let told = |name| trailers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let (mut bytes, mut results) = (collected.to_bytes(), Vec::new());
    while bytes.len() >= 5 {
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        results.push(CreateLinkResult::decode(bytes.slice(5..5 + length)).unwrap());
        bytes = bytes.slice(5 + length..);
    }
    Ended { results, status: told("grpc-status").unwrap(), answered: told("answered") }
}

fn are_links_in_order(results: &[CreateLinkResult]) -> bool {
    results.iter().enumerate().all(|(number, result)| match &result.result {
        Some(Created::Link(link)) => link.long_url == format!("https://example.com/{number}"),
        _ => false,
    })
}

/// Requests that arrive faster than they are answered wait in the connection's windows, however
/// small their frames are and however many streams wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_answered_beside_others_of_its_connection_whose_answers_nobody_reads() {
    let served = Served::start().await;
    let mut connection = served.connect(1_024).await;
    let requests = || stream::iter((0..REQUESTS).map(numbered));
    let mut unread = Vec::new();
    for _ in 0..UNREAD {
        unread.push(served.create(&mut connection, requests()).await);
    }
    let answer = served.create(&mut connection, requests()).await;
    let ended = read(answer).await;
    assert_eq!((ended.results.len(), ended.status.as_str()), (REQUESTS, "0"));
    assert!(are_links_in_order(&ended.results));
    let ended: Vec<Ended> = join_all(unread.into_iter().map(read)).await;
    for ended in ended {
        assert_eq!((ended.results.len(), ended.status.as_str()), (REQUESTS, "0"));
        assert!(are_links_in_order(&ended.results));
    }
    assert_eq!(served.stored().await, (REQUESTS * (UNREAD + 1)) as u64);
}

/// A client that knows how many requests were answered sends the rest again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_early_says_how_many_requests_it_has_answered() {
    let served = Served::start().await;
    let mut connection = served.connect(1 << 20).await;
    let long = format!("https://example.com/{}", "x".repeat(70_000));
    let long = CreateLinkRequest { long_url: long, ..CreateLinkRequest::default() };
    let requests = (0..100).map(numbered).chain([long]).chain((101..200).map(numbered));
    let answer = served.create(&mut connection, stream::iter(requests).chain(stream::pending())).await;
    let ended = read(answer).await;
    let told = (ended.results.len(), ended.status.as_str(), ended.answered.as_deref());
    assert_eq!(told, (100, "11", Some("100")), "OUT_OF_RANGE");
    assert!(are_links_in_order(&ended.results));
    assert_eq!(served.stored().await, 100);
}

/// A server that is stopped answers what it has read, and takes nothing more from the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_servers_stop_ends_is_told_what_is_stored() {
    let mut served = Served::start().await;
    let mut connection = served.connect(1 << 20).await;
    let requests = stream::iter(0..).then(async |number| {
        sleep(Duration::from_micros(200)).await;
        numbered(number)
    });
    let answer = served.create(&mut connection, requests).await;
    let (mut body, mut pieces, mut trailers) = (answer.into_body(), 0, None);
    while let Some(frame) = timeout(WITHIN, body.frame()).await.expect("the stream ends in time") {
        let frame = frame.expect("the connection lasts until the status");
        pieces += 1;
        if pieces == 10 {
            served.resolver.process.terminate().unwrap();
        }
        trailers = frame.into_trailers().ok().or(trailers);
    }
    let trailers = trailers.expect("a status");
    assert_eq!(trailers["grpc-status"], "14", "UNAVAILABLE: {trailers:?}");
    let told: u64 = trailers["answered"].to_str().unwrap().parse().unwrap();
    drop(connection);
    served.resolver.process.wait_exit(WITHIN).await.unwrap();
    served.resolver.restart().await.unwrap();
    assert_eq!(served.stored().await, told);
}
