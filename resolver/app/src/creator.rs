//! Creates links: claims a number, inserts the row in a batch, and answers after COMMIT.
//!
//! 1. I6: a create is answered only after the store reported that the row is committed.
//! 2. I4: an insert with unknown outcome is resolved by reading. If the row exists, and the
//!    register says after that read that the number still belongs to this process alone, the row is
//!    its own. If the row is absent it may still arrive, so the number is burned and the link gets
//!    another one. A reclaimed number belonged to another holder before, and a row under it proves
//!    nothing.
//! 3. A mintable custom slug competes with the minter for the primary key, so only one of them gets
//!    the code.
//! 4. A new link is not put into the cache. Its first visitor asks any of many resolvers, and costs
//!    one row of a shared read there. Caching every new link took a tenth of the time of a create,
//!    and displaced links that are visited.
//! 5. A create runs to completion even if its client disconnects, so its number always comes back
//!    with its fate.

mod batch;
mod doubt;
mod named;
mod together;

use std::{sync::Arc, time::Duration};

pub(crate) use named::SALTS_MAX;
pub use together::Together;

use batch::{Outcome, Waiting, queue, write_batches, write_slugs};
use codes::{Code, KeyspaceIndex, LinkId, Minted, is_reserved, random_code};
use daemon::TaskSupervisor;
use jiff::Timestamp;
use links::{Draft, Idempotency, Link, NewLink, Record, Slug, Tag};
use numbers::StoreEpoch;
use store::{Bucket, Store};
use supply::{
    Choice, Claim, ClaimError, Fate, IssuerClient, Minting, Owner, SupplyMetrics, safety_rule::SafetyRule,
};
use tokio::{
    runtime,
    sync::{Semaphore, mpsc},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use crate::key_permits::KeyPermits;
use lookup::{Lookup, domain_cache::DomainCache, metrics::Metrics};

/// Deadline of a create, from start to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent creates. Further creates are rejected before a queue builds up.
const CREATES_MAX: usize = 8_192;

/// The capacity up to which a keyspace is small: that of all codes of four characters.
const SMALL: u64 = 62_u64.pow(4);

/// A created link with its code.
#[derive(Clone, Debug)]
pub struct Created {
    /// The code.
    pub code: Code,
    /// The link.
    pub link: Link,
}

/// The code that a new link is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeChoice {
    /// The next code of the default keyspace.
    #[default]
    Next,
    /// The next code of this keyspace.
    In(KeyspaceIndex),
    /// This custom slug.
    CustomSlug(Slug),
    /// A random code that is longer than the codes of all keyspaces.
    Random {
        /// Length in characters.
        len: usize,
    },
    /// A code from a digest of the long URL.
    Digest {
        /// Text that precedes the digest's characters.
        prefix: String,
        /// Number of the digest's characters.
        len: usize,
    },
}

/// The parts of a create request that are not in the draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The code that the link is to have.
    pub code: CodeChoice,
    /// The link's tags.
    pub tags: Vec<Tag>,
    /// Deduplication: an earlier link of the same request is returned instead of a new one.
    pub idempotency: Option<Idempotency>,
    /// Text that sets codes from a digest apart from those of other tenants; empty for a key that
    /// sees all links.
    pub tenant: String,
}

/// The reason why no link was created.
#[derive(Debug)]
pub enum CreateError {
    /// No number came before the deadline, too many creates are in progress, or the domain was
    /// removed meanwhile. Nothing is stored.
    Unavailable,
    /// The idempotency key was used before with a different request.
    KeyReused,
    /// Another link has the custom slug.
    Taken,
    /// The keyspace has no codes left.
    Exhausted,
    /// The database did not store the link, or the outcome is unknown. The caller got no code, so a
    /// link that was stored after all does no harm.
    NoStore,
    /// The API key has too many creates in progress.
    PermitTimeout,
}

