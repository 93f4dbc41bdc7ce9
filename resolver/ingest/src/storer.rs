//! The task that stores spooled visits.
//!
//! 1. The store's position is moved in the transaction that stores a batch, and segments of the
//!    spool are removed after its COMMIT. So a visit that was spooled is stored once.
//! 2. A COMMIT without an answer leaves its outcome open: the position is asked for until it is
//!    known.
//! 3. Where rows are in a database of their own, those of a batch are stored after its COMMIT
//!    (`rows_apart.rs`).
//! 4. A process whose spool another one has registered stores nothing more. Its redirects go on.
//! 5. A process that was silent for so long that its slot was taken registers again, and goes on at
//!    its position. So does one whose task has panicked.

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use codes::LinkId;
use futures_util::FutureExt as _;
use jiff::Timestamp;
use links::{DomainId, webhook::Subscription};
use spool::{OwnedBlock, Reader, Sidecars};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use visit_store::{Batch, Producer, SpoolId, Standing, VisitStore, VisitStoreError, WriteError};
use visits::{Day, DaySecret, Malformed, TextKey, VisitId, read_block};

use crate::{
    announce::{Announcer, SAMPLED_PER_MINUTE},
    attempts::Attempts,
    batch::{BatchMaker, Context},
    enrich::{Enricher, Options},
    known_texts::KnownTexts,
    metrics::{IngestMetrics, seconds},
    minute::Minute,
    pace::{Backlog, pause},
    rows_apart::RowsApart,
};

/// The divisor for the share of the memory that the blocks of a batch have, uncompressed. Counting
/// them takes several times as much if each visit is of another link.
const BATCH_OF_MEMORY: u64 = 256;
/// The largest batch in bytes: about 20,000 usual visits.
const BATCH_BYTES_MAX: u64 = 4 << 20;
const BATCH_BLOCKS: usize = 1_024;
/// Pause after a small batch whose rows are in a database of their own, which is made for few and
/// large insertions.
const APART: Duration = Duration::from_secs(1);
/// How long the task waits for visits before it looks again.
const IDLE: Duration = Duration::from_secs(1);
/// Interval at which an idle producer tells that it lives, so that it keeps its slot: several times
/// within [`SILENT`](visit_store::SILENT).
const ALIVE: Duration = Duration::from_secs(60);
/// Interval at which places are looked up again, because their files may have changed.
const PLACES: Duration = Duration::from_secs(60);

/// Returns the size of a batch in bytes, for a process with this much memory.
pub fn batch_bytes(memory: u64) -> usize {
    usize::try_from((memory / BATCH_OF_MEMORY).min(BATCH_BYTES_MAX)).unwrap_or(usize::MAX)
}

/// Dependencies of the storing task.
pub struct StorerConfig {
    /// The store.
    pub store: Arc<dyn VisitStore>,
    /// The reading end of the spool.
    pub reader: Reader,
    /// The files beside the spool.
    pub sidecars: Sidecars,
    /// The identity of the spool.
    pub spool: SpoolId,
    /// The name of this process.
    pub holder: String,
    /// Uncompressed bytes of the blocks in a batch ([`batch_bytes`]).
    pub batch_bytes: usize,
    /// Retention options of visits.
    pub options: Options,
    /// The places of addresses.
    pub places: geoip::GeoIp,
    /// Returns the domains whose visitors are not tracked.
    pub untracked: Box<dyn Fn() -> HashSet<DomainId> + Send + Sync>,
    /// Returns what the enabled webhooks are called for.
    pub webhooks: Box<dyn Fn() -> Vec<Subscription> + Send + Sync>,
    /// Returns the beginning of the URLs of a domain.
    pub base: Box<dyn Fn(DomainId) -> String + Send + Sync>,
    /// Visits recorded so far by this process; wakes the task.
    pub recorded: watch::Receiver<u64>,
    /// Becomes true when nothing more will be recorded.
    pub ending: watch::Receiver<bool>,
    /// The metrics.
    pub metrics: Arc<IngestMetrics>,
    /// The database's clock.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

struct Storer<'a> {
    config: &'a mut StorerConfig,
    producer: Producer,
    enricher: Enricher,
    texts: TextKey,
    known: KnownTexts,
    rows: RowsApart,
    /// Bytes of single visits that webhooks may be told.
    samples: Minute,
    secrets: HashMap<Day, Option<DaySecret>>,
    cuts: HashMap<Option<LinkId>, VisitId>,
    version: i64,
    started: Instant,
    places_from: Instant,
}

