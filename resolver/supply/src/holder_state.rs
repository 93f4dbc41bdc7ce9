//! The state of a supplier, which its task and its heartbeat share: the pure core, its
//! connections, and the reason for which it stops.

use std::sync::{Arc, Mutex, PoisonError};

use holder::{Effect, EntryId, Note, Session, SupplyCore, calls::RegisterEntry};
use limits::Seldom;
use store::{BlockEntry, Register};
use tokio::{sync::watch, time::Instant};

use super::{
    clock::Clock,
    history::History,
    issuer_client::IssuerClient,
    minting::{Minting, Shared},
    pace::Pace,
    supplier::Closing,
};
use crate::{metrics::SupplyMetrics, safety_rule::SafetyRules};

/// A start of a holder, the owner of blocks as the database's block register names it.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The stable name of the holder.
    pub holder: String,
    /// The random id of this start.
    pub instance: String,
}

impl Owner {
    /// Returns the name of an entry in the register. It differs for each entry, although a ledger
    /// that was lost may allocate the same numbers with the same generation again.
    pub fn entry_name(&self, entry: EntryId) -> String {
        format!("{}/{}", self.instance, entry.0)
    }

    pub(super) fn entry(&self, entry: &RegisterEntry) -> BlockEntry {
        BlockEntry {
            keyspace: entry.index,
            span: entry.block.span,
            generation: entry.block.generation.0,
            holder: self.holder.clone(),
            incarnation: entry.incarnation.0,
            instance: self.entry_name(entry.entry),
        }
    }
}

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
    /// The clock of the core, which the mintings share.
    pub clock: Clock,
    /// The metrics of the supply.
    pub metrics: Arc<SupplyMetrics>,
    /// When the first numbers may be asked for.
    pub begins_at: Instant,
    /// The safety rules in force.
    pub rules: SafetyRules,
}

/// Keeps the buffers filled and the blocks this holder's own.
pub struct Supplier {
    pub(super) config: SupplierConfig,
    /// A std mutex: it is held for one step and never across an await.
    core: Mutex<SupplyCore>,
    pub(super) session: watch::Sender<Option<Session>>,
    /// Ends minting, with the reason.
    pub closing: Closing,
    pub(super) pace: Pace,
    pub(super) history: History,
    overlaps: Seldom,
}

impl Supplier {
    /// Creates a supplier that has not registered yet.
    pub fn new(config: SupplierConfig) -> Arc<Self> {
        let specs = config.mintings.iter().map(|minting| minting.spec()).collect();
        let (rules, mintings) = (config.rules, config.mintings.clone());
        Arc::new(Self {
            config,
            core: Mutex::new(SupplyCore::new(specs, rules)),
            session: watch::Sender::new(None),
            closing: Closing { mintings, lost: watch::Sender::new(None) },
            pace: Pace::default(),
            history: History::new(rules),
            overlaps: Seldom::default(),
        })
    }

    /// Runs a step of the core, and tells the heartbeat if the registration has changed.
    pub(super) fn with_core<T>(&self, act: impl FnOnce(&mut SupplyCore, &mut Shared<'_>) -> T) -> T {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut core, &mut Shared(&self.config.mintings));
        let session = core.session;
        self.session.send_if_modified(|known| std::mem::replace(known, session) != session);
        done
    }

    /// Carries out the effects that need no answer, and returns the one that does.
    pub(super) fn apply(&self, effects: Vec<Effect>) -> Option<Effect> {
        let mut next = None;
        for effect in effects {
            match effect {
                Effect::WakeCreators(keyspace) => self.config.mintings[keyspace].came.notify_waiters(),
                Effect::BeatNow => self.pace.request_beat(),
                Effect::Note(note) => self.report(note),
                Effect::Lost(reason) => self.closing.close(reason),
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
                // The issuer of an older ledger may have many such blocks before it goes past them.
                let Some(times) = self.overlaps.happened() else { return };
                tracing::error!(
                    start = block.span.start(),
                    len = block.span.len(),
                    generation = block.generation.0,
                    times,
                    "the database has registered or withheld numbers of this block: none of it is used, and the issuer goes on \
                     past them. Expected soon after a restore from a backup; otherwise another ledger serves this database"
                );
            }
            Note::Exhausted(keyspace) => {
                tracing::error!(namespace = %namespace(keyspace), "every number of the keyspace is used");
            }
            Note::InOtherHands(keyspace) => {
                tracing::debug!(namespace = %namespace(keyspace), "the last numbers are in other hands");
            }
            Note::Refused(what, refused) => {
                metrics.refills_refused.increment(1);
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
