//! The double buffer: the block being claimed from, the next one, and those whose last claims are still open.
//!
//! 1. A number is claimed at most once, unless it came back as [`Fate::Unused`]: then it surely has no link.
//! 2. `used + burned + unused` of a closed block is its length; a block closes only when every claim on it has ended.
//! 3. A number whose fate nobody knows is burned, never handed out again (I4).
//! 4. A block goes back whole, with the account of all its numbers; so what has too many gaps for a call is minted from instead.
//! 5. A block belongs to one history of the database. When another one takes over, its numbers are given up: somebody may have taken
//!    the block over and acknowledged links under it that are lost now.
//!
//! Claims are taken under the caller's short lock. Rejected: an atomic add per claim. The permutation that follows costs
//! a hundred times as much, and the two blocks, the pool and the closing account would each need their own protocol.

use std::{collections::VecDeque, sync::Arc};

use numbers::{Block, Generation, Span, StoreEpoch};

/// Blocks in hand that have numbers left: the current one and the next.
const BLOCKS: usize = 2;
/// Unused ranges of a block that fit into the call that gives it back.
pub(crate) const RANGES_MAX: usize = 32;
/// Numbers that came back and are used first; past this bound they wait in their block's account (C4).
const POOL_MAX: usize = 10_000;

/// Which entry of the block register, of those that this start made. A ledger that was lost allocates the same block with the same
/// generation again; its entry is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// A block that is in the register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entered {
    /// The block.
    pub block: Block,
    /// The register's entry of it.
    pub entry: EntryId,
    /// The history of the database that the register is in.
    pub history: Arc<StoreEpoch>,
}

/// One number in somebody's hands. It must come back with its [`Fate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "a claim that does not come back keeps its block open"]
pub struct Claim {
    /// The number.
    pub number: u64,
    /// The fencing token of its block.
    pub generation: Generation,
    /// The register's entry of its block.
    pub entry: EntryId,
    /// The history of the database that its link may be stored in.
    pub history: Arc<StoreEpoch>,
    /// Whether an earlier holder had the number too: its last inserts may still arrive.
    pub reclaimed: bool,
}

/// What became of a claimed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// A link is stored under it, ours or somebody else's.
    Used,
    /// Surely no link is stored under it.
    Unused,
    /// Nobody knows, or it must not be used.
    Burned,
}

/// A block with the account of its numbers, ready to go back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Closed {
    /// The block.
    pub block: Block,
    /// The register's entry of it.
    pub entry: EntryId,
    /// Numbers with a link.
    pub used: u64,
    /// Numbers given up.
    pub burned: u64,
    /// Numbers nobody used: ascending, disjoint and apart.
    pub unused: Vec<Span>,
}

impl Closed {
    /// Returns how many of its numbers are not used: burned or unused.
    #[must_use]
    pub fn unsettled(&self) -> u64 {
        self.burned + self.unused.iter().map(|span| span.len()).sum::<u64>()
    }

    /// What stays of the block when its unused numbers are released.
    #[must_use]
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
    /// What was never claimed, in order.
    left: VecDeque<Span>,
    /// How many numbers those are, and how many they were at first.
    left_len: u64,
    first_len: u64,
    claimed: u64,
    used: u64,
    burned: u64,
    unused: Vec<u64>,
}

/// Numbers of one keyspace in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Blocks with numbers left, in the order they came.
    fresh: VecDeque<Held>,
    /// Blocks with none left and claims still open.
    draining: Vec<Held>,
    /// Claims that came back unused.
    pool: VecDeque<Claim>,
    /// Numbers that came back and found the pool full.
    overflowed: u64,
    claims: u64,
}

