//! From a code to its link: cache, then arithmetic, then one batched read.
//!
//! 1. I8: an absence is reported only when arithmetic or the store said so.
//! 2. One read is in flight. The misses that arrive meanwhile form the next, each id once; those for an id that is being read
//!    share the answer if it is a link. They do not share an absence: the link may have been acknowledged after that read
//!    began, so they are read again.
//! 3. A link is in the cache before those who waited for it are answered, and the cache is asked again when a miss leaves
//!    the queue: so a thousand clients on one cold code cost one read.
//! 4. Absences are not remembered: another resolver may create the link at any moment, and its creator may ask here next. What codes
//!    that do not exist may cost is bounded by their askers' budgets, by arithmetic, and by reads that all share.
//! 5. A hand-picked code that could have been minted is a link under the id that it stands for, and is looked up like any other; only that past
//!    the ceiling `picked` is asked as well. Any other leads to its id through the table of slugs, and so does every code of another domain. That it leads there is remembered for
//!    as long as the link is not deleted: such an id is never given to another slug.
//! 6. Who hears that a link was changed forgets it, and reads it from the primary for as long as a replica may lag behind. A link
//!    that was read before the news and enters the cache after it is taken out again.

mod by_slug;
mod cache;
mod invalidation;
mod lookup_key;
mod reader;
mod slugs;
mod unminted_slugs;

use std::{
    collections::HashMap,
    hash::BuildHasher,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use codes::{Code, Contradiction, Keyspace, KeyspaceIndex, LinkId, Mint};
use daemon::Vitals;
use links::{
    DomainId, Link, LongUrl, Slug,
    targets::{Gate, Targets},
};
use numbers::Namespace;
use store::Links;
use supply::Ceilings;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use crate::metrics::Metrics;
pub use cache::Cached;
use cache::{Generations, LinkCache, Name, cache};
use invalidation::{Listener, News};
pub use lookup_key::Wanted;
use reader::{Miss, Reader, Waiter};
use slugs::Slugs;
use unminted_slugs::Picked;
pub use unminted_slugs::TRUSTED;

/// Changes that wait to be noted; the one who tells of them waits as well.
const CHANGES_MAX: usize = 256;
/// Misses that may wait; more are refused at once.
const WAITING_MAX: usize = 16_384;
/// How long a miss may wait for its read.
const DEADLINE: Duration = Duration::from_secs(5);
/// The same, when there is an old answer.
const STALE_DEADLINE: Duration = Duration::from_secs(1);

/// Why nobody can say whether a link exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The store did not answer, or not in time.
    #[error("the database is not to be had at the moment")]
    NoStore,
    /// Too many lookups wait already.
    #[error("too many lookups are waiting")]
    Overloaded,
}

type Found = Result<Option<Arc<Link>>, LookupError>;

/// What an operator decides about lookups.
#[derive(Clone, Copy, Debug)]
pub struct LookupSizes {
    /// Memory for cached links, about.
    pub cache_bytes: u64,
    /// How far a replica may lag behind without an old link being read from it.
    pub replica_lag: Duration,
}

/// Looks links up.
pub struct Lookup {
    mint: Arc<Mint>,
    ceilings: Arc<Ceilings>,
    cache: LinkCache,
    slugs: Slugs,
    picked: Arc<Picked>,
    news: Arc<News>,
    generations: Arc<Generations>,
    misses: mpsc::Sender<Miss>,
    metrics: Arc<Metrics>,
    gate: Gate,
    /// Keyspaces that were added while this process ran, and when it heard of each.
    keyspaces_seen: Mutex<HashMap<KeyspaceIndex, Instant>>,
}

impl Lookup {
    /// A lookup and its tasks, on the current runtime.
    #[must_use]
    pub fn start(
        vitals: &Vitals,
        sizes: LookupSizes,
        mint: Arc<Mint>,
        ceilings: Arc<Ceilings>,
        links: Arc<dyn Links>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let generations = Arc::new(Generations::new());
        let cache = cache(sizes.cache_bytes, Arc::clone(&generations));

        let news = Arc::new(News::new(sizes.replica_lag));
        let (changes, heard) = mpsc::channel(CHANGES_MAX);
        let telling = Arc::clone(&links);
        let picked = Arc::new(Picked::new());
        vitals.spawn("reader of picked codes", Arc::clone(&picked).load(Arc::clone(&links)));
        vitals.spawn("listener for changed links", async move { telling.send_changes(changes).await });
        let listener = Listener {
            mint: Arc::clone(&mint),
            cache: cache.clone(),
            generations: Arc::clone(&generations),
            news: Arc::clone(&news),
            picked: Arc::clone(&picked),
        };
        vitals.spawn("forgetter of changed links", listener.run(heard));
        let (misses, queue) = mpsc::channel(WAITING_MAX);
        let slugs = Slugs::new(Arc::clone(&links));
        let reader = Reader {
            links,
            queue,
            cache: cache.clone(),
            news: Arc::clone(&news),
            metrics: Arc::clone(&metrics),
        };
        vitals.spawn("reader of links", reader.run());
        Self {
            mint,
            ceilings,
            cache,
            slugs,
            picked,
            news,
            generations,
            misses,
            metrics,
            gate: Gate::default(),
            keyspaces_seen: Mutex::default(),
        }
    }

