//! Links that are cached before this process is ready, so that the database is not asked for all
//! of them at once when a region starts again.
//!
//! They are those that were cached when the process last wrote its list, which is beside the
//! spooled visits. Without a list, as at the first start, they are the most visited ones. A list
//! has ids only: the links are read from the database, so that no change of them is missed.

use std::{sync::Arc, time::Duration};

use codes::LinkId;
use lookup::Lookup;
use spool::Sidecars;
use store::Store;
use tokio::{
    sync::OnceCell,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// The longest that a process waits for its links. The rest are read when somebody asks for them.
const WITHIN: Duration = Duration::from_secs(30);
/// The name of the list among the files of the spool.
const LIST: &str = "cached-links";
/// How often the list is written.
const WRITE_EVERY: Duration = Duration::from_secs(300);
/// How long the list of before is kept if its links could not be cached: those that are cached then
/// may be few.
const KEPT_FOR: Duration = Duration::from_secs(3_600);
/// Bytes of an id in the list, least significant first.
const ID_BYTES: usize = 8;

pub(super) struct WarmStart {
    pub(super) lookup: Arc<Lookup>,
    pub(super) store: Arc<dyn Store>,
    /// The files of the spool; `None` if no visits are recorded, and the list is not kept then.
    pub(super) files: Option<Sidecars>,
    /// The maximum number of links.
    pub(super) most: usize,
    /// Set once what is cached is worth a list.
    pub(super) loaded: OnceCell<()>,
}

impl WarmStart {
    /// Caches the links.
    pub(super) async fn load(&self) {
        let begun = Instant::now();
        let ids = async {
            match self.listed() {
                Some(ids) => Ok(ids),
                None => self.store.most_visited(self.most).await,
            }
        };
        let loaded = timeout(WITHIN, async { Ok(self.lookup.warm(&ids.await?).await) }).await;
        let took = begun.elapsed();
        match loaded {
            Ok(Ok(links)) => {
                tracing::info!(links, ?took, "cached links before the start");
                let _ = self.loaded.set(());
            }
            Ok(Err::<_, store::StoreError>(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "look for the most visited links");
            }
            Err(_) => tracing::warn!(?took, "ready before all links were cached"),
        }
    }

    /// Writes the list now and then, and at the end.
    pub(super) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let begun = Instant::now();
        loop {
            let is_end = stop.run_until_cancelled(sleep(WRITE_EVERY)).await.is_none();
            if begun.elapsed() >= KEPT_FOR {
                let _ = self.loaded.set(());
            }
            if self.loaded.initialized() {
                Self::write(Arc::clone(&self)).await;
            }
            if is_end {
                return;
            }
        }
    }

    fn listed(&self) -> Option<Vec<LinkId>> {
        let list = self.files.as_ref()?.get(LIST).unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "read the list of cached links");
            None
        })?;
        let (ids, _) = list.as_chunks::<ID_BYTES>();
        let ids = ids.iter().map(|id| LinkId::from_stored(i64::from_le_bytes(*id)));
        let mut ids: Vec<LinkId> = ids.take(self.most).collect();
        // The list has no order. In this one, links of a page are read together, and the latest
        // links first, in case that the cache is smaller now.
        ids.sort_unstable_by(|left, right| right.cmp(left));
        Some(ids)
    }

    async fn write(self: Arc<Self>) {
        let write = spawn_blocking(move || {
            let ids = self.lookup.cached(self.most);
            let list: Vec<u8> = ids.iter().flat_map(|id| id.get().to_le_bytes()).collect();
            // After an idle hour nothing is cached. The list of before is better than none.
            let files = self.files.as_ref().filter(|_| !ids.is_empty());
            files.map_or(Ok(()), |files| files.put(LIST, &list))
        });
        if let Ok(Err(error)) = write.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "write the list of cached links");
        }
    }
}
