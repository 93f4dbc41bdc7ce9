//! The KeepAlive stream: each beat of a holder is answered before the next one is read.

use std::{future::ready, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use numbers::Epoch;
use proto::issuer::v1::{KeepAliveRequest, KeepAliveResponse};
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::{Extensions, Response, Status, Streaming};

use super::{
    convert,
    service::{IssuerService, mismatch},
    status::status_of,
};
use crate::core::{Answer, Refusal, scarce_beat_ms};

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<KeepAliveResponse, Status>> + Send>>;

/// Opens a stream once its first beat is answered. So a follower's refusal, with the leader's
/// address, answers the call itself; to the caller, a stream that opens looks like a leader.
///
/// The stream ends with the first refusal. It also ends at once with FAILED_PRECONDITION if this
/// issuer stops leading, and after one holder TTL without a beat, when the holder counts as gone.
pub(super) async fn keep_alive(
    service: IssuerService,
    client: Extensions,
    mut beats: Streaming<KeepAliveRequest>,
) -> Result<Response<Answers>, Status> {
    let patience = Duration::from_millis(service.holder_ttl_ms);
    let first = next(&mut beats, patience).await;
    let first = first.ok_or_else(|| Status::cancelled("no beat came"))?;
    let first = answer(&service, &client, first).await?;
    let epoch = Epoch(first.epoch);
    let (standing, asked) = (service.handle.standing.clone(), Arc::new((service, client)));
    let others = stream::unfold(Some((beats, standing)), move |state| {
        let asked = Arc::clone(&asked);
        async move {
            let (mut beats, mut standing) = state?;
            let (service, client) = &*asked;
            let answered = async {
                let beat = next(&mut beats, patience).await?;
                Some(answer(service, client, beat).await)
            };
            let answer = tokio::select! {
                biased;
                answer = answered => answer?,
                // Tells the holder at once that it has to look for another leader.
                _ = standing.wait_for(|standing| standing.serving != Some(epoch)) => {
                    Err(status_of(&Refusal::NotLeader(None)))
                }
            };
            let goes_on = answer.is_ok().then_some((beats, standing));
            Some((answer, goes_on))
        }
    });
    Ok(Response::new(Box::pin(stream::once(ready(Ok(first))).chain(others))))
}

/// Waits for the next beat. Returns `None` if the holder hung up, or was silent for `patience`.
async fn next(beats: &mut Streaming<KeepAliveRequest>, patience: Duration) -> Option<KeepAliveRequest> {
    timeout(patience, beats.next()).await.ok()??.ok()
}

async fn answer(
    service: &IssuerService,
    client: &Extensions,
    beat: KeepAliveRequest,
) -> Result<KeepAliveResponse, Status> {
    let supplies = beat.progress.iter().map(convert::supply_out).collect();
    let request = convert::keep_alive(beat).map_err(convert::malformed)?;
    let holder = request.holder().cloned();
    match service.ask(client, request).await? {
        Answer::Alive { epoch, starving, scarce, mark } => {
            if let Some(holder) = holder {
                service.observer.notes().supplies.insert(holder, supplies);
            }
            Ok(KeepAliveResponse {
                epoch: epoch.0,
                holder_ttl_ms: service.holder_ttl_ms,
                starving: starving.iter().map(ToString::to_string).collect(),
                next_beat_ms: if scarce { scarce_beat_ms(service.holder_ttl_ms) } else { 0 },
                mark: mark.0,
            })
        }
        _ => Err(mismatch()),
    }
}