/// The parts that a [`Creator`] works with.
pub struct CreatorConfig {
    /// The supplies of numbers, that of the default keyspace first.
    pub mintings: Vec<Arc<Minting>>,
    /// The database that stores the links, and which numbers are whose.
    pub store: Arc<dyn Store>,
    /// This process, as the register names the owner of its blocks.
    pub owner: Owner,
    /// Has the mint, reads rows whose insert is in doubt, and tells when codes may be returned and
    /// which safety rules are in force.
    pub lookup: Arc<Lookup>,
    /// The copy of the settings, which has the keyspaces of all resolvers.
    pub domain_cache: Arc<DomainCache>,
    /// The client of the issuer, which sets numbers aside for reservations.
    pub client: Arc<IssuerClient>,
    /// Per-key permits for creates that are transactions of their own.
    pub turns: Arc<KeyPermits>,
    /// Counters and histograms.
    pub metrics: Arc<Metrics>,
    /// Counters of blocks.
    pub supply_metrics: Arc<SupplyMetrics>,
}

/// Creates links: claims a number, inserts the row in a batch, and answers after COMMIT. Also
/// makes, fills and gives up reservations (`links/reservation.rs`).
pub struct Creator {
    /// The parts that it works with.
    pub config: CreatorConfig,
    batch: mpsc::Sender<Waiting<Arc<StoreEpoch>>>,
    slugs: mpsc::Sender<Waiting<()>>,
    slots: Arc<Semaphore>,
    runtime: runtime::Handle,
    tasks: TaskTracker,
}

impl Creator {
    /// Starts a creator and its batch task on the current runtime.
    pub fn start(supervisor: &TaskSupervisor, config: CreatorConfig) -> Arc<Self> {
        let (batch, waiting) = mpsc::channel(CREATES_MAX);
        let (store, metrics) = (Arc::clone(&config.store), Arc::clone(&config.metrics));
        supervisor.spawn("writer of links", write_batches(store, waiting, metrics));
        let (slugs, waiting) = mpsc::channel(CREATES_MAX);
        let (store, metrics) = (Arc::clone(&config.store), Arc::clone(&config.metrics));
        supervisor.spawn("writer of slugs", write_slugs(store, waiting, metrics));
        Arc::new(Self {
            config,
            batch,
            slugs,
            slots: Arc::new(Semaphore::new(CREATES_MAX)),
            runtime: runtime::Handle::current(),
            tasks: TaskTracker::new(),
        })
    }

    /// Creates a link.
    ///
    /// Await the call to its end: the number of a dropped create stays claimed until the next
    /// start. A client that disconnects does not drop its call (`web/src/run_to_end.rs`).
    pub async fn create(&self, draft: Draft, options: CreateOptions) -> Result<Record, CreateError> {
        let _slot = self.slots.try_acquire().map_err(|_| CreateError::Unavailable)?;
        let _under_way = self.tasks.token();
        let started = Instant::now();
        let deadline = started + DEADLINE;
        // The batch carries links without tags and deduplication, on the default domain.
        let CreateOptions { code, tags, idempotency, .. } = &options;
        let is_plain = tags.is_empty() && idempotency.is_none() && draft.domain().is_default();
        let created = match self.minting_for(code).filter(|_| is_plain) {
            Some(minting) => self.create_plain(minting, draft, deadline).await.map(|created| created.link),
            // Boxed, because few creates need the room that this future takes.
            None => Box::pin(self.create_wished(draft, &options, deadline)).await,
        };
        self.config.metrics.create_seconds.record(started.elapsed());
        Ok(Record { link: created?, tags: options.tags })
    }

    /// Creates a link with a code that is not minted, or with tags, a domain or deduplication.
    async fn create_wished(
        &self,
        draft: Draft,
        options: &CreateOptions,
        deadline: Instant,
    ) -> Result<Link, CreateError> {
        let CreateOptions { code, tags, idempotency, tenant } = options;
        let idempotency = idempotency.as_ref();
        match code {
            CodeChoice::Next | CodeChoice::In(_) => {
                let minting = self.minting_for(code).ok_or(CreateError::Exhausted)?;
                self.create_unless(minting, draft, tags, idempotency, deadline).await
            }
            CodeChoice::CustomSlug(slug) => {
                // `findIfExists` has looked for a link with this slug already; a retry by
                // idempotency key has not.
                let idempotency = idempotency.filter(|idempotency| idempotency.fingerprint.is_some());
                self.create_with_slug(slug.clone(), draft, tags, idempotency, deadline).await
            }
            // Longer than minted codes, and therefore hardly ever taken.
            CodeChoice::Random { len } => {
                while Instant::now() < deadline {
                    let code = random_code(*len).map_err(|_| CreateError::NoStore)?;
                    // A reserved word of the URL paths cannot be a slug.
                    let Ok(slug) = Slug::parse(&code).and_then(|slug| slug.kept()) else { continue };
                    match self.create_with_slug(slug, draft.clone(), tags, idempotency, deadline).await {
                        Err(CreateError::Taken) => self.config.metrics.conflicts.increment(1),
                        end => return end,
                    }
                }
                Err(CreateError::NoStore)
            }
            CodeChoice::Digest { prefix, len } => {
                self.create_by_digest((tenant, prefix, *len), &draft, tags, idempotency, deadline).await
            }
        }
    }

