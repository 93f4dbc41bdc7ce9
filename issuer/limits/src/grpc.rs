//! Connections and calls of a gRPC listener.
//!
//! 1. A connection arrives after its handshake, if it has TLS. One whose client does not show in
//!    time after it that it speaks HTTP/2 is closed.
//! 2. A call counts as a request in progress of its connection until the last byte of its answer
//!    was sent.
//! 3. Health checks and reflection need no API key. `Watch` and reflection are streams, which may
//!    last as long as their connection. So calls in progress are limited for each client and in
//!    total. `Check` has a separate limit: it is answered at once, and a probe must find room.

use std::{
    future::ready,
    io,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Bytes};
use tls::{Identity, ServerStream, ServerTls};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::either::Either;
use tonic::{Status, body::Body, transport::server::Connected};
use tower::{Layer, Service};

use crate::{
    Account, Connection, Connections, Held, OpenConnection, Pool, Seldom, Serving, TimedStream,
    budgets::{CHECKS, QUESTIONS},
    connections::CLOSING,
};

/// Length in bytes of the first bytes of a client of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: usize = 24;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
const CHECK: &str = "/grpc.health.v1.Health/Check";
/// The beginnings of paths that need no API key.
const WITHOUT_KEY: [&str; 2] = ["/grpc.health.", "/grpc.reflection."];

/// The socket of a connection, with or without TLS.
type GrpcSocket = Either<TcpStream, Box<ServerStream<TcpStream>>>;
/// A connection of a gRPC listener.
pub type GrpcStream = TimedStream<GrpcSocket>;

/// Converts a listener into a stream of its connections, after their handshakes if there is `tls`.
/// Handshakes do not wait for each other.
pub fn incoming(
    listener: TcpListener,
    connections: Connections,
    tls: Option<ServerTls>,
) -> impl Stream<Item = io::Result<GrpcStream>> {
    let connections = Arc::new(connections.with_handshakes(tls.is_some()));
    // As many as there can be connections, so that the listener is always asked for the next.
    let most = connections.limits.connections.saturating_add(CLOSING + 1);
    let timeouts = connections.enforce_timeouts();
    let accepted = stream::unfold((listener, connections, timeouts), async |state| {
        let (listener, connections, _) = &state;
        Some((connections.accept(listener).await, state))
    });
    let failed = Arc::new(Seldom::default());
    let ready_to_serve = accepted.map(move |(socket, open)| {
        let (tls, failed) = (tls.clone(), Arc::clone(&failed));
        async move {
            match tls {
                None => Some(Ok(stream_of(Either::Left(socket), open))),
                Some(tls) => secured(socket, open, tls, &failed).await.map(Ok),
            }
        }
    });
    ready_to_serve.buffer_unordered(most).filter_map(ready)
}

/// Wraps a connection on which its client has to greet next.
fn stream_of(socket: GrpcSocket, open: OpenConnection) -> GrpcStream {
    let mut stream = TimedStream::new(socket, open, |socket| {
        let socket = match socket {
            Either::Left(socket) => socket,
            Either::Right(stream) => stream.get_ref().0,
        };
        let _ = socket.set_zero_linger();
    });
    stream.expect_greeting(PREFACE);
    stream
}

/// Makes the handshake in a task of its own, which ends if the connection is closed.
async fn secured(
    socket: TcpStream,
    open: OpenConnection,
    tls: ServerTls,
    failed: &Seldom,
) -> Option<GrpcStream> {
    let peer = open.connection().peer();
    open.connection().mark_handshake();
    let task = tokio::spawn(async move { timeout(HANDSHAKE_WITHIN, tls.accept(socket)).await });
    open.connection().set_task(task.abort_handle());
    let error = match task.await.ok()? {
        Ok(Ok(stream)) => return Some(stream_of(Either::Right(Box::new(stream)), open)),
        Ok(Err(error)) => error,
        Err(_) => io::ErrorKind::TimedOut.into(),
    };
    if let Some(times) = failed.happened() {
        tracing::warn!(%peer, %error, times, "TLS handshake failed");
    }
    None
}

/// The connection of a call, in the extensions of its request.
#[derive(Clone)]
pub struct Guest {
    connection: Connection,
    /// The names in the client's certificate; `None` if it did not have to show one.
    pub identity: Option<Identity>,
}

impl Guest {
    /// Returns the address of the connection's peer.
    pub fn peer(&self) -> IpAddr {
        self.connection.peer()
    }
}

impl Connected for GrpcStream {
    type ConnectInfo = Guest;

