//! Titles of links, fetched from the pages that their long URLs lead to, by option of a create.
//!
//! 1. The create is acknowledged first; its link then waits in a bounded queue of this process. If
//!    the queue is full, or the process ends, the link stays as it was created.
//! 2. A title is an edit by the key of the create, and only of a link that still has none and leads
//!    to the same URL.
//! 3. The target rules judge the page and each redirect. The reader of pages reaches no addresses
//!    that webhooks may not reach.

use std::sync::Arc;

use codes::LinkId;
use futures_util::{StreamExt as _, stream};
use links::{
    Edit, Link, Precondition, Record,
    api_key::{ApiKeyId, Grant},
};
use tokio::sync::mpsc;
use webhooks::PageReader;

use crate::{LinkService, link_fields::cut_title};

/// Maximum number of links that wait for their titles, a few bytes each.
const WAITING_MAX: usize = 1_024;
/// Maximum number of pages that are read at once.
const FETCHES_MAX: usize = 8;

/// A link without a title, and the key that asks for one.
#[derive(Clone, Copy, Debug)]
pub struct Untitled {
    link: LinkId,
    by: ApiKeyId,
}

/// The queue of links whose titles are fetched.
#[derive(Debug)]
pub struct TitleQueue(mpsc::Sender<Untitled>);

impl TitleQueue {
    /// Returns a queue with its end, for [`fetch_titles`].
    pub fn open() -> (Self, mpsc::Receiver<Untitled>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// Adds a link that the key has created, unless it has a title or the queue is full.
    pub(crate) fn add(&self, record: &Record, by: &Grant) {
        // A link of another key may have answered the create.
        if record.link.title.is_none() && record.is_only_of(by.id) {
            let _ = self.0.try_send(Untitled { link: record.link.id, by: by.id });
        }
    }
}

/// Fetches the titles of the links in a queue.
pub async fn fetch_titles(links: Arc<LinkService>, reader: PageReader, waiting: mpsc::Receiver<Untitled>) {
    let (links, reader) = (&*links, &reader);
    let waiting =
        stream::unfold(waiting, |mut waiting| async move { Some((waiting.recv().await?, waiting)) });
    waiting.for_each_concurrent(FETCHES_MAX, |untitled| fetch(links, reader, untitled)).await;
}

async fn fetch(links: &LinkService, reader: &PageReader, Untitled { link: id, by }: Untitled) {
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
