//! Subjects: whose visits are counted.

use codes::LinkId;
use links::DomainId;

use crate::OrphanKind;

/// A subject whose visits are counted by day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A link.
    Link(LinkId),
    /// The links of a tag: all of them, or those on one domain.
    Tag(i64, Option<DomainId>),
    /// All links, or those on one domain.
    All(Option<DomainId>),
    /// Visits that no link redirected: of all kinds or of one, on all domains or on one.
    Orphans(Option<OrphanKind>, Option<DomainId>),
}

impl Subject {
    /// Returns the key under which the counters are stored: kind, subject and part. The counters of
    /// a link are stored by domain, and read whatever their part.
    pub fn key(self) -> SubjectKey {
        let part = |domain: Option<DomainId>| domain.map_or(0, |domain| domain.get().saturating_add(1));
        let (kind, subject, part) = match self {
            Self::Link(link) => (0, link.get(), 0),
            Self::Tag(tag, domain) => (1, tag, part(domain)),
            Self::All(domain) => (2, 0, part(domain)),
            Self::Orphans(kind, domain) => (3, kind.map_or(0, |kind| i64::from(kind as u8)), part(domain)),
        };
        SubjectKey { kind, subject, part }
    }
}

impl SubjectKey {
    /// Returns the key of a link's counters on a domain.
    pub fn of_link(link: LinkId, domain: DomainId) -> Self {
        Self { part: domain.get().saturating_add(1), ..Subject::Link(link).key() }
    }
}

/// The key of a subject's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubjectKey {
    /// The kind: link, tag, all or orphans.
    pub kind: i16,
    /// The link, the tag or the kind of orphans.
    pub subject: i64,
    /// The domain plus one; 0 for all domains.
    pub part: i64,
}
