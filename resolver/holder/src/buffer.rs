//! The double buffer of a keyspace: the block being claimed from, the next one, and used-up blocks
//! with open claims.
//!
//! 1. A number is claimed at most once, unless it came back as [`Fate::Unused`], which proves that
//!    it has no link.
//! 2. `used + burned + unused` of a closed block equals its length. A block closes only when every
//!    claim on it has been settled.
//! 3. A number whose fate is unknown is burned, never handed out again (I4).
//! 4. A block is returned whole, with the account of all its numbers. So a block with too many gaps
//!    for one call is minted from instead.
//! 5. A block belongs to one history of the database. When another history begins, the block's
//!    numbers are given up. Another holder may have taken the block over and acknowledged links
//!    under it that are lost now.
//!
//! 6. With a distributed database, a claim is for a bucket that can be written at the moment. The
//!    numbers of other buckets that come first are kept for the claims of theirs.
//!
//! Claims are taken under the caller's short lock; `ARCHITECTURE.md` says why.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
};

use numbers::{Block, Generation, Span, StoreEpoch};

/// The maximum number of blocks in hand with unclaimed numbers: the current one and the next.
const BLOCKS: usize = 2;
/// The maximum number of unused ranges in the call that returns a block.
pub(crate) const RANGES_MAX: usize = 32;
/// The maximum size of the pool of returned numbers, which are used first. Past this bound a
/// returned number stays in its block's account (C4).
const POOL_MAX: usize = 10_000;
/// The maximum number of numbers that one claim looks at, and that are kept for other buckets.
/// Past these bounds a number is used, whatever its bucket.
const LOOKS_MAX: usize = 256;
const KEPT_MAX: usize = 4_096;
/// The maximum number of kept numbers of nodes that are away. Past this bound they are burned.
const AWAY_MAX: usize = 512;

/// The buckets of a distributed database, as a claim sees them.
pub struct Choice<'a> {
    /// Returns the bucket of a number.
    pub bucket: &'a (dyn Fn(u64) -> usize + Sync),
    /// Whether numbers of a bucket are wanted.
    pub is_wanted: &'a (dyn Fn(usize) -> bool + Sync),
    /// Whether the node of a bucket can be written.
    pub is_up: &'a (dyn Fn(usize) -> bool + Sync),
}

/// The number of a block register entry, counted from 1 within one start of the holder. A ledger
/// that was lost may allocate the same block with the same generation again. That block gets
/// another entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// A block that was entered into the register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entered {
    /// The block.
    pub block: Block,
    /// The block's entry in the register.
    pub entry: EntryId,
    /// The history of the database that contains the register entry.
    pub history: Arc<StoreEpoch>,
}

/// A claimed number. It must be settled with its [`Fate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "a claim that does not come back keeps its block open"]
pub struct Claim {
    /// The number.
    pub number: u64,
    /// The generation of its block.
    pub generation: Generation,
    /// The register entry of its block.
    pub entry: EntryId,
    /// The history of the database that its link may be stored in.
    pub history: Arc<StoreEpoch>,
    /// Whether an earlier holder had the number too, so that its last inserts may still arrive.
    pub reclaimed: bool,
}

/// The outcome of a claimed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// A link is stored under the number, by this process or another.
    Used,
    /// No link is stored under the number, for certain.
    Unused,
    /// The outcome is unknown, or the number must not be used.
    Burned,
}

/// A block with the account of its numbers, ready to be returned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Closed {
    /// The block.
    pub block: Block,
    /// The block's entry in the register.
    pub entry: EntryId,
    /// The count of numbers with a link.
    pub used: u64,
    /// The count of numbers given up.
    pub burned: u64,
    /// The unused numbers, as ascending, disjoint and non-adjacent ranges.
    pub unused: Vec<Span>,
}

impl Closed {
    /// Returns the count of burned and unused numbers.
    pub fn unsettled(&self) -> u64 {
        self.burned + self.unused.iter().map(|span| span.len()).sum::<u64>()
    }

