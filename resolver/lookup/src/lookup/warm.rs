//! Links that are cached before anybody asks for them.
//!
//! 1. They are read like any others, so a link that was changed or taken down meanwhile is never
//!    served as it was. What outlives a restart is only which links they were.
//! 2. A link that is in the cache already stays there: a later read may have shown it.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codes::{LinkId, Mint};
use futures_util::{StreamExt as _, stream};
use links::Slug;
use store::READ_MAX;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Lookup,
    reader::{Loaded, Reader},
};

/// Links of a read, as long as none fails, and of one after that. A miss that comes meanwhile waits
/// for [`AT_ONCE`] reads at most.
const LARGE: usize = 512;
const SMALL: usize = READ_MAX;
/// Reads at a time: while the database answers one, the links of the others are cached. With two,
/// it would have nothing to do whenever both are being cached.
const AT_ONCE: usize = 3;
/// How many links are sorted before they are read. With more, a cache that is too small for all
/// would have the oldest links of them instead of the first.
const SORTED: usize = 512 * LARGE;
/// The pause between two looks at whether changes are told of.
const POLL: Duration = Duration::from_millis(5);
/// The pause after a read that has failed, as after a failed read of a miss.
const RETRY: Duration = Duration::from_secs(1);

impl Lookup {
    /// Reads links into the cache, the first ones first, until it is full. Waits until changes are
    /// told of, because what was read before that would have to be read again, and as long as the
    /// database does not answer. Returns the number of links.
    pub async fn warm(&self, ids: &[LinkId]) -> u64 {
        while !self.invalidation.freshness.is_told_for(Duration::ZERO) {
            sleep(POLL).await;
        }
        *self.reader.kept() = Some(HashSet::new());
        let _end = End(&self.reader);
        let chunks = ids.chunks(SORTED).flat_map(|ids| {
            // In this order they are close to each other in the table and its index.
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.chunks(LARGE).map(<[LinkId]>::to_vec).collect::<Vec<_>>()
        });
        let has_failed = Arc::new(AtomicBool::new(false));
        let load = |ids: Vec<LinkId>| {
            let (reader, mint) = (Arc::clone(&self.reader), Arc::clone(&self.mint));
            let loading = load(reader, mint, ids, Arc::clone(&has_failed));
            AbortOnDropHandle::new(tokio::spawn(loading))
        };
        let mut loaded = stream::iter(chunks).map(load).buffer_unordered(AT_ONCE);
        let (mut links, mut bytes) = (0, 0);
        while let Some(chunk) = loaded.next().await {
            for part in chunk.unwrap_or_default() {
                (links, bytes) = (links + part.links, bytes + part.bytes);
                for link in part.named {
                    if let Some(Ok(slug)) = self.name_of(&link).map(|name| Slug::parse(&name)) {
                        self.slugs.ids.insert((link.domain(), slug), link.id).await;
                    }
                }
            }
            if bytes >= self.config.cache_bytes {
                break;
            }
        }
        links
    }

    /// Returns the ids of at most `most` cached links, in any order.
    pub fn cached(&self, most: usize) -> Vec<LinkId> {
        self.cache.iter().map(|cached| cached.link.id).take(most).collect()
    }
}

/// Reads links into the cache, in smaller parts once a read has failed.
async fn load(
    reader: Arc<Reader>,
    mint: Arc<Mint>,
    ids: Vec<LinkId>,
    has_failed: Arc<AtomicBool>,
) -> Vec<Loaded> {
    let (mut loaded, mut left) = (Vec::new(), &*ids);
    while !left.is_empty() {
        let len = if has_failed.load(Ordering::Relaxed) { SMALL } else { LARGE };
        let (next, others) = left.split_at(len.min(left.len()));
        match reader.load(next, &mint).await {
            Ok(part) => {
                loaded.push(part);
                left = others;
            }
            Err(_) => {
                has_failed.store(true, Ordering::Relaxed);
                sleep(RETRY).await;
            }
        }
    }
    loaded
}

/// Ends a load.
struct End<'a>(&'a Reader);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.kept() = None;
    }
}
