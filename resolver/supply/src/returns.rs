//! Blocks go back: released in the register, then returned to the issuer. What fails is tried again at the next sweep.
//!
//! 1. Released first: the next holder registers the same numbers.
//! 2. What cannot be sent is kept, or the issuer would count the block as open for as long as this process lives. The issuer
//!    bounds how many blocks a holder has, and so how many wait here.

use std::{collections::VecDeque, sync::Arc};

use codes::KeyspaceIndex;
use proto::issuer::v1 as pb;
use store::{LinkStore, StoreError};

use super::{
    buffer::{Closed, RANGES_MAX},
    enter::Owner,
    issuer_client::IssuerClient,
    minting::{Minting, OnTheWay},
};
use crate::guard::{self, Guard};

/// A block on its way back.
#[derive(Debug)]
pub(super) struct Returning {
    pub(super) keyspace: KeyspaceIndex,
    pub(super) closed: Closed,
    /// Whether the register has let go of its unused numbers, or need not.
    pub(super) released: bool,
    /// The register's end, when the register refused the block; else 0.
    pub(super) registered_end: u64,
    /// Counts its unused numbers as this holder's until it is dropped.
    pub(super) on_the_way: Option<OnTheWay>,
}

impl Returning {
    /// A block with its account.
    pub(super) fn closed(minting: &Minting, (closed, on_the_way): (Closed, OnTheWay)) -> Self {
        let released = closed.unused.is_empty();
        Self { keyspace: minting.index, closed, released, registered_end: 0, on_the_way: Some(on_the_way) }
    }
}

/// Blocks that wait to go back.
pub(super) struct Returns {
    owner: Owner,
    client: Arc<IssuerClient>,
    store: Arc<dyn LinkStore>,
    waiting: VecDeque<Returning>,
}

impl Returns {
    pub(super) fn new(owner: Owner, client: Arc<IssuerClient>, store: Arc<dyn LinkStore>) -> Self {
        Self { owner, client, store, waiting: VecDeque::new() }
    }

    /// Puts a block in line. At the end of the process there may be one with too many gaps for a call. It stays open with the issuer:
    /// nothing is burned for the sake of a message's length, and a scan will find the gaps again after the next start.
    pub(super) fn push(&mut self, returning: Returning) {
        if returning.closed.unused.len() > RANGES_MAX {
            let start = returning.closed.block.span.start();
            tracing::info!(start, "too many gaps to return a block: it will be reclaimed");
            return;
        }
        self.waiting.push_back(returning);
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends what waits, each once; what fails waits on.
    pub(super) async fn sweep(&mut self, incarnation: u64) {
        for _ in 0..self.waiting.len() {
            let Some(mut returning) = self.waiting.pop_front() else { return };
            if self.give_back(incarnation, &mut returning).await {
                // Not in this holder's hands any more.
                drop(returning.on_the_way.take());
            } else {
                self.waiting.push_back(returning);
            }
        }
    }

    async fn give_back(&self, incarnation: u64, returning: &mut Returning) -> bool {
        if !returning.released && guard::is_on(Guard::ReleaseFirst) {
            let Closed { block, entry, .. } = &returning.closed;
            let entry = self.owner.entry(returning.keyspace, block, incarnation, *entry);
            match self.store.release_block(&entry, &returning.closed.kept()).await {
                Ok(()) => {}
                // Somebody has taken it over meanwhile: it is not this holder's to give any more.
                Err(StoreError::Overlap) => return true,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "release a block");
                    return false;
                }
            }
            returning.released = true;
        }
        let holder = self.owner.holder.clone();
        let request = pb::ReturnBlocksRequest { holder, incarnation, blocks: vec![message(returning)] };
        let returned = self.client.return_blocks(request).await;
        if let Err(refused) = &returned {
            tracing::warn!(error = refused as &dyn std::error::Error, "return a block");
        }
        returned.is_ok()
    }
}

fn message(returning: &Returning) -> pb::ReturnedBlock {
    let Closed { block, used, burned, unused, .. } = &returning.closed;
    pb::ReturnedBlock {
        block: Some(pb::Block {
            namespace: block.namespace.to_string(),
            start: block.span.start(),
            len: block.span.len(),
            generation: block.generation.0,
        }),
        used: *used,
        burned: *burned,
        unused: unused.iter().map(|span| pb::Range { start: span.start(), len: span.len() }).collect(),
        registered_end: returning.registered_end,
    }
}
