//! Traces, by OpenTelemetry: from a proxy's `traceparent` over HTTP and gRPC to the issuer.
//!
//! 1. A request is traced if its `traceparent` (W3C Trace Context) says that it is sampled; without
//!    one, a share of requests begins a trace. Any other request makes no span at all, so a request
//!    that is not traced costs the look at one header. The header counts only from a trusted
//!    caller: anyone could otherwise have every request traced, and add to the traces of others.
//!    Its companion `tracestate` is not passed on, because it may be longer than the next server
//!    takes.
//! 2. The current [`Context`] of OpenTelemetry carries the span and [`Traces`] themselves. So code
//!    that calls another server needs no handle, and there is no global tracer.
//! 3. Spans have routes, methods and statuses, and neither paths nor addresses: a path is a code,
//!    and an address is personal data.
//! 4. Spans are sent in batches from a thread of their own. If the collector does not take them,
//!    they are dropped, 2,048 at most wait.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use hyper::{Request, Response, StatusCode};
use opentelemetry::{
    Context, KeyValue,
    context::FutureExt as _,
    propagation::TextMapPropagator as _,
    trace::{SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use tonic::metadata::MetadataMap;
use tower::Service;

use crate::Share;

const TRACEPARENT: &str = "traceparent";
/// Deadline of an export, and of the last one at the end.
const EXPORT_WITHIN: Duration = Duration::from_secs(3);

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("expected the address of a collector in plaintext, such as http://collector:4317")]
pub struct TraceError(#[source] Option<opentelemetry_otlp::ExporterBuildError>);

/// A tracer with its exporter.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// The part of requests without a `traceparent` that begin a trace.
    share: Share,
}

impl Traces {
    /// Starts to send spans of this instance of a service to a collector, by OTLP over gRPC. Has to
    /// be called in a runtime. An invalid address is an error, and a silent collector is none.
    pub fn start(
        otlp: &str,
        share: Share,
        (service, instance): (&'static str, &str),
    ) -> Result<Arc<Self>, TraceError> {
        if !otlp.starts_with("http://") {
            return Err(TraceError(None));
        }
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(otlp);
        let exporter = exporter.with_timeout(EXPORT_WITHIN).build();
        let exporter = exporter.map_err(|error| TraceError(Some(error)))?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", service),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance.to_owned()),
        ]);
        let provider = SdkTracerProvider::builder()
            // Whether a request is traced is decided before a span is made.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        let tracer = provider.tracer("shortmint");
        Ok(Arc::new(Self { provider, tracer, share }))
    }

    /// Begins the span of a request, if it is traced.
    #[must_use]
    pub fn begin<B>(
        self: &Arc<Self>,
        name: &'static str,
        request: &Request<B>,
        is_trusted: bool,
    ) -> Option<Span> {
        let parent = self.parent(request, is_trusted)?;
        let span = self.tracer.span_builder(name).with_kind(SpanKind::Server);
        let method = method_name(request.method());
        let attributes = [KeyValue::new("http.request.method", method)];
        let span = span.with_attributes(attributes).start_with_context(&self.tracer, &parent);
        let context = parent.with_span(span).with_value(Current(Arc::clone(self)));
        Some(Span { context, method })
    }

    /// Returns the context that a request's span belongs to; `None` if it is not traced.
    fn parent<B>(&self, request: &Request<B>, is_trusted: bool) -> Option<Context> {
        let header = request.headers().get(TRACEPARENT).filter(|_| is_trusted);
        if let Some(header) = header.and_then(|header| header.to_str().ok()) {
            let carrier = HashMap::from([(TRACEPARENT.to_owned(), header.to_owned())]);
            let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
            let caller = parent.span().span_context().clone();
            if caller.is_valid() {
                return caller.is_sampled().then_some(parent);
            }
        }
        self.share.takes_next().then(Context::new)
    }

    /// Sends the last spans.
    pub async fn stop(self: Arc<Self>) {
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(EXPORT_WITHIN));
        if let Ok(Err(error)) = stopped.await {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

/// The tracer of the current span.
struct Current(Arc<Traces>);

/// The span of a request. It ends when it is dropped.
pub struct Span {
    context: Context,
    method: &'static str,
}

impl Span {
    /// Runs a future in the span.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        future.with_context(self.context.clone()).await
    }

    /// Notes the route and the status of the answer.
    pub fn answered(self, route: &str, status: StatusCode) {
        let span = self.context.span();
        span.update_name(format!("{} {route}", self.method));
        span.set_attribute(KeyValue::new("http.route", route.to_owned()));
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_status(Status::error(status.to_string()));
        }
    }
}

/// Returns the name of a method. A client may invent others, of any length.
fn method_name(method: &hyper::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "_OTHER",
    }
}

/// Runs a call of another server in a span of its own, if the caller is traced. The call is made in
/// it, so that [`inject`] passes it on.
pub async fn call<T, E: std::fmt::Display>(
    name: &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let parent = Context::current();
    let Some(Current(traces)) = parent.get::<Current>() else { return call.await };
    let span = traces.tracer.span_builder(name).with_kind(SpanKind::Client);
    let context = parent.with_span(span.start_with_context(&traces.tracer, &parent));
    let result = call.with_context(context.clone()).await;
    if let Err(error) = &result {
        context.span().set_status(Status::error(error.to_string()));
    }
    result
}

/// Runs a future that is spawned elsewhere in the span of the caller.
pub fn in_current<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.with_current_context()
}

/// Passes the current span on to another server.
pub fn inject(metadata: &mut MetadataMap) {
    let context = Context::current();
    if context.has_active_span() {
        let mut carrier: HashMap<String, String> = HashMap::new();
        TraceContextPropagator::new().inject_context(&context, &mut carrier);
        if let Some(value) = carrier.get(TRACEPARENT).and_then(|value| value.parse().ok()) {
            metadata.insert(TRACEPARENT, value);
        }
    }
}

/// A gRPC service whose calls are traced.
#[derive(Clone)]
pub struct TracedCalls<S>(S, Option<Arc<Traces>>);

/// Traces the calls of a gRPC service, if there is a collector.
#[derive(Clone)]
pub struct TraceLayer(pub Option<Arc<Traces>>);

impl<S> tower::Layer<S> for TraceLayer {
    type Service = TracedCalls<S>;

    fn layer(&self, service: S) -> TracedCalls<S> {
        TracedCalls(service, self.0.clone())
    }
}

impl<S, B, R> Service<Request<B>> for TracedCalls<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let span = self.1.as_ref().and_then(|traces| traces.begin("gRPC", &request, true));
        let Some(Span { context, .. }) = span else { return Box::pin(self.0.call(request)) };
        context.span().update_name(request.uri().path().trim_start_matches('/').to_owned());
        let called = {
            let _in_span = context.clone().attach();
            self.0.call(request)
        };
        Box::pin(async move {
            let answer = called.with_context(context.clone()).await?;
            // An error is told in the head of the answer.
            let code = answer.headers().get("grpc-status").and_then(|code| code.to_str().ok()).unwrap_or("0");
            context.span().set_attribute(KeyValue::new("rpc.grpc.status_code", code.to_owned()));
            if code != "0" {
                context.span().set_status(Status::error(format!("gRPC status {code}")));
            }
            Ok(answer)
        })
    }
}
