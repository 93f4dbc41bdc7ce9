//! Lookup of link ids by slug. On the default domain these are slugs that are not mintable, on
//! other domains all slugs and codes.
//!
//! Concurrent lookups of the same slug share one query. A caller that joined it does not share an
//! absence, because the slug may have been acknowledged after that query was sent. It shares that
//! of the next query, which was sent after the caller had come.
//!
//! Lookups of several slugs at once share queries too: those that come while a query is in flight
//! form the next one. So it is sent after they came, and they share its absences.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use codes::LinkId;
use daemon::TaskSupervisor;
use foldhash::quality::RandomState;
use links::{DomainId, Slug};
use moka::future::Cache;
use store::{Links, NamedIds, StoreError};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use super::LookupError;

/// Bytes that an entry takes beside its text.
const ENTRY_BYTES: usize = 260;
/// How long an entry lives after its last use, as in the cache of links.
const IDLE: Duration = Duration::from_secs(3600);
/// Maximum number of concurrent queries. Further ones wait.
const AT_ONCE: usize = 32;
/// Maximum number of lookups of several slugs that share a query. One is in flight, so this limits
/// how many are answered in the time that the database takes.
const SHARED_MAX: usize = 128;
/// Maximum number of lookups of several slugs that wait. Further ones are rejected at once.
const WAITING_MAX: usize = 4_096;
/// How long a lookup waits for its turn, and how long its query may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Maximum number of deleted links that are remembered to hold their slugs, and of numbers that are
/// remembered not to be reserved.
const HELD_MAX: u64 = 10_000;
/// How long a number is remembered not to be reserved.
const NOT_RESERVED_FOR: Duration = Duration::from_secs(60);

pub(super) type SlugOnDomain = (DomainId, Slug);
type Ids = Cache<SlugOnDomain, LinkId, RandomState>;
type Named = Result<Arc<NamedIds>, LookupError>;

/// A lookup of several slugs, which waits for its query.
struct Several {
    places: Vec<SlugOnDomain>,
    named: oneshot::Sender<Named>,
}

/// The reason why a slug has no id.
#[derive(Debug)]
enum Missing {
    Absent,
    NoStore(StoreError),
}

pub(super) struct Slugs {
    pub(super) ids: Ids,
    /// Whether a code of the default domain was ever looked up as a slug. While none was, misses of
    /// codes need not consult `ids`. A thread that has not seen a change yet reads the link from
    /// the store instead.
    pub(super) has_asked_code: AtomicBool,
    /// Deleted links that are blocked and hold their slugs, each with the version for which the
    /// store confirmed it. Releasing a slug creates a new version.
    held: moka::sync::Cache<LinkId, u64, RandomState>,
    /// Numbers that belonged to no open reservation a moment ago.
    not_reserved: moka::sync::Cache<LinkId, (), RandomState>,
    links: Arc<dyn Links>,
    several: mpsc::Sender<Several>,
    questions: Arc<Semaphore>,
    /// The runtime of the queries. A caller that goes away must not cancel its query and so break
    /// the connection.
    runtime: Handle,
}

impl Slugs {
    /// Starts the lookup, with a cache of at most this many bytes.
    pub(super) fn start(supervisor: &TaskSupervisor, links: Arc<dyn Links>, bytes: u64) -> Self {
        let weigh = |place: &SlugOnDomain, _: &LinkId| {
            u32::try_from(ENTRY_BYTES + place.1.as_str().len()).unwrap_or(u32::MAX)
        };
        let ids = Cache::builder().max_capacity(bytes).weigher(weigh).time_to_idle(IDLE);
        let ids = ids.build_with_hasher(RandomState::default());
        let (several, waiting) = mpsc::channel(WAITING_MAX);
        supervisor.spawn("reader of slugs", ask_several(Arc::clone(&links), ids.clone(), waiting));
        Self {
            ids,
            has_asked_code: AtomicBool::new(false),
            held: moka::sync::Cache::builder()
                .max_capacity(HELD_MAX)
                .build_with_hasher(RandomState::default()),
            not_reserved: moka::sync::Cache::builder()
                .max_capacity(HELD_MAX)
                .time_to_live(NOT_RESERVED_FOR)
                .build_with_hasher(RandomState::default()),
            links,
            several,
            questions: Arc::new(Semaphore::new(AT_ONCE)),
            runtime: Handle::current(),
        }
    }

