//! Keeps the buffers filled: registers with the issuer, asks for blocks, and lets them in and out.
//!
//! 1. I5: allocations go out one at a time with a seq that grows by one; a call in doubt is repeated with its own seq.
//! 2. A block is in the database's register before a number of it is claimed. One that overlaps is never used.
//! 3. A block is released in the register before it is returned to the issuer: the next holder registers the same numbers.
//! 4. When the issuer says that a later start of this holder has registered, this process mints no more, and never registers again:
//!    two processes that did would take the holder from each other without end. The younger one wins, as a restart must.
//! 5. Numbers come from one ledger for good: the first one that the database has seen.
//! 6. Nothing here is needed to mint from blocks in hand: the issuer may be away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use codes::Contradiction;
use numbers::{Block, Generation, Mark, Namespace, Span, StoreEpoch};
use proto::issuer::v1 as pb;
use store::LinkStore;
use tokio::{
    sync::watch,
    time::{Instant, interval, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    buffer::EntryId,
    ceilings::Ceilings,
    enter::{Allocated, Entrance, Owner, until_it_answers},
    heartbeat::Heartbeat,
    history::{History, Seen},
    issuer_client::{IssuerClient, Refused},
    minting::Minting,
    pace::Pace,
    returns::{Returning, Returns},
};
use crate::metrics::SupplyMetrics;

/// How long an exhausted keyspace or a refusal rests before the next try.
const REST: Duration = Duration::from_secs(2);
/// How long a keyspace rests whose last numbers are in other hands.
const SCARCE_REST: Duration = Duration::from_millis(250);
/// How often used-up blocks are looked for when nothing else wakes the supplier.
const SWEEP: Duration = Duration::from_secs(1);
/// How long giving everything back may take at the end.
const RETURN_DEADLINE: Duration = Duration::from_secs(5);
/// Pause before what could not be given back at the end is tried again.
const RETURN_PAUSE: Duration = Duration::from_millis(200);

/// How long after a beat that was wanted at once another one follows.
const SECOND_BEAT: Duration = Duration::from_secs(1);

/// What a supplier works with.
pub struct SupplierConfig {
    /// Whose blocks they are.
    pub owner: Owner,
    /// The way to the issuer.
    pub client: Arc<IssuerClient>,
    /// The register.
    pub store: Arc<dyn LinkStore>,
    /// The keyspaces that mint.
    pub mintings: Vec<Arc<Minting>>,
    /// Where trusted ceilings go.
    pub ceilings: Arc<Ceilings>,
    /// What an operator sees.
    pub metrics: Arc<SupplyMetrics>,
}

/// A registration that the issuer has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) incarnation: u64,
    pub(super) holder_ttl: Duration,
}

/// Why a holder mints no more, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A later start of the same holder has registered; what the issuer said.
    Superseded(String),
    /// The issuer's ledger is not the one that the database's numbers come from.
    AnotherLedger {
        /// What the issuer has.
        issuer: String,
        /// What the database has adopted.
        database: String,
    },
    /// The database contradicts the keyspaces that this process knows.
    Keyspaces(Contradiction),
}

/// Ends minting for good, from a part of the process that has found a reason.
#[derive(Clone, Debug)]
pub struct Closing {
    mintings: Vec<Arc<Minting>>,
    lost: watch::Sender<Option<Lost>>,
}

