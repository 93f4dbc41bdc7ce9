//! Links as they are stored, and drafts of links to be created.

use std::sync::LazyLock;

use codes::LinkId;
use jiff::Timestamp;

use super::{Details, DomainId, LinkState, LongUrl, PasswordHash, Rule, Slug, api_key::ApiKeyId};

static NONE: LazyLock<Details> = LazyLock::new(Details::default);

/// A stored link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Primary key.
    pub id: LinkId,
    /// Target URL.
    pub long_url: LongUrl,
    /// Title, chosen by the owner.
    pub title: Option<String>,
    /// Whether crawlers may follow the link.
    pub crawlable: bool,
    /// Whether the query of the visitor's request is merged into the target URL.
    pub forward_query: bool,
    /// Creation time, by the database's clock.
    pub created_at: Timestamp,
    /// API key that created the link.
    pub created_by: ApiKeyId,
    /// Optional attributes, `None` if the link has none of them.
    pub details: Option<Box<Details>>,
}

/// A link to be created, without an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Target URL.
    pub long_url: LongUrl,
    /// Title, chosen by the owner.
    pub title: Option<String>,
    /// Whether crawlers may follow the link.
    pub crawlable: bool,
    /// Whether the query of the visitor's request is merged into the target URL.
    pub forward_query: bool,
    /// API key that creates the link.
    pub created_by: ApiKeyId,
    /// Optional attributes, `None` if the link has none of them.
    pub details: Option<Box<Details>>,
}

impl Draft {
    /// Returns the optional attributes.
    pub fn details(&self) -> &Details {
        self.details.as_deref().unwrap_or(&NONE)
    }

    /// Returns the domain of the link.
    pub fn domain(&self) -> DomainId {
        self.details().domain.unwrap_or(DomainId::DEFAULT)
    }
}

/// A draft with its allocated id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Primary key.
    pub id: LinkId,
    /// The draft.
    pub draft: Draft,
}

impl Link {
    /// Builds the link from a draft that has been stored.
    pub fn stored(id: LinkId, draft: Draft, created_at: Timestamp) -> Self {
        let Draft { long_url, title, crawlable, forward_query, created_by, details } = draft;
        Self { id, long_url, title, crawlable, forward_query, created_at, created_by, details }
    }

    /// Returns the optional attributes.
    pub fn details(&self) -> &Details {
        self.details.as_deref().unwrap_or(&NONE)
    }

    /// Returns whether the link redirects at `now`, and if not, why.
    pub fn state(&self, now: Timestamp) -> LinkState {
        self.details().state(now)
    }

    /// Returns `true` if the link redirects at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.state(now) == LinkState::Live
    }

    /// Returns `true` if the link has a visit limit.
    pub fn is_limited(&self) -> bool {
        self.details().max_visits.is_some()
    }

    /// Returns the hash of the password that visitors have to enter.
    pub fn password(&self) -> Option<&PasswordHash> {
        self.details().password.as_ref()
    }

    /// Returns the redirect rules, in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.details().rules
    }

    /// Returns the version: it grows with each edit, and is 0 for a link that was never edited.
    pub fn version(&self) -> u64 {
        self.details().version
    }

    /// Returns `true` if an operator has taken the link down.
    pub fn is_blocked(&self) -> bool {
        self.details().blocked.is_some()
    }

    /// Returns `true` if the link is deleted.
    pub fn is_deleted(&self) -> bool {
        self.details().deleted_at.is_some()
    }

    /// Returns the domain of the link.
    pub fn domain(&self) -> DomainId {
        self.details().domain.unwrap_or(DomainId::DEFAULT)
    }

    /// Returns the slug, if the code was hand-picked.
    pub fn slug(&self) -> Option<&Slug> {
        self.details().slug.as_ref()
    }

    /// Returns `true` if the link has a number and another name than its code.
    pub fn is_renamed(&self) -> bool {
        self.details().renamed
    }

    /// Returns `true` if this row holds exactly `draft`: an insert in doubt was committed.
    pub fn is(&self, draft: &Draft) -> bool {
        Self::stored(self.id, draft.clone(), self.created_at) == *self
    }
}

#[cfg(test)]
impl Draft {
    pub(crate) fn sample(details: Details) -> Self {
        Self {
            long_url: LongUrl::from_stored("https://x.y/"),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: ApiKeyId(7),
            details: (!details.is_empty()).then(|| Box::new(details)),
        }
    }
}

#[cfg(test)]
impl Link {
    /// Makes a link for tests, whose code is no minted one.
    pub(crate) fn sample(details: Details) -> Self {
        Self::stored(LinkId::from_stored(5), Draft::sample(details), Timestamp::UNIX_EPOCH)
    }
}
