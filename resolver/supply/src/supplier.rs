//! The shell of the pure core: carries out its calls to the issuer, its store calls and its waits.
//!
//! The rules are in [`holder::core`]. This module adds the clock, the connections to issuer and
//! store, the log and the metrics.

use std::{sync::Arc, time::Duration};

use holder::{Answer, Call, Effect, Event, Note, Refused, StopReason, StoreAnswer, StoreCall};
use jiff::Timestamp;
use proto::issuer::v1 as pb;
use store::{Registration, StoreError};
use tokio::{
    sync::watch,
    time::{Instant, interval, sleep, sleep_until, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    history::Seen,
    holder_state::{Supplier, SupplierConfig},
    messages,
    minting::Minting,
};

/// The time limit at shutdown for a call under way, and again for returning all blocks.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// The delay of the second beat after the one that a restart of the database server triggers.
const SECOND_BEAT: Duration = Duration::from_secs(1);

/// A handle for other parts of the process to end minting for good.
#[derive(Clone, Debug)]
pub struct Closing {
    pub(super) mintings: Vec<Arc<Minting>>,
    /// The reason, once there is one.
    pub lost: watch::Sender<Option<StopReason>>,
}

impl Closing {
    /// Returns a handle for a process that mints nothing.
    pub fn without_minting() -> Self {
        Self { mintings: Vec::new(), lost: watch::Sender::new(None) }
    }

    /// Waits for the reason why this process may mint no more.
    pub async fn closed(&self) -> StopReason {
        let mut lost = self.lost.subscribe();
        match lost.wait_for(Option::is_some).await.map(|lost| lost.clone()) {
            Ok(Some(lost)) => lost,
            // The sender is part of this handle.
            _ => std::future::pending().await,
        }
    }

    /// Refuses every claim from now on, and reports the reason to the daemon. Only the first reason
    /// counts.
    pub fn close(&self, why: StopReason) {
        self.mintings.iter().for_each(|minting| minting.close());
        self.lost.send_if_modified(|lost| {
            let is_first = lost.is_none();
            if is_first {
                *lost = Some(why);
            }
            is_first
        });
    }
}

/// When the ledger was last asked.
struct Asked {
    /// When it was asked for a block.
    at: Instant,
    /// The start time of the database server when it was asked to register.
    seen: Seen,
}

impl Supplier {
    /// Runs until `stop` is cancelled, then returns the unused blocks. Creators must have ended
    /// before that. A holder that is lost returns nothing, because its blocks belong to another
    /// now.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let _beats = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self).send_beats()));
        // Subscribed before the first beat: a start that is known by then is noticed by that beat.
        let starts = self.config.register.server_start();
        let _starts = AbortOnDropHandle::new(tokio::spawn(follow_starts(starts, Arc::clone(&self))));
        let _samples = AbortOnDropHandle::new(tokio::spawn(sample(self.config.mintings.clone())));
        {
            // A call under way may finish: a block that is allocated now and whose answer is lost
            // would be leaked.
            let mut supply = std::pin::pin!(self.supply(&stop));
            let ended = tokio::select! {
                () = &mut supply => true,
                () = stop.cancelled() => {
                    let parts = if self.session.borrow().is_some() { 2 } else { 1 };
                    timeout(STOP_DEADLINE * parts, supply).await.is_ok()
                }
            };
            if !ended {
                tracing::warn!("the issuer or the database did not take the unused numbers back in time");
            }
        }
        // A lost holder's work has ended before the stop.
        stop.cancelled().await;
    }

    async fn supply(&self, stop: &CancellationToken) {
        let (mut event, mut stopping) = (Event::Woken, false);
        let mut asked = Asked { at: Instant::now(), seen: Seen::default() };
        while self.closing.lost.borrow().is_none() {
            if stop.is_cancelled() && !stopping {
                stopping = true;
                event = self.stopped(event, &asked);
            }
            let effects = self.step(event, &asked);
            event = match self.apply(effects) {
                Some(Effect::Call(call)) => Event::Answered(self.call(call, &mut asked).await),
                Some(Effect::Store(call)) => Event::Stored(self.ask(call, asked.seen).await),
                Some(Effect::Wait { until, for_demand }) => {
                    let until = self.config.clock.instant(until);
                    tokio::select! {
                        () = self.wait(until, for_demand) => {}
                        () = stop.cancelled(), if !stopping => {}
                    }
                    Event::Woken
                }
                _ => return,
            };
        }
    }

    fn step(&self, event: Event, asked: &Asked) -> Vec<Effect> {
        let SupplierConfig { clock, metrics, .. } = &self.config;
        let now = clock.now();
        let effects = self.with_core(|core, keyspaces| core.step(now, event, keyspaces));
        if effects.iter().any(|effect| matches!(effect, Effect::Note(Note::Refilled(_)))) {
            metrics.refill_seconds.record(asked.at.elapsed());
        }
        effects
    }

    /// Tells the core to stop, and returns the next event. A stop replaces the end of a wait. An
    /// answer to a call is still delivered.
    fn stopped(&self, event: Event, asked: &Asked) -> Event {
        if event == Event::Woken {
            return Event::Stop;
        }
        self.step(Event::Stop, asked);
        event
    }

    /// Waits until `until`, until numbers run low if `for_demand`, or until this holder is lost.
    async fn wait(&self, until: Instant, for_demand: bool) {
        let mut lost = self.closing.lost.subscribe();
        tokio::select! {
            _ = lost.wait_for(Option::is_some) => {}
            _ = timeout_at(until, self.wanted()), if for_demand => {}
            () = sleep_until(until), if !for_demand => {}
        }
    }

    /// Waits until numbers of some keyspace run low.
    async fn wanted(&self) {
        let mintings = &self.config.mintings;
        let mut wanted: Vec<_> = mintings.iter().map(|minting| Box::pin(minting.wanted.notified())).collect();
        std::future::poll_fn(|context| {
            let ready = wanted.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    async fn call(&self, call: Call, asked: &mut Asked) -> Result<Answer, Refused> {
        let SupplierConfig { owner, client, mintings, register, begins_at, .. } = &self.config;
        let holder = owner.holder.clone();
        match call {
            Call::Register(namespaces) => {
                // A mark that is raised after the answer is reported with the first beat.
                asked.seen = Seen::now(register);
                let specs = namespaces.into_iter();
                let specs =
                    specs.map(|(name, capacity)| pb::NamespaceSpec { name: name.to_string(), capacity });
                let (instance, namespaces) = (owner.instance.clone(), specs.collect());
                let request = pb::RegisterRequest { holder, instance, namespaces, reserved: false };
                client.register(request).await.map(|answer| Answer::Registered(messages::registered(answer)))
            }
            Call::Allocate { keyspace, incarnation, seq, store } => {
                sleep_until(*begins_at).await;
                asked.at = Instant::now();
                let minting = &mintings[keyspace];
                let request = pb::AllocateBlockRequest {
                    holder,
                    incarnation: incarnation.0,
                    seq: seq.0,
                    namespace: minting.namespace.to_string(),
                    wanted_len: minting.wanted_len(Instant::now()),
                    store_epoch: store.to_string(),
                };
                client.allocate(request).await.and_then(messages::allocated)
            }
            Call::Return { incarnation, closed, registered_end } => {
                let blocks = vec![messages::returned_block(&closed, registered_end)];
                let request = pb::ReturnBlocksRequest { holder, incarnation: incarnation.0, blocks };
                client.return_blocks(request).await.map(|_| Answer::Returned)
            }
        }
    }

    async fn ask(&self, call: StoreCall, seen: Seen) -> Option<StoreAnswer> {
        let what = what(&call);
        match self.try_ask(call, seen).await {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "{what}");
                None
            }
        }
    }

    async fn try_ask(&self, call: StoreCall, seen: Seen) -> Result<StoreAnswer, StoreError> {
        let SupplierConfig { owner, register, .. } = &self.config;
        let entered = |registration| match registration {
            Registration::Registered => StoreAnswer::Entered,
            Registration::Overlaps => StoreAnswer::Overlaps,
        };
        Ok(match call {
            StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(register.adopt_ledger(&ledger).await?),
            StoreCall::RaiseMark(told) => {
                StoreAnswer::Raised(self.history.advance(register, told, seen).await?)
            }
            StoreCall::Epoch => StoreAnswer::Epoch(register.epoch().await?),
            StoreCall::Register(entry) => entered(register.register_block(&owner.entry(&entry)).await?),
            StoreCall::TakeOver(entry, leaked) => {
                entered(register.take_over_block(&owner.entry(&entry), leaked.0).await?)
            }
            StoreCall::Unused(index, span) => StoreAnswer::Unused(register.known_unused(index, span).await?),
            StoreCall::RegisteredEnd(index) => StoreAnswer::End(register.registered_end(index).await?),
            StoreCall::Release(entry, kept) => {
                match register.release_block(&owner.entry(&entry), &kept).await {
                    Ok(()) => StoreAnswer::Released,
                    Err(StoreError::Overlap) => StoreAnswer::Overlaps,
                    Err(error) => return Err(error),
                }
            }
        })
    }
}

/// Returns a description of a store call for the log.
fn what(call: &StoreCall) -> &'static str {
    match call {
        StoreCall::AdoptLedger(_) => "adopt the ledger",
        StoreCall::RaiseMark(_) => "raise the database's mark",
        StoreCall::Epoch => "ask for the database's history",
        StoreCall::Register(_) => "register a block",
        StoreCall::TakeOver(..) => "take over a block",
        StoreCall::Unused(..) => "look for unused numbers",
        StoreCall::RegisteredEnd(_) => "look for the register's end",
        StoreCall::Release(..) => "release a block",
    }
}

/// Samples the claim rates every second, also while the supplier waits for an unreachable issuer.
/// An operator needs to know then how long the supply lasts.
async fn sample(mintings: Vec<Arc<Minting>>) {
    let mut ticks = interval(Duration::from_secs(1));
    loop {
        let now = ticks.tick().await;
        mintings.iter().for_each(|minting| minting.sample(now));
    }
}

/// Triggers beats when the database server has restarted, so that the mark is raised.
async fn follow_starts(starts: Option<watch::Receiver<Option<Timestamp>>>, supplier: Arc<Supplier>) {
    let Some(mut start) = starts else { return };
    while start.changed().await.is_ok() {
        // The answer to the first beat lets the mark be raised; the second beat reports it.
        supplier.pace.request_beat();
        sleep(SECOND_BEAT).await;
        supplier.pace.request_beat();
    }
}
