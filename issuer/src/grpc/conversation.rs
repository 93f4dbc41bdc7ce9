//! Calls on a stream: answered in the order of the requests.

use std::{future::ready, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use numbers::Epoch;
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep},
};
use tokio_stream::Stream;
use tonic::{Response, Status, Streaming};

use super::{IssuerService, status::status_of};
use crate::{core::Refusal, driver::Standing};

/// The answers, in the order of the requests.
pub(super) type Answers<A> = Pin<Box<dyn Stream<Item = Result<A, Status>> + Send>>;

/// How one request is answered, and in which epoch the answer was given.
pub(super) trait Converse: Send + 'static {
    /// What is asked.
    type Request: Send + 'static;
    /// What is answered.
    type Answer: Send + 'static;

    /// How many requests may be under way at the same time.
    const AT_ONCE: usize;

    /// Answers one request.
    fn answer(
        service: Arc<IssuerService>,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Answer, Status>> + Send;

    /// The epoch that an answer tells.
    fn epoch(answer: &Self::Answer) -> Epoch;
}

/// Accepts a stream when its first request is answered, so that a follower's refusal, with the leader's address, is the answer to the
/// call itself: a stream that opens looks like a leader to the caller.
///
/// The stream ends with the first refusal, at once with FAILED_PRECONDITION when this issuer stops leading, and after a holder's TTL
/// without a request: then the holder counts as gone, and so does its stream.
pub(super) async fn converse<C: Converse>(
    service: IssuerService,
    requests: Streaming<C::Request>,
) -> Result<Response<Answers<C::Answer>>, Status> {
    let standing = service.standing.clone();
    let mut requests = Box::new(Requests::new(requests, service.holder_ttl));
    let service = Arc::new(service);
    let first = requests.next().await.ok_or_else(|| Status::cancelled("no request came"))?;
    let first = C::answer(Arc::clone(&service), first).await?;
    let epoch = C::epoch(&first);
    let others = stream::unfold(requests, async |mut requests| Some((requests.next().await?, requests)));
    let others = others.map(move |request| C::answer(Arc::clone(&service), request)).buffered(C::AT_ONCE);
    let answers = stream::once(ready(Ok(first))).chain(others);
    Ok(Response::new(Box::pin(while_leading(answers, standing, epoch))))
}

/// The answers, until one is a refusal or the epoch ends.
fn while_leading<A: Send + 'static>(
    answers: impl Stream<Item = Result<A, Status>> + Send + 'static,
    standing: watch::Receiver<Standing>,
    epoch: Epoch,
) -> impl Stream<Item = Result<A, Status>> + Send {
    let state = Some((Box::pin(answers), standing));
    stream::unfold(state, move |state| async move {
        let (mut answers, mut standing) = state?;
        let answer = tokio::select! {
            biased;
            answer = answers.next() => answer?,
            // The holder hears at once that it has to look for another leader.
            _ = standing.wait_for(|standing| standing.serving != Some(epoch)) => {
                Err(status_of(&Refusal::NotLeader(None)))
            }
        };
        let goes_on = answer.is_ok().then_some((answers, standing));
        Some((answer, goes_on))
    })
}

/// What the caller sends, until it falls silent.
struct Requests<Q> {
    stream: Streaming<Q>,
    patience: Duration,
    /// Armed anew only when it runs out: most streams are busy, and a timer for each request costs as much as reading it.
    alarm: Pin<Box<Sleep>>,
}

impl<Q> Requests<Q> {
    fn new(stream: Streaming<Q>, patience: Duration) -> Self {
        Self { stream, patience, alarm: Box::pin(sleep(patience)) }
    }

    /// The next request. None when the caller has hung up, or was silent for as long as it may be.
    async fn next(&mut self) -> Option<Q> {
        let waiting_since = Instant::now();
        loop {
            tokio::select! {
                biased;
                request = self.stream.next() => return request?.ok(),
                () = self.alarm.as_mut() => {
                    let end = waiting_since + self.patience;
                    if Instant::now() >= end {
                        return None;
                    }
                    self.alarm.as_mut().reset(end);
                }
            }
        }
    }
}
