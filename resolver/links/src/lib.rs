//! Link model: links, slugs, redirect rules, domains, API keys and the destination policy.
//!
//! All types are pure values, validated on construction. This crate performs no I/O, has no async
//! code, and does not depend on the protocol that a request arrived in.

pub mod api_key;
pub mod audit;
mod block;
mod details;
mod domain;
mod filter;
mod forward;
mod idempotency;
mod import;
mod lifecycle;
mod limits;
mod long_url;
mod lookalike;
mod password;
mod placeholder;
mod record;
pub mod reservation;
mod rule;
mod scheme;
pub mod scope;
mod slug;
mod status;
mod tag;
pub mod targets;
mod visit_limit;
mod visitor;

use std::borrow::Cow;

use codes::LinkId;
use jiff::Timestamp;
use url::Url;

use crate::api_key::ApiKeyId;

pub use block::Block;
pub use details::{Details, DetailsEdit, Origin};
pub use domain::{
    Authority, AuthorityError, Domain, DomainEdit, DomainId, DomainSettings, Protocol, REMOVED, Redirects,
    requested_authority,
};
pub use filter::{Filter, OrderBy, OrderField, Outline, Outlined, Page, TagsMode};
pub use forward::forward_query;
pub use idempotency::{EarlierRequest, Idempotency};
pub use import::{ImportCode, ImportItem, PickedCode};
pub use lifecycle::Refusal;
pub use limits::{CODE_LEN_MAX, DESCRIPTION_BYTES, PER_PAGE, PER_PAGE_MAX, STRAY_TARGET_BYTES, TITLE_BYTES};
pub use long_url::{LongUrl, LongUrlError};
pub use password::{PasswordError, PasswordHash};
pub use placeholder::{fill_placeholders, has_safe_placeholders};
pub use record::{Edit, Precondition, Record};
pub use rule::{
    AddressPattern, Browser, CONDITION_TYPES, CONDITIONS_MAX, Condition, ConditionError, Country, Date,
    Device, RULES_MAX, Rule, Text,
};
pub use scheme::{Schemes, SchemesError};
pub use slug::{Slug, SlugError};
pub use status::{RedirectStatus, RedirectStatusError};
pub use tag::{TAGS_MAX, Tag, TagError};
pub use visit_limit::granted_visits;
pub use visitor::{Facts, asks_where, choose, is_preview};

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
    /// Returns the domain of the link.
    #[must_use]
    pub fn domain(&self) -> DomainId {
        self.details.as_ref().and_then(|details| details.domain).unwrap_or(DomainId::DEFAULT)
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
    #[must_use]
    pub fn stored(id: LinkId, draft: Draft, created_at: Timestamp) -> Self {
        let Draft { long_url, title, crawlable, forward_query, created_by, details } = draft;
        Self { id, long_url, title, crawlable, forward_query, created_at, created_by, details }
    }

    /// Returns `true` if the link redirects at `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_none_or(|details| details.is_live(now))
    }

    /// Returns `true` if the link redirects neither at `now` nor later, unless it is edited.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_some_and(|details| details.is_over(now))
    }

    /// Returns `true` if the link has passed its start time, and so may have redirected before
    /// `now`.
    #[must_use]
    pub fn was_live(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_none_or(|details| details.valid_since.is_none_or(|since| since <= now))
    }

    /// Returns `true` if the link has a visit limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.max_visits.is_some())
    }

    /// Returns the hash of the password that visitors have to enter.
    #[must_use]
    pub fn password(&self) -> Option<&PasswordHash> {
        self.details.as_ref()?.password.as_ref()
    }

    /// Returns the redirect status, if it differs from the deployment's default.
    #[must_use]
    pub fn status(&self) -> Option<RedirectStatus> {
        self.details.as_ref()?.status
    }

    /// Returns the redirect rules, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.details.as_ref().map_or(&[], |details| &details.rules)
    }

    /// Returns the random mark of a link that was created under a hand-picked code (I4).
    #[must_use]
    pub fn mark(&self) -> Option<u32> {
        self.details.as_ref()?.mark
    }

    /// Returns the version: it grows with each edit, and is 0 for a link that was never edited.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.details.as_ref().map_or(0, |details| details.version)
    }

    /// Returns `true` if an operator has taken the link down.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.blocked.is_some())
    }

    /// Returns `true` if the link is deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.deleted_at.is_some())
    }

    /// Returns the domain of the link.
    #[must_use]
    pub fn domain(&self) -> DomainId {
        self.details.as_ref().and_then(|details| details.domain).unwrap_or(DomainId::DEFAULT)
    }

    /// Returns the slug, if the code was hand-picked.
    #[must_use]
    pub fn slug(&self) -> Option<&Slug> {
        self.details.as_ref()?.slug.as_ref()
    }

    /// Returns `true` if this row holds exactly `draft`: an insert whose outcome was unknown was
    /// committed.
    #[must_use]
    pub fn is(&self, draft: &Draft) -> bool {
        Self::stored(self.id, draft.clone(), self.created_at) == *self
    }
}

/// Returns the URL as a `Location` header value. Non-ASCII characters are percent-encoded, and an
/// ASCII URL stays byte for byte as it was written.
#[must_use]
pub fn location(url: &str) -> Cow<'_, str> {
    if url.is_ascii() {
        return Cow::Borrowed(url);
    }
    Url::parse(url).map_or(Cow::Borrowed(url), |url| Cow::Owned(url.into()))
}
