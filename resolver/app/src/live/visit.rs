//! Visits and links as subscriptions see them.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use links::{DomainId, Record};
use visits::{OrphanKind, PlaceText, VisitId};

use crate::key_names::Names;

/// Bytes that an event takes beside its texts.
const EVENT_BYTES: usize = 1_024;

/// A visit with the texts that its row refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitView {
    /// The page that the visitor came from; empty if unknown.
    pub referrer: String,
    /// When it was.
    pub at: Timestamp,
    /// The user agent; empty if unknown.
    pub user_agent: String,
    /// Where the visitor was, if known.
    pub place: Option<PlaceText>,
    /// Whether a bot made it.
    pub is_bot: bool,
    /// The URL that was requested; `None` if it is not known any more.
    pub visited_url: Option<String>,
    /// The URL that the visitor was redirected to; `None` if to none, or if it is not known any more.
    pub redirect_url: Option<String>,
    /// The kind, if no link redirected the visit.
    pub orphan: Option<OrphanKind>,
}

/// A link that was visited, as it was just after the visit.
#[derive(Debug)]
pub struct LiveLink {
    /// The link, with its tags.
    pub record: Record,
    /// Its code or slug.
    pub name: String,
    /// The names of the API keys that created and edited it.
    pub names: Names,
    /// The number of its visits, those of bots included.
    pub total: u64,
    /// The number of its visits by bots.
    pub bots: u64,
    written: OnceLock<Vec<u8>>,
}

/// A newly stored visit.
#[derive(Debug)]
pub struct LiveVisit {
    /// The id.
    pub id: VisitId,
    /// The domain that was visited.
    pub domain: DomainId,
    /// The visit.
    pub view: VisitView,
    /// The link that redirected it; `None` for an orphan visit.
    pub link: Option<Arc<LiveLink>>,
    written: OnceLock<Vec<u8>>,
}

impl LiveLink {
    /// Combines a link with its name, the names of its keys, and the number of its visits: all, and
    /// those of bots.
    #[must_use]
    pub fn new(record: Record, name: String, names: Names, (total, bots): (u64, u64)) -> Self {
        Self { record, name, names, total, bots, written: OnceLock::new() }
    }

    /// Returns the link as an adapter writes it. It is written once, for all subscriptions.
    pub fn written(&self, write: impl FnOnce(&Self) -> Vec<u8>) -> &[u8] {
        self.written.get_or_init(|| write(self))
    }

    /// Estimates the memory of the link and of its written form.
    fn bytes(&self) -> usize {
        let link = &self.record.link;
        let details = link.details.as_deref();
        let texts = [link.title.as_deref(), details.and_then(|details| details.description.as_deref())];
        let texts: usize = texts.into_iter().flatten().map(str::len).sum();
        let tags: usize = self.record.tags.iter().map(|tag| tag.as_str().len()).sum();
        EVENT_BYTES + 2 * (link.long_url.as_str().len() + texts + tags)
    }
}

impl LiveVisit {
    /// Combines a visit with its link.
    #[must_use]
    pub fn new(id: VisitId, domain: DomainId, view: VisitView, link: Option<Arc<LiveLink>>) -> Self {
        Self { id, domain, view, link, written: OnceLock::new() }
    }

    /// Returns the visit as an adapter writes it, without its link. It is written once, for all
    /// subscriptions.
    pub fn written(&self, write: impl FnOnce(&Self) -> Vec<u8>) -> &[u8] {
        self.written.get_or_init(|| write(self))
    }

    /// Estimates the memory of the visit and of its written form, with those of its link.
    pub(super) fn bytes(&self) -> usize {
        let VisitView { referrer, user_agent, visited_url, redirect_url, .. } = &self.view;
        let urls: usize = [visited_url, redirect_url].into_iter().flatten().map(String::len).sum();
        let link = self.link.as_ref().map_or(0, |link| link.bytes());
        EVENT_BYTES + 2 * (referrer.len() + user_agent.len() + urls) + link
    }
}
