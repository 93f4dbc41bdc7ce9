//! Counters that order events. Each is a newtype, so that one cannot be passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines a `u64` newtype for a counter that never decreases.
macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the successor of this value.
            ///
            /// # Panics
            /// Panics if the counter is `u64::MAX`: at a million steps a second that is 584,000
            /// years away.
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("a counter that steps by one cannot reach u64::MAX"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

token!(
    /// The leader's fencing token: the `create_revision` of its key in etcd, or a count of starts.
    Epoch
);
token!(
    /// A block's fencing token; grows each time numbers change hands.
    Generation
);
token!(
    /// A count of a holder's starts; grows at each start.
    Incarnation
);
token!(
    /// The sequence number of an allocation request within one incarnation, from 1.
    Seq
);
token!(
    /// The sequence number of a ledger transaction, over all leaders.
    Batch
);
token!(
    /// The `mod_revision` of a ledger key; 0 means that the key does not exist.
    Revision
);
token!(
    /// A database's own count of its progress. A mark is committed in the database before it is
    /// reported. So a database whose mark is below a reported one is an older copy.
    Mark
);
token!(
    /// The id of a waiting caller; assigned by the shell, opaque to the core.
    Ticket
);

/// A time in milliseconds on the shell's monotonic clock, from an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// Returns the milliseconds from `earlier` to this time; 0 if `earlier` is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
