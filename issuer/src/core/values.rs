//! The values that the ledger stores: `head`, holders, blocks, and the journal's entries.

use std::collections::BTreeMap;

use numbers::{
    Batch, Block, Epoch, Generation, HolderId, Incarnation, Instance, LedgerId, Mark, Namespace, Seq, Span,
    StoreEpoch,
};
use serde::{Deserialize, Serialize};

/// Value of the `head` key, which every transaction compares and rewrites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// Epoch of the leader that wrote this value.
    pub epoch: Epoch,
    /// Number of the transaction that wrote this value.
    pub batch: Batch,
    /// Generation of the latest block.
    pub generation: Generation,
    /// Longest holder TTL of any leader so far, in milliseconds; never decreases. Holders of the
    /// release before may trust a ceiling for this long.
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
    /// Numbers at or above it are allocated to no holder; never decreases. It is the capacity,
    /// unless an issuer of the release before wrote it a short time ago.
    pub ceiling: u64,
    /// The same for an issuer of the release before, which would tell it to holders.
    pub announced: u64,
    /// Counts of the allocated numbers, by state.
    pub account: Account,
}

impl NamespaceRecord {
    /// Returns whether the account balances and `high_watermark ≤ ceiling ≤ announced ≤ capacity`.
    pub fn is_sound(&self) -> bool {
        let ordered = [self.high_watermark, self.ceiling, self.announced, self.capacity].is_sorted();
        self.account.balances() && ordered
    }
}

/// Counts of a namespace's numbers, by state.
///
/// Each term is counted by itself and none is derived from the others. Otherwise the check in
/// [`Account::balances`] could not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// Numbers ever allocated; each counts once, however often it changes hands.
    pub allocated: u64,
    /// Numbers of closed blocks that have a link.
    pub used: u64,
    /// Numbers of blocks that a holder has open.
    pub open: u64,
    /// Numbers that were returned unused.
    pub free: u64,
    /// Numbers of blocks whose holder is gone.
    pub leaked: u64,
    /// Numbers given up for good.
    pub burned: u64,
}

impl Account {
    /// Returns whether `allocated = used + open + free + leaked + burned` (I10).
    pub fn balances(&self) -> bool {
        self.allocated == self.accounted()
    }

    /// Returns the sum of all terms except `allocated`.
    pub fn accounted(&self) -> u64 {
        self.used + self.open + self.free + self.leaked + self.burned
    }
}

/// Persistent state of a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HolderRecord {
    /// Batch that wrote this record. Allocations of later batches are in journals or in `head`.
    pub as_of: Batch,
    /// Oldest batch with a journal entry that the stored record lacks. Kept in memory only.
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

/// A range of numbers that were returned unused. Its key is the namespace and the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Range of the numbers.
    pub span: Span,
    /// Last generation of the numbers.
    pub generation: Generation,
    /// Database history in which the numbers are known to be unused.
    pub store: StoreEpoch,
    /// Whether an earlier holder of the numbers may still have inserts in flight.
    pub contested: bool,
}

impl Part {
    /// Returns whether the numbers can be used without asking the database of history `store`.
    ///
    /// Another history may lack the release of the numbers, and a contested number may still get a
    /// link. A part of either kind is handed out as if it were leaked.
    pub fn is_surely_unused(&self, store: &StoreEpoch) -> bool {
        !self.contested && self.store == *store
    }

    /// Returns whether the part must be burned in the history `store`: links may have been
    /// acknowledged under it in another history and are lost in this one.
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

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The holder that got the block.
    pub holder: HolderId,
    /// The number of the holder's request within its incarnation.
    pub seq: Seq,
    /// The leader that allocated it.
    pub epoch: Epoch,
    /// The generation that the numbers were leaked under; `None` if they are surely unused.
    pub leaked: Option<Generation>,
    /// The block.
    pub open: OpenBlock,
}

/// The allocations of one batch, and those that `head` listed before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal {
    /// The batch that wrote it.
    pub batch: Batch,
    /// Allocations to holders whose records the batch did not write, in order.
    pub entries: Vec<Entry>,
}

impl HolderRecord {
    /// Applies an allocation to the holder's record.
    pub fn allocated(&mut self, entry: Entry) {
        let Entry { seq, epoch, leaked, open, .. } = entry;
        self.last_seq = seq;
        self.last_reply = Some(Reply { block: open.block.clone(), epoch, leaked });
        self.last_len.insert(open.block.namespace.clone(), open.block.span.len());
        self.open.push(open);
    }
}
