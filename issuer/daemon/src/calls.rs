//! gRPC calls in flight on the connections of a [`Gate`](super::Gate).
//!
//! 1. A call marks its connection as used until its response body is dropped. The gate closes
//!    connections without calls first.
//! 2. Health checks and reflection need no API key. `Watch` and reflection are streams, which may
//!    last as long as their connection. So calls in flight are limited for each client and in
//!    total. A call counts until the last byte of its response was sent.
//! 3. `Check` has a separate limit: it is answered at once, and a probe must find a free slot.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Bytes};
use tonic::{Status, body::Body, codegen::Service, server::NamedService};

use super::gate::{Guest, UnderWay, network};

/// Limits of concurrent calls without a key, except `Check`: in total, and for one client. A client
/// that watches for health does so once for each of its connections.
const QUESTIONS: (usize, usize) = (512, 32);
/// Limits of concurrent `Check` calls, in total and for one client. As a rule these are calls whose
/// request message has not arrived.
const CHECKS: (usize, usize) = (4_096, 128);
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Returns the client that a call counts for: the peer of its connection, or the client behind a
/// proxy.
pub type ClientOf = Arc<dyn Fn(&Request<Body>) -> IpAddr + Send + Sync>;

/// The concurrency limits of calls that need no API key; clones share them.
#[derive(Clone)]
pub struct Questions {
    checks: Arc<Places>,
    others: Arc<Places>,
    client_of: ClientOf,
}

impl Questions {
    /// Creates the limits, with `client_of` to identify clients.
    #[must_use]
    pub fn new(client_of: ClientOf) -> Self {
        Self { checks: Places::new(CHECKS), others: Places::new(QUESTIONS), client_of }
    }

    /// Creates limits that identify clients by the peer address of the connection.
    #[must_use]
    pub fn of_peers() -> Self {
        Self::new(Arc::new(|request| {
            let peer = request.extensions().get().and_then(Guest::peer);
            peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        }))
    }

    fn take(&self, request: &Request<Body>) -> Result<Place, Status> {
        let places = if request.uri().path() == CHECK { &self.checks } else { &self.others };
        let place = places.take(network((self.client_of)(request)));
        place.ok_or_else(|| Status::resource_exhausted("expected fewer questions at a time"))
    }
}

/// A counting semaphore with a limit in total and one for each client.
struct Places {
    all: usize,
    of_client: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

impl Places {
    fn new((all, of_client): (usize, usize)) -> Arc<Self> {
        Arc::new(Self { all, of_client, taken: Mutex::default() })
    }

    fn take(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock().expect("no code panics while it holds this lock");
        let own = taken.by_client.get(&client).copied().unwrap_or(0);
        if taken.all >= self.all || own >= self.of_client {
            return None;
        }
        taken.all += 1;
        taken.by_client.insert(client, own + 1);
        Some(Place { places: Arc::clone(self), client })
    }
}

/// A permit of [`Places`]; its drop frees the slot.
struct Place {
    places: Arc<Places>,
    client: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().expect("no code panics while it holds this lock");
        taken.all -= 1;
        if let Some(own) = taken.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(&self.client);
            }
        }
    }
}

/// A service that records its calls on their connections, and limits those that need no key.
#[derive(Clone)]
pub struct Bounded<S> {
    service: S,
    questions: Option<Questions>,
}

impl<S> Bounded<S> {
    /// Wraps a service that limits its calls itself: calls are only recorded.
    pub fn noted(service: S) -> Self {
        Self { service, questions: None }
    }

    /// Wraps a service that needs no API key: calls are recorded and limited.
    pub fn questions(service: S, questions: &Questions) -> Self {
        Self { service, questions: Some(questions.clone()) }
    }
}

impl<S: NamedService> NamedService for Bounded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Bounded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let under_way = request.extensions().get().map(Guest::call);
        let place = match self.questions.as_ref().map(|questions| questions.take(&request)).transpose() {
            Ok(place) => place,
            Err(refused) => return Box::pin(async move { Ok(refused.into_http()) }),
        };
        let answer = self.service.call(request);
        Box::pin(async move { Ok(keep_until_gone(answer.await?, under_way, place)) })
    }
}

/// Holds the call's record until the response body is dropped, and its permit until the last byte
/// is sent.
fn keep_until_gone(
    answer: Response<Body>,
    under_way: Option<UnderWay>,
    place: Option<Place>,
) -> Response<Body> {
    let place = place.map(Arc::new);
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // The closure keeps the call's record alive as long as the body.
            let _under_way = &under_way;
            match &place {
                Some(place) => {
                    frame.map_data(|bytes| Bytes::from_owner(Counted { bytes, _place: Arc::clone(place) }))
                }
                None => frame,
            }
        }))
    })
}

/// Body bytes with the call's permit. The connection may keep them after the body is dropped.
struct Counted {
    bytes: Bytes,
    _place: Arc<Place>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use http_body_util::Full;

    use super::*;

    /// A service that answers with three bytes at once.
    #[derive(Clone)]
    struct Three;

    impl Service<Request<Body>> for Three {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            ready(Ok(Response::new(Body::new(Full::new(Bytes::from_static(b"abc"))))))
        }
    }

    async fn ask(service: &mut Bounded<Three>, path: &str) -> Option<Response<Body>> {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = service.call(request).await.unwrap();
        (!answer.headers().contains_key("grpc-status")).then_some(answer)
    }

    #[tokio::test]
    async fn a_question_counts_until_the_last_byte_of_its_answer_is_gone_and_checks_have_their_own_places() {
        let mut service = Bounded::questions(Three, &Questions::of_peers());
        let watch = "/grpc.health.v1.Health/Watch";
        let mut unread = Vec::new();
        for _ in 0..QUESTIONS.1 {
            unread.push(ask(&mut service, watch).await.unwrap());
        }
        assert!(ask(&mut service, watch).await.is_none());
        assert!(ask(&mut service, CHECK).await.is_some());
        let mut body = unread.pop().unwrap().into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert!(ask(&mut service, watch).await.is_none(), "the connection has its bytes");
        drop(bytes);
        assert!(ask(&mut service, watch).await.is_some());
    }

    #[test]
    fn one_client_leaves_places_for_others() {
        let places = Places::new((3, 2));
        let client = |last: u8| IpAddr::from([192, 0, 2, last]);
        let held = [places.take(client(1)).unwrap(), places.take(client(1)).unwrap()];
        assert!(places.take(client(1)).is_none());
        let other = places.take(client(2));
        assert!(other.is_some() && places.take(client(3)).is_none(), "all are taken");
        drop((held, other));
        let taken = places.taken.lock().unwrap();
        assert!(taken.all == 0 && taken.by_client.is_empty());
    }
}
