//! What a link may be, where it leads, and who may see it: links, slugs, rules, domains, API keys and the policy for targets.
//!
//! Pure values, checked where they are made. Nothing here waits, asks a database or knows in which protocol a link came.

pub mod api_key;
pub mod audit;
mod block;
mod details;
mod domain;
mod filter;
mod forward;
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
mod visitor;

use std::borrow::Cow;

use codes::LinkId;
use jiff::Timestamp;
use url::Url;

use crate::api_key::ApiKeyId;

pub use block::Block;
pub use details::{Details, Origin};
pub use domain::{
    Authority, AuthorityError, Domain, DomainEdit, DomainId, DomainSettings, Protocol, REMOVED, Redirects,
    requested_authority,
};
pub use filter::{Filter, OrderBy, OrderField, Outline, Outlined, Page, TagsMode};
pub use forward::forward_query;
pub use long_url::{LongUrl, LongUrlError};
pub use password::{PasswordError, PasswordHash};
pub use placeholder::{fill_placeholders, has_safe_placeholders};
pub use record::{Edit, Meant, Record};
pub use rule::{
    AddressPattern, Browser, CONDITION_TYPES, CONDITIONS_MAX, Condition, ConditionError, Country, Date,
    Device, RULES_MAX, Rule, Text,
};
pub use scheme::{Schemes, SchemesError};
pub use slug::{Slug, SlugError};
pub use status::{RedirectStatus, RedirectStatusError};
pub use tag::{TAGS_MAX, Tag, TagError};
pub use visitor::{Facts, asks_where, choose, is_preview};

/// A link as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The primary key.
    pub id: LinkId,
    /// Where it leads.
    pub long_url: LongUrl,
    /// What a person calls it.
    pub title: Option<String>,
    /// Whether robots may follow it.
    pub crawlable: bool,
    /// Whether the visitor's query goes along.
    pub forward_query: bool,
    /// When it was stored, by the database's clock.
    pub created_at: Timestamp,
    /// Whose key created it.
    pub created_by: ApiKeyId,
    /// What few links have.
    pub details: Option<Box<Details>>,
}

/// What a creator says of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Where it leads.
    pub long_url: LongUrl,
    /// What a person calls it.
    pub title: Option<String>,
    /// Whether robots may follow it.
    pub crawlable: bool,
    /// Whether the visitor's query goes along.
    pub forward_query: bool,
    /// Whose key creates it.
    pub created_by: ApiKeyId,
    /// What few links have.
    pub details: Option<Box<Details>>,
}

impl Draft {
    /// The domain that it is for.
    #[must_use]
    pub fn domain(&self) -> DomainId {
        self.details.as_ref().and_then(|details| details.domain).unwrap_or(DomainId::DEFAULT)
    }
}

/// A draft with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// The primary key.
    pub id: LinkId,
    /// The rest.
    pub draft: Draft,
}

impl Link {
    /// The link that a stored draft has become.
    #[must_use]
    pub fn stored(id: LinkId, draft: Draft, created_at: Timestamp) -> Self {
        let Draft { long_url, title, crawlable, forward_query, created_by, details } = draft;
        Self { id, long_url, title, crawlable, forward_query, created_at, created_by, details }
    }

    /// Whether it redirects at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_none_or(|details| details.is_live(now))
    }

    /// Whether it will not redirect any more, unless somebody changes it.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_some_and(|details| details.is_over(now))
    }

    /// Whether it may have redirected before this time.
    #[must_use]
    pub fn was_live(&self, now: Timestamp) -> bool {
        self.details.as_ref().is_none_or(|details| details.valid_since.is_none_or(|since| since <= now))
    }

    /// Whether it redirects only so often.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.max_visits.is_some())
    }

    /// The hash of the password that its visitors are asked for.
    #[must_use]
    pub fn password(&self) -> Option<&PasswordHash> {
        self.details.as_ref()?.password.as_ref()
    }

    /// The status of its redirects, if it is not that of all others.
    #[must_use]
    pub fn status(&self) -> Option<RedirectStatus> {
        self.details.as_ref()?.status
    }

    /// Other places that it leads to, and when.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.details.as_ref().map_or(&[], |details| &details.rules)
    }

    /// What was drawn for it when it was created under a hand-picked code.
    #[must_use]
    pub fn mark(&self) -> Option<u32> {
        self.details.as_ref()?.mark
    }

    /// Whether an operator took it down.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.blocked.is_some())
    }

    /// Whether somebody deleted it.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.deleted_at.is_some())
    }

    /// The domain that it belongs to.
    #[must_use]
    pub fn domain(&self) -> DomainId {
        self.details.as_ref().and_then(|details| details.domain).unwrap_or(DomainId::DEFAULT)
    }

    /// The slug, if a person picked one.
    #[must_use]
    pub fn slug(&self) -> Option<&Slug> {
        self.details.as_ref()?.slug.as_ref()
    }

    /// Whether this row is what the draft says: an insert whose outcome was unknown did arrive.
    #[must_use]
    pub fn is(&self, draft: &Draft) -> bool {
        Self::stored(self.id, draft.clone(), self.created_at) == *self
    }
}

/// The URL as a `Location` header takes it: what is not ASCII is percent-encoded, all else stays as it was written.
#[must_use]
pub fn location(url: &str) -> Cow<'_, str> {
    if url.is_ascii() {
        return Cow::Borrowed(url);
    }
    Url::parse(url).map_or(Cow::Borrowed(url), |url| Cow::Owned(url.into()))
}