impl Held {
    fn new(entered: Entered, reclaimed: bool, left: VecDeque<Span>) -> Self {
        let Entered { block, entry, history } = entered;
        let left_len = left.iter().map(|span| span.len()).sum();
        // What is not left has a link under it: the database said so.
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

    /// Whether as much as the refill point is used.
    fn is_past(&self, permille: u64) -> bool {
        (self.first_len - self.left_len) * 1_000 >= self.first_len * permille
    }

    /// What may still come to be used: burned numbers too, because a crash before the block goes back makes them unused again.
    fn unsettled(&self) -> u64 {
        self.left_len + self.claimed + self.burned + self.unused.len() as u64
    }

    /// Makes a block that was closed one to mint from again.
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

/// Joins neighbours among sorted ranges.
fn joined(sorted: Vec<Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for span in sorted {
        match spans.last_mut() {
            Some(last) if last.end() == span.start() => {
                *last = Span::new(last.start(), last.len() + span.len()).expect("both lie in one block");
            }
            _ => spans.push(span),
        }
    }
    spans
}

impl Buffer {
    /// Takes a number: one that came back, or the next of the current block.
    pub fn claim(&mut self) -> Option<Claim> {
        let claim = match self.pool.pop_front() {
            Some(claim) => claim,
            None => self.claim_fresh()?,
        };
        self.claims += 1;
        Some(claim)
    }

    fn claim_fresh(&mut self) -> Option<Claim> {
        let current = self.fresh.front_mut()?;
        let claim = current.claim();
        if current.left_len == 0 {
            self.draining.extend(self.fresh.pop_front());
        }
        claim
    }

    /// Takes a claim back.
    pub fn settle(&mut self, claim: Claim, fate: Fate) {
        if fate == Fate::Unused && self.pool.len() < POOL_MAX {
            // It stays claimed in its block's account: it is going to be claimed again.
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

    /// Adds a block that was registered and that nobody had before.
    pub fn add(&mut self, entered: Entered) {
        let left = VecDeque::from([entered.block.span]);
        self.fresh.push_back(Held::new(entered, false, left));
    }

    /// Adds a block that was taken over: only `left` of it is unused, ascending and disjoint.
    pub fn add_reclaimed(&mut self, entered: Entered, left: Vec<Span>) {
        let held = Held::new(entered, true, left.into());
        if held.left_len == 0 { self.draining.push(held) } else { self.fresh.push_back(held) }
    }

    /// Gives up what is left of a history of the database that has ended; how many numbers that is.
    pub fn give_up(&mut self, history: &StoreEpoch) -> u64 {
        let of_it = |claim: &Claim| *claim.history == *history;
        let (ended, pool): (VecDeque<Claim>, VecDeque<Claim>) =
            std::mem::take(&mut self.pool).into_iter().partition(of_it);
        self.pool = pool;
        let mut given_up = ended.len() as u64;
        ended.into_iter().for_each(|claim| self.settle(claim, Fate::Burned));
        let of_it = |held: &Held| *held.history == *history;
        let (ended, fresh): (VecDeque<Held>, VecDeque<Held>) =
            std::mem::take(&mut self.fresh).into_iter().partition(of_it);
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

    /// Whether another block is wanted: there is room for one, and the last one is used to `permille` thousandths.
    #[must_use]
    pub fn wants_block(&self, permille: u64) -> bool {
        self.fresh.len() < BLOCKS && self.fresh.back().is_none_or(|last| last.is_past(permille))
    }

    /// Gives up every number that is not claimed: their blocks go back once the claims under way have ended.
    pub fn relinquish(&mut self) {
        self.empty_pool();
        self.draining.extend(self.fresh.drain(..));
    }

    /// Takes out the blocks that are used up, or were relinquished, and have no open claim.
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

    /// Books what waits in the pool as unused with its blocks.
    fn empty_pool(&mut self) {
        for claim in std::mem::take(&mut self.pool) {
            if let Some(held) = self.held_mut(claim.entry) {
                held.claimed -= 1;
                held.unused.push(claim.number);
            }
        }
    }

    /// Takes everything out, when no claim will come any more. A block with a claim that never came back stays out of it:
    /// its numbers are in doubt.
    pub fn take_all(&mut self) -> Vec<Closed> {
        self.relinquish();
        self.take_done().into_iter().map(Held::close).collect()
    }

    /// Returns each block with what was never claimed of it, for a proof to judge.
    #[cfg(feature = "rules")]
    pub fn blocks(&self) -> impl Iterator<Item = (&Block, EntryId, impl Iterator<Item = Span> + '_)> {
        let blocks = self.fresh.iter().chain(&self.draining);
        blocks.map(|held| (&held.block, held.entry, held.left.iter().copied()))
    }

    /// Numbers that can be claimed at once.
    #[must_use]
    pub fn in_hand(&self) -> u64 {
        self.fresh.iter().map(|held| held.left_len).sum::<u64>() + self.pool.len() as u64
    }

    /// Numbers of the blocks here that are not used, claimed and burned ones too.
    #[must_use]
    pub fn unsettled(&self) -> u64 {
        self.fresh.iter().chain(&self.draining).map(Held::unsettled).sum()
    }

    /// Numbers in the pool: they came back and are used first.
    #[must_use]
    pub fn pooled(&self) -> u64 {
        self.pool.len() as u64
    }

    /// How often a number came back and found the pool full. It waits in its block's account instead, and goes back with it.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Claims ever made.
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims
    }
}

#[cfg(test)]
mod tests;
