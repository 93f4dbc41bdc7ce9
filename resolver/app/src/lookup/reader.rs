//! The task that reads what no cache has. One read is in flight; the misses that arrive meanwhile
//! wait in a bounded queue and form the next one.

use std::{collections::HashMap, sync::Arc};

use codes::LinkId;
use links::Link;
use store::{Links, READ_MAX, Reading, Source, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::{Cached, Found, LinkCache, LookupError, Name, invalidation::News};
use supply::guard::{self, Guard};

use crate::{freshness::ReadAt, metrics::Metrics};

/// A lookup that waits.
pub(super) struct Miss {
    pub(super) id: LinkId,
    pub(super) waiter: Waiter,
}

/// Who waits for it.
pub(super) struct Waiter {
    /// Where the link goes in the cache; none when the store itself is asked.
    pub(super) name: Option<Name>,
    pub(super) found: oneshot::Sender<Found>,
}

type Waiting = HashMap<LinkId, Vec<Waiter>>;

/// The task that reads.
pub(super) struct Reader {
    pub(super) links: Arc<dyn Links>,
    pub(super) queue: mpsc::Receiver<Miss>,
    pub(super) cache: LinkCache,
    pub(super) news: Arc<News>,
    pub(super) metrics: Arc<Metrics>,
}

impl Reader {
    pub(super) async fn run(mut self) {
        let mut next = Waiting::new();
        loop {
            if next.is_empty() {
                match self.queue.recv().await {
                    Some(miss) => self.admit(miss, &mut next),
                    None => return,
                }
            }
            while next.len() < READ_MAX
                && let Ok(miss) = self.queue.try_recv()
            {
                self.admit(miss, &mut next);
            }
            if !next.is_empty() {
                next = self.read(next).await;
            }
        }
    }

    /// Answers a miss that has become a hit since, and lets the others wait.
    fn admit(&self, Miss { id, waiter }: Miss, waiting: &mut Waiting) {
        let known = waiter.name.and_then(|name| self.cache.get(&name));
        match known.filter(|cached| self.news.is_fresh(cached)) {
            // Whoever asked may have given up.
            Some(cached) => drop(waiter.found.send(Ok(Some(Arc::clone(&cached.link))))),
            None => waiting.entry(id).or_default().push(waiter),
        }
    }

    /// Reads a batch and answers it; what arrived meanwhile and was not answered along with it comes back.
    async fn read(&mut self, batch: Waiting) -> Waiting {
        self.metrics.link_reads.increment(1);
        let ids: Vec<LinkId> = batch.keys().copied().collect();
        self.metrics.links_asked.increment(u64::try_from(ids.len()).unwrap_or(0));
        // Before the source is chosen: what is changed after that is found by `keep`.
        let began = self.news.freshness.now();
        // Who asks past the cache decides by the answer what became of an insert.
        let is_decisive = batch.values().flatten().any(|waiter| waiter.name.is_none());
        let source = if is_decisive { Source::Primary } else { self.news.source(&ids) };
        let read = self.links.read(&ids, source).await;
        // Collected only now: waking up for each arrival would cost more than a redirect's share of
        // the read.
        let (mut late, mut next) = (Waiting::new(), Waiting::new());
        // Those that come back count as well: the next read takes them in.
        while next.len() + late.len() < READ_MAX
            && let Ok(miss) = self.queue.try_recv()
        {
            // Who asks past the cache shares no answer that a copy may have given.
            let shares = miss.waiter.name.is_some() && batch.contains_key(&miss.id);
            let waiting = if shares { &mut late } else { &mut next };
            waiting.entry(miss.id).or_default().push(miss.waiter);
        }
        for (id, waiters) in self.answer(batch, late, began, read) {
            next.entry(id).or_default().extend(waiters);
        }
        next
    }

    /// Answers those who waited, and the late ones whose link was found; the other late ones come back.
    fn answer(
        &self,
        batch: Waiting,
        mut late: Waiting,
        began: ReadAt,
        read: Result<Reading, StoreError>,
    ) -> Waiting {
        let (links, complete, began): (HashMap<LinkId, Arc<Link>>, bool, ReadAt) = match read {
            Ok(Reading { links, complete, as_of }) => {
                let complete = complete || !guard::is_on(Guard::Complete);
                let links = links.into_iter().map(|link| (link.id, Arc::new(link))).collect();
                // A replica's rows are as old as it can prove, and count as read then.
                (links, complete, as_of.map_or(began, |as_of| self.news.freshness.at(as_of).min(began)))
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, ids = batch.len(), "read links");
                for waiter in batch.into_values().chain(late.into_values()).flatten() {
                    let _ = waiter.found.send(Err(LookupError::NoStore));
                }
                return Waiting::new();
            }
        };
        for (id, waiters) in batch {
            let link = links.get(&id);
            // A deleted link is an absence, which may have ended since this read began.
            let is_there = link.is_some_and(|link| !link.is_deleted());
            let shares = late.contains_key(&id)
                && (is_there || !guard::is_on(Guard::Late))
                && self.news.may_be_shared(began);
            // Nor may it be older than an edit that a late caller knows of.
            let shares = shares && !(self.news.changed_since(id, began) && guard::is_on(Guard::Joined));
            let shared = if shares { late.remove(&id).unwrap_or_default() } else { Vec::new() };
            let mut kept = None;
            for Waiter { name, found } in waiters.into_iter().chain(shared) {
                if let Some(name) = name.filter(|name| kept.replace(*name) != Some(*name)) {
                    self.keep(name, id, link, (began, complete));
                }
                // A copy that may lag behind says what is there, never what is not; and nothing to who asks past the cache.
                let answer = link.cloned();
                let known = complete || (is_there && name.is_some());
                let _ = found.send(if known { Ok(answer) } else { Err(LookupError::NoStore) });
            }
        }
        late
    }

    /// Puts what was read into the cache, or takes out what is not there any more.
    fn keep(&self, name: Name, id: LinkId, link: Option<&Arc<Link>>, (began, complete): (ReadAt, bool)) {
        match link {
            // A deleted link is an absence: its code may be picked again at any moment.
            Some(link) if link.is_deleted() && guard::is_on(Guard::Deleted) => self.cache.invalidate(&name),
            Some(link) => self.cache.insert(name, Cached::new(link, began, complete)),
            None if complete => self.cache.invalidate(&name),
            None => {}
        }
        if self.news.changed_since(id, began) && guard::is_on(Guard::ChangedSince) {
            self.cache.invalidate(&name);
        }
    }
}
