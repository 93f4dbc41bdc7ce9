//! Keeps the buffers filled: registers with the issuer, asks for blocks, enters them into the register, gives them back.
//!
//! 1. I5: allocations go out one at a time with a seq that grows by one; a call in doubt is repeated with its own seq.
//! 2. A block is in the database's register before a number of it is claimed. One that overlaps is never used.
//! 3. A block is released in the register before it is returned to the issuer: the next holder registers the same numbers.
//! 4. Nothing here is needed to mint from blocks in hand: the issuer may be away.

use std::{sync::Arc, time::Duration};

use issuer::{
    block::{Block, Span},
    names::{Namespace, StoreEpoch},
    tokens::Generation,
};
use proto::issuer::v1 as pb;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    buffer::Closed,
    issuer_client::{IssuerClient, Refused},
    minting::Minting,
};
use crate::{
    metrics::Metrics,
    store::{BlockEntry, LinkStore, Registration, StoreError},
};

/// A block is meant to last this long at the measured rate.
const SUPPLY: Duration = Duration::from_secs(600);
/// How long an exhausted keyspace or a refusal rests before the next try.
const REST: Duration = Duration::from_secs(2);
/// How often used-up blocks are looked for when nothing else wakes the supplier.
const SWEEP: Duration = Duration::from_secs(1);
/// Pause before a store that failed is asked again.
const STORE_PAUSE: Duration = Duration::from_millis(200);
/// Unused ranges that fit into one call.
const RANGES_MAX: usize = 32;
/// How long giving everything back may take at the end.
const RETURN_DEADLINE: Duration = Duration::from_secs(5);

/// What a supplier works with.
pub struct SupplierConfig {
    /// This process's stable name.
    pub holder: String,
    /// Drawn at this start.
    pub instance: String,
    /// The way to the issuer.
    pub client: Arc<IssuerClient>,
    /// The register.
    pub store: Arc<dyn LinkStore>,
    /// The keyspaces that mint.
    pub mintings: Vec<Arc<Minting>>,
    /// What an operator sees.
    pub metrics: Arc<Metrics>,
}

/// The task's state.
pub struct Supplier {
    config: SupplierConfig,
    registered: Option<Registered>,
    /// For the rate: per keyspace, when it was last asked for and how many claims there were.
    asked: Vec<(Instant, u64)>,
    rests: Vec<Option<Instant>>,
}

/// From the last registration.
#[derive(Clone, Copy)]
struct Registered {
    incarnation: u64,
    seq: u64,
    holder_ttl: Duration,
}

impl Supplier {
    /// A supplier that has not registered yet.
    #[must_use]
    pub fn new(config: SupplierConfig) -> Self {
        let count = config.mintings.len();
        Self { config, registered: None, asked: vec![(Instant::now(), 0); count], rests: vec![None; count] }
    }

