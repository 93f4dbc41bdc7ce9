//! Streams of creates: requests are answered in their order, while others arrive.
//!
//! 1. Whatever ends a stream, each request that was taken from the connection is answered before
//!    the stream's status. So a request is taken only when it may be made at once, and none is
//!    taken once the server is told to stop.
//! 2. The status of a stream that ended early says how many requests were answered
//!    ([`ANSWERED`]). None of the others was made, and the client sends them again.
//! 3. Only a connection that breaks, or a client that gives the call up, leaves a doubt: about at
//!    most [`UNDER_WAY`] requests after the last answer that arrived. They are made to their end,
//!    and find their link again by an idempotency key.
//! 4. A client that reads no answers stops its own stream: its requests wait in the windows of the
//!    connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _, stream};
use limits::{Held, Seldom};
use proto::links::v1::{CreateLinkRequest, CreateLinkResult, Link, Refusal, create_link_result};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

/// The maximum number of creates under way in one stream.
const UNDER_WAY: usize = 64;
/// The time after which a silent stream is ended.
const SILENCE: Duration = Duration::from_secs(600);
/// The metadata key of an early end's status for the number of requests that were answered.
const ANSWERED: &str = "answered";

/// State shared by all streams of creates of a listener.
pub(super) struct CreateStreams {
    pub(super) stop: CancellationToken,
    /// Streams whose connection or client went away.
    pub(super) broken: Seldom,
}

impl CreateStreams {
    /// Makes the creates of a stream, and returns their answers.
    pub(super) fn answer<F>(
        self: &Arc<Self>,
        requests: Streaming<CreateLinkRequest>,
        create: impl Fn(CreateLinkRequest) -> F + Send + 'static,
    ) -> Answers
    where
        F: Future<Output = Result<(Link, Held), Status>> + Send,
    {
        let stop = self.stop.clone();
        let requests = stream::unfold(Some(requests), move |open| next(open, stop.clone()));
        let results = requests.map(move |request| {
            let created = request.map(&create);
            async move { Ok(result(created?.await)) }
        });
        let results = Box::pin(results.buffered(UNDER_WAY));
        Answers { results, answered: 0, ended: false, streams: Arc::clone(self) }
    }
}

/// Takes the next request from a stream, unless it has ended. An error is its last item.
async fn next(
    open: Option<Streaming<CreateLinkRequest>>,
    stop: CancellationToken,
) -> Option<(Result<CreateLinkRequest, Status>, Option<Streaming<CreateLinkRequest>>)> {
    let mut requests = open?;
    let message = tokio::select! {
        biased;
        () = stop.cancelled() => Err(Status::unavailable("the server is stopping")),
        message = timeout(SILENCE, requests.message()) => message.unwrap_or_else(|_| {
            Err(Status::unavailable(format!("no request for {} s", SILENCE.as_secs())))
        }),
    };
    match message {
        Ok(request) => Some((Ok(request?), Some(requests))),
        Err(status) => Some((Err(status), None)),
    }
}

fn result(created: Result<(Link, Held), Status>) -> CreateLinkResult {
    let result = match created {
        Ok((link, _)) => create_link_result::Result::Link(Box::new(link)),
        Err(refused) => create_link_result::Result::Refusal(Refusal {
            code: refused.code().into(),
            message: refused.message().to_owned(),
        }),
    };
    CreateLinkResult { result: Some(result) }
}

pub(super) struct Answers {
    results: Pin<Box<dyn Stream<Item = Result<CreateLinkResult, Status>> + Send>>,
    answered: u64,
    ended: bool,
    streams: Arc<CreateStreams>,
}

impl Stream for Answers {
    type Item = Result<CreateLinkResult, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.results.poll_next_unpin(cx));
        match &next {
            Some(Ok(_)) => self.answered += 1,
            Some(Err(_)) | None => self.ended = true,
        }
        Poll::Ready(next.map(|result| result.map_err(|status| early_end(&status, self.answered))))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if !self.ended
            && let Some(times) = self.streams.broken.happened()
        {
            let answered = self.answered;
            tracing::info!(answered, times, "a stream of creates broke off: its client went away");
        }
    }
}

/// Returns the status of a stream that ended before its client ended it.
fn early_end(status: &Status, answered: u64) -> Status {
    let (code, reason) = (status.code(), status.message());
    let rest = match code {
        Code::Unavailable => "send the rest again",
        _ => "the next request is the cause",
    };
    let mut metadata = status.metadata().clone();
    metadata.insert(ANSWERED, answered.into());
    Status::with_metadata(code, format!("{reason}; {answered} requests were answered: {rest}"), metadata)
}