    /// Returns whether a deleted link at this version holds its slug. Another link may have taken
    /// the slug before this one was blocked.
    pub(super) async fn is_held(
        &self,
        place: &SlugOnDomain,
        id: LinkId,
        version: u64,
    ) -> Result<bool, LookupError> {
        if self.held.get(&id) == Some(version) {
            return Ok(true);
        }
        let is_held = self.ask_anew(place).await? == Some(id);
        if is_held {
            self.held.insert(id, version);
        }
        Ok(is_held)
    }

    /// Returns the id of a slug, from the cache or the store.
    pub(super) async fn find(&self, place: &SlugOnDomain) -> Result<Option<LinkId>, LookupError> {
        let mut has_joined = false;
        loop {
            let mut is_mine = false;
            let asked = self.ids.try_get_with_by_ref(place, async {
                is_mine = true;
                self.ask(place).await
            });
            match asked.await {
                Ok(id) => return Ok(Some(id)),
                Err(missing) => match &*missing {
                    Missing::Absent if is_mine || has_joined => return Ok(None),
                    Missing::Absent => has_joined = true,
                    Missing::NoStore(error) => return Err(failed(error)),
                },
            }
        }
    }

    /// Returns the id of a slug by a query that no other caller shares.
    pub(super) async fn ask_anew(&self, place: &SlugOnDomain) -> Result<Option<LinkId>, LookupError> {
        match self.ask(place).await {
            Ok(id) => Ok(Some(id)),
            Err(Missing::Absent) => Ok(None),
            Err(Missing::NoStore(error)) => Err(failed(&error)),
        }
    }

    /// Returns the ids of slugs, perhaps among others, and keeps them.
    pub(super) async fn ask_all(&self, places: Vec<SlugOnDomain>) -> Named {
        let (named, answered) = oneshot::channel();
        self.several.try_send(Several { places, named }).map_err(|_| LookupError::Overloaded)?;
        match timeout(DEADLINE, answered).await {
            Ok(Ok(named)) => named,
            Ok(Err(_)) | Err(_) => Err(LookupError::NoStore),
        }
    }

    /// Returns whether a number belongs to an open reservation. One that was not is believed not to
    /// be for a moment: the codes of a reservation are random, and printed later.
    pub(super) async fn is_reserved(&self, number: LinkId) -> Result<bool, LookupError> {
        if self.not_reserved.contains_key(&number) {
            return Ok(false);
        }
        let links = Arc::clone(&self.links);
        let asked = self.query(async move { links.is_reserved(number).await }).await;
        let is_reserved = asked.map_err(|error| failed(&error))?;
        if !is_reserved {
            self.not_reserved.insert(number, ());
        }
        Ok(is_reserved)
    }

    async fn ask(&self, (domain, slug): &SlugOnDomain) -> Result<LinkId, Missing> {
        let (links, domain, slug) = (Arc::clone(&self.links), *domain, slug.clone());
        let asked = self.query(async move { links.find_slug(domain, &slug).await }).await;
        asked.map_err(Missing::NoStore)?.ok_or(Missing::Absent)
    }

    /// Sends a query when it is its turn.
    async fn query<T: Send + 'static>(
        &self,
        query: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let questions = Arc::clone(&self.questions);
        let ask = self.runtime.spawn(async move {
            let late = |_| StoreError::TimedOut;
            let _question = timeout(DEADLINE, questions.acquire()).await.map_err(late)?;
            timeout(DEADLINE, query).await.map_err(late)?
        });
        ask.await.unwrap_or(Err(StoreError::Stopped))
    }
}