    /// Returns the ranges of the block that remain registered when its unused numbers are released.
    pub fn kept(&self) -> Vec<Span> {
        let block = self.block.span;
        let mut kept = Vec::new();
        let mut from = block.start();
        for span in &self.unused {
            kept.extend(Span::new(from, span.start() - from).ok());
            from = span.end();
        }
        kept.extend(Span::new(from, block.end() - from).ok());
        kept
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    block: Block,
    entry: EntryId,
    history: Arc<StoreEpoch>,
    reclaimed: bool,
    /// The numbers that were never claimed, in ascending order.
    left: VecDeque<Span>,
    /// The count of numbers in `left`, now and when the block was added.
    left_len: u64,
    first_len: u64,
    claimed: u64,
    used: u64,
    burned: u64,
    unused: Vec<u64>,
}

/// The numbers of one keyspace in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Blocks with unclaimed numbers, in order of arrival.
    fresh: VecDeque<Held>,
    /// Blocks without unclaimed numbers, until their claims are settled and they are taken out.
    draining: Vec<Held>,
    /// Claims that came back unused.
    pool: VecDeque<Claim>,
    /// Claims of buckets that were not wanted.
    kept: BTreeMap<usize, VecDeque<Claim>>,
    /// The count of numbers that were burned because their node was away.
    pub away: u64,
    /// How often a number came back while the pool was full. Such a number stays in its block's
    /// account, and is returned with the block.
    pub overflowed: u64,
    /// The count of claims ever made.
    pub claims: u64,
}

impl Held {
    fn new(entered: Entered, reclaimed: bool, left: VecDeque<Span>) -> Self {
        let Entered { block, entry, history } = entered;
        let left_len = left.iter().map(|span| span.len()).sum();
        // The numbers that are not left have a link: the database said so.
        let used = block.span.len() - left_len;
        Self {
            block,
            entry,
            history,
            reclaimed,
            left,
            left_len,
            first_len: left_len,
            claimed: 0,
            used,
            burned: 0,
            unused: Vec::new(),
        }
    }

    fn claim(&mut self) -> Option<Claim> {
        let (first, rest) = self.left.pop_front()?.take_front(1);
        if let Some(rest) = rest {
            self.left.push_front(rest);
        }
        self.left_len -= 1;
        self.claimed += 1;
        let Self { ref block, entry, reclaimed, .. } = *self;
        let history = Arc::clone(&self.history);
        Some(Claim { number: first.start(), generation: block.generation, entry, history, reclaimed })
    }

    /// Returns whether at least `permille` thousandths of the block's numbers have been claimed.
    fn is_past(&self, permille: u64) -> bool {
        (self.first_len - self.left_len) * 1_000 >= self.first_len * permille
    }

    /// Returns the count of numbers that are not known to be used. It includes burned ones: a crash
    /// before the block is returned makes them unused again.
    fn unsettled(&self) -> u64 {
        self.left_len + self.claimed + self.burned + self.unused.len() as u64
    }

    /// Converts a block that is about to close into one to mint from, with these unused numbers.
    fn reopened(self, unused: Vec<Span>) -> Self {
        let left_len = unused.iter().map(|span| span.len()).sum();
        Self { left: unused.into(), left_len, first_len: left_len, unused: Vec::new(), ..self }
    }

    fn close(self) -> Closed {
        debug_assert_eq!(self.claimed, 0, "a block with open claims does not close");
        let singles = self.unused.iter().filter_map(|number| Span::new(*number, 1).ok());
        let mut unused: Vec<Span> = singles.chain(self.left.iter().copied()).collect();
        unused.sort_unstable();
        let Self { block, entry, used, burned, .. } = self;
        Closed { block, entry, used, burned, unused: joined(unused) }
    }
}

/// Joins adjacent ranges in a sorted list.
fn joined(sorted: Vec<Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for span in sorted {
        match spans.last_mut() {
            Some(last) if last.end() == span.start() => {
                *last = Span::new(last.start(), last.len() + span.len()).expect("both are in one block");
            }
            _ => spans.push(span),
        }
    }
    spans
}

