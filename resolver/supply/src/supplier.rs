//! The shell of the pure core: carries out its calls to the issuer, its store calls and its waits.
//!
//! The rules are in [`holder::core`]. This module adds the clock, the connections to issuer and
//! store, the log and the metrics.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use codes::Contradiction;
use holder::{Answer, Call, Effect, Event, Note, Refused, Session, StoreAnswer, StoreCall, SupplyCore};
use proto::issuer::v1 as pb;
use store::{Register, Registration, StoreError};
use tokio::{
    sync::watch,
    time::{Instant, interval, sleep, sleep_until, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    ceilings::SharedCeilings,
    heartbeat::Heartbeat,
    history::{History, Seen},
    issuer_client::IssuerClient,
    messages,
    minting::{Minting, Shared},
    owner::Owner,
    pace::Pace,
};
use crate::{metrics::SupplyMetrics, safety_rule};

/// The time limit at shutdown for a call under way, and again for returning all blocks.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// The delay of the second beat after the one that a restart of the database server triggers.
const SECOND_BEAT: Duration = Duration::from_secs(1);

/// The configuration and connections of a supplier.
pub struct SupplierConfig {
    /// The owner of the blocks.
    pub owner: Owner,
    /// The client of the issuer.
    pub client: Arc<IssuerClient>,
    /// The store with the block register.
    pub register: Arc<dyn Register>,
    /// The keyspaces that this process mints in.
    pub mintings: Vec<Arc<Minting>>,
    /// The collection that receives trusted ceilings.
    pub ceilings: Arc<SharedCeilings>,
    /// The metrics of the supply.
    pub metrics: Arc<SupplyMetrics>,
}

/// The reason why a holder mints no more, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A later start of the same holder has registered. Carries the issuer's message.
    Superseded(String),
    /// The issuer's ledger is not the one that the database has adopted.
    AnotherLedger {
        /// The id of the issuer's ledger.
        issuer: String,
        /// The id of the ledger that the database has adopted.
        database: String,
    },
    /// The database contradicts the keyspaces of this process.
    Keyspaces(Contradiction),
}

impl From<holder::Lost> for StopReason {
    fn from(lost: holder::Lost) -> Self {
        match lost {
            holder::Lost::Superseded(reason) => Self::Superseded(reason),
            holder::Lost::AnotherLedger { issuer, database } => Self::AnotherLedger { issuer, database },
        }
    }
}

/// A handle for other parts of the process to end minting for good.
#[derive(Clone, Debug)]
pub struct Closing {
    mintings: Vec<Arc<Minting>>,
    lost: watch::Sender<Option<StopReason>>,
}

