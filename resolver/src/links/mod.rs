//! Links and where they lead.

mod forward;
mod long_url;

use std::borrow::Cow;

use jiff::Timestamp;
use url::Url;

use crate::{api_key::ApiKeyId, codes::LinkId};

pub use forward::forward_query;
pub use long_url::{LongUrl, LongUrlError};

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
        let Draft { long_url, title, crawlable, forward_query, created_by } = draft;
        Self { id, long_url, title, crawlable, forward_query, created_at, created_by }
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
