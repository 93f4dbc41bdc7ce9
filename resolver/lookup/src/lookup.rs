//! Lookup of links by code: cache, then one batched read.
//!
//! 1. I8: an absence is reported only if the store says so, or if the text is no code of any
//!    keyspace.
//! 2. One read is in flight, of each node of the database. The misses that arrive meanwhile form
//!    the next one, each id once.
//!    Misses for an id that is being read share the answer if it is a link. They do not share an
//!    absence, because the link may have been acknowledged after that read began; they are read
//!    again.
//! 3. A link is cached before its waiters are answered, and the cache is consulted again when a
//!    miss leaves the queue. So a thousand clients on one cold code cost one read.
//! 4. Absences are not cached, for reasons in `ARCHITECTURE.md`.
//! 5. A mintable custom slug is a link under the id that it stands for, and is looked up like any
//!    other code. Any other slug, and every code of another domain, leads to its id through the
//!    table of slugs, as does the code of a deleted link that was picked: another link may have
//!    been picked there since. The mapping is cached as long as the link is not deleted, because
//!    such an id is never given to another slug. The spellings of a code have one cache entry, of
//!    the one that is minted. On other domains, a slug that is written like the path goes first: it
//!    may be older than the keyspace.
//! 6. A path that is no link's name may be meant as other names (`links::other_names`). They are
//!    tried in their order, after one read of all slugs among them. A link is taken only if no name
//!    before it has one: what was not read, or not read completely, is no absence.
//! 7. When a resolver hears that a link was changed, it evicts the link, and reads it from the
//!    primary for as long as a replica may lag behind. A link that was read before the notification
//!    and enters the cache after it is evicted again.
//! 8. An older row never replaces a newer one, whatever server it comes from (`ARCHITECTURE.md`).
//!    If a copy is not believed, the answer is the cached link, or none.
//! 9. A link that cannot be confirmed is served for `serve_stale_for` after it is last known to
//!    have been current.

mod by_slug;
mod cache;
mod invalidation;
mod known_changes;
mod reader;
mod slugs;
mod thread_cache;
mod warm;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codes::{Code, Keyspace, KeyspaceIndex, LinkId, Mint};
use daemon::TaskSupervisor;
use links::{
    DomainId, Link, LongUrl, Slug,
    targets::{Gate, Targets},
};
use numbers::{Invalid, Namespace};
use store::Links;
use supply::safety_rule::{SafetyRule, SafetyRules};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use crate::{domain_cache::SHOWN, metrics::Metrics};
pub use by_slug::LookupKey;
use cache::{Cached, ENTRY_BYTES, LinkCache, Name};
use invalidation::{InvalidationState, listen};
use reader::{Reader, Waiter};
use slugs::Slugs;
pub use thread_cache::{CachedTarget, ThreadCache};

/// Capacity of the channel of change notifications. A full channel makes the sender wait.
const CHANGES_MAX: usize = 256;
/// The divisor for the size of the cache of slugs, as a share of that of links.
const SLUGS_OF_CACHE: u64 = 4;
/// Maximum number of waiting misses. Further misses are rejected at once.
const WAITING_MAX: usize = 16_384;
/// How long a miss may wait for its read.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a miss may wait for its read if an old answer is cached.
const STALE_DEADLINE: Duration = Duration::from_secs(1);

/// The reason why it is unknown whether a link exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The store did not answer, or not in time.
    #[error("the database does not answer at the moment")]
    NoStore,
    /// Too many lookups are waiting.
    #[error("too many lookups are waiting")]
    Overloaded,
}

/// A link, its absence, or the reason why neither is known.
type Found = Result<Option<Arc<Link>>, LookupError>;

/// The settings for lookups.
#[derive(Clone, Copy, Debug)]
pub struct LookupConfig {
    /// Approximate memory for cached links, in bytes.
    pub cache_bytes: u64,
    /// The maximum number of links to cache at the start. The cache has room for them at once, and
    /// does not have to grow.
    pub warm_links: usize,
    /// Maximum lag of a replica that links are read from.
    pub replica_lag: Duration,
    /// How long links, domains and target rules may be served that the database cannot confirm.
    pub serve_stale_for: Duration,
    /// The safety rules in force.
    pub rules: SafetyRules,
}

impl LookupConfig {
    /// Returns how many links the cache has room for, if they are small.
    pub fn room(&self) -> usize {
        usize::try_from(self.cache_bytes).unwrap_or(usize::MAX) / ENTRY_BYTES
    }
}

/// Looks up links by code or slug.
pub struct Lookup {
    /// The bijection from numbers to codes.
    pub mint: Arc<Mint>,
    cache: LinkCache,
    slugs: Slugs,
    invalidation: Arc<InvalidationState>,
    /// The queues of misses, one for each lane of the store.
    misses: Vec<mpsc::Sender<(LinkId, Waiter)>>,
    reader: Arc<Reader>,
    metrics: Arc<Metrics>,
    gate: Gate,
    /// The configuration that it was started with.
    pub config: LookupConfig,
    /// Whether other resolvers share the database.
    is_shared: bool,
    /// Whether the settings are older than `serve_stale_for`. Nothing is redirected then.
    cut_off: AtomicBool,
    started: Instant,
    /// Keyspaces that were added while this process ran, with the instant at which it learned of
    /// each.
    keyspaces_seen: Mutex<HashMap<KeyspaceIndex, Instant>>,
}

