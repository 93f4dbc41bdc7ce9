//! Live visits: newly stored visits, passed on to subscriptions.
//!
//! 1. One task reads the visits that all resolvers have stored, once a second, and only while there
//!    is a subscription ([`poller`]). Each visit is passed on once, whichever batch it was in
//!    ([`cursors`]).
//! 2. All subscriptions read one bounded log of the last minute, each from its own place ([`log`]).
//!    A subscription that reads too slowly loses the visits that leave the log meanwhile, and is
//!    told how many of its own they were. It holds no memory beside the log.
//! 3. A subscription sees the visits that lists of visits show its key ([`filter`]).
//! 4. The number of subscriptions is bounded, in total, for each client and for each key.
//!
//! Rejected: a queue for each subscription. A thousand slow clients would hold a thousand queues,
//! and a client that reconnects would find an empty one.

mod cursors;
mod filter;
mod log;
mod poller;
mod state;

use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use async_trait::async_trait;
use codes::LinkId;
use daemon::TaskSupervisor;
use jiff::Timestamp;
use limits::{Account, ExceededShare, Held, Pool, budgets::LIVE_STREAMS};
use links::{Details, DomainId, Record};
use store::VisitTotals;
use tokio::{
    runtime,
    sync::{OnceCell, watch},
    time::Instant,
};
use visits::{VisitId, VisitRow};

use crate::{
    AppError, LinkService,
    key_names::Names,
    list_visits::{Known, VisitView, range_of},
};

pub use filter::{LiveFilter, Topics};
use state::{Begun, State};
pub use state::{Resumption, Start};
pub use visit_store::TokenSecret;

/// Maximum number of subscriptions of one client.
pub const SUBSCRIPTIONS_OF_CLIENT: u64 = LIVE_STREAMS.1;
/// One key has at most this part of all subscriptions, from however many clients, but no less
/// than one client.
const KEY_PART: u64 = 8;

/// Bytes that an event takes beside its texts.
const EVENT_BYTES: usize = 1_024;

/// Source of live visits.
#[async_trait]
pub trait LiveSource: Send + Sync + 'static {
    /// Returns the latest rows after an id, at most `most`, in any order.
    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, AppError>;

    /// Returns the visits of rows, one for each row, in their order.
    async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, AppError>;

    /// Returns links as they are now, with the number of their visits. Links that do not exist are
    /// left out.
    async fn links(&self, ids: &[LinkId]) -> Result<Vec<LiveLink>, AppError>;

    /// Returns the present time.
    fn now(&self) -> Timestamp;
}

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are too many already.
    Full(ExceededShare),
    /// The process is about to stop.
    Closing,
}

/// An event of a subscription, and an entry of the log.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// A visit.
    Visit(Arc<LiveVisit>),
    /// Visits that are not told: so many at least. `None` if the key may not know how many.
    Skipped(Option<u64>),
}

/// The live visits of this process.
pub struct LiveVisits {
    source: Arc<dyn LiveSource>,
    supervisor: TaskSupervisor,
    /// The runtime of the task that reads visits, because subscriptions begin on any.
    runtime: runtime::Handle,
    subscriptions: Arc<Pool>,
    /// The same subscriptions by key.
    of_keys: Arc<Pool>,
    state: Mutex<State>,
    /// Changes whenever a subscription may have something to read.
    changes: watch::Sender<()>,
    /// The secret that tokens are signed with, once it was read.
    pub secret: OnceCell<TokenSecret>,
    /// Makes [`Resumption`]s.
    hasher: RandomState,
}

impl LiveVisits {
    /// Creates live visits without a subscription. Visits are read on the current runtime. There
    /// are at most `most` subscriptions, and never more than the budget of streams.
    pub fn new(supervisor: &TaskSupervisor, source: Arc<dyn LiveSource>, most: u64) -> Arc<Self> {
        let most = most.min(LIVE_STREAMS.0);
        Arc::new(Self {
            source,
            supervisor: supervisor.clone(),
            runtime: runtime::Handle::current(),
            subscriptions: Pool::of_clients((most, SUBSCRIPTIONS_OF_CLIENT)),
            of_keys: Pool::of_clients((most, (most / KEY_PART).max(SUBSCRIPTIONS_OF_CLIENT))),
            state: Mutex::default(),
            changes: watch::Sender::new(()),
            secret: OnceCell::new(),
            hasher: RandomState::new(),
        })
    }

