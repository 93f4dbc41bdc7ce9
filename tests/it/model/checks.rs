//! The checkers. They know nothing of faults: they look at what etcd holds, what was answered and what holders have.

use std::collections::BTreeMap;

use issuer::{
    core::{Answer, Head, NamespaceRecord, Refusal, Reply},
    ledger::{Key, Record, Txn, Write},
    names::HolderId,
    tokens::{Incarnation, Seq},
};

use super::{
    etcd::{Records, head_of},
    holder::{Caller, Held, Holder, Numbers, holder_id, namespace},
    shared::Shared,
};

/// What one action has shown: the invariants that must be true, and the sights that must occur somewhere.
///
/// It is about the last action only, so that states are not told apart by what once happened on the way to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) overlap_free: bool,
    pub(super) minted_once: bool,
    pub(super) leak_is_told: bool,
    pub(super) watermark_grows: bool,
    pub(super) answered_is_committed: bool,
    pub(super) one_block_per_seq: bool,
    pub(super) balanced: bool,
    pub(super) fenced: bool,

    pub(super) take_over_in_doubt: bool,
    pub(super) late_copy_refused: bool,
    pub(super) late_copy_applied: bool,
    pub(super) resolved_by_head: bool,
    pub(super) free_again: bool,
    pub(super) exhausted: bool,
    pub(super) expired: bool,
    pub(super) reclaimed_own: bool,
    pub(super) reclaimed_from_another: bool,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            overlap_free: true,
            minted_once: true,
            leak_is_told: true,
            watermark_grows: true,
            answered_is_committed: true,
            one_block_per_seq: true,
            balanced: true,
            fenced: true,
            take_over_in_doubt: false,
            late_copy_refused: false,
            late_copy_applied: false,
            resolved_by_head: false,
            free_again: false,
            exhausted: false,
            expired: false,
            reclaimed_own: false,
            reclaimed_from_another: false,
        }
    }
}

type Request = (HolderId, Incarnation, Seq);

/// What must be remembered of the past to judge the present.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct History {
    /// Every allocation that was ever committed.
    allocated: Shared<BTreeMap<Request, Reply>>,
    /// The generations that were ever marked leaked.
    leaked: Numbers,
}

impl Default for History {
    fn default() -> Self {
        Self { allocated: Shared::new(BTreeMap::new()), leaked: Numbers::default() }
    }
}

impl History {
    /// Looks at a transaction that etcd has just applied.
    pub(super) fn committed(&mut self, seen: &mut Seen, before: &Records, after: &Records, txn: &Txn) {
        seen.watermark_grows &= watermark_grows(head_of(before), head_of(after));
        for write in &txn.writes {
            match write {
                Write::Put(Record::Holder(id, record)) => {
                    if let Some(reply) = &record.last_reply {
                        let request = (id.clone(), record.incarnation, record.last_seq);
                        self.allocated(seen, before, request, reply);
                    }
                }
                Write::Put(Record::Leaked(_, block)) => {
                    self.leaked.insert(block.generation.0);
                    let holder = after.get(&Key::Holder(block.holder.clone()));
                    let living = |record: &Record| matches!(record, Record::Holder(_, now) if now.incarnation == block.incarnation);
                    seen.expired |= holder.is_some_and(living);
                }
                Write::Delete(Key::Free(..)) => seen.free_again = true,
                _ => {}
            }
        }
    }

    fn allocated(&mut self, seen: &mut Seen, before: &Records, request: Request, reply: &Reply) {
        if let Some(known) = self.allocated.get(&request) {
            seen.one_block_per_seq &= known == reply;
            return;
        }
        let leaked = before.values().find_map(|record| match record {
            Record::Leaked(_, block) if block.span.overlaps(reply.block.span) => Some(block),
            _ => None,
        });
        seen.leak_is_told &= reply.leaked == leaked.map(|block| block.generation);
        seen.reclaimed_own |= leaked.is_some_and(|block| block.holder == request.0);
        seen.reclaimed_from_another |= leaked.is_some_and(|block| block.holder != request.0);
        let mut allocated = self.allocated.to_value();
        allocated.insert(request, reply.clone());
        self.allocated = Shared::new(allocated);
    }

