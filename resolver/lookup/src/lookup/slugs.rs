//! Lookup of link ids by slug. On the default domain these are slugs that are not mintable, on
//! other domains all slugs and codes.
//!
//! Concurrent lookups of the same slug share one query. A caller that joined it does not share an
//! absence, because the slug may have been acknowledged after that query was sent. It shares that
//! of the next query, which was sent after the caller had come.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use codes::LinkId;
use foldhash::quality::RandomState;
use links::{DomainId, Slug};
use moka::future::Cache;
use store::{Links, NamedIds, StoreError};
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};

use super::LookupError;

/// Bytes that an entry takes beside its text.
const ENTRY_BYTES: usize = 260;
/// How long an entry lives after its last use, as in the cache of links.
const IDLE: Duration = Duration::from_secs(3600);
/// Maximum number of concurrent queries. Further ones wait.
const AT_ONCE: usize = 32;
const DEADLINE: Duration = Duration::from_secs(5);

/// Maximum number of deleted links that are remembered to hold their slugs.
const HELD_MAX: u64 = 10_000;

pub(super) type SlugOnDomain = (DomainId, Slug);

/// The reason why a slug has no id.
#[derive(Debug)]
enum Missing {
    Absent,
    NoStore(StoreError),
}

pub(super) struct Slugs {
    pub(super) ids: Cache<SlugOnDomain, LinkId, RandomState>,
    /// Whether a code of the default domain was ever looked up as a slug. While none was, misses of
    /// codes need not consult `ids`. A thread that has not seen a change yet reads the link from
    /// the store instead.
    pub(super) has_asked_code: AtomicBool,
    /// Deleted links that are blocked and hold their slugs, each with the version for which the
    /// store confirmed it. Releasing a slug creates a new version.
    held: moka::sync::Cache<LinkId, u64, RandomState>,
    links: Arc<dyn Links>,
    questions: Arc<Semaphore>,
    /// The runtime of the queries. A caller that goes away must not cancel its query and so break
    /// the connection.
    runtime: Handle,
}

impl Slugs {
    /// Creates the lookup with a cache of at most this many bytes.
    pub(super) fn new(links: Arc<dyn Links>, bytes: u64) -> Self {
        let weigh = |place: &SlugOnDomain, _: &LinkId| {
            u32::try_from(ENTRY_BYTES + place.1.as_str().len()).unwrap_or(u32::MAX)
        };
        let ids = Cache::builder().max_capacity(bytes).weigher(weigh).time_to_idle(IDLE);
        Self {
            ids: ids.build_with_hasher(RandomState::default()),
            has_asked_code: AtomicBool::new(false),
            held: moka::sync::Cache::builder()
                .max_capacity(HELD_MAX)
                .build_with_hasher(RandomState::default()),
            links,
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

    /// Returns the ids of slugs on some domains by one query that no other caller shares, and keeps
    /// them.
    pub(super) async fn ask_all(
        &self,
        domains: Vec<DomainId>,
        slugs: Vec<Slug>,
    ) -> Result<NamedIds, LookupError> {
        let (links, questions) = (Arc::clone(&self.links), Arc::clone(&self.questions));
        let ask = self.runtime.spawn(async move {
            let _question = questions.acquire().await;
            let asked = timeout(DEADLINE, links.find_slugs(&domains, &slugs)).await;
            asked.unwrap_or(Err(StoreError::TimedOut))
        });
        let named = ask.await.unwrap_or(Err(StoreError::Stopped)).map_err(|error| failed(&error))?;
        for (place, id) in &named.ids {
            self.ids.insert(place.clone(), *id).await;
        }
        Ok(named)
    }

    async fn ask(&self, (domain, slug): &SlugOnDomain) -> Result<LinkId, Missing> {
        let (links, questions) = (Arc::clone(&self.links), Arc::clone(&self.questions));
        let (domain, slug) = (*domain, slug.clone());
        let ask = self.runtime.spawn(async move {
            let _question = questions.acquire().await;
            timeout(DEADLINE, links.find_slug(domain, &slug)).await.unwrap_or(Err(StoreError::TimedOut))
        });
        let asked = ask.await.unwrap_or(Err(StoreError::Stopped));
        asked.map_err(Missing::NoStore)?.ok_or(Missing::Absent)
    }
}

fn failed(error: &StoreError) -> LookupError {
    tracing::warn!(error = error as &dyn std::error::Error, "look up a slug");
    LookupError::NoStore
}
