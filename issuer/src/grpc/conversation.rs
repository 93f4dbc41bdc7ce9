//! Calls on a stream: one request after another, each answered before the next is read.

use std::pin::Pin;

use futures_util::stream;
use tokio::{sync::watch, time::timeout};
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
    requests: Streaming<C::Request>,
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
    mut requests: Streaming<C::Request>,
) -> Result<Response<Answers<C::Answer>>, Status> {
    let first = next::<C>(&service, &mut requests).await;
    let first = first.ok_or_else(|| Status::cancelled("no request came"))??;
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
        let answer = tokio::select! {
            answer = next::<C>(&self.service, &mut self.requests) => answer?,
            // The holder hears at once that it has to look for another leader.
            _ = self.standing.wait_for(|standing| standing.serving != self.epoch) => {
                Err(status_of(&Refusal::NotLeader(None)))
            }
        };
        self.is_over = answer.is_err();
        Some((answer, self))
    }
}

/// Waits for a request and answers it. None when the caller has hung up or was silent for a holder's whole TTL.
async fn next<C: Converse>(
    service: &IssuerService,
    requests: &mut Streaming<C::Request>,
) -> Option<Result<C::Answer, Status>> {
    match timeout(service.holder_ttl, requests.next()).await {
        Ok(Some(Ok(request))) => Some(C::answer(service, request).await),
        Ok(Some(Err(_)) | None) | Err(_) => None,
    }
}
