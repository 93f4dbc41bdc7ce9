//! The ledger's content as values. A leader rebuilds them at take-over and changes them batch by
//! batch.

use std::collections::{BTreeMap, BTreeSet};

use numbers::{
    Batch, Block, Epoch, Generation, HolderId, Incarnation, Instance, LedgerId, Mark, Namespace, Seq, Span,
    StoreEpoch,
};
use serde::{Deserialize, Serialize};

use crate::{
    core::{Entry, Limits, account::Account, journal::Unsaved},
    ledger::{Key, Record, Snapshot, Write},
};

/// Value of the `head` key, which every transaction compares and rewrites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// Epoch of the leader that wrote this value.
    pub epoch: Epoch,
    /// Number of the transaction that wrote this value.
    pub batch: Batch,
    /// Generation of the latest block.
    pub generation: Generation,
    /// Longest holder TTL of any leader so far, in milliseconds; never decreases. Holders may trust
    /// a ceiling for this long.
    pub holder_ttl_ms: u64,
    /// Identity of this ledger; `None` before the first registration.
    #[serde(default)]
    pub ledger: Option<LedgerId>,
    /// Highest database mark that holders have reported. One beat raises it by a limited step.
    #[serde(default)]
    pub mark: Mark,
    /// All namespaces, by name.
    pub namespaces: BTreeMap<Namespace, NamespaceRecord>,
    /// Latest allocations, until a journal or their holders' records contain them.
    pub recent: Vec<Entry>,
}

/// Persistent state of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// Capacity: the numbers are 0 to `capacity - 1`.
    pub capacity: u64,
    /// High watermark: the first number never allocated; never decreases (I2).
    pub high_watermark: u64,
    /// Ceiling: numbers at or above it are allocated to no holder; never decreases.
    pub ceiling: u64,
    /// Ceiling that holders are told. It becomes `ceiling` when every holder has heard it or has
    /// stopped trusting its older copy.
    pub announced: u64,
    /// Counts of the allocated numbers, by state.
    pub account: Account,
}

impl NamespaceRecord {
    /// Returns whether the account balances (I10) and `high_watermark ≤ ceiling ≤ announced ≤
    /// capacity`.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ordered = [self.high_watermark, self.ceiling, self.announced, self.capacity].is_sorted();
        self.account.balances() && ordered
    }
}

/// Persistent state of a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HolderRecord {
    /// Batch that wrote this record. Allocations of later batches are in journals or in `head`.
    pub as_of: Batch,
    /// Oldest batch whose journal has an entry that the stored record lacks; `None` if the record
    /// is complete. Kept in memory only.
    #[serde(skip)]
    pub unsaved: Option<Batch>,
    /// Current incarnation.
    pub incarnation: Incarnation,
    /// Instance id of the start that registered the current incarnation.
    pub instance: Instance,
    /// Whether the holder is a reservation, which keeps its blocks however long it is silent (G7).
    pub reserved: bool,
    /// Last seq answered for this incarnation.
    pub last_seq: Seq,
    /// Answer to `last_seq`, repeated if the same seq comes again (I5).
    pub last_reply: Option<Reply>,
    /// Blocks that are allocated to the holder and not returned.
    pub open: Vec<OpenBlock>,
    /// Length of the holder's last block of each namespace. The next one is at most twice as long.
    pub last_len: BTreeMap<Namespace, u64>,
}

/// A block that a holder has open. Its JSON form is an array without field names, because a
/// holder's record lists all of its open blocks and is written often.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "OpenTuple", into = "OpenTuple")]
pub struct OpenBlock {
    /// The block.
    pub block: Block,
    /// Database history that links of the block are written to.
    pub store: StoreEpoch,
    /// Whether an earlier holder had the numbers and may still have inserts in flight.
    pub contested: bool,
}

/// JSON form of an [`OpenBlock`]: namespace, range, generation, history, contested.
type OpenTuple = (Namespace, Span, Generation, StoreEpoch, bool);

impl From<OpenTuple> for OpenBlock {
    fn from((namespace, span, generation, store, contested): OpenTuple) -> Self {
        Self { block: Block { namespace, span, generation }, store, contested }
    }
}

impl From<OpenBlock> for OpenTuple {
    fn from(OpenBlock { block, store, contested }: OpenBlock) -> Self {
        (block.namespace, block.span, block.generation, store, contested)
    }
}

/// Part of an allocation's answer that must survive a change of leaders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reply {
    /// The block.
    pub block: Block,
    /// Epoch of the leader that allocated it.
    pub epoch: Epoch,
    /// Generation that the numbers were leaked under; `None` if they are surely unused.
    pub leaked: Option<Generation>,
}