/// Why the task ended.
#[derive(Debug)]
enum Ended {
    /// Everything is stored, and the slot was given back.
    Drained,
    /// Another process stores this spool.
    Fenced,
    /// The slot was taken, after a long silence, or the store has forgotten the registration.
    Unregistered,
}

/// How much lower the priority of the thread is than that of redirects.
const NICE: i32 = 10;

/// Runs the task on the current thread, at low priority, with a runtime of its own.
pub fn run_on_this_thread(config: StorerConfig) {
    // Without the right to change it, storing competes with redirects a little more.
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "lower the priority of storing visits");
    }
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let ended = runtime.block_on(run(config));
            tracing::info!(?ended, "stored the visits");
        }
        Err(error) => tracing::error!(%error, "start the runtime that stores visits"),
    }
}

/// Stores visits until nothing more will be recorded and all are stored, or another process takes
/// over.
async fn run(mut config: StorerConfig) -> Ended {
    let mut attempts = Attempts::default();
    loop {
        let storing = async { Storer::register(&mut config).await.run().await };
        let ended = AssertUnwindSafe(storing).catch_unwind().await;
        config.metrics.registered.set(0.0);
        match ended {
            Ok(Ended::Unregistered) => tracing::warn!(
                "this process is no longer registered (its slot was taken, or the database was put back): it registers again"
            ),
            Ok(ended) => return ended,
            // Nothing of it is used again: what it had not stored is in the spool. The log has the
            // reason.
            Err(_) => attempts.failed("store visits", &std::io::Error::other("a panic")).await,
        }
    }
}

impl<'a> Storer<'a> {
    /// Registers the spool, and repeats that until the store answers.
    async fn register(config: &'a mut StorerConfig) -> Self {
        let mut attempts = Attempts::default();
        let (producer, (texts, addresses)) = loop {
            let registered = async {
                let producer = config.store.register(config.spool, &config.holder).await?;
                Ok::<_, VisitStoreError>((producer, config.store.secrets().await?))
            };
            let error = match registered.await {
                Ok(registered) => break registered,
                Err(error) => error,
            };
            let is_missing = matches!(error, VisitStoreError::NoSlot);
            config.metrics.slots_missing.increment(u64::from(is_missing));
            attempts.failed("register the spool of visits", &error).await;
        };
        config.metrics.registered.set(1.0);
        if config.reader.continue_from(producer.position) {
            tracing::error!(
                position = producer.position,
                "the spool of visits is older than what is stored of it: visits that it has again are not stored twice"
            );
        }
        let started = Instant::now();
        let enricher = Enricher::new(config.options.clone(), config.places.clone(), addresses);
        let (store, metrics) = (Arc::clone(&config.store), Arc::clone(&config.metrics));
        let mut rows = RowsApart::new(store, config.sidecars.clone(), metrics);
        rows.resume(producer.position).await;
        Self {
            config,
            producer,
            enricher,
            texts,
            known: KnownTexts::default(),
            rows,
            samples: Minute::default(),
            secrets: HashMap::new(),
            cuts: HashMap::new(),
            version: -1,
            started,
            places_from: started,
        }
    }

    async fn run(&mut self) -> Ended {
        let mut alive = Instant::now();
        loop {
            let is_ending = *self.config.ending.borrow();
            let blocks = self.read();
            if blocks.is_empty() {
                if is_ending {
                    return self.leave().await;
                }
                if alive.elapsed() >= ALIVE {
                    alive = Instant::now();
                    let standing = self.config.store.standing(&self.producer).await;
                    if let Some(Err(ended)) = standing.ok().map(|standing| self.position_of(standing)) {
                        return ended;
                    }
                }
                self.wait().await;
                continue;
            }
            alive = Instant::now();
            if let Err(ended) = self.store(&blocks).await {
                return ended;
            }
            if !is_ending {
                self.keep_pace(&blocks).await;
            }
        }
    }

