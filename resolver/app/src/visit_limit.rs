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
const LOOKS_MAX: usize = 64;
/// Maximum number of links in a batch.
const LINKS_MAX: usize = 100;
/// How long a visit may wait.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a link without visits left is remembered. A raised limit takes effect after that.
const SPENT: Duration = Duration::from_millis(500);
/// How long it is remembered that a preview found visits left. No visit is admitted because of it.
const LOOKED: Duration = Duration::from_millis(250);
const SPENT_MAX: u64 = 100_000;

type Admitted = Result<bool, LookupError>;

struct Waiting {
    link: LinkId,
    admitted: oneshot::Sender<Admitted>,
}

/// Admits visits of links with a visit limit.
pub struct VisitLimiter {
    waiting: mpsc::Sender<Waiting>,
    known: Known,
    links: Arc<dyn Links>,
    looks: Arc<Semaphore>,
    runtime: runtime::Handle,
}

/// The cached results of recent counts and previews.
#[derive(Clone)]
struct Known {
    /// Links without visits left.
    spent: Cache<LinkId, ()>,
    /// Links with visits left, as of a preview, that have not been followed here since.
    looked: Cache<LinkId, ()>,
}

impl VisitLimiter {
    /// Starts an admission and its task on the current runtime.
    #[must_use]
    pub fn start(supervisor: &TaskSupervisor, links: Arc<dyn Links>) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING_MAX);
        let known = Known {
            spent: Cache::builder().max_capacity(SPENT_MAX).time_to_live(SPENT).build(),
            looked: Cache::builder().max_capacity(SPENT_MAX).time_to_live(LOOKED).build(),
        };
        supervisor.spawn("counter of limited links", count(Arc::clone(&links), queue, known.clone()));
        let (looks, runtime) = (Arc::new(Semaphore::new(LOOKS_MAX)), runtime::Handle::current());
        Self { waiting, known, links, looks, runtime }
    }

    /// Returns whether a link's visit limit is exhausted. Uses up no visit.
    ///
    /// # Errors
    /// Returns [`LookupError`] if that is unknown; the visitor may retry.
    pub async fn is_spent(&self, link: LinkId) -> Admitted {
        if self.known.spent.contains_key(&link) {
            return Ok(true);
        }
        if self.known.looked.contains_key(&link) {
            return Ok(false);
        }
        let turn = Arc::clone(&self.looks).try_acquire_owned().map_err(|_| LookupError::Overloaded)?;
        let links = Arc::clone(&self.links);
        let look = self.runtime.spawn(async move {
            let _turn = turn;
            links.is_spent(link).await
        });
        let is_spent = match look.await {
            Ok(Ok(is_spent)) => is_spent,
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "look whether a link is spent");
                return Err(LookupError::NoStore);
            }
            Err(_) => return Err(LookupError::NoStore),
        };
        let found = if is_spent { &self.known.spent } else { &self.known.looked };
        found.insert(link, ());
        Ok(is_spent)
    }

    /// Counts one more visit of a link, and returns whether it is within the link's limit.
    ///
    /// # Errors
    /// Returns [`LookupError`] if that is unknown; the visitor may retry.
    pub async fn admit(&self, link: LinkId) -> Admitted {
        if self.known.spent.contains_key(&link) {
            return Ok(false);
        }
        let (admitted, answered) = oneshot::channel();
        self.waiting.try_send(Waiting { link, admitted }).map_err(|_| LookupError::Overloaded)?;
        timeout(DEADLINE, answered).await.ok().and_then(Result::ok).unwrap_or(Err(LookupError::NoStore))
    }
}

async fn count(store: Arc<dyn Links>, mut queue: mpsc::Receiver<Waiting>, known: Known) {
    let mut arrived = Vec::with_capacity(WAITING_MAX);
    let mut links: BTreeMap<LinkId, Vec<oneshot::Sender<Admitted>>> = BTreeMap::new();
    loop {
        if links.is_empty() && queue.recv_many(&mut arrived, WAITING_MAX).await == 0 {
            return;
        }
        for Waiting { link, admitted } in arrived.drain(..) {
            links.entry(link).or_default().push(admitted);
        }
        let later = links.keys().nth(LINKS_MAX).copied().map(|first| links.split_off(&first));
        let batch = std::mem::replace(&mut links, later.unwrap_or_default());
        let wanted: Vec<(LinkId, u64)> =
            batch.iter().map(|(link, visitors)| (*link, visitors.len() as u64)).collect();
        answer(batch, store.take_visits(&wanted).await, &known);
    }
}

fn answer(
    batch: BTreeMap<LinkId, Vec<oneshot::Sender<Admitted>>>,
    taken: Result<Vec<u64>, StoreError>,
    known: &Known,
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
        known.looked.invalidate(&link);
        if taken < visitors.len() as u64 {
            known.spent.insert(link, ());
        }
        for (place, visitor) in visitors.into_iter().enumerate() {
            let _ = visitor.send(Ok((place as u64) < taken));
        }
    }
}
