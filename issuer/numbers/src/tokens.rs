//! The counters that order events: each a newtype, so that one cannot be passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines a `u64` newtype that only ever grows.
macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            ///
            /// # Panics
            /// When the counter is at `u64::MAX`: at a million steps a second that is 584,000 years away.
            #[must_use]
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
    /// The leader's fencing token: the `create_revision` of its leader key.
    Epoch
);
token!(
    /// A block's fencing token; grows each time numbers change hands.
    Generation
);
token!(
    /// Grows at each start of a holder.
    Incarnation
);
token!(
    /// Numbers the allocation requests of one incarnation, from 1.
    Seq
);
token!(
    /// Numbers the transactions of a ledger, over all leaders.
    Batch
);
token!(
    /// The ledger's `mod_revision` of a key; 0 means that the key does not exist.
    Revision
);
token!(
    /// How far a database has come, by its own count. It was committed there before anybody is told of it, so a database that is
    /// below a mark that somebody knows is an older copy of what there was.
    Mark
);
token!(
    /// Names one waiting caller; made by the shell, opaque to the core.
    Ticket
);

/// Milliseconds of the shell's monotonic clock, from an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
