//! Titles of links, fetched from the pages that their long URLs lead to, by option of a create.
//!
//! 1. The create is acknowledged first; its link then waits in a bounded queue of this process. If
//!    the queue or the share of the key is full, or the process ends, the link stays as it was
//!    created.
//! 2. A title is an edit by the key of the create, and only of a link that still has none and leads
//!    to the same URL.
//! 3. The target rules judge the page and each redirect. The reader of pages reaches public
//!    addresses only, and for operators, who alone may set webhooks, what those may reach.

use std::sync::Arc;

use codes::LinkId;
use futures_util::{StreamExt as _, stream};
use limits::{Account, Held, Pool, Shares};
use links::{
    Edit, Link, Precondition, Record,
    api_key::{ApiKeyId, Grant},
};
use tokio::sync::mpsc;
use webhooks::PageReader;

use crate::{LinkService, authorize::require_operator, link_fields::cut_title};

/// Maximum number of links that wait for their titles, a few bytes each.
const WAITING_MAX: usize = 1_024;
/// Maximum number of pages that are read at once.
const FETCHES_MAX: usize = 8;
/// The maximum numbers of links that wait or are being fetched: all, and those of one key. Pages
/// that do not answer take seconds each, and would keep the titles of other keys out.
const PLACES: Shares = Shares { all: (WAITING_MAX + FETCHES_MAX) as u64, clients: 0, client: 0, key: 256 };

/// A link without a title, and the key that asks for one.
pub struct Untitled {
    link: LinkId,
    by: ApiKeyId,
    /// Whether the key may set webhooks.
    is_of_operator: bool,
    /// The link's place until its title is fetched.
    _place: Held,
}

/// The queue of links whose titles are fetched.
pub struct TitleQueue {
    waiting: mpsc::Sender<Untitled>,
    places: Arc<Pool>,
}

impl TitleQueue {
    /// Returns a queue with its end, for [`fetch_titles`].
    pub fn open() -> (Self, mpsc::Receiver<Untitled>) {
        let (waiting, receiver) = mpsc::channel(WAITING_MAX);
        (Self { waiting, places: Pool::new(PLACES) }, receiver)
    }

    /// Adds a link that the key has created, unless it has a title, or the queue or the share of
    /// the key is full.
    pub(crate) fn add(&self, record: &Record, by: &Grant) {
        // A link of another key may have answered the create.
        if record.link.title.is_some() || !record.is_only_of(by.id) {
            return;
        }
        let Ok(place) = self.places.take(Account::Key(by.id.0), 1) else { return };
        let _ = self.waiting.try_send(Untitled {
            link: record.link.id,
            by: by.id,
            is_of_operator: require_operator(by).is_ok(),
            _place: place,
        });
    }
}

/// Fetches the titles of the links in a queue.
pub async fn fetch_titles(links: Arc<LinkService>, reader: PageReader, waiting: mpsc::Receiver<Untitled>) {
    let (links, public, reader) = (&*links, &reader.public_only(), &reader);
    let waiting =
        stream::unfold(waiting, |mut waiting| async move { Some((waiting.recv().await?, waiting)) });
    let fetch_one = |untitled: Untitled| {
        let reader = if untitled.is_of_operator { reader } else { public };
        fetch(links, reader, untitled)
    };
    waiting.for_each_concurrent(FETCHES_MAX, fetch_one).await;
}

async fn fetch(links: &LinkService, reader: &PageReader, untitled: Untitled) {
    let Untitled { link: id, by, .. } = untitled;
    let Some(link) = still_untitled(links, id).await else { return };
    let allows = |url: &str| links.domain_cache.entries().targets.allow(url, None);
    let Some(title) = reader.title(link.long_url.as_str(), allows).await else { return };
    let present = still_untitled(links, id).await.filter(|present| present.long_url == link.long_url);
    let Some(present) = present else { return };
    let edit = Edit {
        title: Some(Some(cut_title(&title).to_owned())),
        precondition: Precondition { versions: Some(vec![present.version()]), ..Precondition::of(&present) },
        ..Edit::default()
    };
    // A link that was changed in this moment keeps what it has.
    if let Err(error) = links.store_edit(id, &edit, by).await {
        tracing::warn!(%error, ?id, "a title that was fetched is not stored");
    }
}

/// Returns a link as it is stored, if it has no title and is not deleted.
async fn still_untitled(links: &LinkService, id: LinkId) -> Option<Arc<Link>> {
    let link = links.lookup.read_fresh(id).await.ok().flatten()?;
    (link.title.is_none() && !link.is_deleted()).then_some(link)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use links::{
        Draft, LongUrl,
        api_key::{KeyLimits, SecretNumber},
        scope::{Scope, Scopes},
    };

    use super::*;

    fn grant(id: i64, scopes: Scopes, limits: KeyLimits) -> Grant {
        Grant { id: ApiKeyId(id), secret: SecretNumber(1), name: "a".into(), scopes, limits }
    }

    fn record(by: &Grant) -> Record {
        let draft = Draft {
            long_url: LongUrl::from_stored("https://x.y/"),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: by.id,
            details: None,
        };
        Record { link: Link::stored(LinkId::from_stored(5), draft, Timestamp::UNIX_EPOCH), tags: Vec::new() }
    }

    #[test]
    fn no_key_takes_the_places_of_others_and_operators_are_known() {
        let (queue, mut waiting) = TitleQueue::open();
        let tenant = grant(7, Scopes::only(Scope::Create), KeyLimits::default());
        let limited = grant(8, Scopes::admin(), KeyLimits { own_links_only: true, ..KeyLimits::default() });
        let operator = grant(9, Scopes::admin(), KeyLimits::default());
        for _ in 0..WAITING_MAX {
            queue.add(&record(&tenant), &tenant);
        }
        for by in [&limited, &operator] {
            queue.add(&record(by), by);
        }
        let mut taken = Vec::new();
        while let Ok(untitled) = waiting.try_recv() {
            taken.push((untitled.by.0, untitled));
        }
        let of = |key: i64| taken.iter().filter(|(by, _)| *by == key).count();
        assert_eq!([of(7), of(8), of(9)], [256, 1, 1]);
        let of_operators: Vec<i64> =
            taken.iter().filter(|(_, one)| one.is_of_operator).map(|(by, _)| *by).collect();
        assert_eq!(of_operators, [9]);

        drop(taken);
        queue.add(&record(&tenant), &tenant);
        assert!(waiting.try_recv().is_ok(), "the places of titles that were fetched are free");
    }
}
