//! Creating a link: claim a number, join the open batch, answer after COMMIT.
//!
//! 1. I6: the answer leaves after the store said that the row is committed.
//! 2. I4: an insert with unknown outcome is resolved by reading. If the row is there, and the register says after that that the
//!    number is still ours alone, it is our row; if it is absent it may still arrive, so the number is burned and the link gets
//!    another. A reclaimed number was somebody else's before, and a row under it proves nothing.
//! 3. A hand-picked code that could have been minted competes with the minter for the primary key, so one of them has it. Before its creator is
//!    answered, every resolver knows of it (`lookup/unminted_slugs.rs`).
//! 4. A new link is not put into the cache: its first visitor asks any of many resolvers and costs one row of a shared read there, while
//!    keeping every new link took a tenth of a create and the room of links that somebody follows.
//! 5. A create runs to its end though its client goes away: its number comes back with its fate either way.

mod batch;
mod doubt;
mod named;
mod shown;

use std::{sync::Arc, time::Duration};

pub(crate) use named::SALTS_MAX;

use batch::{Outcome, Waiting, write_batches};
use codes::{Code, KeyspaceIndex, Mint, Minted, is_reserved};
use daemon::Vitals;
use jiff::Timestamp;
use links::{Draft, Idempotency, Link, NewLink, Record, Slug, Tag};
use store::{Links, Register};
use supply::{
    Claim, ClaimError, Fate, Minting, Owner,
    guard::{self, Guard},
};
use tokio::{
    runtime,
    sync::{Semaphore, mpsc, oneshot},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use crate::{
    clock::DatabaseClock,
    lookup::Lookup,
    metrics::Metrics,
    turns::{NoTurn, Turns},
};

/// How long a create may take in all.
const DEADLINE: Duration = Duration::from_secs(10);
/// Creates at a time; more are shed before a queue grows.
const CREATES_MAX: usize = 8_192;
/// A created link with its code.
#[derive(Clone, Debug)]
pub struct Created {
    /// The code.
    pub code: Code,
    /// The link.
    pub link: Link,
}

/// Which code a link is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeWish {
    /// The next of the default keyspace.
    #[default]
    Next,
    /// The next of this keyspace.
    In(KeyspaceIndex),
    /// One that the creator has picked.
    Picked(Slug),
    /// Any, of so many characters: more than codes of keyspaces have.
    Random {
        /// So many.
        len: usize,
    },
    /// One of a digest of the long URL.
    Digest {
        /// What stands before it.
        prefix: String,
        /// So many characters.
        len: usize,
    },
}

/// What is to be created, beyond a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Which code it is to have.
    pub code: CodeWish,
    /// Tags.
    pub tags: Vec<Tag>,
    /// To be given the link that was made for the same wish before.
    pub idempotency: Option<Idempotency>,
}

/// Why no link was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// No number came in time.
    #[error("no number is to be had at the moment")]
    NoNumber,
    /// The same key came with another wish before.
    #[error("the idempotency key came with something else before")]
    KeyReused,
    /// The hand-picked code is somebody else's.
    #[error("the slug is in use")]
    Taken,
    /// The domain was removed.
    #[error("the domain was removed meanwhile")]
    NoDomain,
    /// The keyspace has none left.
    #[error("every code of the keyspace is taken")]
    Exhausted,
    /// The database did not store it, or nobody knows whether it did: the caller knows no code, so no harm is done.
    #[error("the database is not to be had at the moment")]
    NoStore,
    /// Too many creates are under way.
    #[error("too many creates are under way")]
    Overloaded,
    /// Its key has too many of them.
    #[error(transparent)]
    NoTurn(#[from] NoTurn),
}

/// Creates links in one keyspace after another.
pub struct Creator {
    parts: Arc<Parts>,
    slots: Arc<Semaphore>,
    runtime: runtime::Handle,
    tasks: TaskTracker,
}

/// What a creator works with.
pub struct CreatorConfig {
    /// Numbers to codes.
    pub mint: Arc<Mint>,
    /// Where numbers come from, the default keyspace's first.
    pub mintings: Vec<Arc<Minting>>,
    /// Where links go.
    pub links: Arc<dyn Links>,
    /// Which numbers are whose.
    pub register: Arc<dyn Register>,
    /// Whose numbers they are, as the register knows it.
    pub owner: Owner,
    /// To read rows in doubt.
    pub lookup: Arc<Lookup>,
    /// The database's time.
    pub clock: Arc<DatabaseClock>,
    /// Whose turn it is to create what is a transaction of its own.
    pub turns: Arc<Turns>,
    /// What an operator sees.
    pub metrics: Arc<Metrics>,
}

/// What a create needs while it runs.
struct Parts {
    mint: Arc<Mint>,
    mintings: Vec<Arc<Minting>>,
    links: Arc<dyn Links>,
    register: Arc<dyn Register>,
    owner: Owner,
    batch: mpsc::Sender<Waiting>,
    lookup: Arc<Lookup>,
    clock: Arc<DatabaseClock>,
    turns: Arc<Turns>,
    metrics: Arc<Metrics>,
}