impl Closing {
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

/// The core, and the state that the supplier and the heartbeat share.
pub(super) struct Holder {
    pub(super) config: SupplierConfig,
    /// A std mutex: it is held for one step and never across an await.
    core: Mutex<SupplyCore>,
    pub(super) session: watch::Sender<Option<Session>>,
    pub(super) lost: watch::Sender<Option<StopReason>>,
    pub(super) pace: Arc<Pace>,
    pub(super) history: History,
}

impl Holder {
    fn core(&self) -> MutexGuard<'_, SupplyCore> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a function with the core and the keyspaces.
    pub(super) fn with_core<T>(&self, act: impl FnOnce(&mut SupplyCore, &mut Shared<'_>) -> T) -> T {
        act(&mut self.core(), &mut Shared(&self.config.mintings))
    }

    /// Carries out the effects that need no answer, and returns the one that does.
    pub(super) fn apply(&self, effects: Vec<Effect>) -> Option<Effect> {
        let mut next = None;
        for effect in effects {
            match effect {
                Effect::Session => {
                    self.session.send_replace(self.core().session());
                }
                Effect::WakeCreators(keyspace) => self.config.mintings[keyspace].came(),
                Effect::BeatNow => self.pace.hurry(),
                Effect::Note(note) => self.report(note),
                Effect::Lost(lost) => {
                    self.lost.send_if_modified(|first| {
                        let is_first = first.is_none();
                        first.get_or_insert(lost.into());
                        is_first
                    });
                }
                other => next = Some(other),
            }
        }
        next
    }

    fn report(&self, note: Note) {
        let metrics = &self.config.metrics;
        let namespace = |keyspace: usize| &self.config.mintings[keyspace].namespace;
        match note {
            Note::Registered(incarnation) => tracing::info!(%incarnation, "registered with the issuer"),
            Note::AnotherLedger { issuer, database } => tracing::error!(
                issuer,
                database,
                "the issuer has another ledger than this database's numbers come from"
            ),
            Note::Missed(block) => tracing::info!(
                start = block.span.start(),
                len = block.span.len(),
                "a block was missed, and comes in"
            ),
            Note::Refilled(keyspace) => {
                tracing::debug!(namespace = %namespace(keyspace), "a block came in");
            }
            Note::TakenOver(block, unused) => {
                metrics.reclaimed.increment(unused);
                let (start, len) = (block.span.start(), block.span.len());
                tracing::info!(start, len, unused, "reclaimed a block");
            }
            Note::Overlaps { block, .. } => {
                metrics.blocks_overlapping.increment(1);
                tracing::error!(
                    start = block.span.start(),
                    len = block.span.len(),
                    generation = block.generation.0,
                    "the register has numbers of this block already: none of it is used. \
                     Was the issuer's ledger restored from a backup, or does another one serve this database?"
                );
            }
            Note::Exhausted(keyspace) => {
                tracing::error!(namespace = %namespace(keyspace), "every number of the keyspace is used");
            }
            Note::InOtherHands(keyspace) => {
                tracing::debug!(namespace = %namespace(keyspace), "the last numbers are in other hands");
            }
            Note::Refused(what, refused) => {
                metrics.refills_failed.increment(1);
                tracing::error!(error = &refused as &dyn std::error::Error, "{what}");
            }
            Note::NotReturned(refused) => {
                tracing::warn!(error = &refused as &dyn std::error::Error, "return a block");
            }
            Note::TooManyGaps(block) => {
                let start = block.span.start();
                tracing::info!(start, "too many gaps to return a block: it will be reclaimed");
            }
        }
    }
}

/// The task that keeps the buffers filled.
pub struct Supplier {
    holder: Arc<Holder>,
    /// The database server's start time when the ledger was last asked.
    seen: Seen,
    /// The time at which the block under way was requested.
    asked: Instant,
}

impl Supplier {
    /// Creates a supplier that has not registered yet.
    #[must_use]
    pub fn new(config: SupplierConfig) -> Self {
        let specs = config.mintings.iter().map(|minting| minting.spec()).collect();
        let holder = Holder {
            config,
            core: Mutex::new(SupplyCore::new(specs, safety_rule::rules())),
            session: watch::Sender::new(None),
            lost: watch::Sender::new(None),
            pace: Arc::default(),
            history: History::default(),
        };
        Self { holder: Arc::new(holder), seen: Seen::default(), asked: Instant::now() }
    }

    /// Returns a channel that reports when and why this holder stops minting.
    #[must_use]
    pub fn lost(&self) -> watch::Receiver<Option<StopReason>> {
        self.holder.lost.subscribe()
    }

    /// Returns a handle that ends minting for good.
    #[must_use]
    pub fn closing(&self) -> Closing {
        Closing { mintings: self.holder.config.mintings.clone(), lost: self.holder.lost.clone() }
    }

