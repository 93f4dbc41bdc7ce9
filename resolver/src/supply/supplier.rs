//! Keeps the buffers filled: registers with the issuer, asks for blocks, and lets them in and out.
//!
//! 1. I5: allocations go out one at a time with a seq that grows by one; a call in doubt is repeated with its own seq.
//! 2. A block is in the database's register before a number of it is claimed. One that overlaps is never used.
//! 3. A block is released in the register before it is returned to the issuer: the next holder registers the same numbers.
//! 4. Nothing here is needed to mint from blocks in hand: the issuer may be away.

use std::{sync::Arc, time::Duration};

use issuer::{
    block::{Block, Span},
    names::Namespace,
    tokens::Generation,
};
use proto::issuer::v1 as pb;
use tokio::{
    sync::watch,
    time::{Instant, interval, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    buffer::EntryId,
    ceilings::Ceilings,
    enter::{Allocated, Entrance, Owner},
    heartbeat::Heartbeat,
    issuer_client::{IssuerClient, Refused},
    minting::Minting,
    returns::{Returning, Returns},
};
use crate::{metrics::Metrics, store::LinkStore};

/// How long an exhausted keyspace or a refusal rests before the next try.
const REST: Duration = Duration::from_secs(2);
/// How often used-up blocks are looked for when nothing else wakes the supplier.
const SWEEP: Duration = Duration::from_secs(1);
/// How long giving everything back may take at the end.
const RETURN_DEADLINE: Duration = Duration::from_secs(5);
/// Pause before what could not be given back at the end is tried again.
const RETURN_PAUSE: Duration = Duration::from_millis(200);

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
    pub metrics: Arc<Metrics>,
}

/// A registration that the issuer has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) incarnation: u64,
    pub(super) holder_ttl: Duration,
}

/// The task's state.
pub struct Supplier {
    config: SupplierConfig,
    entrance: Entrance,
    returns: Returns,
    session: watch::Sender<Option<Session>>,
    /// The last seq that was answered in this session.
    seq: u64,
    rests: Vec<Option<Instant>>,
}

impl Supplier {
    /// A supplier that has not registered yet.
    #[must_use]
    pub fn new(config: SupplierConfig) -> Self {
        let entrance = Entrance {
            owner: config.owner.clone(),
            store: Arc::clone(&config.store),
            metrics: Arc::clone(&config.metrics),
            entries: EntryId(0),
        };
        let returns =
            Returns::new(config.owner.clone(), Arc::clone(&config.client), Arc::clone(&config.store));
        let rests = vec![None; config.mintings.len()];
        Self { config, entrance, returns, session: watch::Sender::new(None), seq: 0, rests }
    }

    /// Works until told to stop; then gives back what is left. Creators must have ended before that.
    pub async fn run(mut self, stop: CancellationToken) {
        let _beats = AbortOnDropHandle::new(tokio::spawn(self.heartbeat().run()));
        let _samples = AbortOnDropHandle::new(tokio::spawn(sample(self.config.mintings.clone())));
        {
            // A call under way is let end: a block that is allocated now and not heard of would be leaked.
            let mut supply = std::pin::pin!(self.supply(&stop));
            tokio::select! {
                () = &mut supply => {}
                () = stop.cancelled() => { let _ = timeout(RETURN_DEADLINE, supply).await; }
            }
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
        }
    }

    async fn supply(&mut self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
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
    }

    /// Until numbers run low somewhere, or it is time to look at used-up blocks.
    async fn wait(&self) {
        let mut wanted: Vec<_> =
            self.config.mintings.iter().map(|minting| Box::pin(minting.wanted())).collect();
        let any = std::future::poll_fn(|context| {
            let ready = wanted.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        let _ = timeout(SWEEP, any).await;
    }

    async fn register(&mut self) {
        let namespaces = self.config.mintings.iter().map(|minting| pb::NamespaceSpec {
            name: minting.namespace.to_string(),
            capacity: minting.capacity(),
        });
        let Owner { holder, instance } = self.config.owner.clone();
        let request =
            pb::RegisterRequest { holder, instance, namespaces: namespaces.collect(), reserved: false };
        match self.config.client.register(request).await {
            Ok(answer) => {
                let pb::RegisterResponse { incarnation, epoch, last_seq, holder_ttl_ms } = answer;
                tracing::info!(incarnation, epoch, "registered with the issuer");
                self.seq = last_seq;
                let holder_ttl = Duration::from_millis(holder_ttl_ms.max(1_000));
                self.session.send_replace(Some(Session { incarnation, holder_ttl }));
                self.config.mintings.iter().for_each(|minting| minting.want());
            }
            Err(refused) => self.refused("register", &refused).await,
        }
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
                    self.config.metrics.refill_seconds.record(started.elapsed());
                }
                Err(Refused::Exhausted) => {
                    minting.exhaust();
                    tracing::error!(namespace = %minting.namespace, "every number of the keyspace is allocated");
                    self.rests[index] = Some(Instant::now() + REST);
                    return;
                }
                Err(refused) => return self.refused("allocate a block", &refused).await,
            }
        }
    }

    async fn allocate(&mut self, minting: &Minting, session: Session) -> Result<Allocated, Refused> {
        let store_epoch = self.entrance.epoch().await;
        let request = pb::AllocateBlockRequest {
            holder: self.config.owner.holder.clone(),
            incarnation: session.incarnation,
            seq: self.seq + 1,
            namespace: minting.namespace.to_string(),
            wanted_len: minting.wanted_len(Instant::now()),
            store_epoch: store_epoch.to_string(),
        };
        let answer = self.config.client.allocate(request).await?;
        self.seq += 1;
        let block = answer.block.and_then(block_in).filter(|block| block.namespace == minting.namespace);
        let block = block.ok_or(Refused::Malformed("a block of the namespace that was asked for"))?;
        let (incarnation, leaked) = (session.incarnation, answer.leaked_generation);
        Ok(Allocated { block, incarnation, leaked, store_epoch })
    }

    async fn return_closed(&mut self, session: Session) {
        for minting in &self.config.mintings {
            for closed in minting.take_closed() {
                self.returns.push(Returning::closed(minting.index, closed));
            }
        }
        self.returns.sweep(session.incarnation).await;
    }

    async fn return_all(&mut self) {
        let session = *self.session.borrow();
        let Some(session) = session else { return };
        for minting in &self.config.mintings {
            for closed in minting.take_all() {
                self.returns.push(Returning::closed(minting.index, closed));
            }
        }
        self.returns.sweep(session.incarnation).await;
        while !self.returns.is_empty() {
            sleep(RETURN_PAUSE).await;
            self.returns.sweep(session.incarnation).await;
        }
    }

    async fn refused(&mut self, what: &'static str, refused: &Refused) {
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

fn block_in(message: pb::Block) -> Option<Block> {
    Some(Block {
        namespace: Namespace::new(message.namespace).ok()?,
        span: Span::new(message.start, message.len).ok()?,
        generation: Generation(message.generation),
    })
}