    fn connect_info(&self) -> Guest {
        let identity = match &self.stream {
            Either::Left(_) => None,
            Either::Right(stream) => tls::identity(stream),
        };
        Guest { connection: self.connection().clone(), identity }
    }
}

/// Returns the client that a call counts for: the peer, or the client behind a proxy.
pub type ClientOf = Arc<dyn Fn(&Request<Body>) -> IpAddr + Send + Sync>;

/// Returns the peer of a request's connection.
pub fn peer_of(request: &Request<Body>) -> IpAddr {
    let peer = request.extensions().get().map(Guest::peer);
    peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Records calls on their connections, and limits those that need no key.
#[derive(Clone)]
pub struct CallLayer {
    checks: Arc<Pool>,
    questions: Arc<Pool>,
    client_of: ClientOf,
}

impl CallLayer {
    /// Creates the limits, with `client_of` to identify clients.
    pub fn new(client_of: ClientOf) -> Self {
        Self { checks: Pool::of_clients(CHECKS), questions: Pool::of_clients(QUESTIONS), client_of }
    }

    fn admit(&self, request: &Request<Body>) -> Result<Option<Held>, Status> {
        let path = request.uri().path();
        if !WITHOUT_KEY.iter().any(|beginning| path.starts_with(beginning)) {
            return Ok(None);
        }
        let pool = if path == CHECK { &self.checks } else { &self.questions };
        let held = pool.take(Account::client((self.client_of)(request)), 1);
        held.map(Some).map_err(|_| {
            Status::resource_exhausted("Too many health checks or reflection calls at a time. End one first.")
        })
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = LimitedCalls<S>;

    fn layer(&self, service: S) -> LimitedCalls<S> {
        LimitedCalls { service, limits: self.clone() }
    }
}

/// A gRPC service whose calls are recorded and limited by a [`CallLayer`].
#[derive(Clone)]
pub struct LimitedCalls<S> {
    service: S,
    limits: CallLayer,
}

impl<S> Service<Request<Body>> for LimitedCalls<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error: Send + 'static>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let held = match self.limits.admit(&request) {
            Ok(held) => held,
            Err(refused) => return Box::pin(ready(Ok(refused.into_http()))),
        };
        let serving: Option<Serving> =
            request.extensions().get().map(|guest: &Guest| guest.connection.mark_serving());
        let answer = self.service.call(request);
        Box::pin(async move { Ok(keep_until_sent(answer.await?, (serving, held))) })
    }
}

/// Keeps a value until the last byte of an answer is sent: the connection may have bytes of it
/// after its body is gone.
pub fn keep_until_sent(answer: Response<Body>, kept: impl Send + Sync + 'static) -> Response<Body> {
    let kept = Arc::new(kept);
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let kept = Arc::clone(&kept);
            frame.map_data(|bytes| Bytes::from_owner(Kept { bytes, _kept: kept }))
        }))
    })
}

/// Bytes of an answer, with a value that is dropped with the last of them.
struct Kept<T> {
    bytes: Bytes,
    _kept: Arc<T>,
}

impl<T> AsRef<[u8]> for Kept<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::Full;

    use super::*;

    /// A service that answers with three bytes at once.
    #[derive(Clone)]
    struct Three;

    impl Service<Request<Body>> for Three {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            ready(Ok(Response::new(Body::new(Full::new(Bytes::from_static(b"abc"))))))
        }
    }

    async fn ask(service: &mut LimitedCalls<Three>, path: &str) -> Option<Response<Body>> {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = service.call(request).await.unwrap();
        (!answer.headers().contains_key("grpc-status")).then_some(answer)
    }

    #[tokio::test]
    async fn a_question_counts_until_the_last_byte_of_its_answer_is_gone_and_checks_have_their_own_places() {
        let mut service = CallLayer::new(Arc::new(peer_of)).layer(Three);
        let watch = "/grpc.health.v1.Health/Watch";
        let mut unread = Vec::new();
        for _ in 0..QUESTIONS.1 {
            unread.push(ask(&mut service, watch).await.unwrap());
        }
        assert!(ask(&mut service, watch).await.is_none());
        assert!(ask(&mut service, CHECK).await.is_some());
        assert!(ask(&mut service, "/shortmint.links.v1.Links/GetLink").await.is_some());
        let mut body = unread.pop().unwrap().into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert!(ask(&mut service, watch).await.is_none(), "the connection has its bytes");
        drop(bytes);
        assert!(ask(&mut service, watch).await.is_some());
    }
}