    /// Works until told to stop; then gives back what is left. Creators must have ended before that.
    pub async fn run(mut self, stop: CancellationToken) {
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

    async fn supply(&mut self, stop: &CancellationToken) {
        let mut beats: Option<AbortOnDropHandle<()>> = None;
        while !stop.is_cancelled() {
            if self.registered.is_none() {
                beats = None;
                self.register().await;
            }
            if let Some(registered) = self.registered
                && beats.as_ref().is_none_or(AbortOnDropHandle::is_finished)
            {
                beats = Some(AbortOnDropHandle::new(self.keep_alive(registered)));
            }
            for index in 0..self.config.mintings.len() {
                self.refill(index, stop).await;
            }
            self.return_closed().await;
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
        let request = pb::RegisterRequest {
            holder: self.config.holder.clone(),
            instance: self.config.instance.clone(),
            namespaces: namespaces.collect(),
            reserved: false,
        };
        match self.config.client.register(request).await {
            Ok(answer) => {
                tracing::info!(
                    incarnation = answer.incarnation,
                    epoch = answer.epoch,
                    "registered with the issuer"
                );
                self.registered = Some(Registered {
                    incarnation: answer.incarnation,
                    seq: answer.last_seq,
                    holder_ttl: Duration::from_millis(answer.holder_ttl_ms.max(1_000)),
                });
            }
            Err(refused) => self.refused("register", &refused).await,
        }
    }

    async fn refill(&mut self, index: usize, stop: &CancellationToken) {
        let minting = Arc::clone(&self.config.mintings[index]);
        if self.rests[index].is_some_and(|until| Instant::now() < until) {
            return;
        }
        while minting.wants_block() && !stop.is_cancelled() {
            let Some(registered) = self.registered else { return };
            let started = Instant::now();
            let store = self.store_epoch().await;
            let request = pb::AllocateBlockRequest {
                holder: self.config.holder.clone(),
                incarnation: registered.incarnation,
                seq: registered.seq + 1,
                namespace: minting.namespace.to_string(),
                wanted_len: self.wanted_len(index),
                store_epoch: store.to_string(),
            };
            let allocated = self.config.client.allocate(request).await;
            match allocated {
                Ok(answer) => {
                    self.registered = Some(Registered { seq: registered.seq + 1, ..registered });
                    let Some(block) = answer.block.and_then(block_in) else {
                        tracing::error!("the issuer allocated something that is no block");
                        return;
                    };
                    self.enter(&minting, block, registered.incarnation, answer.leaked_generation).await;
                    self.config.metrics.refill_seconds.record(started.elapsed());
                }
                Err(Refused::Exhausted) => {
                    minting.exhaust();
                    tracing::error!(namespace = %minting.namespace, "every number of the keyspace is allocated");
                    self.rests[index] = Some(Instant::now() + REST);
                    return;
                }
                Err(refused) => {
                    self.refused("allocate a block", &refused).await;
                    return;
                }
            }
        }
    }

    /// Ten minutes of the rate since the last time, as far as one can tell.
    fn wanted_len(&mut self, index: usize) -> u64 {
        let (now, claims) = (Instant::now(), self.config.mintings[index].claims());
        let (then, before) = std::mem::replace(&mut self.asked[index], (now, claims));
        let elapsed = u64::try_from((now - then).as_millis()).unwrap_or(u64::MAX).max(1);
        let supply = u64::try_from(SUPPLY.as_millis()).unwrap_or(u64::MAX);
        ((claims - before).saturating_mul(supply) / elapsed).clamp(1, Span::LIMIT)
    }

    /// Enters the block into the register, then hands it to the creators. A leaked one is taken over from the generation it was
    /// leaked under, and only what has no link is handed on.
    async fn enter(&self, minting: &Minting, block: Block, incarnation: u64, leaked: u64) {
        let entry = self.entry(minting, &block, incarnation);
        let store = &self.config.store;
        let registration = if leaked == 0 {
            until_it_answers("register a block", || store.register_block(&entry)).await
        } else {
            until_it_answers("take over a block", || store.take_over_block(&entry, leaked)).await
        };
        if registration == Registration::Overlaps {
            return self.give_up_overlapping(minting, block, incarnation).await;
        }
        let left = if leaked == 0 {
            None
        } else {
            let scan = || store.unused(minting.index, block.span);
            let left = until_it_answers("look for unused numbers", scan).await;
            let count: u64 = left.iter().map(|span| span.len()).sum();
            self.config.metrics.reclaimed.increment(count);
            tracing::info!(
                start = block.span.start(),
                len = block.span.len(),
                unused = count,
                "reclaimed a block"
            );
            Some(left)
        };
        minting.add(block, left);
    }

    async fn give_up_overlapping(&self, minting: &Minting, block: Block, incarnation: u64) {
        self.config.metrics.blocks_overlapping.increment(1);
        tracing::error!(
            start = block.span.start(),
            len = block.span.len(),
            generation = block.generation.0,
            "the register has numbers of this block already: none of it is used. \
             Was the issuer's ledger restored from a backup, or does another one serve this database?"
        );
        let store = &self.config.store;
        let end =
            until_it_answers("look for the register's end", || store.registered_end(minting.index)).await;
        let burned = block.span.len();
        let closed = Closed { block, used: 0, burned, unused: Vec::new() };
        let returned = pb::ReturnedBlock { registered_end: end, ..returned_out(&closed) };
        self.send_back(incarnation, returned).await;
    }

    async fn store_epoch(&self) -> StoreEpoch {
        let store = &self.config.store;
        until_it_answers("ask for the database's history", || store.epoch()).await
    }

    fn entry(&self, minting: &Minting, block: &Block, incarnation: u64) -> BlockEntry {
        BlockEntry {
            keyspace: minting.index,
            span: block.span,
            generation: block.generation.0,
            holder: self.config.holder.clone(),
            incarnation,
            instance: self.config.instance.clone(),
        }
    }

    async fn return_closed(&self) {
        let Some(registered) = self.registered else { return };
        for minting in &self.config.mintings {
            for closed in minting.take_closed() {
                self.return_block(minting, registered.incarnation, closed).await;
            }
        }
    }

    async fn return_all(&self) {
        let Some(registered) = self.registered else { return };
        for minting in &self.config.mintings {
            for closed in minting.take_all() {
                self.return_block(minting, registered.incarnation, closed).await;
            }
        }
    }

    /// Released in the register first. If that fails the block stays open with the issuer, and leaks at the holder's
    /// next start: better than numbers that two holders may use.
    async fn return_block(&self, minting: &Minting, incarnation: u64, closed: Closed) {
        if closed.unused.len() > RANGES_MAX {
            // Nothing is burned for the sake of a message's length: a scan will find the gaps again.
            tracing::info!(
                start = closed.block.span.start(),
                "too many gaps to return a block: it will be reclaimed"
            );
            return;
        }
        if !closed.unused.is_empty() {
            let entry = self.entry(minting, &closed.block, incarnation);
            let kept = complement(closed.block.span, &closed.unused);
            if let Err(error) = self.config.store.release_block(&entry, &kept).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "release a block: its rest is leaked"
                );
                return;
            }
        }
        self.send_back(incarnation, returned_out(&closed)).await;
    }

