//! State of a leader: the ledger's content, and what it has heard from holders in its term.

use std::collections::BTreeMap;

use numbers::{Epoch, HolderId, Incarnation, Mark, Millis, Namespace, Seq};

use super::{
    limits::Limits,
    request::Refusal,
    state::{ByStart, State},
    txn::Key,
    values::HolderRecord,
};

/// Maximum step by which one beat raises the mark: a wrong report must not spoil it for good.
const MARK_STEP: u64 = 1 << 20;

/// A holder's report of its numbers in hand, from a beat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumbersReport {
    /// Seq of the last allocation that the numbers include.
    pub(super) last_seq: Seq,
    /// Unused numbers of open blocks, by namespace.
    pub(super) numbers: Vec<(Namespace, u64)>,
}

/// The knowledge of a leader, which the operations on the ledger read and change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaderState {
    pub(super) limits: Limits,
    pub(super) epoch: Epoch,
    pub(super) state: State,
    /// Time at which each holder was last heard in this term. A missing holder counts from the
    /// take-over, so that each one has a full TTL after a change of leaders.
    pub(super) heard: BTreeMap<HolderId, Millis>,
    pub(super) since: Millis,
    /// Time at which each block was leaked in this term. A missing block counts from the take-over.
    pub(super) leaked_since: ByStart<Millis>,
    /// Last reports of numbers in hand; lost with the term.
    pub(super) in_hand: BTreeMap<HolderId, NumbersReport>,
    /// Starving holders, with the time of their last request; lost with the term.
    pub(super) starving: BTreeMap<(Namespace, HolderId), Millis>,
}

impl LeaderState {
    /// Creates the knowledge of a leader that takes over `state`.
    pub(super) fn new(limits: Limits, now: Millis, epoch: Epoch, state: State) -> Self {
        Self {
            limits,
            epoch,
            state,
            heard: BTreeMap::new(),
            since: now,
            leaked_since: ByStart::new(),
            in_hand: BTreeMap::new(),
            starving: BTreeMap::new(),
        }
    }

    /// Gives every holder a full TTL again, because their beats may be waiting to be read. Other
    /// delays that count from the take-over get longer, too, which is safe.
    pub(super) fn woke(&mut self, now: Millis) {
        self.since = now;
        self.heard.clear();
    }

    /// Makes room for a new holder: forgets a silent one without open blocks, which may come back.
    pub(super) fn forget_one(&mut self, now: Millis) {
        let idle =
            |(id, record): &(&HolderId, &HolderRecord)| record.open.is_empty() && self.is_silent(now, id);
        let found = self.state.holders.iter().find(idle).map(|(id, _)| id.clone());
        if let Some(holder) = found {
            self.state.holders.remove(&holder);
            self.heard.remove(&holder);
            self.in_hand.remove(&holder);
            self.state.unsaved.forgotten(&holder);
            self.state.touch(Key::Holder(holder));
        }
    }

    /// Returns whether a holder was silent for its TTL, since the take-over at the earliest.
    pub(super) fn is_silent(&self, now: Millis, holder: &HolderId) -> bool {
        let heard = self.heard.get(holder).copied().unwrap_or(self.since);
        now.since(heard) >= self.limits.holder_ttl_ms
    }

    /// Raises the highest known mark to the reported one.
    pub(super) fn hear_mark(&mut self, mark: Mark) {
        let known = self.state.head.mark;
        self.state.head.mark = known.max(mark.min(Mark(known.0.saturating_add(MARK_STEP))));
    }

    /// Checks that the holder's current incarnation calls, and records that it was heard.
    pub(super) fn hear(&mut self, now: Millis, holder: &HolderId, got: Incarnation) -> Result<(), Refusal> {
        let record = self.state.holders.get(holder).ok_or_else(|| Refusal::UnknownHolder(holder.clone()))?;
        if record.incarnation < got {
            // This ledger has lost the registration, as after a restored backup: register again.
            return Err(Refusal::UnknownHolder(holder.clone()));
        }
        if record.incarnation > got {
            let current = record.incarnation;
            return Err(Refusal::Superseded { holder: holder.clone(), current, got });
        }
        self.heard.insert(holder.clone(), now);
        Ok(())
    }
}
