//! The shell around the core: one task that feeds it events and runs its effects.
//!
//! One transaction is in flight at a time, and the calls that arrive meanwhile form the next one.
//! When a term ends, the future of its commit is dropped, because its outcome no longer matters.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use numbers::{Epoch, Millis, Ticket};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::{Answer, Core, Effect, Event, Limits, Refusal, Request},
    ledger::{Ledger, Txn, TxnOutcome},
    metrics::Metrics,
};

/// Capacity of the channel of calls to the driver. The core limits its own queue by itself.
const CALLS: usize = 1_024;
/// Maximum number of calls that are taken before the other events are checked.
const AT_ONCE: usize = 128;
/// Initial back-off before an unknown transaction is sent again. Doubles to [`AGAIN_MAX`].
const AGAIN_MIN: Duration = Duration::from_millis(20);
const AGAIN_MAX: Duration = Duration::from_secs(1);

/// Interval of the check for silent holders; short compared with any sensible holder TTL.
const TICK: Duration = Duration::from_millis(250);
/// Gap between two ticks after which the process counts as having been suspended.
const STOOD_STILL: Duration = Duration::from_secs(2);

type Caller = oneshot::Sender<Result<Answer, Refusal>>;

/// A handle to call the core. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    calls: mpsc::Sender<(Request, Caller)>,
    /// Whether the driver serves.
    pub standing: watch::Receiver<DriverState>,
}

impl Handle {
    /// Sends a request to the core and waits for the answer. It has no timeout of its own; the
    /// caller sets one. Returns the core's [`Refusal`], [`Refusal::NotLeader`] if the driver has
    /// stopped, or [`Refusal::Unknown`] if it stops before it answers.
    pub async fn call(&self, request: Request) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        // A driver that has stopped took no more calls: surely not executed.
        self.calls.send((request, answer)).await.map_err(|_| Refusal::NotLeader(None))?;
        // Each caller is kept until it is answered, so the driver has stopped in between.
        answered.await.unwrap_or(Err(Refusal::Unknown))
    }
}

/// The driver's state that the rest of the process can read without a call to the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverState {
    /// Whether the election has reported a result yet.
    pub informed: bool,
    /// Epoch that this issuer serves as leader; `None` otherwise.
    pub serving: Option<Epoch>,
}

type Commit = Pin<Box<dyn Future<Output = TxnOutcome> + Send>>;

/// The driver task, not yet running. [`Driver::run`] runs it.
pub struct Driver {
    core: Core,
    ledger: Arc<dyn Ledger>,
    metrics: Metrics,
    calls: mpsc::Receiver<(Request, Caller)>,
    elections: mpsc::Receiver<Event>,
    abdications: watch::Sender<u64>,
    standing: watch::Sender<DriverState>,
    /// The callers that wait, each with the time of its arrival.
    waiting: HashMap<Ticket, (Instant, Caller)>,
    /// Epoch of the last known leader.
    leader: Option<Epoch>,
    next_ticket: Ticket,
    commit: Option<Commit>,
    again: Duration,
    started: Instant,
    ticked: Instant,
}

/// The channels by which the rest of the process reaches the driver.
pub struct DriverChannels {
    /// Calls to the core.
    pub handle: Handle,
    /// Results of elections, for the driver: [`Event::Elected`] and [`Event::Following`].
    pub elections: mpsc::Sender<Event>,
    /// Count of abdications; grows when the driver wants to end its term.
    pub abdications: watch::Receiver<u64>,
}

impl Driver {
    /// Creates a driver that knows no leader yet, and its channels.
    pub fn new(limits: Limits, ledger: Arc<dyn Ledger>, metrics: Metrics) -> (Self, DriverChannels) {
        let (calls, calls_in) = mpsc::channel(CALLS);
        let (elections, elections_in) = mpsc::channel(8);
        let (abdications, abdications_in) = watch::channel(0);
        let (standing, standing_in) = watch::channel(DriverState::default());
        let driver = Self {
            core: Core::new(limits),
            ledger,
            metrics,
            calls: calls_in,
            elections: elections_in,
            abdications,
            standing,
            waiting: HashMap::new(),
            leader: None,
            next_ticket: Ticket(0),
            commit: None,
            again: AGAIN_MIN,
            started: Instant::now(),
            ticked: Instant::now(),
        };
        let handle = Handle { calls, standing: standing_in };
        (driver, DriverChannels { handle, elections, abdications: abdications_in })
    }

