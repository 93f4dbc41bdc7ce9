//! The task that reads links on cache misses. One read is in flight; the misses that arrive
//! meanwhile wait in a bounded queue and form the next one.

use std::{collections::HashMap, sync::Arc};

use codes::LinkId;
use links::Link;
use store::{Links, READ_MAX, Reading, Source, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::{
    cache::{Cached, LinkCache, Name},
    found::{Found, LookupError},
    invalidation::InvalidationState,
};
use supply::safety_rule::{self, SafetyRule};

use crate::{freshness::ReadAt, metrics::Metrics};

/// A lookup that waits for a read.
pub(super) struct Miss {
    pub(super) id: LinkId,
    pub(super) waiter: Waiter,
}

/// The caller of a lookup, and the key under which it wants the link cached.
pub(super) struct Waiter {
    /// The cache key of the link; `None` if the caller bypasses the cache.
    pub(super) name: Option<Name>,
    pub(super) found: oneshot::Sender<Found>,
}

type Waiting = HashMap<LinkId, Vec<Waiter>>;

/// How recent the rows of a read are.
#[derive(Clone, Copy)]
struct Rows {
    /// The instant that they are at least as recent as.
    began: ReadAt,
    /// Whether ids without a row are absent.
    complete: bool,
    /// Whether another server than the primary has answered some of them.
    is_copied: bool,
}

/// The task that reads links in batches.
pub(super) struct Reader {
    pub(super) links: Arc<dyn Links>,
    pub(super) queue: mpsc::Receiver<Miss>,
    pub(super) cache: LinkCache,
    pub(super) news: Arc<InvalidationState>,
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

    /// Answers a miss that has become a hit in the meantime, and adds any other to `waiting`. A
    /// caller that has given up is left out: reads for such callers would delay all others once the
    /// queue takes longer than their deadline.
    fn admit(&self, Miss { id, waiter }: Miss, waiting: &mut Waiting) {
        if waiter.found.is_closed() {
            return;
        }
        let known = waiter.name.and_then(|name| self.cache.get(&name));
        match known.filter(|cached| self.news.is_fresh(cached)) {
            // The caller may have given up.
            Some(cached) => drop(waiter.found.send(Ok(Some(Arc::clone(&cached.link))))),
            None => waiting.entry(id).or_default().push(waiter),
        }
    }

    /// Reads a batch and answers it. Returns the misses that arrived meanwhile and were not
    /// answered along with it.
    async fn read(&mut self, batch: Waiting) -> Waiting {
        self.metrics.link_reads.increment(1);
        let ids: Vec<LinkId> = batch.keys().copied().collect();
        self.metrics.links_asked.increment(u64::try_from(ids.len()).unwrap_or(0));
        // Taken before the source is chosen: `keep` finds any change after that.
        let began = self.news.freshness.now();
        // A caller that bypasses the cache decides by the answer what became of an insert.
        let is_decisive = batch.values().flatten().any(|waiter| waiter.name.is_none());
        let source = if is_decisive { Source::Primary } else { self.news.source(&ids) };
        let read = self.links.read(&ids, source).await;
        self.news.set_read_failed(read.is_err());
        // Collected only now: waking up for each arrival would cost more than a redirect's share of
        // the read.
        let (mut late, mut next) = (Waiting::new(), Waiting::new());
        // Late misses count as well: those that come back join the next read.
        while next.len() + late.len() < READ_MAX
            && let Ok(miss) = self.queue.try_recv()
        {
            if miss.waiter.found.is_closed() {
                continue;
            }
            // A caller that bypasses the cache shares no answer that a replica may have given.
            let shares = miss.waiter.name.is_some() && batch.contains_key(&miss.id);
            let waiting = if shares { &mut late } else { &mut next };
            waiting.entry(miss.id).or_default().push(miss.waiter);
        }
        for (id, waiters) in self.answer(batch, late, began, read) {
            next.entry(id).or_default().extend(waiters);
        }
        next
    }

    /// Answers a batch's waiters, and the late ones whose link was found. Returns the other late
    /// ones.
    fn answer(
        &self,
        batch: Waiting,
        mut late: Waiting,
        began: ReadAt,
        read: Result<Reading, StoreError>,
    ) -> Waiting {
        let (links, rows) = match read {
            Ok(reading) => self.sort(reading, began),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, ids = batch.len(), "read links");
                for waiter in batch.into_values().chain(late.into_values()).flatten() {
                    let _ = waiter.found.send(Err(LookupError::NoStore));
                }
                return Waiting::new();
            }
        };
        let Rows { began, complete, .. } = rows;
        for (id, waiters) in batch {
            let link = links.get(&id);
            // A deleted link is an absence, which may have ended since this read began.
            let is_there = link.is_some_and(|link| !link.is_deleted());
            let shares = late.contains_key(&id)
                && (is_there || !safety_rule::is_on(SafetyRule::Late))
                && self.news.may_be_shared(began);
            // Nor may the answer be older than an edit that a late caller knows of.
            let shares =
                shares && !(self.news.changed_since(id, began) && safety_rule::is_on(SafetyRule::Joined));
            let shared = if shares { late.remove(&id).unwrap_or_default() } else { Vec::new() };
            let mut kept = None;
            for Waiter { name, found } in waiters.into_iter().chain(shared) {
                let newer = name.and_then(|name| self.newer(&name, link?, rows));
                let is_new = name.filter(|name| newer.is_none() && kept.replace(*name) != Some(*name));
                if let Some(name) = is_new {
                    self.keep(name, id, link, rows);
                }
                let answer = newer.or_else(|| link.cloned());
                // A server that may lag behind can prove a presence, but no absence. To a caller
                // that bypasses the cache it proves nothing.
                let is_there = answer.as_ref().is_some_and(|link| !link.is_deleted());
                let known = complete || (is_there && name.is_some());
                let _ = found.send(if known { Ok(answer) } else { Err(LookupError::NoStore) });
            }
        }
        late
    }

    /// Returns the links of a read by id, without those of a copy that are outdated.
    fn sort(&self, reading: Reading, began: ReadAt) -> (HashMap<LinkId, Arc<Link>>, Rows) {
        let Reading { links, complete, as_of } = reading;
        // Rows of another server than the primary are as recent as it can prove, and count as read
        // at that time.
        let began = as_of.map_or(began, |as_of| self.news.freshness.at(as_of).min(began));
        let is_known = |link: &Link| complete || self.news.is_latest_known(link.id, began);
        let links = links.into_iter().filter(is_known).map(|link| (link.id, Arc::new(link))).collect();
        if !complete {
            self.news.note_primary_away();
        }
        let complete = complete || !safety_rule::is_on(SafetyRule::Complete);
        (links, Rows { began, complete, is_copied: as_of.is_some() })
    }

    /// Returns the cached link if a row of another server than the primary is older. Of the
    /// primary, also an older row is the present one: a fail-over may have lost the newer one.
    fn newer(&self, name: &Name, link: &Link, rows: Rows) -> Option<Arc<Link>> {
        if !rows.is_copied || !safety_rule::is_on(SafetyRule::Newer) {
            return None;
        }
        let cached = self.cache.get(name).filter(|cached| cached.link.id == link.id)?;
        let is_newer = (cached.link.version(), cached.read_at) >= (link.version(), rows.began);
        is_newer.then(|| Arc::clone(&cached.link))
    }

    /// Inserts a link that was read into the cache, or evicts one that no longer exists.
    fn keep(&self, name: Name, id: LinkId, link: Option<&Arc<Link>>, rows: Rows) {
        let Rows { began, complete, is_copied } = rows;
        match link {
            // A deleted link is an absence: its slug may be taken again at any moment.
            Some(link) if link.is_deleted() && safety_rule::is_on(SafetyRule::Deleted) => {
                self.cache.invalidate(&name);
            }
            Some(link) => self.cache.insert(name, Cached::new(link, began)),
            None if complete => self.cache.invalidate(&name),
            None => {}
        }
        if self.news.changed_since(id, began) && safety_rule::is_on(SafetyRule::ChangedSince) {
            self.cache.invalidate(&name);
        }
        if let Some(link) = link.filter(|_| !is_copied) {
            self.news.note_shown(id, began, link.is_deleted());
        }
    }
}