    /// Looks at an answer at the moment it is given, whether or not anybody hears it.
    pub(super) fn answered(&self, seen: &mut Seen, caller: Caller, answer: &Result<Answer, Refusal>) {
        match answer {
            Ok(Answer::Allocated { block, leaked, .. }) => {
                let incarnation = Incarnation(caller.incarnation.into());
                let request = (holder_id(caller.holder), incarnation, Seq(caller.seq.into()));
                let committed = self.allocated.get(&request);
                seen.answered_is_committed &= committed.is_some();
                seen.one_block_per_seq &=
                    committed.is_none_or(|known| known.block == *block && known.leaked == *leaked);
            }
            Err(Refusal::Exhausted { .. }) => seen.exhausted = true,
            _ => {}
        }
    }

    /// No number is in two blocks that holders believe to have, unless the earlier one is known to be leaked. (That the
    /// later one's holder was told so is `leak_is_told`.)
    pub(super) fn overlap_free(&self, holders: &[Holder]) -> bool {
        let held: Vec<&Held> = holders.iter().flat_map(|holder| &holder.held).collect();
        held.iter().enumerate().all(|(i, one)| held[..i].iter().all(|other| self.may_both_be_held(one, other)))
    }

    fn may_both_be_held(&self, one: &Held, other: &Held) -> bool {
        if !one.block.span.overlaps(other.block.span) {
            return true;
        }
        let earlier = one.block.generation.min(other.block.generation);
        let leaked = (self.leaked.iter()).any(|generation| generation == earlier.0);
        one.block.generation != other.block.generation && leaked
    }
}

impl Seen {
    /// The account of the committed head, against the records and the database.
    pub(super) fn account(&mut self, records: &Records, rows: Numbers) {
        let namespace = head_of(records).and_then(|head| head.namespaces.get(&namespace()));
        self.balanced &= namespace.is_none_or(|namespace| accounts_for(namespace, records, rows));
    }
}

/// I2: it never decreases and never passes the capacity, and generations never come again.
fn watermark_grows(before: Option<&Head>, after: Option<&Head>) -> bool {
    let Some(after) = after else { return false };
    let Some(before) = before else { return true };
    let grows = |(name, was): (_, &NamespaceRecord)| {
        after.namespaces.get(name).is_some_and(|is| {
            was.high_watermark <= is.high_watermark && is.high_watermark <= is.capacity && was.capacity <= is.capacity
        })
    };
    before.namespaces.iter().all(grows) && before.generation <= after.generation && before.batch < after.batch
}

/// I10: the terms add up, each is what the records say, no number is in two records, and what is in none has a link.
fn accounts_for(namespace: &NamespaceRecord, records: &Records, rows: Numbers) -> bool {
    let (mut open, mut free, mut leaked) = (Numbers::default(), Numbers::default(), Numbers::default());
    let mut disjoint = true;
    let mut put = |set: &mut Numbers, all: &mut Numbers, span| {
        let numbers = Numbers::of(span);
        disjoint &= !all.meets(numbers);
        *all = all.union(numbers);
        *set = set.union(numbers);
    };
    let mut all = Numbers::default();
    for record in records.values() {
        match record {
            Record::Holder(_, holder) => {
                holder.open.iter().for_each(|held| put(&mut open, &mut all, held.block.span));
            }
            Record::Free(_, part) => put(&mut free, &mut all, part.span),
            Record::Leaked(_, block) => put(&mut leaked, &mut all, block.span),
            Record::Head(_) => {}
        }
    }
    let below = Numbers::below(namespace.high_watermark);
    let gone = below.without(all);
    let account = namespace.account;
    account.balances()
        && disjoint
        && below.contains_all(all)
        && (account.allocated, account.open) == (namespace.high_watermark, open.count())
        && (account.free, account.leaked) == (free.count(), leaked.count())
        && (account.used, account.burned) == (gone.count(), 0)
        && rows.contains_all(gone)
        && !rows.meets(free)
}
