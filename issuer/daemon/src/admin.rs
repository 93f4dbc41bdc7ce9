//! The admin listener: `/metrics`, `/livez`, `/readyz`. It is served before anything else starts
//! and needs no store. When all of its connections are taken, the idlest is closed, so that a probe
//! is always answered.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use limits::{Connections, ListenerLimits, TimedStream, budgets::ADMIN_CONNECTIONS};
use tokio::{
    net::{TcpListener, TcpStream},
    time::interval,
};
use tokio_util::sync::CancellationToken;

use crate::{Recorder, TaskSupervisor, process};

/// Interval at which histogram samples are folded into buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// A callback that updates gauges before the metrics page is rendered.
pub type Refresh = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The state that the admin listener serves.
#[derive(Clone)]
pub struct Admin {
    /// Name of the daemon, with which its metrics begin.
    pub daemon: &'static str,
    /// The recorder behind `/metrics`.
    pub recorder: Recorder,
    /// Returns what `/readyz` says: whether the daemon accepts traffic.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The tasks and threads behind `/livez`.
    pub supervisor: TaskSupervisor,
    /// Runs before each rendering of the metrics page.
    pub refresh: Refresh,
}

impl Admin {
    /// Serves requests until the token is cancelled.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        // No client has a share: a flood from one address must not lock out its probe either.
        let connections = Arc::new(Connections::new("admin", ListenerLimits::http(ADMIN_CONNECTIONS, 0)));
        let _timeouts = connections.enforce_timeouts();
        let mut upkeep = interval(UPKEEP);
        process::describe(&self.recorder, self.daemon);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = upkeep.tick() => self.recorder.upkeep(),
                (socket, open) = connections.accept(&listener) => {
                    let stream = TimedStream::of_socket(socket, open);
                    tokio::spawn(self.clone().serve_connection(stream));
                }
            }
        }
    }

    async fn serve_connection(self, stream: TimedStream<TcpStream>) {
        let connection = stream.connection().clone();
        let service = service_fn(move |request| {
            let (admin, serving) = (self.clone(), connection.mark_serving());
            async move {
                let answer = admin.answer(&request).await;
                drop(serving);
                Ok::<_, Infallible>(answer)
            }
        });
        let served = http1::Builder::new()
            .max_buf_size(16 * 1024)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%error, "admin connection");
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match request.uri().path() {
            "/livez" => match self.supervisor.stuck() {
                stuck if stuck.is_empty() => text(StatusCode::OK, "alive\n"),
                stuck => text(StatusCode::SERVICE_UNAVAILABLE, format!("stuck: {}\n", stuck.join(", "))),
            },
            "/readyz" if (self.ready)() => text(StatusCode::OK, "ready\n"),
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready: starting, or stopping\n"),
            "/metrics" => {
                (self.refresh)().await;
                process::show(&self.recorder, self.daemon);
                text(StatusCode::OK, self.recorder.render())
            }
            _ => text(StatusCode::NOT_FOUND, "expected /metrics, /livez or /readyz\n"),
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