impl Closing {
    /// Refuses every claim from now on, and tells the daemon why. The first reason counts.
    pub fn close(&self, why: Lost) {
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

/// The task's state.
pub struct Supplier {
    config: SupplierConfig,
    entrance: Entrance,
    returns: Returns,
    history: Arc<History>,
    session: watch::Sender<Option<Session>>,
    /// The last seq that was answered in this session, and its incarnation.
    seq: u64,
    incarnation: u64,
    /// The last seq whose block is in a buffer.
    entered: Arc<AtomicU64>,
    pace: Arc<Pace>,
    lost: watch::Sender<Option<Lost>>,
    /// Whether the issuer's ledger was once the database's.
    confirmed: bool,
    rests: Vec<Option<Instant>>,
}

impl Supplier {
    /// A supplier that has not registered yet.
    #[must_use]
    pub fn new(config: SupplierConfig) -> Self {
        let history = Arc::<History>::default();
        let entrance = Entrance {
            owner: config.owner.clone(),
            store: Arc::clone(&config.store),
            metrics: Arc::clone(&config.metrics),
            entries: EntryId(0),
        };
        let returns =
            Returns::new(config.owner.clone(), Arc::clone(&config.client), Arc::clone(&config.store));
        let rests = vec![None; config.mintings.len()];
        Self {
            config,
            entrance,
            returns,
            history,
            session: watch::Sender::new(None),
            seq: 0,
            incarnation: 0,
            entered: Arc::default(),
            pace: Arc::default(),
            lost: watch::Sender::new(None),
            confirmed: false,
            rests,
        }
    }

    /// Tells when this holder mints no more, and why.
    #[must_use]
    pub fn lost(&self) -> watch::Receiver<Option<Lost>> {
        self.lost.subscribe()
    }

    /// What ends minting for good.
    #[must_use]
    pub fn closing(&self) -> Closing {
        Closing { mintings: self.config.mintings.clone(), lost: self.lost.clone() }
    }

    /// Works until told to stop; then gives back what is left. Creators must have ended before that. A holder that is lost gives
    /// nothing back: its blocks are another's.
    pub async fn run(mut self, stop: CancellationToken) {
        let _beats = AbortOnDropHandle::new(tokio::spawn(self.heartbeat().run()));
        let _starts =
            AbortOnDropHandle::new(tokio::spawn(follow_starts(&*self.config.store, Arc::clone(&self.pace))));
        let _samples = AbortOnDropHandle::new(tokio::spawn(sample(self.config.mintings.clone())));
        {
            // A call under way is let end: a block that is allocated now and not heard of would be leaked.
            let mut supply = std::pin::pin!(self.supply(&stop));
            tokio::select! {
                () = &mut supply => {}
                () = stop.cancelled() => { let _ = timeout(RETURN_DEADLINE, supply).await; }
            }
        }
        if self.is_lost() {
            return;
        }
        if timeout(RETURN_DEADLINE, self.return_all()).await.is_err() {
            tracing::warn!("the issuer or the database did not take the unused numbers back in time");
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            holder: self.config.owner.holder.clone(),
            client: Arc::clone(&self.config.client),
            store: Arc::clone(&self.config.store),
            mintings: self.config.mintings.clone(),
            ceilings: Arc::clone(&self.config.ceilings),
            session: self.session.clone(),
            entered: Arc::clone(&self.entered),
            pace: Arc::clone(&self.pace),
            history: Arc::clone(&self.history),
            lost: self.lost.clone(),
        }
    }

    async fn supply(&mut self, stop: &CancellationToken) {
        while !stop.is_cancelled() && !self.is_lost() {
            let session = *self.session.borrow();
            match session {
                None => self.register().await,
                Some(session) => {
                    for index in 0..self.config.mintings.len() {
                        self.refill(index, session, stop).await;
                    }
                    self.return_closed(session).await;
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wait() => {}
            }
        }
        if self.is_lost() {
            self.config.mintings.iter().for_each(|minting| minting.close());
            stop.cancelled().await;
        }
    }

    fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Until numbers run low somewhere, the holder is lost, or it is time to look at used-up blocks or to ask again.
    async fn wait(&self) {
        let mut lost = self.lost.subscribe();
        let mut wanted: Vec<_> =
            self.config.mintings.iter().map(|minting| Box::pin(minting.wanted())).collect();
        let any = std::future::poll_fn(|context| {
            let ready = wanted.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        let now = Instant::now();
        let rested = self.rests.iter().flatten().copied().filter(|until| *until > now).min();
        let until = rested.map_or(now + SWEEP, |until| until.min(now + SWEEP));
        tokio::select! {
            _ = timeout_at(until, any) => {}
            _ = lost.wait_for(Option::is_some) => {}
        }
    }

    async fn register(&mut self) {
        let namespaces = self.config.mintings.iter().map(|minting| pb::NamespaceSpec {
            name: minting.namespace.to_string(),
            capacity: minting.capacity(),
        });
        let Owner { holder, instance } = self.config.owner.clone();
        let namespaces = namespaces.collect();
        let seen = Seen::now(&self.config.store);
        // What this process has raised the mark to is told with the first beat.
        let request = pb::RegisterRequest { holder, instance, namespaces, reserved: false };
        match self.config.client.register(request).await {
            Ok(answer) => {
                let pb::RegisterResponse { incarnation, epoch, last_seq, holder_ttl_ms, ledger, mark } =
                    answer;
                if !self.is_of_this_ledger(ledger).await {
                    return;
                }
                let (history, store) = (&self.history, &self.config.store);
                let advance = || history.advance(store, Mark(mark), seen);
                if !until_it_answers("raise the database's mark", advance).await {
                    return;
                }
                tracing::info!(incarnation, epoch, "registered with the issuer");
                let has_missed = self.incarnation == incarnation && last_seq > self.seq;
                if has_missed && !self.return_missed(incarnation, last_seq).await {
                    return;
                }
                self.entered.store(last_seq, Ordering::Release);
                (self.incarnation, self.seq) = (incarnation, last_seq);
                let holder_ttl = Duration::from_millis(holder_ttl_ms.max(1_000));
                self.session.send_replace(Some(Session { incarnation, holder_ttl }));
                self.config.mintings.iter().for_each(|minting| minting.want());
            }
            Err(refused) => self.refused("register", &refused).await,
        }
    }

    /// Returns a block that the issuer allocated to a late copy of a refused request. It goes back
    /// unused, because the history it was allocated for is unknown. False if the outcome is unknown.
    async fn return_missed(&mut self, incarnation: u64, seq: u64) -> bool {
        let store_epoch = self.entrance.epoch().await;
        for minting in self.config.mintings.clone() {
            let answer = self.ask(&minting, (incarnation, seq), &store_epoch).await;
            match answer.and_then(|answer| block_of(&minting, answer)) {
                Ok((block, _)) => {
                    tracing::info!(
                        start = block.span.start(),
                        len = block.span.len(),
                        "a block was missed, and goes back"
                    );
                    self.returns.push(Returning::untouched(&minting, block));
                }
                // Of another keyspace, or taken from this holder since.
                Err(Refused::NotRegistered(_)) => {}
                Err(refused) => {
                    self.refused("ask for a block that was missed", &refused).await;
                    return false;
                }
            }
        }
        true
    }

    /// Whether the issuer's numbers are those of this database. If not, a process that starts ends, before it mints; one that runs goes
    /// on without new numbers, because its redirects need none.
    async fn is_of_this_ledger(&mut self, issuer: String) -> bool {
        if issuer.is_empty() {
            // An issuer of an earlier release.
            return true;
        }
        let store = &self.config.store;
        let database = until_it_answers("adopt the ledger", || store.adopt_ledger(&issuer)).await;
        if database == issuer {
            self.confirmed = true;
            return true;
        }
        tracing::error!(
            issuer,
            database,
            "the issuer has another ledger than this database's numbers come from"
        );
        if self.confirmed {
            sleep(REST).await;
        } else {
            self.lost.send_replace(Some(Lost::AnotherLedger { issuer, database }));
        }
        false
    }

    async fn refill(&mut self, index: usize, session: Session, stop: &CancellationToken) {
        let minting = Arc::clone(&self.config.mintings[index]);
        if self.rests[index].is_some_and(|until| Instant::now() < until) {
            return;
        }
        while minting.wants_block() && !stop.is_cancelled() && *self.session.borrow() == Some(session) {
            let started = Instant::now();
            match self.allocate(&minting, session).await {
                Ok(allocated) => {
                    if let Some(returning) = self.entrance.enter(&minting, allocated).await {
                        self.returns.push(returning);
                    }
                    self.entered.store(self.seq, Ordering::Release);
                    self.config.metrics.refill_seconds.record(started.elapsed());
                }
                Err(Refused::Exhausted) => {
                    minting.exhaust();
                    tracing::error!(namespace = %minting.namespace, "every number of the keyspace is used");
                    self.rests[index] = Some(Instant::now() + REST);
                    return;
                }
                Err(Refused::InOtherHands) => {
                    minting.starve();
                    // The others hear of it with their beats, and the issuer hears that this one has none.
                    self.pace.hurry();
                    tracing::debug!(namespace = %minting.namespace, "the last numbers are in other hands");
                    self.rests[index] = Some(Instant::now() + SCARCE_REST);
                    return;
                }
                Err(refused) => return self.refused("allocate a block", &refused).await,
            }
        }
    }

    async fn allocate(&mut self, minting: &Minting, session: Session) -> Result<Allocated, Refused> {
        let store_epoch = self.entrance.epoch().await;
        let seq = self.seq + 1;
        let answer = self.ask(minting, (session.incarnation, seq), &store_epoch).await?;
        self.seq = seq;
        // None from an issuer of an earlier release.
        let store_epoch = StoreEpoch::new(answer.store_epoch.clone()).unwrap_or(store_epoch);
        let (block, leaked) = block_of(minting, answer)?;
        Ok(Allocated { block, incarnation: session.incarnation, leaked, store_epoch })
    }

    async fn ask(
        &self,
        minting: &Minting,
        (incarnation, seq): (u64, u64),
        store_epoch: &StoreEpoch,
    ) -> Result<pb::AllocateBlockResponse, Refused> {
        let request = pb::AllocateBlockRequest {
            holder: self.config.owner.holder.clone(),
            incarnation,
            seq,
            namespace: minting.namespace.to_string(),
            wanted_len: minting.wanted_len(Instant::now()),
            store_epoch: store_epoch.to_string(),
        };
        self.config.client.allocate(request).await
    }

    async fn return_closed(&mut self, session: Session) {
        for minting in &self.config.mintings {
            for closed in minting.take_closed() {
                self.returns.push(Returning::closed(minting, closed));
            }
        }
        self.returns.sweep(session.incarnation).await;
    }

    async fn return_all(&mut self) {
        let session = *self.session.borrow();
        let Some(session) = session else { return };
        for minting in &self.config.mintings {
            for closed in minting.take_all() {
                self.returns.push(Returning::closed(minting, closed));
            }
        }
        self.returns.sweep(session.incarnation).await;
        while !self.returns.is_empty() {
            sleep(RETURN_PAUSE).await;
            self.returns.sweep(session.incarnation).await;
        }
    }

    async fn refused(&mut self, what: &'static str, refused: &Refused) {
        if let Refused::Superseded(reason) = refused {
            self.lost.send_replace(Some(Lost::Superseded(reason.clone())));
            return;
        }
        self.config.metrics.refills_failed.increment(1);
        tracing::error!(error = refused as &dyn std::error::Error, "{what}");
        if let Refused::NotRegistered(_) = refused {
            self.session.send_replace(None);
        }
        sleep(REST).await;
    }
}

/// Keeps the rates up to date, also while the supplier waits for an issuer that is away: how long the supply lasts is what an
/// operator wants to know then.
async fn sample(mintings: Vec<Arc<Minting>>) {
    let mut ticks = interval(Duration::from_secs(1));
    loop {
        let now = ticks.tick().await;
        mintings.iter().for_each(|minting| minting.sample(now));
    }
}

/// Wants a beat when the database's server was started: it raises the mark.
fn follow_starts(store: &dyn LinkStore, pace: Arc<Pace>) -> impl Future<Output = ()> + Send + 'static {
    let start = store.server_start();
    async move {
        let Some(mut start) = start else { return };
        while start.changed().await.is_ok() {
            // The answer to the first lets the mark be raised, and the second tells it.
            pace.hurry();
            sleep(SECOND_BEAT).await;
            pace.hurry();
        }
    }
}

/// The block of an answer, and the generation it was leaked under.
fn block_of(minting: &Minting, answer: pb::AllocateBlockResponse) -> Result<(Block, u64), Refused> {
    let block = answer.block.and_then(block_in).filter(|block| block.namespace == minting.namespace);
    let block = block.ok_or(Refused::Malformed("a block of the namespace that was asked for"))?;
    Ok((block, answer.leaked_generation))
}

fn block_in(message: pb::Block) -> Option<Block> {
    Some(Block {
        namespace: Namespace::new(message.namespace).ok()?,
        span: Span::new(message.start, message.len).ok()?,
        generation: Generation(message.generation),
    })
}