impl Lookup {
    /// Starts a lookup and its tasks on the current runtime.
    pub fn start(
        supervisor: &TaskSupervisor,
        config: LookupConfig,
        mint: Arc<Mint>,
        links: Arc<dyn Links>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let cache = LinkCache::new(config.cache_bytes, config.warm_links.min(config.room()));

        let lanes = links.read_lanes();
        let invalidation = Arc::new(InvalidationState::new(config, lanes));
        let (changes, heard) = mpsc::channel(CHANGES_MAX);
        let (telling, is_shared) = (Arc::clone(&links), links.is_shared());
        supervisor.spawn("listener for changed links", async move { telling.send_changes(changes).await });
        let listening = listen(Arc::clone(&mint), cache.clone(), Arc::clone(&invalidation), heard);
        supervisor.spawn("forgetter of changed links", listening);
        let slugs = Slugs::start(supervisor, Arc::clone(&links), config.cache_bytes / SLUGS_OF_CACHE);
        let reader = Arc::new(Reader {
            links,
            cache: cache.clone(),
            invalidation: Arc::clone(&invalidation),
            metrics: Arc::clone(&metrics),
            kept: RwLock::default(),
        });
        let lane = |lane| {
            let (misses, queue) = mpsc::channel(WAITING_MAX);
            let reading = Arc::clone(&reader);
            supervisor.spawn("reader of links", async move { reading.run(lane, queue).await });
            misses
        };
        let misses = (0..lanes).map(lane).collect();
        Self {
            mint,
            cache,
            slugs,
            invalidation,
            misses,
            reader,
            metrics,
            gate: Gate::default(),
            config,
            is_shared,
            cut_off: AtomicBool::new(false),
            started: Instant::now(),
            keyspaces_seen: Mutex::default(),
        }
    }

    /// Returns whether a safety rule is in force.
    pub fn has_rule(&self, rule: SafetyRule) -> bool {
        self.config.rules.keep(rule)
    }

    /// Returns the link under the id of a code, if there is one. It may be deleted or on another
    /// domain. The code is spelled as it is minted.
    pub async fn find(&self, code: Code) -> Found {
        debug_assert_eq!(self.mint.as_minted(&code), code, "links are cached under this spelling");
        let name = Name::Code(code);
        let known = self.cache.get(&name);
        if let Some(link) = self.believed(known.as_ref()) {
            return Ok(Some(link));
        }
        let Some(id) = self.mint.read(&code) else { return Ok(None) };
        self.read(id, name, known).await
    }

