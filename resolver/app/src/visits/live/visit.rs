//! Visits and links as subscriptions see them.

use std::sync::{Arc, OnceLock};

use links::{Details, DomainId, Record};
use store::VisitTotals;
use visits::VisitId;

use crate::{key_names::Names, list_visits::VisitView};

/// Bytes that an event takes beside its texts.
const EVENT_BYTES: usize = 1_024;

/// A link that was visited, as it was just after the visit.
#[derive(Debug)]
pub struct LiveLink {
    /// The link, with its tags.
    pub record: Record,
    /// Its code or slug.
    pub name: String,
    /// The names of the API keys that created and edited it.
    pub names: Names,
    /// Its visits.
    pub visits: VisitTotals,
    /// The link as an adapter writes it, once for all subscriptions.
    pub written: OnceLock<Vec<u8>>,
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
    /// The visit as an adapter writes it without its link, once for all subscriptions.
    pub written: OnceLock<Vec<u8>>,
}

impl LiveLink {
    /// Estimates the memory of the link and of its written form.
    fn bytes(&self) -> usize {
        let link = &self.record.link;
        let details = link.details.as_deref().map_or(0, Details::bytes);
        let texts = link.title.as_ref().map_or(0, String::len) + details;
        let tags: usize = self.record.tags.iter().map(|tag| tag.as_str().len()).sum();
        EVENT_BYTES + 2 * (link.long_url.as_str().len() + texts + tags)
    }
}

impl LiveVisit {
    /// Estimates the memory of the visit and of its written form, with those of its link.
    pub(super) fn bytes(&self) -> usize {
        let VisitView { referrer, user_agent, visited_url, redirect_url, .. } = &self.view;
        let urls: usize = [visited_url, redirect_url].into_iter().flatten().map(|url| url.len()).sum();
        let link = self.link.as_ref().map_or(0, |link| link.bytes());
        EVENT_BYTES + 2 * (referrer.len() + user_agent.len() + urls) + link
    }
}
