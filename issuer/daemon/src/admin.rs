//! The admin listener: `/metrics`, `/livez`, `/readyz`. It is served before anything else starts and needs no store; when all of its
//! connections are taken the idlest makes room, so that a probe is always answered.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::watch, time::interval};
use tokio_util::sync::CancellationToken;

use super::{Gate, GateLimits, Guarded, Recorder};

/// Connections at a time; a probe and a scraper need a handful.
const CONNECTIONS: usize = 32;
/// How long a client may take to send its request's head.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// How often histograms are folded.
const UPKEEP: Duration = Duration::from_secs(5);

/// Brings gauges up to date before a page is rendered.
pub type Refresh = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the admin listener shows.
#[derive(Clone)]
pub struct Admin {
    /// The metrics.
    pub recorder: Recorder,
    /// Whether traffic may come.
    pub ready: watch::Receiver<bool>,
    /// Run before each metrics page.
    pub refresh: Refresh,
}

impl Admin {
    /// Serves until the token is cancelled.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let mut gate = Gate::new(listener, "admin", GateLimits::admin(CONNECTIONS));
        let mut upkeep = interval(UPKEEP);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = upkeep.tick() => self.recorder.upkeep(),
                stream = gate.accept() => {
                    tokio::spawn(self.clone().converse(TokioIo::new(stream)));
                }
            }
        }
    }

    async fn converse(self, stream: TokioIo<Guarded>) {
        let service = service_fn(move |request| {
            let admin = self.clone();
            async move { Ok::<_, Infallible>(admin.answer(&request).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(16 * 1024)
            .serve_connection(stream, service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%error, "admin connection");
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n");
            answer.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "alive\n"),
            "/readyz" if *self.ready.borrow() => text(StatusCode::OK, "ready\n"),
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready: starting, or stopping\n"),
            "/metrics" => {
                (self.refresh)().await;
                text(StatusCode::OK, self.recorder.render())
            }
            _ => text(StatusCode::NOT_FOUND, "expected /metrics, /livez or /readyz\n"),
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
