//! Admission of visits to links with a visit limit. Exactly as many are admitted as the limit
//! allows, however many resolvers and visitors there are.
//!
//! 1. Each visit is counted in the store before it is answered. Links with a limit are few; no
//!    other redirect comes here, and none writes.
//! 2. The visits that arrive while a batch is counted form the next one. Visits of the same link
//!    are counted together.
//! 3. If it is unknown whether a batch was counted, all of its visitors are asked to retry. Then
//!    there may be fewer redirects than the limit, and never more.
//! 4. Previews of a link (HEAD, or by a chat) and its password form use up no visit: they query the
//!    store and write nothing.
//! 5. Results are cached for a moment, so that a crowd that comes too late, or only previews, costs
//!    little.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use codes::LinkId;
use daemon::TaskSupervisor;
use moka::sync::Cache;
use store::{Links, StoreError};
use tokio::{
    runtime,
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::lookup::LookupError;

/// Maximum number of waiting visits. Further visits are rejected at once.
const WAITING_MAX: usize = 16_384;
/// Maximum number of concurrent previews. Further previews are rejected at once.
const PREVIEWS_MAX: usize = 64;
const LINKS_MAX: usize = 100;
/// How long a visit may wait.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long it is remembered whether a link has visits left. A raised limit takes effect after
/// that. No visit is admitted because of it.
const RECENT: Duration = Duration::from_millis(250);
const RECENT_MAX: u64 = 100_000;

type Admitted = Result<bool, LookupError>;

/// A visitor who waits to be counted, of this link.
type Waiting = (LinkId, oneshot::Sender<Admitted>);

/// Whether links have no visits left, as of a recent count or preview. A count that leaves some
/// makes a preview ask again.
type RecentlySpent = Cache<LinkId, bool>;

/// Admits visits of links with a visit limit.
pub struct VisitLimiter {
    waiting: mpsc::Sender<Waiting>,
    recent: RecentlySpent,
    links: Arc<dyn Links>,
    previews: Arc<Semaphore>,
    runtime: runtime::Handle,
}

impl VisitLimiter {
    /// Starts a limiter and its task on the current runtime.
    pub fn start(supervisor: &TaskSupervisor, links: Arc<dyn Links>) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING_MAX);
        let recent = Cache::builder().max_capacity(RECENT_MAX).time_to_live(RECENT).build();
        supervisor.spawn("counter of limited links", count(Arc::clone(&links), queue, recent.clone()));
        let (previews, runtime) = (Arc::new(Semaphore::new(PREVIEWS_MAX)), runtime::Handle::current());
        Self { waiting, recent, links, previews, runtime }
    }

    /// Returns whether a link's visit limit is exhausted. Uses up no visit.
    pub async fn is_spent(&self, link: LinkId) -> Admitted {
        if let Some(is_spent) = self.recent.get(&link) {
            return Ok(is_spent);
        }
        let turn = Arc::clone(&self.previews).try_acquire_owned().map_err(|_| LookupError::Overloaded)?;
        let links = Arc::clone(&self.links);
        let preview = self.runtime.spawn(async move {
            let _turn = turn;
            links.is_spent(link).await
        });
        let is_spent = preview.await.unwrap_or(Err(StoreError::Stopped)).map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "look whether a link is spent");
            LookupError::NoStore
        })?;
        self.recent.insert(link, is_spent);
        Ok(is_spent)
    }

    /// Counts one more visit of a link, and returns whether it is within the link's limit.
    pub async fn admit(&self, link: LinkId) -> Admitted {
        if self.recent.get(&link) == Some(true) {
            return Ok(false);
        }
        let (admitted, answered) = oneshot::channel();
        self.waiting.try_send((link, admitted)).map_err(|_| LookupError::Overloaded)?;
        timeout(DEADLINE, answered).await.ok().and_then(Result::ok).unwrap_or(Err(LookupError::NoStore))
    }
}

async fn count(store: Arc<dyn Links>, mut queue: mpsc::Receiver<Waiting>, recent: RecentlySpent) {
    let mut arrived = Vec::with_capacity(WAITING_MAX);
    let mut links: BTreeMap<LinkId, Vec<oneshot::Sender<Admitted>>> = BTreeMap::new();
    loop {
        if links.is_empty() && queue.recv_many(&mut arrived, WAITING_MAX).await == 0 {
            return;
        }
        for (link, admitted) in arrived.drain(..) {
            links.entry(link).or_default().push(admitted);
        }
        let later = links.keys().nth(LINKS_MAX).copied().map(|first| links.split_off(&first));
        let batch = std::mem::replace(&mut links, later.unwrap_or_default());
        let wanted: Vec<(LinkId, u64)> =
            batch.iter().map(|(link, visitors)| (*link, visitors.len() as u64)).collect();
        answer(batch, store.take_visits(&wanted).await, &recent);
    }
}

fn answer(
    batch: BTreeMap<LinkId, Vec<oneshot::Sender<Admitted>>>,
    taken: Result<Vec<u64>, StoreError>,
    recent: &RecentlySpent,
) {
    let taken = match taken {
        Ok(taken) => taken,
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "count visits of limited links");
            for visitor in batch.into_values().flatten() {
                // The caller may have given up.
                let _ = visitor.send(Err(LookupError::NoStore));
            }
            return;
        }
    };
    for ((link, visitors), taken) in batch.into_iter().zip(taken) {
        if taken < visitors.len() as u64 {
            recent.insert(link, true);
        } else {
            recent.invalidate(&link);
        }
        for (place, visitor) in visitors.into_iter().enumerate() {
            let _ = visitor.send(Ok((place as u64) < taken));
        }
    }
}
