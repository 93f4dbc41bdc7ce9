//! What a run is about.

/// How many domains there are beside the default one where they matter, and where they are added.
pub(super) const DOMAINS: u64 = 2;
pub(super) const DOMAINS_ADDED: u64 = 6;

/// What happens most in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Inserts in doubt for the same few URLs, and processes that crash.
    Doubts,
    /// Older copies of the database take over.
    Histories,
    /// Older copies of the ledger.
    Ledgers,
    /// Links are edited, deleted and restored. Answers come late, notifications are missed, and a
    /// replica lags.
    Changes,
    /// The same names on several domains.
    Domains,
    /// Ceilings move quickly, processes do not hear of them, and restored ledgers have forgotten
    /// them.
    Ceilings,
    /// Keyspaces and domains are added, running processes hear of them late, and clients reserve
    /// codes.
    Rollouts,
    /// Domains are added, and older copies of the database take over that lack them.
    Copies,
}

impl Focus {
    /// Each in turn.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            0 => Self::Doubts,
            1 => Self::Histories,
            2 => Self::Ledgers,
            3 => Self::Changes,
            4 => Self::Domains,
            5 => Self::Ceilings,
            6 => Self::Rollouts,
            _ => Self::Copies,
        }
    }

    pub(super) fn keyspaces(self, tiny: bool) -> &'static [&'static str] {
        match self {
            // A ceiling has to be in reach: the room below it is a 64th of the keyspace, or one
            // block.
            Self::Ceilings => &["c=2:0-9A-Z"],
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

    /// Of a thousand things that clients do so many are about reservations.
    pub(super) fn reserves(self) -> u64 {
        match self {
            Self::Rollouts => 300,
            Self::Ledgers => 200,
            _ => 0,
        }
    }
}