    async fn send_back(&self, incarnation: u64, returned: pb::ReturnedBlock) {
        let holder = self.config.holder.clone();
        let request = pb::ReturnBlocksRequest { holder, incarnation, blocks: vec![returned] };
        if let Err(refused) = self.config.client.return_blocks(request).await {
            tracing::warn!(error = &refused as &dyn std::error::Error, "return a block");
        }
    }

    async fn refused(&mut self, what: &'static str, refused: &Refused) {
        self.config.metrics.refills_failed.increment(1);
        tracing::error!(error = refused as &dyn std::error::Error, "{what}");
        if let Refused::NotRegistered(_) = refused {
            self.registered = None;
        }
        sleep(REST).await;
    }

    /// Beats until the stream breaks; the supplier starts it anew.
    fn keep_alive(&self, registered: Registered) -> tokio::task::JoinHandle<()> {
        let client = Arc::clone(&self.config.client);
        let beat = pb::KeepAliveRequest {
            holder: self.config.holder.clone(),
            incarnation: registered.incarnation,
            progress: Vec::new(),
        };
        let interval = registered.holder_ttl / 3;
        tokio::spawn(async move {
            let Ok(mut answers) = client.keep_alive(beat, interval).await else { return };
            while let Ok(Ok(Some(_))) = timeout(interval * 2, answers.message()).await {}
        })
    }
}

/// Asks the store until it answers: without it no link could be stored anyway.
async fn until_it_answers<T, F>(what: &'static str, ask: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>> + Send,
{
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "{what}");
                sleep(STORE_PAUSE).await;
            }
        }
    }
}

/// What lies in the block and in none of the ranges.
fn complement(block: Span, unused: &[Span]) -> Vec<Span> {
    let mut kept = Vec::new();
    let mut from = block.start();
    for span in unused {
        kept.extend(Span::new(from, span.start() - from).ok());
        from = span.end();
    }
    kept.extend(Span::new(from, block.end() - from).ok());
    kept
}

fn block_in(message: pb::Block) -> Option<Block> {
    Some(Block {
        namespace: Namespace::new(message.namespace).ok()?,
        span: Span::new(message.start, message.len).ok()?,
        generation: Generation(message.generation),
    })
}

fn returned_out(closed: &Closed) -> pb::ReturnedBlock {
    pb::ReturnedBlock {
        block: Some(pb::Block {
            namespace: closed.block.namespace.to_string(),
            start: closed.block.span.start(),
            len: closed.block.span.len(),
            generation: closed.block.generation.0,
        }),
        used: closed.used,
        burned: closed.burned,
        unused: closed.unused.iter().map(|span| pb::Range { start: span.start(), len: span.len() }).collect(),
        registered_end: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_and_what_is_unused_make_up_the_block() {
        let span = |start, len| Span::new(start, len).unwrap();
        assert_eq!(complement(span(10, 10), &[]), [span(10, 10)]);
        assert_eq!(complement(span(10, 10), &[span(10, 10)]), []);
        assert_eq!(complement(span(10, 10), &[span(10, 1), span(15, 2)]), [span(11, 4), span(17, 3)]);
        assert_eq!(complement(span(10, 10), &[span(14, 6)]), [span(10, 4)]);
    }
}
