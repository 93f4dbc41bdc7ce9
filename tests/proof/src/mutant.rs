//! The guards that keep numbers unique, each of which can be switched off to see whether a proof
//! detects it.
//!
//! A guard of the cores is switched off inside them, a compare of the stores in [`crate::stores`].
//! The others are removed where an event enters a core: the answer or the fate is replaced by the
//! one that code without the guard would have.

use holder::{EntryId, Fate, Refused, Row, SafetyRule, SafetyRules, StoreAnswer};
use issuer::core::{Guard, Limits, OpenBlock, Request, State};
use numbers::Block;

use crate::stores::FakeEtcd;

/// A guard that is switched off in a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// etcd does not compare the leader key's `create_revision`.
    EpochCompare,
    /// etcd does not compare the `mod_revision` of `head`.
    HeadCompare,
    /// The block register does not refuse an overlapping block.
    RegisterConstraint,
    /// The block register does not compare generations at a take-over.
    GenerationCompare,
    /// The block register does not compare entries at a release, so a late one removes the entry of
    /// the next holder.
    ReleaseCompare,
    /// The block register does not distinguish the entries of different starts and holders.
    EntryOwner,
    /// The block register does not distinguish the entries of one start.
    EntryCount,
    /// A holder mints from a block that the register has refused.
    RegisterRefusal,
    /// An insert in doubt counts as stored, whatever row is found.
    DoubtRead,
    /// The number of an insert in doubt is not burned but handed out again.
    DoubtBurned,
    /// The issuer does not compare the generation of a returned block, so a late return closes the
    /// next allocation of the same numbers.
    ReturnCompare,
    /// A holder does not stop when a later start of it has registered.
    Superseded,
    /// A guard of the issuer's core is off.
    Core(Guard),
    /// A rule of the holder's core is off.
    Holder(SafetyRule),
}

impl Mutant {
    /// All mutants.
    pub const ALL: [Self; 31] = [
        Self::EpochCompare,
        Self::HeadCompare,
        Self::RegisterConstraint,
        Self::GenerationCompare,
        Self::ReleaseCompare,
        Self::EntryOwner,
        Self::EntryCount,
        Self::RegisterRefusal,
        Self::DoubtRead,
        Self::DoubtBurned,
        Self::ReturnCompare,
        Self::Superseded,
        Self::Core(Guard::LostReply),
        Self::Core(Guard::Seq),
        Self::Core(Guard::RegisterCommit),
        Self::Core(Guard::Contested),
        Self::Core(Guard::Journal),
        Self::Core(Guard::InHand),
        Self::Core(Guard::FreshReport),
        Self::Core(Guard::Capacity),
        Self::Core(Guard::Reserved),
        Self::Core(Guard::ReservedUnused),
        Self::Core(Guard::ReservedLen),
        Self::Core(Guard::ReservedApart),
        Self::Holder(SafetyRule::RegisterFirst),
        Self::Holder(SafetyRule::LeakedGeneration),
        Self::Holder(SafetyRule::ReleaseFirst),
        Self::Holder(SafetyRule::OnTheWay),
        Self::Holder(SafetyRule::EnteredOnly),
        Self::Holder(SafetyRule::Reclaimed),
        Self::Holder(SafetyRule::Holds),
    ];

    /// Returns the limits of the issuer's core with the mutant's guard off.
    #[must_use]
    pub fn limits(mutant: Option<Self>, limits: Limits) -> Limits {
        let off = match mutant {
            Some(Self::Core(guard)) => Some(guard),
            _ => None,
        };
        Limits { off, ..limits }
    }

    /// Returns the rules of the holder's core with the mutant's rule off.
    #[must_use]
    pub fn rules(mutant: Option<Self>) -> SafetyRules {
        SafetyRules::without(match mutant {
            Some(Self::Holder(rule)) => Some(rule),
            _ => None,
        })
    }

    /// Returns the start and the entry id by which the register identifies an entry, beside its
    /// generation.
    #[must_use]
    pub fn entry<T: Default>(mutant: Option<Self>, start: T, id: EntryId) -> (T, EntryId) {
        match mutant {
            Some(Self::EntryOwner) => (T::default(), id),
            Some(Self::EntryCount) => (start, EntryId::default()),
            _ => (start, id),
        }
    }

    /// Returns the answer that a holder gets for a block that the register refuses.
    #[must_use]
    pub fn refusal(mutant: Option<Self>) -> StoreAnswer {
        if mutant == Some(Self::RegisterRefusal) { StoreAnswer::Entered } else { StoreAnswer::Overlaps }
    }

    /// Returns the refusal that a holder gets after a later start of it has registered.
    #[must_use]
    pub fn superseded(mutant: Option<Self>) -> Refused {
        match mutant {
            Some(Self::Superseded) => Refused::Other(String::new()),
            _ => Refused::Superseded(String::new()),
        }
    }

    /// Returns the row that a holder judges an insert in doubt by.
    #[must_use]
    pub fn row(mutant: Option<Self>, row: Row) -> Row {
        if mutant == Some(Self::DoubtRead) { Row::Same } else { row }
    }

    /// Returns the fate of a number whose insert was in doubt.
    #[must_use]
    pub fn fate(mutant: Option<Self>, fate: Fate) -> Fate {
        match fate {
            Fate::Burned if mutant == Some(Self::DoubtBurned) => Fate::Unused,
            fate => fate,
        }
    }

    /// Returns a call as the issuer reads it. `etcd` has the blocks that are open.
    #[must_use]
    pub fn request(mutant: Option<Self>, request: Request, etcd: &FakeEtcd) -> Request {
        match request {
            Request::Return { holder, incarnation, mut blocks } if mutant == Some(Self::ReturnCompare) => {
                let state = State::rebuild(etcd.snapshot());
                let open = state.holders.get(&holder).map(|record| record.open.as_slice());
                for returned in &mut blocks {
                    let Block { namespace, span, .. } = &returned.block;
                    let is_same =
                        |open: &&OpenBlock| open.block.namespace == *namespace && open.block.span == *span;
                    if let Some(now) = open.unwrap_or_default().iter().find(is_same) {
                        returned.block = now.block.clone();
                    }
                }
                Request::Return { holder, incarnation, blocks }
            }
            request => request,
        }
    }
}