    /// Begins a subscription of a client: from now on, or from an earlier place, as far as the log
    /// reaches back. It counts as one until both results are dropped.
    pub fn subscribe(
        self: &Arc<Self>,
        client: IpAddr,
        filter: LiveFilter,
        start: Start,
    ) -> Result<(Subscription, Held), Refusal> {
        let held = self.subscriptions.take(Account::client(client), 1).map_err(Refusal::Full)?;
        let of_key = self.of_keys.take(Account::Key(filter.by.id.0), 1).map_err(Refusal::Full)?;
        let changed = self.changes.subscribe();
        let mut state = self.state();
        let begun = state.subscribe(Instant::now(), filter, start).ok_or(Refusal::Closing)?;
        let Begun { number, is_complete } = begun;
        if !std::mem::replace(&mut state.is_polled, true) {
            let _entered = self.runtime.enter();
            self.supervisor.spawn("reader of live visits", poller::run(Arc::clone(self)));
        }
        drop(state);
        let live = Arc::clone(self);
        Ok((Subscription { live, number, is_complete, changed, _of_key: of_key }, held))
    }

    /// Returns what a client is known by that subscribes anew with this token and these topics.
    pub fn resumption(&self, token: &str, topics: &Topics) -> Resumption {
        Resumption(self.hasher.hash_one((token, topics)))
    }

    /// Ends all subscriptions, and refuses others: the process is about to stop.
    pub fn close(&self) {
        self.state().close();
        self.changes.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

/// A subscription to live visits. It ends when it is dropped.
pub struct Subscription {
    live: Arc<LiveVisits>,
    number: u64,
    /// Whether it surely continues after the visit that it was to continue after.
    pub is_complete: bool,
    changed: watch::Receiver<()>,
    _of_key: Held,
}

impl Subscription {
    /// Waits for the next events, of which there is at least one. Returns `None` when the process
    /// is about to stop. A call that is dropped has taken none.
    pub async fn next(&mut self) -> Option<Vec<LiveEvent>> {
        loop {
            // Before the log is read, so that what is added after that wakes this call.
            self.changed.mark_unchanged();
            let events = self.live.state().take(Instant::now(), self.number)?;
            if !events.is_empty() {
                return Some(events);
            }
            self.changed.changed().await.ok()?;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.live.state().unsubscribe(Instant::now(), self.number);
    }
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
    fn bytes(&self) -> usize {
        let VisitView { referrer, user_agent, visited_url, redirect_url, .. } = &self.view;
        let urls: usize = [visited_url, redirect_url].into_iter().flatten().map(|url| url.len()).sum();
        let link = self.link.as_ref().map_or(0, |link| link.bytes());
        EVENT_BYTES + 2 * (referrer.len() + user_agent.len() + urls) + link
    }
}

#[async_trait]
impl LiveSource for LinkService {
    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, AppError> {
        Ok(self.visits.latest(after, most).await?)
    }

    async fn views(&self, rows: &[VisitRow]) -> Result<Vec<VisitView>, AppError> {
        Ok(self.views(rows, &mut Known::default()).await?)
    }

    async fn links(&self, ids: &[LinkId]) -> Result<Vec<LiveLink>, AppError> {
        let mut records = Vec::new();
        for piece in links::pieces(&self.store.outlines_of(ids).await?) {
            let ids: Vec<LinkId> = piece.iter().map(|outlined| outlined.id).collect();
            let mut read = self.store.records(&ids).await?;
            // Redirect rules may be long: only whether there are any is told.
            let details = read.iter_mut().filter_map(|record| record.link.details.as_mut());
            details.for_each(|details| details.rules.truncate(1));
            records.append(&mut read);
        }
        let names = self.names(&records).await;
        // The counters are stored together with the rows, unlike the totals beside the links, which
        // follow later.
        let all_time = range_of(None, None, self.domain_cache.now()).days();
        let visits = self.visits.link_totals(ids, all_time).await?;
        let live_link = |record: Record| {
            // This program never writes a row that no code leads to.
            let name = self.lookup.name_of(&record.link)?;
            let visits = visits.get(&record.link.id).copied().unwrap_or_default();
            Some(LiveLink { record, name, names: names.clone(), visits, written: OnceLock::new() })
        };
        Ok(records.into_iter().filter_map(live_link).collect())
    }

    fn now(&self) -> Timestamp {
        self.domain_cache.now()
    }
}