impl Creator {
    /// A creator and its batch task, on the current runtime.
    #[must_use]
    pub fn start(vitals: &Vitals, config: CreatorConfig) -> Self {
        let CreatorConfig { mint, mintings, links, register, owner, lookup, clock, turns, metrics } = config;
        let (batch, waiting) = mpsc::channel(CREATES_MAX);
        vitals.spawn("writer of links", write_batches(Arc::clone(&links), waiting, Arc::clone(&metrics)));
        Self {
            parts: Arc::new(Parts {
                mint,
                mintings,
                links,
                register,
                owner,
                batch,
                lookup,
                clock,
                turns,
                metrics,
            }),
            slots: Arc::new(Semaphore::new(CREATES_MAX)),
            runtime: runtime::Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    /// Creates a link. Await it to its end: a number whose create is dropped stays claimed until
    /// the next start. A client that disconnects does not end its call (`http/run_to_end.rs`).
    ///
    /// # Errors
    /// When no number or no store was to be had within the deadline.
    pub async fn create(&self, draft: Draft) -> Result<Created, CreateError> {
        let _slot = self.slots.try_acquire().map_err(|_| CreateError::Overloaded)?;
        let _under_way = self.tasks.token();
        let started = Instant::now();
        let created = self.parts.create(self.parts.default(), draft, started + DEADLINE).await;
        self.parts.metrics.create_seconds.record(started.elapsed());
        created
    }

    /// Creates a link with whatever is wished for it.
    ///
    /// # Errors
    /// As [`Creator::create`]; and when somebody has the code.
    pub async fn create_full(&self, draft: Draft, wishes: Wishes) -> Result<Record, CreateError> {
        let Wishes { code, tags, idempotency } = wishes;
        if code == CodeWish::Next && is_plain(&draft, &tags, idempotency.as_ref()) {
            return Ok(Record { link: self.create(draft).await?.link, tags });
        }
        // In a box: few creates need the room that this takes.
        Box::pin(self.create_wished(draft, code, tags, idempotency)).await
    }

    async fn create_wished(
        &self,
        draft: Draft,
        code: CodeWish,
        tags: Vec<Tag>,
        idempotency: Option<Idempotency>,
    ) -> Result<Record, CreateError> {
        let is_plain = is_plain(&draft, &tags, idempotency.as_ref());
        let _slot = self.slots.try_acquire().map_err(|_| CreateError::Overloaded)?;
        let _under_way = self.tasks.token();
        let started = Instant::now();
        let (parts, idempotency, deadline) = (&self.parts, idempotency.as_ref(), started + DEADLINE);
        let created = match code {
            CodeWish::Next => parts.create_unless(parts.default(), draft, &tags, idempotency, deadline).await,
            CodeWish::In(index) => {
                let minting = parts.mintings.iter().find(|minting| minting.index == index);
                let minting = minting.ok_or(CreateError::Exhausted)?;
                if is_plain {
                    parts.create(minting, draft, deadline).await.map(|created| created.link)
                } else {
                    parts.create_unless(minting, draft, &tags, idempotency, deadline).await
                }
            }
            CodeWish::Picked(slug) => {
                // Whoever finds an existing link under a slug has looked already; a retry has not.
                let idempotency = idempotency.filter(|idempotency| idempotency.fingerprint.is_some());
                parts.create_named(slug, draft, &tags, idempotency).await
            }
            CodeWish::Random { len } => {
                parts.create_at_random(len, &draft, &tags, idempotency, deadline).await
            }
            CodeWish::Digest { prefix, len } => {
                parts.create_by_digest(&prefix, len, &draft, &tags, idempotency, deadline).await
            }
        };
        self.parts.metrics.create_seconds.record(started.elapsed());
        Ok(Record { link: created?, tags })
    }

    /// The keyspace of this name.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<KeyspaceIndex> {
        let named = self.parts.mintings.iter().find(|minting| minting.namespace.as_str() == name);
        named.map(|minting| minting.index)
    }

    /// The keyspace that codes are of unless somebody wishes otherwise.
    #[must_use]
    pub fn default_keyspace(&self) -> KeyspaceIndex {
        self.parts.default().index
    }

    /// How many keyspaces this process knows of.
    #[must_use]
    pub fn keyspaces(&self) -> usize {
        self.parts.mint.keyspaces()
    }

    /// How many characters a keyspace's codes have.
    #[must_use]
    pub fn code_len(&self, keyspace: KeyspaceIndex) -> Option<usize> {
        self.parts.mint.len_of(keyspace)
    }

    /// The keyspace whose codes have so many characters; the default one, if several do.
    #[must_use]
    pub fn keyspace_of_len(&self, len: usize) -> Option<KeyspaceIndex> {
        let indexes = self.parts.mintings.iter().map(|minting| minting.index);
        indexes.into_iter().find(|index| self.parts.mint.len_of(*index) == Some(len))
    }

    /// Creates links together, at most [`store::BATCH_MAX`]; what became of each, in their order.
    pub async fn create_many(&self, drafts: Vec<Draft>) -> Vec<Result<Created, CreateError>> {
        let count = drafts.len();
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return drafts.iter().map(|_| Err(CreateError::Overloaded)).collect();
        };
        let parts = Arc::clone(&self.parts);
        let task = self.tasks.spawn_on(
            async move {
                let created = parts.create_many(drafts, Instant::now() + DEADLINE).await;
                drop(slot);
                created
            },
            &self.runtime,
        );
        task.await.unwrap_or_else(|_| (0..count).map(|_| Err(CreateError::NoStore)).collect())
    }

