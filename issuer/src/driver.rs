//! The shell around the core: one task that feeds it events and runs its effects.
//!
//! One transaction is in flight at a time, so the calls that arrive meanwhile form the next one. The commit future of
//! a term that ended is dropped: its outcome concerns nobody any more.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use numbers::{Epoch, Millis, Ticket};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::{Answer, Core, Effect, Event, Leader, Limits, Refusal, Request},
    ledger::{Ledger, Snapshot, Txn, TxnOutcome},
    metrics::Metrics,
};

/// Calls that may wait for the driver itself; the core bounds what it queues.
const CALLS: usize = 1_024;
/// Calls that are taken before anything else is looked at.
const AT_ONCE: usize = 128;
/// First pause before a transaction in doubt is sent again; doubles up to [`AGAIN_MAX`].
const AGAIN_MIN: Duration = Duration::from_millis(20);
const AGAIN_MAX: Duration = Duration::from_secs(1);

/// How often silent holders are looked for; short against any sensible holder TTL.
const TICK: Duration = Duration::from_millis(250);
/// A gap between two ticks that is no mere lateness.
const STOOD_STILL: Duration = Duration::from_secs(2);

/// News from the election.
#[derive(Debug)]
pub enum Tidings {
    /// This issuer won.
    Elected {
        /// The epoch it won.
        epoch: Epoch,
        /// The ledger since.
        snapshot: Snapshot,
    },
    /// It does not lead (any more).
    Following(Option<Leader>),
}

struct Call {
    request: Request,
    answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// A way to reach the core; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
}

impl Handle {
    /// Asks the core. The wait is bounded by the caller's own deadline.
    ///
    /// # Errors
    /// When the core refuses, or the driver has stopped.
    pub async fn call(&self, request: Request) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        // A driver that has stopped took no call any more: surely not executed.
        self.calls.send(Call { request, answer }).await.map_err(|_| Refusal::NotLeader(None))?;
        // The driver holds every answer until it knows better, so a lost one means it stopped in between.
        answered.await.unwrap_or(Err(Refusal::Unknown))
    }
}

/// What the rest of the process may know of the driver without asking the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether the election has said anything yet.
    pub informed: bool,
    /// The epoch served, when this issuer leads.
    pub serving: Option<Epoch>,
}

struct Waiting {
    arrived: Instant,
    answer: oneshot::Sender<Result<Answer, Refusal>>,
}

type Commit = Pin<Box<dyn Future<Output = TxnOutcome> + Send>>;

/// The task's state.
pub struct Driver {
    core: Core,
    ledger: Arc<dyn Ledger>,
    metrics: Metrics,
    calls: mpsc::Receiver<Call>,
    tidings: mpsc::Receiver<Tidings>,
    abdications: watch::Sender<u64>,
    standing: watch::Sender<Standing>,
    waiting: HashMap<Ticket, Waiting>,
    /// The last leader heard of.
    leader: Option<Epoch>,
    next_ticket: Ticket,
    commit: Option<Commit>,
    again: Duration,
    started: Instant,
    ticked: Instant,
}

/// The ends that the rest of the process holds.
pub struct Ends {
    /// To ask.
    pub handle: Handle,
    /// To tell of elections.
    pub tidings: mpsc::Sender<Tidings>,
    /// Grows when the driver wants out of a term.
    pub abdications: watch::Receiver<u64>,
    /// Whether it serves.
    pub standing: watch::Receiver<Standing>,
}

impl Driver {
    /// A driver that follows nobody yet.
    #[must_use]
    pub fn new(limits: Limits, ledger: Arc<dyn Ledger>, metrics: Metrics) -> (Self, Ends) {
        let (calls, calls_in) = mpsc::channel(CALLS);
        let (tidings, tidings_in) = mpsc::channel(8);
        let (abdications, abdications_in) = watch::channel(0);
        let (standing, standing_in) = watch::channel(Standing::default());
        let driver = Self {
            core: Core::new(limits),
            ledger,
            metrics,
            calls: calls_in,
            tidings: tidings_in,
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
        let handle = Handle { calls };
        (driver, Ends { handle, tidings, abdications: abdications_in, standing: standing_in })
    }

    /// Runs until every [`Handle`] is gone. Once `retire` is cancelled it takes no more requests, and abdicates when
    /// the transaction in flight has ended.
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
                Some(news) = self.tidings.recv() => {
                    self.hear(news);
                    if retiring {
                        self.step(Event::Retire);
                    }
                }
                () = retire.cancelled(), if !retiring => {
                    retiring = true;
                    self.step(Event::Retire);
                }
                _ = ticks.tick() => self.tick(),
                // Many at once: each round of the loop looks at the transaction in flight first.
                taken = self.calls.recv_many(&mut calls, AT_ONCE) => {
                    if taken == 0 {
                        return;
                    }
                    calls.drain(..).for_each(|call| self.take(call));
                }
            }
            self.show();
        }
    }

    /// A process that stood still reads its clock before it reads the beats that wait for it.
    fn tick(&mut self) {
        let now = Instant::now();
        if now.duration_since(std::mem::replace(&mut self.ticked, now)) > STOOD_STILL {
            self.step(Event::Woke);
        }
        self.step(Event::Tick);
    }

    fn hear(&mut self, news: Tidings) {
        self.commit = None;
        let leader = match &news {
            Tidings::Elected { epoch, .. } => Some(*epoch),
            Tidings::Following(leader) => leader.as_ref().map(|leader| leader.epoch),
        };
        if let Some(epoch) = leader
            && self.leader.replace(epoch).is_some_and(|before| before != epoch)
        {
            self.metrics.leader_changed();
        }
        self.step(match news {
            Tidings::Elected { epoch, snapshot } => Event::Elected { epoch, snapshot },
            Tidings::Following(leader) => Event::Following(leader),
        });
        self.standing.send_modify(|standing| standing.informed = true);
    }

    fn take(&mut self, call: Call) {
        self.next_ticket = self.next_ticket.next();
        self.waiting.insert(self.next_ticket, Waiting { arrived: Instant::now(), answer: call.answer });
        self.step(Event::Arrived(self.next_ticket, call.request));
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

    /// Shows the rest of the process whether this issuer serves.
    fn show(&self) {
        let serving = self.core.serving();
        self.standing.send_if_modified(|standing| {
            let changed = standing.serving != serving;
            standing.serving = serving;
            changed
        });
        self.metrics.serving(serving);
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, Refusal>) {
        if let Some(waiting) = self.waiting.remove(&ticket) {
            self.metrics.answered(&answer, waiting.arrived);
            // The caller may have given up; a block it never hears of comes back with its next start.
            let _ = waiting.answer.send(answer);
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

/// The outcome of the commit in flight; never, when there is none.
async fn ended(commit: &mut Option<Commit>) -> TxnOutcome {
    match commit {
        Some(commit) => commit.await,
        None => std::future::pending().await,
    }
}
