//! Parameters of store calls: links and blocks to store, and selections of them.

use std::{sync::Arc, time::Duration};

use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{BulkChange, DomainId, Draft, ImportItem, NewLink, Precondition, Slug, Tag, api_key::ApiKeyId};
use numbers::Span;

/// Which servers may answer a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A replica, if there is one that lags at most `lag` behind. Links that it lacks are read from
    /// the primary.
    Any {
        /// Maximum replication lag.
        lag: Duration,
    },
    /// The primary. While it does not answer, any server may answer, and the result is not
    /// complete.
    Primary,
}

/// How the database's mark is compared with the known one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Whether the mark is raised as well.
    pub raises: bool,
    /// The server's start time, as seen before the ledger was asked. If the server has restarted
    /// since, other processes may have reported higher marks before a restore. Nothing is compared
    /// or raised then.
    pub since: Option<Timestamp>,
}

/// A link under a minted code, to be stored with tags, a domain or deduplication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullLink {
    /// The link.
    pub new: NewLink,
    /// The code of its number. On a domain other than the default one, a custom slug may have taken
    /// it.
    pub code: String,
}

/// A link under a custom slug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomSlugLink {
    /// The slug.
    pub slug: Slug,
    /// The id whose minted code the slug is, if it is mintable.
    pub mintable: Option<LinkId>,
    /// Number of keyspaces that this process knows. With one more, the slug might be mintable.
    pub keyspaces: usize,
    /// The other fields of the link.
    pub draft: Draft,
}

/// A link of a batch, with its tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchLink {
    /// A link under a minted code, on any domain.
    Minted(FullLink, Vec<Tag>),
    /// A link under a custom slug.
    Custom(CustomSlugLink, Vec<Tag>),
}

impl BatchLink {
    /// Returns the other fields of the link.
    pub fn draft(&self) -> &Draft {
        match self {
            Self::Minted(link, _) => &link.new.draft,
            Self::Custom(link, _) => &link.draft,
        }
    }

    /// Returns the tags of the link.
    pub fn tags(&self) -> &[Tag] {
        let (Self::Minted(_, tags) | Self::Custom(_, tags)) = self;
        tags
    }

    /// Returns the id whose number was claimed for the link; `None` for a custom slug.
    pub fn claimed(&self) -> Option<LinkId> {
        match self {
            Self::Minted(link, _) => Some(link.new.id),
            Self::Custom(..) => None,
        }
    }
}

/// A batch of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportBatch {
    /// The name of the import.
    pub name: String,
    /// The position after the batch: its last item, or a later item that was refused before the
    /// batch was sent.
    pub end: u64,
    /// The links.
    pub items: Vec<ImportItem>,
    /// Number of keyspaces that this process knows. With one more, other codes might be mintable.
    pub keyspaces: usize,
}

/// Links of a change of many that are changed in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkBatch {
    /// The links, each once, with what identifies them.
    pub items: Vec<(LinkId, Precondition)>,
    /// The change.
    pub change: Arc<BulkChange>,
    /// The API key that makes it.
    pub by: ApiKeyId,
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportPosition {
    /// The position of the last item that was stored or refused; 0 if there is none.
    pub place: u64,
    /// How many items up to there were refused.
    pub refused: u64,
}

/// One step of a removal that one process at a time does for all: of unvisited links, or of old
/// entries of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The process that runs the step, as owner of the lease.
    pub holder: String,
    /// How long the lease lasts after a step.
    pub held_for: Duration,
    /// A link is removed if its last visit is longer ago than this, and an entry if it is older.
    pub kept_for: Duration,
    /// The interval between two complete removals.
    pub every: Duration,
}

/// The links that a caller may see; `None` does not restrict them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Links of this domain only.
    pub domain: Option<DomainId>,
    /// Links created with this API key only.
    pub created_by: Option<ApiKeyId>,
}

/// Visits of a link that count in lists of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkVisits {
    /// The link.
    pub link: LinkId,
    /// The number of visits, bots included; negative after a deletion.
    pub total: i64,
    /// The number of visits of bots.
    pub bots: i64,
    /// The time of the last visit, in microseconds since 1970.
    pub last: i64,
    /// How many of the visits take the place of imported ones, which were only counted.
    pub imported: i64,
}

/// An entry of the block register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// The keyspace of the numbers.
    pub keyspace: KeyspaceIndex,
    /// The numbers.
    pub span: Span,
    /// The fencing token of the allocation.
    pub generation: u64,
    /// The name of the holder.
    pub holder: String,
    /// The holder's start counter.
    pub incarnation: u64,
    /// A name that no other entry has, not even one of the same start. A ledger that was lost
    /// counts incarnations and generations anew, and allocates the same numbers again.
    pub instance: String,
}
