//! From a slug to its link's id: on the default domain of one that could not have been minted, on others of any code.
//!
//! Those who ask for the same slug at the same time share one question. They do not share an absence: the slug may have been acknowledged
//! after that question was sent, so whoever joined late asks again.

use std::{sync::Arc, time::Duration};

use codes::LinkId;
use foldhash::quality::RandomState;
use links::{DomainId, Slug};
use moka::future::Cache;
use store::{Links, StoreError};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::{LookupError, TRUSTED};
use supply::guard::{self, Guard};

/// Bytes of slugs that are remembered.
const BYTES: u64 = 16 << 20;
/// Bytes an entry costs beside its text.
const ENTRY_BYTES: usize = 120;
/// The same as for links.
const IDLE: Duration = Duration::from_secs(3600);
/// Questions at a time; more wait.
const AT_ONCE: usize = 32;
/// How long a visitor may wait for an answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// Codes that are remembered to be free on a domain, where the default one's link of the same code is given.
const FREE_MAX: u64 = 100_000;

/// Deleted links that are remembered to hold their slugs.
const HELD_MAX: u64 = 10_000;

/// A slug on a domain.
pub(super) type Place = (DomainId, Slug);

/// Why a slug has no id.
#[derive(Debug)]
enum Missing {
    Absent,
    NoStore(StoreError),
}

/// Slugs and ids.
pub(super) struct Slugs {
    ids: Cache<Place, LinkId, RandomState>,
    /// Codes that were free, and when the store was asked for them. Each is believed for [`TRUSTED`]; whoever takes one answers
    /// later than that.
    free: moka::sync::Cache<Place, Instant, RandomState>,
    /// Deleted links that are blocked and hold their slugs, each with the version that the store
    /// was asked for. To release a slug makes a new version.
    held: moka::sync::Cache<LinkId, u64, RandomState>,
    links: Arc<dyn Links>,
    questions: Arc<Semaphore>,
    /// Where questions are asked: a visitor who goes away must not take the connection along.
    runtime: Handle,
}

impl Slugs {
    pub(super) fn new(links: Arc<dyn Links>) -> Self {
        let weigh = |place: &Place, _: &LinkId| {
            u32::try_from(ENTRY_BYTES + place.1.as_str().len()).unwrap_or(u32::MAX)
        };
        let ids = Cache::builder().max_capacity(BYTES).weigher(weigh).time_to_idle(IDLE);
        let free = moka::sync::Cache::builder().max_capacity(FREE_MAX).time_to_live(TRUSTED);
        Self {
            ids: ids.build_with_hasher(RandomState::default()),
            free: free.build_with_hasher(RandomState::default()),
            held: moka::sync::Cache::builder()
                .max_capacity(HELD_MAX)
                .build_with_hasher(RandomState::default()),
            links,
            questions: Arc::new(Semaphore::new(AT_ONCE)),
            runtime: Handle::current(),
        }
    }

    /// The id, if it is remembered.
    pub(super) async fn known(&self, place: &Place) -> Option<LinkId> {
        self.ids.get(place).await
    }

    /// Whether it is remembered.
    pub(super) fn knows(&self, place: &Place) -> bool {
        self.ids.contains_key(place)
    }

    /// Forgets a slug whose link was deleted: another may have it now.
    pub(super) async fn forget(&self, place: &Place) {
        self.ids.invalidate(place).await;
    }

    /// Whether this was nobody's a moment ago.
    pub(super) fn was_free(&self, place: &Place) -> bool {
        let is_fresh = |asked: Instant| asked.elapsed() < TRUSTED || !guard::is_on(Guard::Free);
        self.free.get(place).is_some_and(is_fresh)
    }

    /// Remembers for a moment that this is free, as the store said when it was asked then.
    pub(super) fn note_free(&self, place: Place, asked: Instant) {
        // A process alone knows when a slug is taken, and its creators wait for nobody: an older answer would come after theirs.
        if self.links.is_shared() {
            self.free.insert(place, asked);
        }
    }

    /// Forgets that this was nobody's.
    pub(super) fn note_taken(&self, place: &Place) {
        self.free.invalidate(place);
    }

    /// Whether a deleted link of this version holds its slug. Another link may have got it before
    /// this one was blocked.
    pub(super) async fn is_held(&self, place: &Place, id: LinkId, version: u64) -> Result<bool, LookupError> {
        if self.held.get(&id) == Some(version) {
            return Ok(true);
        }
        let is_held = self.ask_anew(place).await? == Some(id);
        if is_held {
            self.held.insert(id, version);
        }
        Ok(is_held)
    }

    /// The id, as the store has it.
    pub(super) async fn find(&self, place: &Place) -> Result<Option<LinkId>, LookupError> {
        let mut is_mine = false;
        let asked = self.ids.try_get_with_by_ref(place, async {
            is_mine = true;
            self.ask(place).await
        });
        match asked.await {
            Ok(id) => Ok(Some(id)),
            Err(missing) => match &*missing {
                Missing::Absent if is_mine => Ok(None),
                Missing::Absent => self.ask_anew(place).await,
                Missing::NoStore(error) => Err(failed(error)),
            },
        }
    }

    /// The same, by a question that nobody else has asked before.
    pub(super) async fn ask_anew(&self, place: &Place) -> Result<Option<LinkId>, LookupError> {
        match self.ask(place).await {
            Ok(id) => Ok(Some(id)),
            Err(Missing::Absent) => Ok(None),
            Err(Missing::NoStore(error)) => Err(failed(&error)),
        }
    }

    async fn ask(&self, (domain, slug): &Place) -> Result<LinkId, Missing> {
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
