//! The kinds of events that webhooks tell of.

use std::{fmt, str::FromStr};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// Visits of links were stored.
    VisitsRecorded,
    /// Visits that matched no link were stored.
    OrphanVisitsRecorded,
    /// A link was created.
    LinkCreated,
    /// A link was edited.
    LinkUpdated,
    /// A link was deleted.
    LinkDeleted,
    /// A deleted link was restored.
    LinkRestored,
    /// A link was blocked.
    LinkBlocked,
    /// A blocked link was unblocked.
    LinkUnblocked,
}

/// All kinds in the order of their declaration, with their names in payloads and in the API.
const NAMES: [(EventKind, &str); 8] = [
    (EventKind::VisitsRecorded, "visits.recorded"),
    (EventKind::OrphanVisitsRecorded, "orphan-visits.recorded"),
    (EventKind::LinkCreated, "link.created"),
    (EventKind::LinkUpdated, "link.updated"),
    (EventKind::LinkDeleted, "link.deleted"),
    (EventKind::LinkRestored, "link.restored"),
    (EventKind::LinkBlocked, "link.blocked"),
    (EventKind::LinkUnblocked, "link.unblocked"),
];

/// The number of characters of an unknown name that its error repeats.
const SHOWN_CHARS: usize = 40;

/// A name that no kind has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a kind of event, such as link.created, found {0:?}")]
pub struct UnknownKind(String);

impl EventKind {
    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(kind, _)| *kind)
    }

    /// Returns the name in payloads and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        NAMES[self as usize].1
    }
}

impl FromStr for EventKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let named = NAMES.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind);
        named.ok_or_else(|| UnknownKind(text.chars().take(SHOWN_CHARS).collect()))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_that_parses_to_it() {
        for (position, kind) in EventKind::all().enumerate() {
            assert_eq!(kind as usize, position, "the table is in the order of the declaration");
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!(EventKind::LinkUnblocked.to_string(), "link.unblocked");
    }

    #[test]
    fn an_unknown_name_is_refused_and_cut_in_the_error() {
        assert!("Link.created".parse::<EventKind>().is_err());
        let error = "ä".repeat(1_000).parse::<EventKind>().unwrap_err();
        assert_eq!(error, UnknownKind("ä".repeat(SHOWN_CHARS)));
    }
}