/// A range of free numbers: they were returned unused. Its ledger key is the namespace and the
/// start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Range of the numbers.
    pub span: Span,
    /// Last generation of the numbers.
    pub generation: Generation,
    /// Database history in which the numbers are known to be unused.
    pub store: StoreEpoch,
    /// Whether a holder that lost the numbers to the one that returned them may still have inserts
    /// in flight.
    pub contested: bool,
}

impl Part {
    /// Returns whether the numbers can be used without asking the database of history `store`.
    ///
    /// Another history may lack the release of the numbers, and a contested number may still get a
    /// link. A part of either kind is handed out as if it were leaked.
    #[must_use]
    pub fn is_surely_unused(&self, store: &StoreEpoch) -> bool {
        !self.contested && self.store == *store
    }

    /// Returns whether the part must be burned in the history `store`: links may have been
    /// acknowledged under it in another history and are lost in this one.
    #[must_use]
    pub fn is_doomed(&self, store: &StoreEpoch) -> bool {
        self.contested && self.store != *store
    }
}

/// A block whose holder is gone. Only the database knows which of its numbers have links.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeakedBlock {
    /// Range of the numbers.
    pub span: Span,
    /// Last generation of the numbers.
    pub generation: Generation,
    /// Holder that lost the block.
    pub holder: HolderId,
    /// Incarnation of that holder at the time.
    pub incarnation: Incarnation,
    /// Database history that links of the block were written to.
    pub store: StoreEpoch,
}

/// Map keyed by namespace and first number.
pub type ByStart<T> = BTreeMap<(Namespace, u64), T>;

/// The whole ledger in memory, and the keys that the open batch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Value of the `head` key.
    pub head: Head,
    /// Values of the `holder/…` keys.
    pub holders: BTreeMap<HolderId, HolderRecord>,
    /// Values of the `leaked/…` keys.
    pub leaked: ByStart<LeakedBlock>,
    /// Values of the `free/…` keys.
    pub free: ByStart<Part>,
    touched: BTreeSet<Key>,
    /// Allocations of the open batch.
    pub(super) entries: Vec<Entry>,
    pub(super) unsaved: Unsaved,
}

impl State {
    /// Rebuilds the state from a consistent snapshot of the ledger.
    #[must_use]
    pub fn rebuild(snapshot: Snapshot) -> Self {
        let (mut state, mut journals) = (Self::default(), Vec::new());
        for record in snapshot.records {
            match record {
                Record::Head(head) => state.head = head,
                Record::Holder(id, holder) => {
                    state.holders.insert(id, holder);
                }
                Record::Leaked(namespace, block) => {
                    state.leaked.insert((namespace, block.span.start()), block);
                }
                Record::Free(namespace, part) => {
                    state.free.insert((namespace, part.span.start()), part);
                }
                Record::Journal(_, journal) => journals.push(journal),
            }
        }
        state.replay(journals);
        state
    }

    /// Adds a key to the writes of the open batch.
    pub(super) fn touch(&mut self, key: Key) {
        self.touched.insert(key);
    }

    /// Returns how many keys the open batch writes, without `head`.
    pub(super) fn touched(&self) -> usize {
        self.touched.len() + usize::from(!self.entries.is_empty())
    }

    /// Returns the record of a namespace, if it exists.
    pub(super) fn namespace_mut(&mut self, namespace: &Namespace) -> Option<&mut NamespaceRecord> {
        self.head.namespaces.get_mut(namespace)
    }

    /// Closes the open batch and returns its writes, `head` first. Each key is written once, as
    /// etcd requires.
    pub(super) fn take_writes(&mut self, limits: &Limits) -> Vec<Write> {
        let (touched, batch) = (std::mem::take(&mut self.touched), self.head.batch);
        let journal = self.close_journal(limits, &touched);
        let mut writes = vec![Write::Put(Record::Head(self.head.clone()))];
        writes.extend(journal);
        for key in &touched {
            if let Key::Holder(holder) = key
                && let Some(record) = self.holders.get_mut(holder)
            {
                self.unsaved.saved(holder, record, batch);
            }
        }
        writes.extend(touched.into_iter().map(|key| match self.record(&key) {
            Some(record) => Write::Put(record),
            None => Write::Delete(key),
        }));
        writes
    }

    fn record(&self, key: &Key) -> Option<Record> {
        match key {
            Key::Head => Some(Record::Head(self.head.clone())),
            // `close_journal` builds journals from entries.
            Key::Journal(_) => None,
            Key::Holder(id) => self.holders.get(id).map(|holder| Record::Holder(id.clone(), holder.clone())),
            Key::Leaked(namespace, start) => {
                let block = self.leaked.get(&(namespace.clone(), *start));
                block.map(|block| Record::Leaked(namespace.clone(), block.clone()))
            }
            Key::Free(namespace, start) => self
                .free
                .get(&(namespace.clone(), *start))
                .map(|p| Record::Free(namespace.clone(), p.clone())),
        }
    }
}