/// Answers lookups of several slugs, as many as wait by one query.
async fn ask_several(links: Arc<dyn Links>, ids: Ids, mut waiting: mpsc::Receiver<Several>) {
    let mut asked = Vec::new();
    while waiting.recv_many(&mut asked, SHARED_MAX).await > 0 {
        // Some have given up.
        asked.retain(|one| !one.named.is_closed());
        // Each on its own domains: all slugs on all domains would be many more.
        let places: HashSet<SlugOnDomain> = asked.iter().flat_map(|one| one.places.iter().cloned()).collect();
        if places.is_empty() {
            continue;
        }
        let named = timeout(DEADLINE, links.find_slugs(&Vec::from_iter(places))).await;
        let named = named.unwrap_or(Err(StoreError::TimedOut)).map(Arc::new).map_err(|error| failed(&error));
        for (place, id) in named.iter().flat_map(|named| &named.ids) {
            ids.insert(place.clone(), *id).await;
        }
        for one in asked.drain(..) {
            let _ = one.named.send(named.clone());
        }
    }
}

fn failed(error: &StoreError) -> LookupError {
    tracing::warn!(error = error as &dyn std::error::Error, "look up a slug");
    LookupError::NoStore
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;
    use store::{Database, Done, InsertError, Lane, Operation, Under};
    use tokio::task::yield_now;

    use super::*;

    /// A store without slugs, which answers as often as it has permits.
    #[derive(Debug)]
    struct Slow {
        asked: AtomicUsize,
        permits: Semaphore,
    }

    #[async_trait]
    impl Database for Slow {
        fn is_shared(&self) -> bool {
            false
        }

        async fn run(&self, _: Lane, _: Operation) -> Result<Done, StoreError> {
            Err(StoreError::Stopped)
        }

        async fn run_insert(&self, _: Option<Under<'_>>, _: Operation) -> Result<Done, InsertError> {
            Err(InsertError::Failed(StoreError::Stopped))
        }
    }

    #[async_trait]
    impl Links for Slow {
        async fn find_slugs(&self, _: &[SlugOnDomain]) -> Result<NamedIds, StoreError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            Ok(NamedIds { ids: HashMap::new(), complete: true })
        }
    }

    fn slow() -> Arc<Slow> {
        Arc::new(Slow { asked: AtomicUsize::new(0), permits: Semaphore::new(0) })
    }

    fn slug(number: usize) -> Slug {
        Slug::parse(&format!("slug-{number}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_that_come_during_a_query_share_the_next_one() {
        let (supervisor, store) = (TaskSupervisor::default(), slow());
        let slugs = Arc::new(Slugs::start(&supervisor, store.clone(), 1 << 20));
        let ask = |number| {
            let slugs = Arc::clone(&slugs);
            tokio::spawn(async move { slugs.ask_all(vec![(DomainId::DEFAULT, slug(number))]).await })
        };
        let first = ask(0);
        while store.asked.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
        let next: Vec<_> = (0..SHARED_MAX).map(ask).collect();
        while slugs.several.capacity() > WAITING_MAX - SHARED_MAX {
            yield_now().await;
        }
        store.permits.add_permits(1);
        assert!(first.await.unwrap().unwrap().complete);
        while store.asked.load(Ordering::SeqCst) == 1 {
            yield_now().await;
        }
        assert!(next.iter().all(|one| !one.is_finished()), "none shares the absences of a query before it");
        store.permits.add_permits(1);
        for one in next {
            assert!(one.await.unwrap().unwrap().complete);
        }
        assert_eq!(store.asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_store_is_silent_every_lookup_ends() {
        let (supervisor, store) = (TaskSupervisor::default(), slow());
        let slugs = Arc::new(Slugs::start(&supervisor, store, 1 << 20));
        let mut lookups = Vec::new();
        for number in 0..4 * AT_ONCE {
            let (one, several) = (Arc::clone(&slugs), Arc::clone(&slugs));
            let place = (DomainId::DEFAULT, slug(number));
            lookups.push(tokio::spawn(async move { one.find(&place).await.map(drop) }));
            let ask = async move { several.ask_all(vec![(DomainId::DEFAULT, slug(number))]).await };
            lookups.push(tokio::spawn(async move { ask.await.map(drop) }));
        }
        for lookup in lookups {
            let ended = timeout(3 * DEADLINE, lookup).await.expect("it ends in time").unwrap();
            assert_eq!(ended, Err(LookupError::NoStore));
        }
    }
}