    /// Creates at most [`store::BATCH_MAX`] links in one batch, and returns the outcome of each in
    /// the order of `drafts`.
    pub async fn create_many(self: &Arc<Self>, drafts: Vec<Draft>) -> Vec<Result<Created, CreateError>> {
        let count = drafts.len();
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return drafts.iter().map(|_| Err(CreateError::Unavailable)).collect();
        };
        let this = Arc::clone(self);
        let task = self.tasks.spawn_on(
            async move {
                let created = this.create_batch(drafts, Instant::now() + DEADLINE).await;
                drop(slot);
                created
            },
            &self.runtime,
        );
        task.await.unwrap_or_else(|_| (0..count).map(|_| Err(CreateError::NoStore)).collect())
    }

    /// Waits for the creates in progress. Call it when no new creates can arrive.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns the supply of a keyspace, if this process mints from it.
    pub(crate) fn minting(&self, index: KeyspaceIndex) -> Option<&Arc<Minting>> {
        self.config.mintings.iter().find(|minting| minting.index == index)
    }

    /// Returns the supply of the keyspace that a code is minted from, if it is minted.
    fn minting_for(&self, code: &CodeChoice) -> Option<&Minting> {
        let minting = match code {
            CodeChoice::Next => self.config.mintings.first(),
            CodeChoice::In(index) => self.minting(*index),
            CodeChoice::CustomSlug(_) | CodeChoice::Random { .. } | CodeChoice::Digest { .. } => None,
        };
        minting.map(|minting| &**minting)
    }

    /// Claims the next number and mints its code. Numbers whose codes are reserved words of the URL
    /// paths are burned.
    async fn claim(&self, minting: &Minting, deadline: Instant) -> Result<(Claim, Minted), CreateError> {
        loop {
            let claim = self.claim_number(minting, deadline).await.map_err(|error| match error {
                ClaimError::TimedOut | ClaimError::Closed => CreateError::Unavailable,
                ClaimError::Exhausted => CreateError::Exhausted,
            })?;
            let minted = self.config.lookup.mint.mint(minting.index, claim.number);
            if !is_reserved(&minted.code) {
                return Ok((claim, minted));
            }
            self.settle(minting, claim, Fate::Burned);
        }
    }

    /// Claims a number whose bucket new links should get now. In a small keyspace any bucket whose
    /// node answers will do: a process must not keep the last numbers while others starve.
    async fn claim_number(&self, minting: &Minting, deadline: Instant) -> Result<Claim, ClaimError> {
        let store = &self.config.store;
        let Some(open) = store.open_bucket() else { return minting.claim(None, deadline).await };
        if !store.is_up(open) {
            return Err(ClaimError::TimedOut);
        }
        let is_up = |bucket| store.is_up(Bucket(bucket));
        let is_open = |bucket| Bucket(bucket) == open;
        let is_wanted: &(dyn Fn(usize) -> bool + Sync) =
            if minting.capacity <= SMALL { &is_up } else { &is_open };
        let choice = Choice {
            bucket: &|number| store.bucket(LinkId::new(minting.index, number)).0,
            is_wanted,
            is_up: &is_up,
        };
        minting.claim(Some(&choice), deadline).await
    }

    async fn create_plain(
        &self,
        minting: &Minting,
        draft: Draft,
        deadline: Instant,
    ) -> Result<Created, CreateError> {
        while Instant::now() < deadline {
            let (claim, minted) = self.claim(minting, deadline).await?;
            let link = NewLink { id: minted.id, draft: draft.clone() };
            let outcome = queue(&self.batch, link, Arc::clone(&claim.history), deadline).await;
            match self.conclude(minting, claim, &minted, &draft, outcome, deadline).await {
                Some(Ok(created_at)) => return Ok(self.created(minted, draft, created_at)),
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Err(CreateError::Unavailable)
    }

    /// Decides the fate of a claimed number and the answer of its create. Returns `None` if another
    /// number has to be tried.
    async fn conclude(
        &self,
        minting: &Minting,
        claim: Claim,
        minted: &Minted,
        draft: &Draft,
        outcome: Outcome,
        deadline: Instant,
    ) -> Option<Result<Timestamp, CreateError>> {
        let (fate, end) = match outcome {
            Outcome::Stored(at) => (Fate::Used, Some(Ok(at))),
            Outcome::Taken => {
                self.config.metrics.conflicts.increment(1);
                (Fate::Used, None)
            }
            Outcome::CodeTaken => {
                self.config.metrics.conflicts.increment(1);
                (Fate::Burned, None)
            }
            Outcome::Failed if self.has_room_elsewhere(minted.id) => (Fate::Unused, None),
            Outcome::Failed => (Fate::Unused, Some(Err(CreateError::NoStore))),
            Outcome::AnotherHistory => {
                minting.give_up(&claim.history);
                (Fate::Burned, None)
            }
            Outcome::Unknown if !self.config.lookup.has_rule(SafetyRule::Doubt) => {
                (Fate::Used, Some(Ok(Timestamp::UNIX_EPOCH)))
            }
            Outcome::Unknown => {
                self.config.metrics.inserts_unknown.increment(1);
                self.resolve(&claim, minted.id, draft, deadline).await
            }
        };
        self.settle(minting, claim, fate);
        end
    }

    /// Creates several links in one batch, and returns their outcomes in the order of `drafts`.
    /// Links that get no number at first, or whose first number turns out to be unusable, are
    /// retried one by one.
    async fn create_batch(&self, drafts: Vec<Draft>, deadline: Instant) -> Vec<Result<Created, CreateError>> {
        let minting = self.config.mintings.first().expect("a configuration has at least one keyspace");
        let (mut claims, mut links) = (Vec::new(), Vec::new());
        while links.len() < drafts.len() {
            let Ok((claim, minted)) = self.claim(minting, deadline).await else { break };
            // A batch belongs to one history of the database; the other links are created one by
            // one.
            if claims.first().is_some_and(|(first, _): &(Claim, Minted)| first.history != claim.history) {
                self.settle(minting, claim, Fate::Unused);
                break;
            }
            links.push(NewLink { id: minted.id, draft: drafts[links.len()].clone() });
            claims.push((claim, minted));
        }
        let outcomes = match claims.first() {
            Some((claim, _)) => {
                batch::insert_many(&*self.config.store, &self.config.metrics, &claim.history, &links).await
            }
            None => Vec::new(),
        };
        let mut first_tries = claims.into_iter().zip(outcomes);
        let mut results = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let end = match first_tries.next() {
                Some(((claim, minted), outcome)) => {
                    let end = self.conclude(minting, claim, &minted, &draft, outcome, deadline).await;
                    end.map(|end| (minted, end))
                }
                None => None,
            };
            results.push(match end {
                Some((minted, Ok(created_at))) => Ok(self.created(minted, draft, created_at)),
                Some((_, Err(error))) => Err(error),
                None => self.create_plain(minting, draft, deadline).await,
            });
        }
        results
    }

    /// Returns whether the node of a link is away, and another one is not.
    fn has_room_elsewhere(&self, id: LinkId) -> bool {
        let store = &self.config.store;
        !store.is_up(store.bucket(id)) && store.open_bucket().is_some_and(|open| store.is_up(open))
    }

    fn settle(&self, minting: &Minting, claim: Claim, fate: Fate) {
        if fate == Fate::Burned {
            self.config.metrics.burned.increment(1);
            tracing::warn!(namespace = %minting.namespace, number = claim.number, "a number is given up");
        }
        minting.settle(claim, fate);
    }

    fn created(&self, minted: Minted, draft: Draft, created_at: Timestamp) -> Created {
        self.config.metrics.creates.increment(1);
        Created { code: minted.code, link: Link::stored(minted.id, draft, created_at) }
    }
}
