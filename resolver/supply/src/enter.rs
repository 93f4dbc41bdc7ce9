//! A block comes in: it is entered into the database's register before a number of it is claimed.
//!
//! A leaked one is taken over from the generation it was leaked under, and the database is asked which of its numbers are unused.
//! If the database turns out to be of another history by then, the first insert is refused, and the block is burned: links that
//! were lost with the old one may be public codes.

use std::sync::Arc;

use codes::KeyspaceIndex;
use numbers::{Block, Span, StoreEpoch};
use store::{BlockEntry, LinkStore, Registration, StoreError};
use tokio::time::sleep;

use super::{
    buffer::{Closed, Entered, EntryId},
    minting::Minting,
    returns::Returning,
};
use crate::metrics::SupplyMetrics;

/// Pause before a store that failed is asked again.
const STORE_PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// Whose entries the register gets.
#[derive(Clone, Debug)]
pub struct Owner {
    /// This process's stable name.
    pub holder: String,
    /// Drawn at this start.
    pub instance: String,
}

impl Owner {
    /// What the register knows an entry by. It is another one each time, although a ledger that was lost may allocate the same
    /// numbers with the same generation again.
    #[must_use]
    pub fn entry_name(&self, entry: EntryId) -> String {
        format!("{}/{}", self.instance, entry.0)
    }

    pub(super) fn entry(
        &self,
        keyspace: KeyspaceIndex,
        block: &Block,
        incarnation: u64,
        entry: EntryId,
    ) -> BlockEntry {
        BlockEntry {
            keyspace,
            span: block.span,
            generation: block.generation.0,
            holder: self.holder.clone(),
            incarnation,
            instance: self.entry_name(entry),
        }
    }
}

/// An allocation, as it came from the issuer.
pub(super) struct Allocated {
    pub(super) block: Block,
    pub(super) incarnation: u64,
    /// The generation it was leaked under; 0 when its numbers are surely unused.
    pub(super) leaked: u64,
    /// The history of the database that it was asked for.
    pub(super) store_epoch: StoreEpoch,
}

/// Enters blocks one after another.
pub(super) struct Entrance {
    pub(super) owner: Owner,
    pub(super) store: Arc<dyn LinkStore>,
    pub(super) metrics: Arc<SupplyMetrics>,
    pub(super) entries: EntryId,
}

impl Entrance {
    /// Enters a block and hands it to the creators; or says how it has to go back.
    pub(super) async fn enter(&mut self, minting: &Arc<Minting>, allocated: Allocated) -> Option<Returning> {
        let Allocated { block, incarnation, leaked, store_epoch } = allocated;
        self.entries = EntryId(self.entries.0 + 1);
        let id = self.entries;
        let entry = self.owner.entry(minting.index, &block, incarnation, id);
        let store = &self.store;
        let registration = if leaked == 0 {
            until_it_answers("register a block", || store.register_block(&entry)).await
        } else {
            until_it_answers("take over a block", || store.take_over_block(&entry, leaked)).await
        };
        if registration == Registration::Overlaps {
            return Some(self.overlapping(minting, block, id).await);
        }
        let entered = Entered { block, entry: id, history: Arc::new(store_epoch) };
        if leaked == 0 {
            minting.add(entered, None);
            return None;
        }
        let span = entered.block.span;
        let left = until_it_answers("look for unused numbers", || store.unused(minting.index, span)).await;
        self.report(&entered.block, &left);
        minting.add(entered, Some(left));
        None
    }

    /// Which history of the database this is.
    pub(super) async fn epoch(&self) -> StoreEpoch {
        until_it_answers("ask for the database's history", || self.store.epoch()).await
    }

    fn report(&self, block: &Block, left: &[Span]) {
        let unused = left.iter().map(|span| span.len()).sum();
        self.metrics.reclaimed.increment(unused);
        tracing::info!(start = block.span.start(), len = block.span.len(), unused, "reclaimed a block");
    }

    /// None of its numbers is used, and the issuer is told how far the register goes.
    async fn overlapping(&self, minting: &Arc<Minting>, block: Block, id: EntryId) -> Returning {
        self.metrics.blocks_overlapping.increment(1);
        tracing::error!(
            start = block.span.start(),
            len = block.span.len(),
            generation = block.generation.0,
            "the register has numbers of this block already: none of it is used. \
             Was the issuer's ledger restored from a backup, or does another one serve this database?"
        );
        let end =
            until_it_answers("look for the register's end", || self.store.registered_end(minting.index))
                .await;
        Returning { registered_end: end, ..Returning::burned(minting, block, id) }
    }
}

impl Returning {
    /// A block that is in no register: all of it goes back as it came.
    pub(super) fn untouched(minting: &Arc<Minting>, block: Block) -> Self {
        let on_the_way = Some(minting.on_the_way(block.span.len()));
        let closed = Closed { unused: vec![block.span], block, entry: EntryId(0), used: 0, burned: 0 };
        Self { keyspace: minting.index, closed, released: true, registered_end: 0, on_the_way }
    }

    /// A block of which nothing is to be used.
    fn burned(minting: &Arc<Minting>, block: Block, entry: EntryId) -> Self {
        let burned = block.span.len();
        let closed = Closed { block, entry, used: 0, burned, unused: Vec::new() };
        let on_the_way = Some(minting.on_the_way(burned));
        Self { keyspace: minting.index, closed, released: true, registered_end: 0, on_the_way }
    }
}

/// Asks the store until it answers: without it no link could be stored anyway.
pub(super) async fn until_it_answers<T, F>(what: &'static str, ask: impl Fn() -> F) -> T
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
