//! The safety rule that a run is made without: one of the resolver, or one of the stores.

use std::cell::Cell;

use supply::safety_rule::{SafetyRule, SafetyRules};

thread_local! {
    /// The rule that is disabled on this thread, which runs one simulation at a time.
    static OFF: Cell<Option<Off>> = const { Cell::new(None) };
}

/// A rule of the stores, which the simulated one follows like the real ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreRule {
    /// While the primary is away, a copy is believed only if it has replayed all that the primary
    /// is known to have written (`resolver/store/src/postgres/links.rs`).
    Proved,
    /// The numbers of an open reservation are not taken over (`resolver/store/src/sql/blocks.rs`).
    OpenReservation,
    /// A version of the settings differs from the same version number in an older copy of the
    /// database (`resolver/store/src/outcomes.rs`).
    SettingsCopy,
    /// After a restart of the database server nothing is stored under a number before the mark is
    /// compared (`resolver/store/src/postgres/admin.rs`).
    Compared,
    /// A link is stored only in the history that its number belongs to
    /// (`resolver/store/src/postgres/statements.rs`).
    History,
}

/// The rule that is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    Resolver(SafetyRule),
    Store(StoreRule),
}

impl From<SafetyRule> for Off {
    fn from(rule: SafetyRule) -> Self {
        Self::Resolver(rule)
    }
}

impl From<StoreRule> for Off {
    fn from(rule: StoreRule) -> Self {
        Self::Store(rule)
    }
}

/// Returns the rules that resolvers are given.
pub(super) fn of_resolvers() -> SafetyRules {
    SafetyRules::without(OFF.get().and_then(|off| match off {
        Off::Resolver(rule) => Some(rule),
        Off::Store(_) => None,
    }))
}

/// Returns whether a rule of the stores is in force.
pub(super) fn keep(rule: StoreRule) -> bool {
    OFF.get() != Some(Off::Store(rule))
}

/// Runs a function with a rule disabled, or with all rules for `None`.
pub(super) fn without<T>(off: Option<Off>, run: impl FnOnce() -> T) -> T {
    let before = OFF.replace(off);
    let done = run();
    OFF.set(before);
    done
}