    /// The link of a code, if there is one.
    ///
    /// # Errors
    /// When nobody can say.
    pub async fn find(&self, code: Code) -> Found {
        let known = self.cache.get(&Name::Code(code));
        if let Some(link) = self.believed(known.as_ref()) {
            return Ok(Some(link));
        }
        let Some(id) = self.mint.read(&code) else { return Ok(None) };
        let now = Instant::now();
        let is_unminted = self.mint.is_hand_picked(id) || self.ceilings.rules_out(id, now);
        if is_unminted && self.picked.rules_out(id, now) {
            self.metrics.ruled_out.increment(1);
            return Ok(None);
        }
        self.read(id, Name::Code(code), known).await
    }

    /// Takes in the keyspaces that are new to this process, if the database still has those that it
    /// knows.
    ///
    /// # Errors
    /// When the database contradicts what this process mints and reads codes by: then none is taken in.
    pub fn adopt(&self, keyspaces: &[(KeyspaceIndex, Keyspace)]) -> Result<(), Contradiction> {
        self.mint.compare(keyspaces)?;
        let is_new = |index: &KeyspaceIndex| self.mint.len_of(*index).is_none();
        let new: Vec<_> = keyspaces.iter().map(|(index, _)| *index).filter(is_new).collect();
        if !new.is_empty() {
            let mut seen = self.keyspaces_seen.lock().expect("no code panics while it holds this lock");
            seen.extend(new.into_iter().map(|index| (index, Instant::now())));
        }
        self.mint.adopt(keyspaces.iter().cloned());
        Ok(())
    }

    /// When this process heard of the keyspace of an id; none if it was started with it.
    #[must_use]
    pub fn keyspace_seen(&self, id: LinkId) -> Option<Instant> {
        let (index, _) = id.unpack()?;
        self.keyspaces_seen.lock().expect("no code panics while it holds this lock").get(&index).copied()
    }

    /// The id that a text stands for as a code.
    #[must_use]
    pub fn id_of(&self, text: &str) -> Option<LinkId> {
        self.mint.read(&Code::parse(text).ok()?)
    }

    /// What visitors ask for to be redirected by this link: its slug, or the code of its number.
    #[must_use]
    pub fn name_of(&self, link: &Link) -> Option<String> {
        self.name(link.id, link.slug())
    }

    /// The same of a link with this id, and this slug if it has one.
    #[must_use]
    pub fn name(&self, id: LinkId, slug: Option<&Slug>) -> Option<String> {
        let minted = || self.mint.code_of(id).map(|code| code.to_string());
        slug.map(ToString::to_string).or_else(minted)
    }

    /// The code of a number, if a keyspace has it.
    #[must_use]
    pub fn code_of(&self, id: LinkId) -> Option<String> {
        self.mint.code_of(id).map(|code| code.to_string())
    }

    /// The name of the keyspace that this belongs to, if it is a code of one.
    #[must_use]
    pub fn keyspace_of(&self, wanted: &Wanted) -> Option<Namespace> {
        match wanted {
            Wanted::Code(code) => self.mint.keyspace_of(code),
            Wanted::Slug(_) => None,
        }
    }

    /// Whether this code stands for a number of some keyspace.
    #[must_use]
    pub fn is_mintable(&self, code: &Code) -> bool {
        self.mint.belongs(code)
    }

    /// Whether it is remembered where this leads.
    #[must_use]
    pub fn knows_on(&self, domain: DomainId, wanted: &Wanted) -> bool {
        let knows_slug = |slug| self.slugs.knows(&(domain, slug));
        match wanted {
            Wanted::Code(code) if domain.is_default() => self.knows(code),
            _ => wanted.slug().is_some_and(knows_slug),
        }
    }