    /// Runs until `stop` is cancelled, then returns the unused blocks. Creators must have ended
    /// before that. A holder that is lost returns nothing, because its blocks belong to another
    /// now.
    pub async fn run(mut self, stop: CancellationToken) {
        let holder = Arc::clone(&self.holder);
        let _beats = AbortOnDropHandle::new(tokio::spawn(Heartbeat::new(Arc::clone(&holder)).run()));
        let starts = follow_starts(&*holder.config.register, Arc::clone(&holder.pace));
        let _starts = AbortOnDropHandle::new(tokio::spawn(starts));
        let _samples = AbortOnDropHandle::new(tokio::spawn(sample(holder.config.mintings.clone())));
        {
            // A call under way may finish: a block that is allocated now and whose answer is lost
            // would be leaked.
            let mut supply = std::pin::pin!(self.supply(&stop));
            let ended = tokio::select! {
                () = &mut supply => true,
                () = stop.cancelled() => {
                    let parts = if holder.session.borrow().is_some() { 2 } else { 1 };
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

    /// Steps the core until it is done or lost.
    async fn supply(&mut self, stop: &CancellationToken) {
        let (mut event, mut stopping) = (Event::Woken, false);
        let holder = Arc::clone(&self.holder);
        while holder.lost.borrow().is_none() {
            if stop.is_cancelled() && !stopping {
                stopping = true;
                event = self.stopped(event);
            }
            let effects = self.step(event);
            event = match holder.apply(effects) {
                Some(Effect::Call(call)) => Event::Answered(self.call(call).await),
                Some(Effect::Store(call)) => Event::Stored(self.ask(call).await),
                Some(Effect::Wait { until, for_demand }) => {
                    let until = holder.config.ceilings.clock().instant(until);
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

    fn step(&self, event: Event) -> Vec<Effect> {
        let SupplierConfig { ceilings, metrics, .. } = &self.holder.config;
        let now = ceilings.clock().now();
        let effects = self.holder.with_core(|core, keyspaces| core.step(now, event, keyspaces));
        if effects.iter().any(|effect| matches!(effect, Effect::Note(Note::Refilled(_)))) {
            metrics.refill_seconds.record(self.asked.elapsed());
        }
        effects
    }

    /// Tells the core to stop, and returns the next event. A stop replaces the end of a wait. An
    /// answer to a call is still delivered.
    fn stopped(&self, event: Event) -> Event {
        if event == Event::Woken {
            return Event::Stop;
        }
        self.step(Event::Stop);
        event
    }

    /// Waits until `until`, until numbers run low if `for_demand`, or until this holder is lost.
    async fn wait(&self, until: Instant, for_demand: bool) {
        let mut lost = self.holder.lost.subscribe();
        tokio::select! {
            _ = lost.wait_for(Option::is_some) => {}
            _ = timeout_at(until, self.wanted()), if for_demand => {}
            () = sleep_until(until), if !for_demand => {}
        }
    }

    /// Waits until numbers of some keyspace run low.
    async fn wanted(&self) {
        let mintings = &self.holder.config.mintings;
        let mut wanted: Vec<_> = mintings.iter().map(|minting| Box::pin(minting.wanted())).collect();
        std::future::poll_fn(|context| {
            let ready = wanted.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    async fn call(&mut self, call: Call) -> Result<Answer, Refused> {
        let SupplierConfig { owner, client, mintings, register, .. } = &self.holder.config;
        let holder = owner.holder.clone();
        match call {
            Call::Register { namespaces } => {
                // A mark that is raised after the answer is reported with the first beat.
                self.seen = Seen::now(register);
                let specs = namespaces.into_iter();
                let specs =
                    specs.map(|(name, capacity)| pb::NamespaceSpec { name: name.to_string(), capacity });
                let (instance, namespaces) = (owner.instance.clone(), specs.collect());
                let request = pb::RegisterRequest { holder, instance, namespaces, reserved: false };
                client.register(request).await.map(|answer| Answer::Registered(messages::registered(answer)))
            }
            Call::Allocate { keyspace, incarnation, seq, store } => {
                self.asked = Instant::now();
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

    /// Makes a store call once; `None` if it failed.
    async fn ask(&self, call: StoreCall) -> Option<StoreAnswer> {
        let what = what(&call);
        match self.try_ask(call).await {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "{what}");
                None
            }
        }
    }

    async fn try_ask(&self, call: StoreCall) -> Result<StoreAnswer, StoreError> {
        let SupplierConfig { owner, register, .. } = &self.holder.config;
        let entered = |registration| match registration {
            Registration::Registered => StoreAnswer::Entered,
            Registration::Overlaps => StoreAnswer::Overlaps,
        };
        Ok(match call {
            StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(register.adopt_ledger(&ledger).await?),
            StoreCall::RaiseMark(told) => {
                StoreAnswer::Raised(self.holder.history.advance(register, told, self.seen).await?)
            }
            StoreCall::Epoch => StoreAnswer::Epoch(register.epoch().await?),
            StoreCall::Register(entry) => entered(register.register_block(&owner.entry(&entry)).await?),
            StoreCall::TakeOver(entry, leaked) => {
                entered(register.take_over_block(&owner.entry(&entry), leaked.0).await?)
            }
            StoreCall::Unused(index, span) => StoreAnswer::Unused(register.unused(index, span).await?),
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
fn follow_starts(register: &dyn Register, pace: Arc<Pace>) -> impl Future<Output = ()> + Send + 'static {
    let start = register.server_start();
    async move {
        let Some(mut start) = start else { return };
        while start.changed().await.is_ok() {
            // The answer to the first beat lets the mark be raised; the second beat reports it.
            pace.hurry();
            sleep(SECOND_BEAT).await;
            pace.hurry();
        }
    }
}
