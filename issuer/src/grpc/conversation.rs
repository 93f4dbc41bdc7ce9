//! Calls on a stream: one request after another, each answered before the next is read.

use std::{pin::Pin, time::Duration};

use futures_util::stream;
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep},
};
use tokio_stream::{Stream, StreamExt};
use tonic::{Response, Status, Streaming};

use super::{IssuerService, status::status_of};
use crate::{core::Refusal, driver::Standing, tokens::Epoch};

/// The answers, in the order of the requests.
pub(super) type Answers<A> = Pin<Box<dyn Stream<Item = Result<A, Status>> + Send>>;

/// How one request is answered, and in which epoch the answer was given.
pub(super) trait Converse: Send + 'static {
    /// What is asked.
    type Request: Send + 'static;
    /// What is answered.
    type Answer: Send + 'static;

    /// Answers one request.
    fn answer(
        service: &IssuerService,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Answer, Status>> + Send;

    /// The epoch that an answer tells.
    fn epoch(answer: &Self::Answer) -> Epoch;
}

struct Conversation<C: Converse> {
    service: IssuerService,
    requests: Requests<C::Request>,
    standing: watch::Receiver<Standing>,
    epoch: Option<Epoch>,
    first: Option<C::Answer>,
    is_over: bool,
}

/// Accepts a stream when its first request is answered, so that a follower's refusal, with the leader's address, is the answer to the
/// call itself: a stream that opens looks like a leader to the caller.
///
/// The stream ends with the first refusal, at once with FAILED_PRECONDITION when this issuer stops leading, and after a holder's TTL
/// of silence: then the holder counts as gone, and so does its stream.
pub(super) async fn converse<C: Converse>(
    service: IssuerService,
    requests: Streaming<C::Request>,
) -> Result<Response<Answers<C::Answer>>, Status> {
    let mut requests = Requests::new(requests, service.holder_ttl);
    let first = requests.next().await.ok_or_else(|| Status::cancelled("no request came"))?;
    let first = C::answer(&service, first).await?;
    let standing = service.standing.clone();
    let epoch = Some(C::epoch(&first));
    let conversation =
        Conversation::<C> { service, requests, standing, epoch, first: Some(first), is_over: false };
    Ok(Response::new(Box::pin(stream::unfold(conversation, Conversation::step))))
}

impl<C: Converse> Conversation<C> {
    async fn step(mut self) -> Option<(Result<C::Answer, Status>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        if self.is_over {
            return None;
        }
        let next = async {
            let request = self.requests.next().await?;
            Some(C::answer(&self.service, request).await)
        };
        let answer = tokio::select! {
            answer = next => answer?,
            // The holder hears at once that it has to look for another leader.
            _ = self.standing.wait_for(|standing| standing.serving != self.epoch) => {
                Err(status_of(&Refusal::NotLeader(None)))
            }
        };
        self.is_over = answer.is_err();
        Some((answer, self))
    }
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