    /// Notes that a code was taken on a domain: the default one's link of the same code is not given there any more.
    pub fn taken(&self, domain: DomainId, slug: &Slug) {
        self.slugs.note_taken(&(domain, slug.clone()));
    }

    /// Forgets a link that this process has changed. The others hear of it from the store.
    pub fn changed(&self, id: LinkId) {
        self.news.note_changed(id);
        self.cache.invalidate(&Name::of(&self.mint, id));
    }

    /// Notes a hand-picked code that could have been minted. Its creator answers when all others know it too: after [`TRUSTED`].
    pub fn picked(&self, id: LinkId) {
        self.picked.add(id);
    }

    /// Reads again which codes were picked.
    pub fn reload_picked(&self) {
        self.picked.reload();
    }

    /// The link of a cache's entry that may be believed.
    fn believed(&self, known: Option<&Arc<Cached>>) -> Option<Arc<Link>> {
        let cached = known.filter(|cached| self.news.is_fresh(cached))?;
        self.count_hits(1);
        Some(Arc::clone(&cached.link))
    }

    /// The link as the store has it; or as it was, while the store is away.
    async fn read(&self, id: LinkId, name: Name, known: Option<Arc<Cached>>) -> Found {
        let Some(stale) = known else { return self.ask(id, Some(name), DEADLINE).await };
        // Better a link that may have changed than none, or one that comes late, while the database is away.
        if self.news.store_is_away() {
            self.count_hits(1);
            return Ok(Some(Arc::clone(&stale.link)));
        }
        match self.ask(id, Some(name), STALE_DEADLINE).await {
            Err(_) => {
                self.news.note_store_away();
                Ok(Some(Arc::clone(&stale.link)))
            }
            found => found,
        }
    }

    /// The link of a code, if the cache has it and it may be believed.
    #[must_use]
    pub fn cached(&self, code: &Code) -> Option<Arc<Cached>> {
        self.cache.get(&Name::Code(*code)).filter(|cached| self.news.is_fresh(cached))
    }

    /// Asks these rules before a link leads on.
    pub fn judge_by(&self, targets: Targets) {
        self.gate.replace(targets);
        // In this order: a thread that still asked the old rules keeps what they allowed under an
        // old generation.
        self.generations.advance_all();
    }

    /// Whether the rules about targets let links lead to this URL.
    #[must_use]
    pub fn allows(&self, url: &LongUrl) -> bool {
        self.gate.allows(url)
    }

    /// Whether they let a cached link lead where it always leads.
    #[must_use]
    pub fn allows_cached(&self, cached: &Cached) -> bool {
        self.gate.allows_again(&cached.link.long_url, &cached.verdict)
    }

    /// Whether a cached link is right until its generation changes.
    #[must_use]
    pub fn is_settled(&self, cached: &Cached) -> bool {
        cached.is_sure && self.news.freshness.is_settled(cached.read_at)
    }

    /// A hash of a code that nobody outside of this process can foresee.
    #[must_use]
    pub fn hash(&self, code: &Code) -> u64 {
        self.generations.hasher.hash_one(code)
    }

    /// Changes when the code of this hash leaves the cache or gets another link, and now and then without a reason.
    #[must_use]
    pub fn generation(&self, hash: u64) -> u32 {
        self.generations.of(hash).load(Ordering::Acquire)
    }

    /// Tells the cache that a link is in use.
    pub fn touch(&self, code: &Code) {
        self.cache.get(&Name::Code(*code));
    }

    /// Counts lookups that the cache, or what a thread has kept of it, has answered.
    pub fn count_hits(&self, hits: u64) {
        self.metrics.cache_hits.increment(hits);
    }

    /// The link of an id as the store has it, past the cache.
    ///
    /// # Errors
    /// When nobody can say.
    pub async fn read_fresh(&self, id: LinkId) -> Found {
        self.ask(id, None, DEADLINE).await
    }

    async fn ask(&self, id: LinkId, name: Option<Name>, deadline: Duration) -> Found {
        let (found, answered) = oneshot::channel();
        let miss = Miss { id, waiter: Waiter { name, found } };
        self.misses.try_send(miss).map_err(|_| LookupError::Overloaded)?;
        match timeout(deadline, answered).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(LookupError::NoStore),
        }
    }

    /// Whether the cache has a link of this code, new or old.
    #[must_use]
    pub fn knows(&self, code: &Code) -> bool {
        self.cache.contains_key(&Name::Code(*code))
    }
}