    /// Reads the next blocks. A spool that cannot be read is logged, and read again later. Blocks
    /// that were damaged are skipped: their visits are lost, and that is told.
    fn read(&mut self) -> Vec<OwnedBlock> {
        let before = self.config.reader.skipped_bytes;
        let read = self.config.reader.next(self.producer.position, self.config.batch_bytes, BATCH_BLOCKS);
        let damaged = self.config.reader.skipped_bytes - before;
        // A damaged end is skipped again by each read until there is a block behind it.
        if damaged > 0 && read.as_ref().is_ok_and(|blocks| !blocks.is_empty()) {
            self.config.metrics.spool_errors.increment(1);
            tracing::error!(bytes = damaged, "a part of the spool is damaged: its visits are lost");
        }
        match read {
            Ok(blocks) => blocks,
            Err(error) => {
                self.config.metrics.spool_errors.increment(1);
                tracing::error!(error = &error as &dyn std::error::Error, "read the spool of visits");
                Vec::new()
            }
        }
    }

    async fn wait(&mut self) {
        let StorerConfig { recorded, ending, .. } = &mut *self.config;
        tokio::select! {
            _ = recorded.changed() => {}
            _ = ending.changed() => {}
            () = sleep(IDLE) => {}
        }
    }

    /// Stores blocks, and repeats that until the store has answered.
    async fn store(&mut self, blocks: &[OwnedBlock]) -> Result<(), Ended> {
        let mut attempts = Attempts::default();
        loop {
            let batch = match self.make(blocks).await {
                Ok(batch) => batch,
                Err(error) => {
                    attempts.failed("prepare visits for the store", &error).await;
                    continue;
                }
            };
            if let Err(error) = self.rows.record(&batch, self.version) {
                self.config.metrics.spool_errors.increment(1);
                attempts.failed("record the rows of visits", &error).await;
                continue;
            }
            let is_stored = match self.config.store.store(&self.producer, &batch, self.version).await {
                Ok(()) => true,
                Err(WriteError::Outdated) => false,
                // An earlier attempt may have been stored after all.
                Err(WriteError::Fenced) => {
                    let position = self.position().await?;
                    if position != batch.to {
                        self.producer.position = position;
                        return Ok(());
                    }
                    true
                }
                Err(WriteError::Unknown(error)) => {
                    self.config.metrics.unknown.increment(1);
                    attempts.failed("await the COMMIT of visits", &error).await;
                    self.position().await? == batch.to
                }
                Err(WriteError::Failed(error)) => {
                    attempts.failed("store visits", &error).await;
                    false
                }
            };
            if is_stored {
                self.stored(&batch, blocks).await;
                return Ok(());
            }
            self.version = -1;
        }
    }

    /// Makes a batch of blocks. Blocks that cannot be read are left out and counted.
    async fn make(&mut self, blocks: &[OwnedBlock]) -> Result<Batch, VisitStoreError> {
        self.refresh().await?;
        let (links, days) = contents(blocks);
        for day in days {
            if !self.secrets.contains_key(&day) {
                let secret = self.config.store.day_secret(day).await?;
                self.secrets.insert(day, secret);
            }
        }
        let mut tags = self.config.store.tags_of(&links).await?;
        // The same for the whole batch.
        let now = self.started.elapsed();
        let room = self.samples.left(SAMPLED_PER_MINUTE, now);
        let mut maker = BatchMaker::new(Context {
            slot: self.producer.slot,
            texts: &self.texts,
            secrets: &self.secrets,
            cuts: &self.cuts,
            tags: &tags,
            enricher: &mut self.enricher,
            known: &mut self.known,
            announcer: Announcer::new((self.config.webhooks)(), &*self.config.base, room),
            today: Day::of((self.config.now)().as_microsecond()),
            now,
        });
        let malformed = blocks.iter().filter(|block| add_block(block, &mut maker).is_err()).count();
        self.config.metrics.malformed.increment(malformed as u64);
        self.config.metrics.deleted.increment(maker.deleted);
        let to = blocks.last().map_or(self.producer.position, |block| block.sequence + 1);
        let batch = maker.finish(self.producer.position, to);
        // The store compares them: links without a tag may have got one meanwhile.
        links.into_iter().for_each(|link| _ = tags.entry(link).or_default());
        Ok(Batch { tags, ..batch })
    }

    /// Reads what changes from time to time: deletions, erasures, domains, places, days.
    async fn refresh(&mut self) -> Result<(), VisitStoreError> {
        self.enricher.untracked = (self.config.untracked)();
        if self.places_from.elapsed() >= PLACES {
            self.places_from = Instant::now();
            self.enricher.places_by_address.clear();
            // A secret that was erased must not be used any longer.
            self.secrets.clear();
            // Changes that concern no visit here are learnt all the same.
            self.version = -1;
        }
        if self.version < 0 {
            let changes = self.config.store.changes(-1).await?;
            self.cuts = changes.cuts.iter().map(|cut| (cut.link, cut.before)).collect();
            self.enricher.set_erasures(changes.erasures);
            self.version = changes.version;
        }
        Ok(())
    }