    /// Waits for the creates under way. Call it when no new ones can come.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What a batch can carry: nothing but the link itself, whose number is its code.
fn is_plain(draft: &Draft, tags: &[Tag], idempotency: Option<&Idempotency>) -> bool {
    tags.is_empty() && idempotency.is_none() && draft.domain().is_default()
}

impl Parts {
    /// Where numbers come from unless somebody wishes otherwise.
    fn default(&self) -> &Minting {
        self.mintings.first().expect("a configuration has at least one keyspace")
    }

    /// The next number with its code. Numbers whose codes are words of our paths are given up.
    async fn claim(&self, minting: &Minting, deadline: Instant) -> Result<(Claim, Minted), CreateError> {
        loop {
            let claim = minting.claim(deadline).await.map_err(|error| match error {
                ClaimError::TimedOut | ClaimError::Closed => CreateError::NoNumber,
                ClaimError::Exhausted => CreateError::Exhausted,
            })?;
            let minted = self.mint.mint(minting.index, claim.number);
            if !is_reserved(&minted.code) {
                return Ok((claim, minted));
            }
            self.settle(minting, claim, Fate::Burned);
        }
    }

    async fn create(
        &self,
        minting: &Minting,
        draft: Draft,
        deadline: Instant,
    ) -> Result<Created, CreateError> {
        while Instant::now() < deadline {
            let (claim, minted) = self.claim(minting, deadline).await?;
            let outcome = self.insert(&claim, &minted, &draft, deadline).await;
            match self.conclude(minting, claim, &minted, &draft, outcome, deadline).await {
                Some(Ok(created_at)) => return Ok(self.created(minted, draft, created_at)),
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Err(CreateError::NoNumber)
    }

    /// Decides what a claim's insert came to; none when another number is to be tried.
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
                self.metrics.conflicts.increment(1);
                (Fate::Used, None)
            }
            Outcome::CodeTaken => {
                self.metrics.conflicts.increment(1);
                (Fate::Burned, None)
            }
            Outcome::Failed => (Fate::Unused, Some(Err(CreateError::NoStore))),
            Outcome::AnotherHistory => {
                minting.give_up(&claim.history);
                (Fate::Burned, None)
            }
            Outcome::Unknown if !guard::is_on(Guard::Doubt) => (Fate::Used, Some(Ok(self.clock.now()))),
            Outcome::Unknown => {
                self.metrics.inserts_unknown.increment(1);
                self.resolve(&claim, minted.id, draft, deadline).await
            }
        };
        self.settle(minting, claim, fate);
        end
    }

    /// Creates many at once; the links in the order of their drafts. Those whose first number was not to be had are tried again
    /// one by one.
    async fn create_many(&self, drafts: Vec<Draft>, deadline: Instant) -> Vec<Result<Created, CreateError>> {
        let minting = self.default();
        let (mut claims, mut links) = (Vec::new(), Vec::new());
        while links.len() < drafts.len() {
            let Ok((claim, minted)) = self.claim(minting, deadline).await else { break };
            // A batch is of one history of the database; the rest goes one by one.
            if claims.first().is_some_and(|(first, _): &(Claim, Minted)| first.history != claim.history) {
                self.settle(minting, claim, Fate::Unused);
                break;
            }
            links.push(NewLink { id: minted.id, draft: drafts[links.len()].clone() });
            claims.push((claim, minted));
        }
        let outcomes = match claims.first() {
            Some((claim, _)) => batch::insert(&*self.links, &self.metrics, &claim.history, &links).await,
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
                None => self.create(minting, draft, deadline).await,
            });
        }
        results
    }

    async fn insert(&self, claim: &Claim, minted: &Minted, draft: &Draft, deadline: Instant) -> Outcome {
        let (outcome, answered) = oneshot::channel();
        let link = NewLink { id: minted.id, draft: draft.clone() };
        let history = Arc::clone(&claim.history);
        if self.batch.send(Waiting { link, history, deadline, outcome }).await.is_err() {
            return Outcome::Failed;
        }
        answered.await.unwrap_or(Outcome::Unknown)
    }

    fn settle(&self, minting: &Minting, claim: Claim, fate: Fate) {
        if fate == Fate::Burned {
            self.metrics.burned.increment(1);
            tracing::warn!(namespace = %minting.namespace, number = claim.number, "a number is given up");
        }
        minting.settle(claim, fate);
    }

    fn created(&self, minted: Minted, draft: Draft, created_at: Timestamp) -> Created {
        self.metrics.creates.increment(1);
        Created { code: minted.code, link: Link::stored(minted.id, draft, created_at) }
    }
}
