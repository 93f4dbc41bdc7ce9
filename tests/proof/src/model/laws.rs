//! Laws: properties that must hold in every state (the "always" properties).
//!
//! A law is checked in the step that could break it, and a broken law stays broken. So the checker
//! reads a set that is empty in every state of a correct system, and a law adds no states.

use std::collections::BTreeMap;

use issuer::core::{Account, NamespaceRecord, State};
use numbers::Span;
use stateright::Property;

use super::{System, World};
use crate::stores::FakeEtcd;

/// Defines the laws, each with its name for reports.
macro_rules! laws {
    ($($(#[$about:meta])* $law:ident => $name:literal,)+) => {
        /// A property of every schedule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Law { $($(#[$about])* $law,)+ }

        impl Law {
            /// All laws.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$law),+];

            /// Returns the name of the law for reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$law => $name,)+ }
            }
        }

        /// Returns the laws as the checker reads them.
        pub(super) fn properties() -> Vec<Property<System>> {
            vec![$(Property::always($name, |_, world: &World| !world.broke(Law::$law))),+]
        }
    };
}

laws! {
    /// I1 in the ledger: every number is open, leaked or free at most once, and below the high
    /// watermark.
    LedgerDisjoint => "I1: blocks in the ledger are disjoint",
    /// I1 in the register: two different registered blocks share no number, unless one has taken
    /// over the other.
    RegisterDisjoint => "I1: blocks in the register are disjoint",
    /// I1 among the holders: the blocks in their hands overlap only where the older one had leaked.
    HandsDisjoint => "I1: blocks in hands are disjoint",
    /// I2: the high watermark never decreases.
    WatermarkForward => "I2: the watermark never decreases",
    /// I3: an answered allocation was committed.
    AnsweredWhenCommitted => "I3: what is answered was committed",
    /// I5: one seq gets one block.
    OneBlockPerSeq => "I5: one seq, one block",
    /// I6: a number is acknowledged once.
    AcknowledgedOnce => "I6: a number is acknowledged once",
    /// I10: the account balances, and each of its terms equals an independent count.
    AccountBalances => "I10: the account balances",
    /// Only the current leader writes.
    OnlyTheLeaderWrites => "only the leader of the day writes",
    /// The register never replaces a newer allocation by an older one.
    RegisterForward => "the register never goes back to an older allocation",
    /// A holder hears that all numbers are used only if none is unused.
    ExhaustedWhenUsed => "exhausted is said when every number is used",
    /// The capacity never decreases.
    CapacityForward => "the capacity never decreases",
    /// G7: the blocks of an open reservation do not leak.
    ReservationKept => "G7: what a reservation holds is not leaked",
    /// G7: no link of another holder is stored under a reserved number, before or after the
    /// reservation.
    ReservationUnused => "G7: reserved numbers are nobody else's",
    /// G7: a reservation gets exactly as many numbers as it asks for.
    ReservationLen => "G7: a reservation gets as many numbers as it asks for",
    /// I6: an acknowledged link is stored.
    AcknowledgedWhenStored => "I6: an acknowledged link is stored",
    /// A number is claimed only while the register has it under the claim's own entry, unless the
    /// block has leaked.
    ClaimedWhenRegistered => "a number is claimed from a registered block",
    /// A block that the register refuses is not minted from.
    RefusedBlockUnused => "a block that the register refuses is not used",
    /// The register refuses a new block only after etcd was restored, or if the block has leaked
    /// since: returned numbers were released before.
    NewBlockAccepted => "the register refuses no new block",
    /// A process that was told of a later start of its holder neither mints nor asks for blocks.
    SupersededStops => "a superseded process stops",
    /// The issuer's core does not panic.
    NoPanic => "the core does not panic",
}

/// The state of the numbers according to the ledger.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    pub(super) open: Vec<(numbers::Generation, Span)>,
    pub(super) leaked: Vec<(numbers::Generation, Span)>,
    free: Vec<Span>,
    /// The part of `open` that belongs to reservations.
    pub(super) reserved: Vec<Span>,
    namespace: Option<NamespaceRecord>,
}

impl Whereabouts {
    /// Reads the state of the numbers from a ledger.
    pub(super) fn of(etcd: &FakeEtcd) -> Self {
        let mut found = Self::default();
        // This is the view of the next leader: holders' records and journals together.
        let state = State::rebuild(etcd.snapshot());
        found.namespace = state.head.namespaces.into_values().next();
        let reservations = state.holders.values().filter(|holder| holder.reserved);
        let reserved = reservations.flat_map(|holder| &holder.open).map(|open| open.block.span);
        found.reserved = reserved.collect();
        let open = state.holders.into_values().flat_map(|holder| holder.open).map(|open| open.block);
        found.open = open.map(|block| (block.generation, block.span)).collect();
        let leaked = state.leaked.into_values();
        found.leaked = leaked.map(|leaked| (leaked.generation, leaked.span)).collect();
        found.free = state.free.into_values().map(|part| part.span).collect();
        found
    }

    /// Returns whether every number is in one place and below the high watermark (I1).
    pub(super) fn are_disjoint(&self) -> bool {
        let blocks = self.open.iter().chain(&self.leaked).map(|(_, span)| span);
        let mut times = BTreeMap::new();
        for number in blocks.chain(&self.free).flat_map(|span| span.start()..span.end()) {
            *times.entry(number).or_insert(0) += 1;
        }
        let end = self.namespace.as_ref().map_or(0, |record| record.high_watermark);
        times.iter().all(|(number, times)| *times == 1 && *number < end)
    }

    /// Returns whether the account balances (I10). The used numbers cannot exceed the links.
    pub(super) fn are_accounted_for(&self, links: usize) -> bool {
        let Some(record) = &self.namespace else { return true };
        let Account { allocated, used, open, free, leaked, .. } = record.account;
        let sum = |blocks: &[(_, Span)]| blocks.iter().map(|(_, span)| span.len()).sum::<u64>();
        record.is_sound()
            && allocated == record.high_watermark
            && open == sum(&self.open)
            && leaked == sum(&self.leaked)
            && free == self.free.iter().map(|span| span.len()).sum::<u64>()
            && used <= links as u64
    }

    /// Returns the high watermark; 0 before there is a namespace.
    pub(super) fn high_watermark(&self) -> u64 {
        self.namespace.as_ref().map_or(0, |record| record.high_watermark)
    }

    /// Returns the capacity; 0 before there is a namespace.
    pub(super) fn capacity(&self) -> u64 {
        self.namespace.as_ref().map_or(0, |record| record.capacity)
    }
}
