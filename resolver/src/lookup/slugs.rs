//! From a slug that could not have been minted to its link's id.
//!
//! Those who ask for the same slug at the same time share one question. They do not share an absence: the slug may have been acknowledged
//! after that question was sent, so whoever joined late asks again.

use std::{sync::Arc, time::Duration};

use foldhash::quality::RandomState;
use moka::future::Cache;
use tokio::{sync::Semaphore, time::timeout};

use super::LookupError;
use crate::{
    codes::LinkId,
    links::Slug,
    store::{LinkStore, StoreError},
};

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

/// Why a slug has no id.
#[derive(Debug)]
enum Missing {
    Absent,
    NoStore(StoreError),
}

/// Slugs and ids.
pub(super) struct Slugs {
    ids: Cache<Slug, LinkId, RandomState>,
    store: Arc<dyn LinkStore>,
    questions: Semaphore,
}

impl Slugs {
    pub(super) fn new(store: Arc<dyn LinkStore>) -> Self {
        let weigh =
            |slug: &Slug, _: &LinkId| u32::try_from(ENTRY_BYTES + slug.as_str().len()).unwrap_or(u32::MAX);
        let ids = Cache::builder().max_capacity(BYTES).weigher(weigh).time_to_idle(IDLE);
        Self { ids: ids.build_with_hasher(RandomState::default()), store, questions: Semaphore::new(AT_ONCE) }
    }

    /// The id, if it is remembered.
    pub(super) async fn known(&self, slug: &Slug) -> Option<LinkId> {
        self.ids.get(slug).await
    }

    /// Whether it is remembered.
    pub(super) fn knows(&self, slug: &Slug) -> bool {
        self.ids.contains_key(slug)
    }

    /// Forgets a slug whose link was deleted: another may have it now.
    pub(super) async fn forget(&self, slug: &Slug) {
        self.ids.invalidate(slug).await;
    }

    /// The id, as the store has it.
    pub(super) async fn find(&self, slug: &Slug) -> Result<Option<LinkId>, LookupError> {
        let mut is_mine = false;
        let asked = self.ids.try_get_with_by_ref(slug, async {
            is_mine = true;
            self.ask(slug).await
        });
        match asked.await {
            Ok(id) => Ok(Some(id)),
            Err(missing) => match &*missing {
                Missing::Absent if is_mine => Ok(None),
                Missing::Absent => match self.ask(slug).await {
                    Ok(id) => Ok(Some(id)),
                    Err(Missing::Absent) => Ok(None),
                    Err(Missing::NoStore(error)) => Err(failed(&error)),
                },
                Missing::NoStore(error) => Err(failed(error)),
            },
        }
    }

    async fn ask(&self, slug: &Slug) -> Result<LinkId, Missing> {
        let ask = async {
            let _question = self.questions.acquire().await;
            self.store.find_slug(slug).await
        };
        let asked = timeout(DEADLINE, ask).await.unwrap_or(Err(StoreError::TimedOut));
        asked.map_err(Missing::NoStore)?.ok_or(Missing::Absent)
    }
}

fn failed(error: &StoreError) -> LookupError {
    tracing::warn!(error = error as &dyn std::error::Error, "look up a slug");
    LookupError::NoStore
}
