//! The KeepAlive stream: each beat of a holder is answered before the next one is read.

use std::{future::ready, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use numbers::Epoch;
use proto::issuer::v1::{KeepAliveRequest, KeepAliveResponse};
use tokio::{sync::watch, time::timeout};
use tokio_stream::Stream;
use tonic::{Extensions, Response, Status, Streaming};

use super::{
    convert,
    service::{IssuerService, mismatch},
    status::status_of,
};
use crate::{
    core::{Answer, Refusal, scarce_beat_ms},
    driver::DriverState,
};

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<KeepAliveResponse, Status>> + Send>>;

/// Opens a stream once its first beat is answered. So a follower's refusal, with the leader's
/// address, answers the call itself; to the caller, a stream that opens looks like a leader.
///
/// The stream ends with the first refusal. It also ends at once with FAILED_PRECONDITION if this
/// issuer stops leading, and after one holder TTL without a beat, when the holder counts as gone.
pub(super) async fn keep_alive(
    service: IssuerService,
    client: Extensions,
    beats: Streaming<KeepAliveRequest>,
) -> Result<Response<Answers>, Status> {
    let (standing, patience) = (service.standing.clone(), service.holder_ttl);
    let (first, beats) = next(beats, patience).await.ok_or_else(|| Status::cancelled("no beat came"))?;
    let first = answer(&service, &client, first).await?;
    let epoch = Epoch(first.epoch);
    let asked = Arc::new((service, client));
    let others = stream::unfold(beats, move |beats| next(beats, patience)).then(move |beat| {
        let asked = Arc::clone(&asked);
        async move { answer(&asked.0, &asked.1, beat).await }
    });
    let answers = stream::once(ready(Ok(first))).chain(others);
    Ok(Response::new(Box::pin(while_leading(answers, standing, epoch))))
}

/// Waits for the next beat. Returns `None` if the holder hung up, or was silent for `patience`.
async fn next(
    mut beats: Streaming<KeepAliveRequest>,
    patience: Duration,
) -> Option<(KeepAliveRequest, Streaming<KeepAliveRequest>)> {
    let beat = timeout(patience, beats.next()).await.ok()??.ok()?;
    Some((beat, beats))
}

async fn answer(
    service: &IssuerService,
    client: &Extensions,
    beat: KeepAliveRequest,
) -> Result<KeepAliveResponse, Status> {
    let supplies = beat.progress.iter().map(convert::supply_out).collect();
    let request = convert::keep_alive(beat)?;
    let holder = request.holder().cloned();
    match service.ask(client, request).await? {
        Answer::Alive { epoch, starving, scarce, mark } => {
            if let Some(holder) = holder {
                service.observer.note_beat(holder, supplies);
            }
            Ok(KeepAliveResponse {
                epoch: epoch.0,
                holder_ttl_ms: service.holder_ttl_ms(),
                starving: starving.iter().map(ToString::to_string).collect(),
                next_beat_ms: if scarce { scarce_beat_ms(service.holder_ttl_ms()) } else { 0 },
                mark: mark.0,
            })
        }
        _ => Err(mismatch()),
    }
}

/// Passes answers on until one is a refusal or the epoch ends.
fn while_leading<A: Send + 'static>(
    answers: impl Stream<Item = Result<A, Status>> + Send + 'static,
    standing: watch::Receiver<DriverState>,
    epoch: Epoch,
) -> impl Stream<Item = Result<A, Status>> + Send {
    let state = Some((Box::pin(answers), standing));
    stream::unfold(state, move |state| async move {
        let (mut answers, mut standing) = state?;
        let answer = tokio::select! {
            biased;
            answer = answers.next() => answer?,
            // Tells the holder at once that it has to look for another leader.
            _ = standing.wait_for(|standing| standing.serving != Some(epoch)) => {
                Err(status_of(&Refusal::NotLeader(None)))
            }
        };
        let goes_on = answer.is_ok().then_some((answers, standing));
        Some((answer, goes_on))
    })
}