impl Buffer {
    /// Takes a number: one that came back, or the next one of the current block.
    pub fn claim(&mut self) -> Option<Claim> {
        let claim = match self.pool.pop_front() {
            Some(claim) => claim,
            None => self.claim_fresh()?,
        };
        self.claims += 1;
        Some(claim)
    }

    /// Takes a number of a wanted bucket, or of another one whose node can be written if there is
    /// none. Returns `None` if the numbers in hand are those of nodes that are away, or none is in
    /// hand.
    pub fn claim_of(&mut self, choice: &Choice<'_>) -> Option<Claim> {
        if let Some(claim) = self.take_kept(choice.is_wanted) {
            return Some(claim);
        }
        for _ in 0..LOOKS_MAX {
            let Some(claim) = self.claim() else { break };
            let bucket = (choice.bucket)(claim.number);
            if (choice.is_wanted)(bucket) {
                return Some(claim);
            }
            // Counted when it is used.
            self.claims -= 1;
            let is_up = (choice.is_up)(bucket);
            let (alike, max) = if is_up {
                (self.kept(choice.is_up), KEPT_MAX)
            } else {
                (self.kept(|bucket| !(choice.is_up)(bucket)), AWAY_MAX)
            };
            match (alike < max, is_up) {
                (true, _) => self.kept.entry(bucket).or_default().push_back(claim),
                (false, true) => {
                    self.claims += 1;
                    return Some(claim);
                }
                (false, false) => {
                    self.away += 1;
                    self.settle(claim, Fate::Burned);
                }
            }
        }
        self.take_kept(choice.is_up)
    }

    fn take_kept(&mut self, is_wanted: impl Fn(usize) -> bool) -> Option<Claim> {
        let wanted = self.kept.iter_mut().filter(|(bucket, _)| is_wanted(**bucket));
        let claim = wanted.max_by_key(|(_, claims)| claims.len())?.1.pop_front()?;
        self.claims += 1;
        Some(claim)
    }

    fn kept(&self, is_counted: impl Fn(usize) -> bool) -> usize {
        self.kept.iter().filter(|(bucket, _)| is_counted(**bucket)).map(|(_, claims)| claims.len()).sum()
    }

    fn claim_fresh(&mut self) -> Option<Claim> {
        let current = self.fresh.front_mut()?;
        let claim = current.claim();
        if current.left_len == 0 {
            self.draining.extend(self.fresh.pop_front());
        }
        claim
    }

    /// Settles a claim.
    pub fn settle(&mut self, claim: Claim, fate: Fate) {
        if fate == Fate::Unused && self.pool.len() < POOL_MAX {
            // The number stays claimed in its block's account, because it will be claimed again.
            self.pool.push_back(claim);
            return;
        }
        self.overflowed += u64::from(fate == Fate::Unused);
        if let Some(held) = self.held_mut(claim.entry) {
            held.claimed -= 1;
            match fate {
                Fate::Used => held.used += 1,
                Fate::Burned => held.burned += 1,
                Fate::Unused => held.unused.push(claim.number),
            }
        }
    }

    fn held_mut(&mut self, entry: EntryId) -> Option<&mut Held> {
        self.fresh.iter_mut().chain(&mut self.draining).find(|held| held.entry == entry)
    }

    /// Adds a registered block. Of one that was taken over, only the numbers in `left`, which is
    /// ascending and disjoint, are unused. No holder had a number of any other block before.
    pub fn add(&mut self, entered: Entered, left: Option<Vec<Span>>) {
        let (reclaimed, whole) = (left.is_some(), entered.block.span);
        let held = Held::new(entered, reclaimed, left.unwrap_or_else(|| vec![whole]).into());
        if held.left_len == 0 { self.draining.push(held) } else { self.fresh.push_back(held) }
    }