    /// Adopts the keyspaces that are new to this process, or none if the database contradicts the
    /// known ones, by which this process mints and reads codes.
    pub fn adopt(&self, keyspaces: &[(KeyspaceIndex, Keyspace)]) -> Result<(), Invalid> {
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

    /// Waits until the other resolvers know the keyspace of an id, which this process may have just
    /// learned of. Afterwards a link may be acknowledged, or numbers reserved. Numbers of its own
    /// blocks need no wait, because blocks are taken after the same wait.
    pub async fn wait_until_shown(&self, id: LinkId) {
        if self.is_shared
            && self.has_rule(SafetyRule::KeyspaceShown)
            && let Some((index, _)) = id.unpack()
        {
            let seen = || self.keyspaces_seen.lock().expect("no code panics while it holds this lock");
            // Those that it started with were read shortly before its start.
            let seen = seen().get(&index).copied().unwrap_or(self.started);
            sleep_until(seen + SHOWN).await;
        }
    }

    /// Returns the id that a text stands for as a code; `None` if it is not a mintable code.
    pub fn id_of(&self, text: &str) -> Option<LinkId> {
        self.mint.read(&Code::parse(text).ok()?)
    }

    /// Returns the name under which a link redirects: its slug, or the code of its number.
    pub fn name_of(&self, link: &Link) -> Option<String> {
        self.name(link.id, link.slug())
    }

    /// Returns the name of a link with this id: its slug if it has one, or the code of its number.
    /// Returns `None` if the number's keyspace is unknown.
    pub fn name(&self, id: LinkId, slug: Option<&Slug>) -> Option<String> {
        let minted = || self.mint.code_of(id).map(|code| code.to_string());
        slug.map(ToString::to_string).or_else(minted)
    }

    /// Returns the name of the keyspace that a lookup key is a code of; `None` for a slug.
    pub fn keyspace_of(&self, wanted: &LookupKey) -> Option<Namespace> {
        match wanted {
            LookupKey::Code(code) => self.mint.keyspace_of(code),
            LookupKey::Slug(_) => None,
        }
    }

    /// Returns whether the caches know where a key leads on a domain, possibly from an outdated
    /// entry.
    pub fn knows_on(&self, domain: DomainId, wanted: &LookupKey) -> bool {
        let knows_slug = |slug: Slug| self.slugs.ids.contains_key(&(domain, slug));
        match wanted {
            // A link that is on another domain, or has another name, is read again.
            LookupKey::Code(code) if domain.is_default() => {
                let code = self.mint.as_minted(code);
                let cached = self.cache.get(&Name::Code(code));
                cached
                    .map_or_else(|| self.place_of_next(code).is_some(), |cached| cached.link.is_named_by_id())
            }
            _ => self.spellings(wanted).any(knows_slug),
        }
    }

    /// Evicts a link that this process has changed. The store notifies the other resolvers.
    pub fn changed(&self, id: LinkId) {
        self.invalidation.note_changed(id);
        self.cache.invalidate(&Name::of(&self.mint, id));
    }

    /// Returns the link of a cache entry that may be served without a read, and counts the hit.
    fn believed(&self, known: Option<&Arc<Cached>>) -> Option<Arc<Link>> {
        let cached = known.filter(|cached| self.invalidation.is_fresh(cached.read_at))?;
        self.count_hits(1);
        Some(Arc::clone(&cached.link))
    }

    /// Reads a link from the store. If the store does not answer, the outdated cache entry `known`
    /// is served, unless it was last confirmed too long ago or has left the cache meanwhile: a
    /// change was notified, or a copy of the database has shown one.
    ///
    /// A full queue alone is reported as such: the store may answer, and an edit would stay hidden
    /// for as long as the queue is full. But a store that does not answer fills the queue as well,
    /// and then the entry is served.
    async fn read(&self, id: LinkId, name: Name, known: Option<Arc<Cached>>) -> Found {
        let serve_stale_for = self.config.serve_stale_for;
        let is_usable = |cached: &Arc<Cached>| {
            self.invalidation.freshness.was_current_within(cached.read_at, serve_stale_for)
        };
        let Some(stale) = known.filter(is_usable) else {
            return self.ask(id, Some(name), DEADLINE).await;
        };
        // While the database is away, an outdated link is better than none, or than one that comes
        // late.
        let lane = self.lane(id);
        if self.invalidation.is_not_read_again(&stale, lane) {
            self.count_hits(1);
            return Ok(Some(Arc::clone(&stale.link)));
        }
        let found = self.ask(id, Some(name), STALE_DEADLINE).await;
        let is_away = match found {
            Err(LookupError::NoStore) => {
                self.invalidation.note_store_away(lane);
                true
            }
            Err(LookupError::Overloaded) => self.invalidation.lane(lane).read_failed.load(Ordering::Relaxed),
            Ok(_) => false,
        };
        let still = is_away.then(|| self.cache.get(&name)).flatten();
        still.map_or(found, |cached| Ok(Some(Arc::clone(&cached.link))))
    }

    /// Sets whether the settings are too old to redirect by them.
    pub fn set_cut_off(&self, is_cut_off: bool) {
        if self.cut_off.swap(is_cut_off, Ordering::AcqRel) != is_cut_off {
            // In this order, as in `judge_by`.
            self.cache.generations.advance_all();
        }
    }

    /// Returns whether the settings are too old to redirect by them.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// Replaces the target rules that redirects are checked against.
    pub fn judge_by(&self, targets: Targets) {
        self.gate.replace(targets);
        // In this order: a thread that still consulted the old rules caches the result under an old
        // generation.
        self.cache.generations.advance_all();
    }

    /// Returns whether the target rules allow links to lead to this URL. Rules that are too old
    /// allow none.
    pub fn allows(&self, url: &LongUrl) -> bool {
        !self.is_cut_off() && self.gate.allows(url)
    }

    /// Returns the pattern of the target rule that denies a URL, if one does.
    pub fn denying_pattern(&self, url: &LongUrl) -> Option<String> {
        self.gate.denying_pattern(url)
    }

    /// Returns whether the target rules allow a redirect with this location. The host of a domain
    /// serves it. Rules that are too old allow none.
    pub fn allows_from(&self, authority: &str, location: &str) -> bool {
        !self.is_cut_off() && self.gate.allows_from(authority, location)
    }

    /// Counts lookups that were answered from the cache or from a thread's copy of it.
    fn count_hits(&self, hits: u64) {
        self.metrics.cache_hits.increment(hits);
    }

    /// Reads the link of an id from the store's primary, past the cache.
    pub async fn read_fresh(&self, id: LinkId) -> Found {
        self.ask(id, None, DEADLINE).await
    }

    /// Returns the queue of a link's misses. Its node may be one that was not there at the start.
    fn lane(&self, id: LinkId) -> usize {
        self.reader.links.read_lane(id) % self.misses.len()
    }

    async fn ask(&self, id: LinkId, name: Option<Name>, deadline: Duration) -> Found {
        let (found, answered) = oneshot::channel();
        self.misses[self.lane(id)]
            .try_send((id, Waiter { name, found }))
            .map_err(|_| LookupError::Overloaded)?;
        match timeout(deadline, answered).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(LookupError::NoStore),
        }
    }
}

#[cfg(test)]
mod tests;
