//! What a store is asked: the links and blocks that it is to keep, and which of them somebody wants.

use std::{sync::Arc, time::Duration};

use codes::{KeyspaceIndex, LinkId, Mint};
use jiff::Timestamp;
use links::{DomainId, Draft, NewLink, Slug, Tag, api_key::ApiKeyId};
use numbers::Span;

/// The wish for a link that was given for the same wish before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Same {
    /// A digest of all that is wished for.
    pub digest: String,
    /// How long the link is given to whoever wishes for the same, counted from the last time.
    pub lifetime: Duration,
    /// Of a call that may be sent again, where the digest is only of its name: a digest of the call. The link is given whatever has become of it.
    pub fingerprint: Option<String>,
}

/// Who may answer a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A replica that lags at most so far behind, if there is one. What it does not have is asked of the primary.
    Any {
        /// How far.
        lag: Duration,
    },
    /// The primary, as long as there is one.
    Primary,
}

/// How a mark is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Whether the mark is raised as well.
    pub raises: bool,
    /// When the server had started, as seen before the ledger was asked. If it has restarted
    /// since, other processes may have reported higher marks before a restore: then nothing is
    /// compared and nothing raised.
    pub since: Option<Timestamp>,
}

/// A link under a number, of which more is said than of those in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullLink {
    /// The link.
    pub new: NewLink,
    /// The code of its number: on another domain than the default one, somebody may have picked it.
    pub code: String,
}

/// A link under a hand-picked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLink {
    /// The code.
    pub slug: Slug,
    /// The id that it stands for, if it could also have been minted.
    pub mintable: Option<LinkId>,
    /// How many keyspaces this process knows of: with another one the code might be mintable.
    pub keyspaces: usize,
    /// The rest.
    pub draft: Draft,
}

/// A link that comes from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportItem {
    /// The code that it has there; one of a digest of its URL, when absent.
    pub slug: Option<Slug>,
    /// The rest.
    pub draft: Draft,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// When it was made there.
    pub created_at: Option<Timestamp>,
    /// Whether its code was minted there: where the code can be minted here, too, it stays one that no person picks.
    pub minted: bool,
    /// How many of its uses are spent.
    pub uses: u64,
}

/// Links that come from elsewhere together.
#[derive(Clone)]
pub struct ImportBatch {
    /// Which import they are of.
    pub name: String,
    /// The last item that is in the batch, or was refused before it was.
    pub end: u64,
    /// The links.
    pub items: Vec<ImportItem>,
    /// Which codes could have been minted.
    pub mint: Arc<Mint>,
}

/// How links are removed that nobody has visited for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Who does it.
    pub holder: String,
    /// How long nobody else does after a step.
    pub held_for: Duration,
    /// How long a link was not visited that is removed.
    pub unvisited_for: Duration,
    /// How long it rests when it is done.
    pub every: Duration,
}

/// One step of the index of long URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStep {
    /// Who does it.
    pub holder: String,
    /// How long nobody else does after a step.
    pub held_for: Duration,
}

/// Links that somebody may know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Those of one domain.
    pub domain: Option<DomainId>,
    /// Those that were created with one key.
    pub created_by: Option<ApiKeyId>,
}

/// A block to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Whose numbers they are.
    pub keyspace: KeyspaceIndex,
    /// Which.
    pub span: Span,
    /// The fencing token of the allocation.
    pub generation: u64,
    /// Who holds it.
    pub holder: String,
    /// Which start of the holder.
    pub incarnation: u64,
    /// A name that no other entry has, not even one of the same start: a ledger that was lost counts incarnations and generations
    /// anew, and allocates the same numbers again.
    pub instance: String,
}