    /// Runs until every [`Handle`] is dropped. After `retire` is cancelled, it refuses new
    /// requests, and abdicates when the transaction in flight has ended.
    pub async fn run(mut self, retire: CancellationToken) {
        let mut retiring = false;
        let mut ticks = interval(TICK);
        let mut calls = Vec::with_capacity(AT_ONCE);
        loop {
            tokio::select! {
                biased;
                outcome = ended(&mut self.commit) => {
                    self.commit = None;
                    self.metrics.transaction(&outcome);
                    self.step(Event::Committed(outcome));
                }
                Some(event) = self.elections.recv() => {
                    self.hear(event);
                    if retiring {
                        self.step(Event::Retire);
                    }
                }
                () = retire.cancelled(), if !retiring => {
                    retiring = true;
                    self.step(Event::Retire);
                }
                _ = ticks.tick() => self.tick(),
                // Takes many calls at once: each round polls the transaction in flight first.
                taken = self.calls.recv_many(&mut calls, AT_ONCE) => {
                    if taken == 0 {
                        return;
                    }
                    calls.drain(..).for_each(|(request, caller)| self.take(request, caller));
                }
            }
            self.show();
        }
    }

    /// Ticks the core. If the last tick was long ago, the process was suspended, and the core is
    /// told first: beats that arrived meanwhile are not read yet.
    fn tick(&mut self) {
        let now = Instant::now();
        if now.duration_since(std::mem::replace(&mut self.ticked, now)) > STOOD_STILL {
            self.step(Event::Woke);
        }
        self.step(Event::Tick);
    }

    /// Takes the result of an election.
    fn hear(&mut self, event: Event) {
        self.commit = None;
        let leader = match &event {
            Event::Elected { epoch, .. } => Some(*epoch),
            Event::Following(Some(leader)) => Some(leader.epoch),
            _ => None,
        };
        if let Some(epoch) = leader
            && self.leader.replace(epoch).is_some_and(|before| before != epoch)
        {
            self.metrics.leader_changes.increment(1);
        }
        self.step(event);
        self.standing.send_modify(|standing| standing.informed = true);
    }

    fn take(&mut self, request: Request, caller: Caller) {
        self.next_ticket = self.next_ticket.next();
        self.waiting.insert(self.next_ticket, (Instant::now(), caller));
        self.step(Event::Arrived(self.next_ticket, request));
    }

    fn step(&mut self, event: Event) {
        let now = Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        for effect in self.core.step(now, event) {
            match effect {
                Effect::Answer(ticket, answer) => self.answer(ticket, answer),
                Effect::Commit { txn, again } => self.send(txn, again),
                Effect::Abdicate => self.abdications.send_modify(|count| *count += 1),
            }
        }
    }

    fn show(&self) {
        let serving = self.core.serving();
        self.standing
            .send_if_modified(|standing| std::mem::replace(&mut standing.serving, serving) != serving);
        self.metrics.serving(serving);
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, Refusal>) {
        if let Some((arrived, caller)) = self.waiting.remove(&ticket) {
            self.metrics.answered(&answer, arrived);
            // The caller may have given up. Its block comes back with the holder's next start.
            let _ = caller.send(answer);
        }
    }

    fn send(&mut self, txn: Txn, again: bool) {
        let pause = again.then_some(self.again);
        self.again = if again { (self.again * 2).min(AGAIN_MAX) } else { AGAIN_MIN };
        let (ledger, seconds) = (Arc::clone(&self.ledger), self.metrics.transaction_seconds.clone());
        self.commit = Some(Box::pin(async move {
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            let sent = Instant::now();
            let outcome = ledger.commit(&txn).await;
            seconds.record(sent.elapsed());
            outcome
        }));
    }
}

/// Waits for the outcome of the commit in flight. Never returns if there is none.
async fn ended(commit: &mut Option<Commit>) -> TxnOutcome {
    match commit {
        Some(commit) => commit.await,
        None => std::future::pending().await,
    }
}
