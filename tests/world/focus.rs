//! The focus of a run: which faults and calls are frequent in it.

/// Number of domains beside the default one in runs that use several.
pub(super) const DOMAINS: u64 = 2;
/// Number of domains beside the default one that clients add in runs that add domains.
pub(super) const DOMAINS_ADDED: u64 = 6;

/// The kind of events that are most frequent in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Inserts in doubt for the same few URLs, and processes that crash.
    Doubts,
    /// Older copies of the database that take over.
    Histories,
    /// Older copies of the ledger that take over.
    Ledgers,
    /// Edits, moves, deletions and restorations of links, with late answers, missed notifications
    /// and a lagging replica.
    Changes,
    /// The same, with long outages of the primary during which a lagging copy answers.
    Outages,
    /// The same names on several domains.
    Domains,
    /// Added keyspaces and domains, of which running processes hear late, and reservations.
    Rollouts,
    /// Added domains, and older copies of the database that lack them.
    Copies,
}

impl Focus {
    /// Returns the focus of a seed. Successive seeds take turns.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            0 => Self::Doubts,
            1 => Self::Histories,
            2 => Self::Ledgers,
            3 => Self::Changes,
            4 => Self::Domains,
            5 => Self::Rollouts,
            6 => Self::Outages,
            _ => Self::Copies,
        }
    }

    /// Returns whether clients change links, and a replica is copied from time to time.
    pub(super) fn is_about_changes(self) -> bool {
        matches!(self, Self::Changes | Self::Outages)
    }

    pub(super) fn keyspaces(self, tiny: bool) -> &'static [&'static str] {
        match self {
            Self::Rollouts => &["a=3:0-9", "b=2:a-z", "c=2:A-M", "d=3:N-Z", "e=3:a-m", "f=2:N-Z", "g=3:n-z"],
            _ if tiny => &["tiny=1:0-9"],
            _ => &["a=3:0-9", "b=2:a-z"],
        }
    }

    pub(super) fn domains(self) -> u64 {
        match self {
            Self::Domains => DOMAINS,
            Self::Rollouts | Self::Copies => DOMAINS_ADDED,
            _ => 0,
        }
    }

    /// Returns the reservation calls among the clients' calls, per thousand.
    pub(super) fn reserves(self) -> u64 {
        match self {
            Self::Rollouts => 300,
            Self::Ledgers => 200,
            _ => 0,
        }
    }
}
