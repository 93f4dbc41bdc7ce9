//! The rules of the resolver that keep its promises, one name each. The proof (`world`) takes them out one at a time, and each
//! has to be missed. Outside of unit tests every rule is in force, and asking costs nothing.

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// A block is released in the register before it is returned (`supply/returns.rs`).
    ReleaseFirst,
    /// A slug is acknowledged when no resolver denies it any more (`create/shown.rs`).
    SlugWait,
    /// What a copy does not have is not absent (`lookup/reader.rs`).
    Complete,
    /// The database's mark is compared with what the ledger was told (`supply/history.rs`).
    Mark,
    /// The mark is also compared before and behind the scan of a leaked block (`supply/enter.rs`).
    Current,
    /// A row under a number that was taken over may be its former holder's (`create/doubt.rs`).
    Reclaimed,
    /// A row is one's own only while the number is (`create/doubt.rs`).
    Holds,
    /// An insert in doubt is looked for before its link is acknowledged (`create.rs`).
    Doubt,
    /// That nobody has picked a code is believed for a moment only (`lookup/picked.rs`).
    Trusted,
}

/// Whether a rule is in force.
#[cfg(not(test))]
pub(crate) const fn is_on(_: Guard) -> bool {
    true
}

#[cfg(test)]
pub(crate) use switch::{is_on, without};

#[cfg(test)]
mod switch {
    use std::cell::Cell;

    use super::Guard;

    thread_local! {
        /// The rule that this thread's world goes without.
        static OFF: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    pub(crate) fn is_on(guard: Guard) -> bool {
        OFF.get() != Some(guard)
    }

    /// Runs something without a rule.
    pub(crate) fn without<T>(guard: Option<Guard>, run: impl FnOnce() -> T) -> T {
        let before = OFF.replace(guard);
        let done = run();
        OFF.set(before);
        done
    }
}