    /// Notes that a batch is stored, stores its rows where they are apart, and removes its blocks
    /// from the spool.
    async fn stored(&mut self, batch: &Batch, blocks: &[OwnedBlock]) {
        self.known.stored(&batch.texts);
        self.producer.position = batch.to;
        self.rows.store().await;
        let metrics = &self.config.metrics;
        metrics.rows.increment(batch.rows.len() as u64);
        metrics.batches.increment(1);
        metrics.other_texts.absolute(self.known.refused);
        if let Some(last) = blocks.iter().map(|block| block.span.1).max() {
            metrics.last_stored.set(seconds(last));
        }
        if let Err(error) = self.config.reader.release(batch.to) {
            tracing::warn!(error = &error as &dyn std::error::Error, "remove stored visits from the spool");
        }
    }

    /// Returns the stored position, and repeats the question until the store answers.
    async fn position(&mut self) -> Result<u64, Ended> {
        let mut attempts = Attempts::default();
        loop {
            match self.config.store.standing(&self.producer).await {
                Ok(standing) => return self.position_of(standing),
                Err(error) => attempts.failed("ask for the position of visits", &error).await,
            }
        }
    }

    /// Returns the stored position, or why this process may store nothing more.
    fn position_of(&self, standing: Standing) -> Result<u64, Ended> {
        match standing {
            Standing::At(position) => Ok(position),
            Standing::Unregistered => Err(Ended::Unregistered),
            Standing::Replaced => {
                self.config.metrics.fenced.set(1.0);
                tracing::error!(
                    holder = self.config.holder,
                    "another process stores the visits of this spool, so this one stops storing: expected a spool folder of \
                     its own for each process"
                );
                Err(Ended::Fenced)
            }
        }
    }

    /// Lets redirects go first while they keep this process busy.
    async fn keep_pace(&mut self, blocks: &[OwnedBlock]) {
        let now = (self.config.now)().as_microsecond();
        let micros = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let first = blocks.iter().map(|block| block.span.0).min().unwrap_or(now);
        let last = blocks.iter().map(|block| block.span.1).max().unwrap_or(now);
        let visits = blocks.iter().map(|block| u64::from(block.count)).sum();
        let backlog = Backlog {
            recorded: self.config.metrics.recorded_per_second(*self.config.recorded.borrow()),
            batch: (visits, micros(last.saturating_sub(first))),
            age: micros(now.saturating_sub(last)),
            filled_permille: self.config.reader.filled_permille(),
        };
        let mut ending = self.config.ending.clone();
        let is_small =
            blocks.iter().map(|block| block.bytes.len()).sum::<usize>() < self.config.batch_bytes / 2;
        let least = if self.rows.is_used() && is_small { APART } else { Duration::ZERO };
        let pause = pause(backlog).max(least);
        if !pause.is_zero() {
            let _ = timeout(pause, ending.wait_for(|is_ending| *is_ending)).await;
        }
    }

    /// Gives the slot back: nothing is left to store.
    async fn leave(&mut self) -> Ended {
        if let Err(error) = self.config.store.release(&self.producer).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "release the slot of visits");
        }
        Ended::Drained
    }
}

/// Returns the links and the days of the visits in some blocks.
fn contents(blocks: &[OwnedBlock]) -> (Vec<LinkId>, HashSet<Day>) {
    let (mut links, mut days) = (HashSet::new(), HashSet::new());
    for block in blocks {
        days.extend([Day::of(block.span.0), Day::of(block.span.1)]);
        let Ok((_, events)) = read_block(&block.bytes) else { continue };
        links.extend(events.filter_map(|event| event.ok()?.link));
    }
    (links.into_iter().collect(), days)
}

fn add_block(block: &OwnedBlock, maker: &mut BatchMaker<'_>) -> Result<(), Malformed> {
    let (thread, events) = read_block(&block.bytes)?;
    for event in events {
        maker.add(&event?, thread);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::batch_bytes;

    #[test]
    fn a_batch_fits_into_the_memory() {
        assert_eq!(batch_bytes(64 << 20), 256 << 10);
        assert_eq!(batch_bytes(1 << 30), 4 << 20);
        assert_eq!(batch_bytes(1 << 40), 4 << 20);
    }
}