    /// Burns the unclaimed numbers and the pooled claims of a history that has ended. Returns how
    /// many these are.
    pub fn give_up(&mut self, history: &StoreEpoch) -> u64 {
        let of_it = |claim: &Claim| *claim.history == *history;
        let (mut ended, pool): (VecDeque<Claim>, VecDeque<Claim>) =
            mem::take(&mut self.pool).into_iter().partition(of_it);
        self.pool = pool;
        for claims in self.kept.values_mut() {
            let (kept, others): (VecDeque<Claim>, VecDeque<Claim>) =
                mem::take(claims).into_iter().partition(of_it);
            *claims = others;
            ended.extend(kept);
        }
        let mut given_up = ended.len() as u64;
        ended.into_iter().for_each(|claim| self.settle(claim, Fate::Burned));
        let of_it = |held: &Held| *held.history == *history;
        let (ended, fresh): (VecDeque<Held>, VecDeque<Held>) =
            mem::take(&mut self.fresh).into_iter().partition(of_it);
        self.fresh = fresh;
        for mut held in ended {
            given_up += held.left_len;
            held.burned += held.left_len;
            held.left.clear();
            held.left_len = 0;
            self.draining.push(held);
        }
        given_up
    }

    /// Returns whether another block is wanted: there is room for one, and the last one is used to
    /// `permille` thousandths.
    pub fn wants_block(&self, permille: u64) -> bool {
        self.fresh.len() < BLOCKS && self.fresh.back().is_none_or(|last| last.is_past(permille))
    }

    /// Gives up every number that is not claimed. The blocks can be returned once their open claims
    /// are settled.
    pub fn relinquish(&mut self) {
        let kept = mem::take(&mut self.kept).into_values().flatten();
        for claim in mem::take(&mut self.pool).into_iter().chain(kept) {
            if let Some(held) = self.held_mut(claim.entry) {
                held.claimed -= 1;
                held.unused.push(claim.number);
            }
        }
        self.draining.extend(self.fresh.drain(..));
    }

    /// Takes out the blocks without unclaimed numbers, or relinquished, that have no open claim.
    pub fn take_closed(&mut self) -> Vec<Closed> {
        let mut closed = Vec::new();
        for held in self.take_done() {
            let one = held.clone().close();
            if one.unused.len() > RANGES_MAX {
                self.fresh.push_back(held.reopened(one.unused));
            } else {
                closed.push(one);
            }
        }
        closed
    }

    fn take_done(&mut self) -> Vec<Held> {
        let (done, open) = self.draining.drain(..).partition(|held| held.claimed == 0);
        self.draining = open;
        done
    }

    /// Takes out all blocks, once no further claim will come. A block with an unsettled claim is
    /// left out, because its numbers are in doubt.
    pub fn take_all(&mut self) -> Vec<Closed> {
        self.relinquish();
        self.take_done().into_iter().map(Held::close).collect()
    }

    /// Returns each block with the ranges that were never claimed, for proofs to check.
    #[cfg(feature = "rules")]
    pub fn blocks(&self) -> impl Iterator<Item = (&Block, EntryId, impl Iterator<Item = Span> + '_)> {
        let blocks = self.fresh.iter().chain(&self.draining);
        blocks.map(|held| (&held.block, held.entry, held.left.iter().copied()))
    }

    /// Returns the count of numbers that can be claimed at once.
    pub fn in_hand(&self) -> u64 {
        let back = self.pool.len() + self.kept(|_| true);
        self.fresh.iter().map(|held| held.left_len).sum::<u64>() + back as u64
    }

    /// Returns the count of numbers in the blocks here that are not known to be used, including
    /// claimed and burned ones.
    pub fn unsettled(&self) -> u64 {
        self.fresh.iter().chain(&self.draining).map(Held::unsettled).sum()
    }

    /// Returns the count of numbers in the pool. They came back and are used first.
    pub fn pooled(&self) -> u64 {
        self.pool.len() as u64
    }
}

#[cfg(test)]
mod tests;
