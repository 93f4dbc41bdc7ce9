//! The ledger's content as values: what a leader rebuilds at take-over and changes batch by batch.

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

/// The one key that every transaction rewrites and compares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// The leader that wrote it.
    pub epoch: Epoch,
    /// Which transaction wrote it.
    pub batch: Batch,
    /// The last generation given to a block.
    pub generation: Generation,
    /// The longest time that any leader has let holders trust a ceiling, in milliseconds; never decreases.
    pub holder_ttl_ms: u64,
    /// Which ledger this is; none before the first holder registers.
    #[serde(default)]
    pub ledger: Option<LedgerId>,
    /// The highest mark of the database that a holder has told.
    #[serde(default)]
    pub mark: Mark,
    /// Every namespace.
    pub namespaces: BTreeMap<Namespace, NamespaceRecord>,
    /// The latest allocations, as far as neither a journal nor their holders' records have them.
    pub recent: Vec<Entry>,
}

/// A namespace as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// How many numbers there are.
    pub capacity: u64,
    /// The first number never allocated; never decreases (I2).
    pub high_watermark: u64,
    /// Numbers from here on are allocated to nobody; never decreases.
    pub ceiling: u64,
    /// The ceiling that holders are told; used when they have had the time to hear of it.
    pub announced: u64,
    /// Where the allocated numbers are.
    pub account: Account,
}

impl NamespaceRecord {
    /// Whether the account balances (I10) and the watermark keeps below the ceiling.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ordered = [self.high_watermark, self.ceiling, self.announced, self.capacity].is_sorted();
        self.account.balances() && ordered
    }
}

/// A holder as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HolderRecord {
    /// The batch that wrote it. What later batches allocated is in their journals.
    pub as_of: Batch,
    /// The oldest batch whose journal has what this record, as it was written, does not; the leader's own note.
    #[serde(skip)]
    pub unsaved: Option<Batch>,
    /// The current incarnation.
    pub incarnation: Incarnation,
    /// Which start registered it.
    pub instance: Instance,
    /// Whether its blocks are kept for it however long it is silent (G7).
    pub reserved: bool,
    /// The last seq answered for this incarnation.
    pub last_seq: Seq,
    /// What was answered to it; given again when the seq comes again (I5).
    pub last_reply: Option<Reply>,
    /// Blocks allocated to it and not returned.
    pub open: Vec<OpenBlock>,
    /// How long its last block of each namespace was: the next is at most twice as long.
    pub last_len: BTreeMap<Namespace, u64>,
}

/// A block in a holder's hands. As JSON it is an array without names: a holder's record lists its blocks and is written anew with each
/// allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "OpenTuple", into = "OpenTuple")]
pub struct OpenBlock {
    /// The block.
    pub block: Block,
    /// The history of the database that its links go to.
    pub store: StoreEpoch,
    /// Whether an earlier holder had the numbers and may still have inserts on the way.
    pub contested: bool,
}

/// Namespace, range, generation, history, contested.
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

/// The part of an allocation's answer that must survive the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reply {
    /// The block.
    pub block: Block,
    /// The epoch it was allocated in.
    pub epoch: Epoch,
    /// The generation its numbers were leaked under; none when they are surely unused.
    pub leaked: Option<Generation>,
}

/// Numbers given back unused, keyed in the ledger by namespace and start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// The numbers.
    pub span: Span,
    /// The last generation they had.
    pub generation: Generation,
    /// The history of the database that says that they are unused.
    pub store: StoreEpoch,
    /// Whether somebody who lost them to the holder that gave them back may still have inserts on the way.
    pub contested: bool,
}

impl Part {
    /// Whether they can be used without a look into the database of this history. Another history may lack their release, and
    /// a contested number may get a link yet: such a part goes out as if it were leaked.
    #[must_use]
    pub fn is_surely_unused(&self, store: &StoreEpoch) -> bool {
        !self.contested && self.store == *store
    }

    /// Whether links may have been acknowledged under it in another history of the database, where they are lost now.
    #[must_use]
    pub fn is_doomed(&self, store: &StoreEpoch) -> bool {
        self.contested && self.store != *store
    }
}

/// A block whose holder is gone: which of its numbers have links, only the database knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeakedBlock {
    /// The numbers.
    pub span: Span,
    /// The last generation they had.
    pub generation: Generation,
    /// Who had them.
    pub holder: HolderId,
    /// In which of its starts.
    pub incarnation: Incarnation,
    /// The history of the database that its links went to.
    pub store: StoreEpoch,
}

/// What is keyed by namespace and start.
pub type ByStart<T> = BTreeMap<(Namespace, u64), T>;

/// The whole ledger, and which keys the open batch has touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The `head` key.
    pub head: Head,
    /// The `holder/…` keys.
    pub holders: BTreeMap<HolderId, HolderRecord>,
    /// The `leaked/…` keys.
    pub leaked: ByStart<LeakedBlock>,
    /// The `free/…` keys.
    pub free: ByStart<Part>,
    touched: BTreeSet<Key>,
    /// The open batch's allocations.
    pub(super) entries: Vec<Entry>,
    pub(super) unsaved: Unsaved,
}

impl State {
    /// Rebuilds the state from one consistent read.
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

    /// Marks a key for the open batch.
    pub(super) fn touch(&mut self, key: Key) {
        self.touched.insert(key);
    }

    /// How many keys the open batch writes, without `head`.
    pub(super) fn touched(&self) -> usize {
        self.touched.len() + usize::from(!self.entries.is_empty())
    }

    /// The namespace's record.
    pub(super) fn namespace_mut(&mut self, namespace: &Namespace) -> Option<&mut NamespaceRecord> {
        self.head.namespaces.get_mut(namespace)
    }

    /// The writes of the open batch, `head` first; closes it. Each key is written once, as etcd demands.
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
            // Made of entries, see `close_journal`.
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
