//! Counts of events in a run, so that a proof over thousands of seeds can show that no rare event
//! was missing.

use std::fmt;

/// Defines the counted events with their descriptions.
macro_rules! happenings {
    ($($name:ident: $words:literal),* $(,)?) => {
        /// A counted event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Happening {
            $(#[doc = $words] $name,)*
        }

        impl Happening {
            /// All counted events, in the order of the summary.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the description of the event.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

happenings! {
    Event: "events",
    Several: "runs with several namespaces",
    Acknowledged: "links acknowledged",
    Allocation: "blocks allocated",
    RepeatedSeq: "allocations repeated with their seq",
    SeqRefused: "allocations refused for their seq",
    LeaderChange: "leaders that began to serve",
    StaleTakeOver: "take-overs from a stale read",
    UnknownApplied: "transactions in doubt that had applied",
    UnknownResent: "transactions in doubt that applied when sent again",
    UnknownDeposed: "transactions in doubt that ended their term",
    LateTransaction: "transactions that reached etcd after their time-out",
    LeaseRevoked: "leases ended early",
    IssuerCrash: "issuers crashed",
    IssuerPause: "issuers paused",
    IssuerRetired: "issuers retired",
    HolderCrash: "holders crashed and started again",
    HolderPause: "holders paused",
    HolderReplaced: "holders started again while the earlier process lived on",
    Superseded: "calls from a process that was superseded",
    EtcdAway: "times without etcd",
    StoreAway: "times without database",
    FailOver: "fail-overs of the database to a copy that was behind",
    GaveUp: "creates that met another history of the database",
    Restore: "restores of etcd from a backup",
    RegisterRefused: "blocks that the register refused",
    TakeOver: "blocks taken over",
    TakeOverRefused: "take-overs that the register refused",
    ReclaimedGap: "unused numbers found in blocks taken over",
    Returned: "blocks returned",
    InsertUnknown: "inserts in doubt",
    UnknownOurs: "inserts in doubt found to be stored",
    UnknownOther: "inserts in doubt that met another row",
    Burned: "numbers burned",
    LateInsert: "inserts that landed after their time-out",
    Met: "numbers claimed that had a row already",
    MetLate: "reclaimed numbers claimed that had a late row already",
    CeilingWait: "allocations that waited until a ceiling was lifted",
    Exhausted: "allocations refused because all numbers are used",
    InOtherHands: "allocations refused because the last numbers were in other hands",
    GaveBack: "numbers given up because another holder starved",
    Reserved: "reservations made",
    ReserveFailed: "reservations that failed on the way",
    Filled: "links filled in under reserved numbers",
    FillUnknown: "fills in doubt",
    FillConflict: "fills that met another link",
    FilledLate: "fills after their reservation was given up",
    GivenUp: "reservations given up",
    ReservedKept: "reservations kept to the end",
    Raise: "capacities raised",
    RaisedUsed: "allocations past an earlier capacity",
    LoweringRefused: "registrations refused because they would lower a capacity",
    FreeTaken: "links found under numbers given back as unused",
}

/// The counts of one run, or of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    counts: Vec<u64>,
}

impl Default for Summary {
    fn default() -> Self {
        Self { counts: vec![0; Happening::ALL.len()] }
    }
}

impl Summary {
    /// Returns how often an event happened.
    #[must_use]
    pub fn count(&self, happening: Happening) -> u64 {
        self.counts[happening as usize]
    }

    pub(super) fn add(&mut self, happening: Happening, count: u64) {
        self.counts[happening as usize] += count;
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (happening, count) in Happening::ALL.iter().zip(&self.counts) {
            writeln!(f, "{count:>12} {}", happening.words())?;
        }
        Ok(())
    }
}
