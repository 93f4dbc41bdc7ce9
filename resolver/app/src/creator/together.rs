//! Batches of links with custom slugs, tags or domains, each in one transaction.
//!
//! 1. I6: the commit of each link is the COMMIT of the batch's transaction.
//! 2. What the transaction did not store is surely not stored: a link that had something in its
//!    way, or all of them if it failed. The link is handed back, and a create of its own decides
//!    what becomes of it (`named.rs`). Its number goes back as well: it is unused, or the create
//!    that claims it next finds the link that has it.
//! 3. I4: if COMMIT was sent and not answered, each link is in doubt, as after a create of its own:
//!    a minted one is resolved by its row and the register (`doubt.rs`), one with a custom slug by
//!    its mark.
//! 4. Numbers of a batch are of one history of the database. Nodes of Citus get no batches.

use std::sync::Arc;

use codes::{LinkId, Minted};
use futures_util::future::join_all;
use jiff::Timestamp;
use links::{Draft, NewLink, Record};
use numbers::StoreEpoch;
use store::{BatchLink, FullLink};
use supply::{Claim, Fate, Minting};
use tokio::time::Instant;

use super::{CodeChoice, CreateError, CreateOptions, Creator, DEADLINE, batch::Outcome};

/// Maximum number of links in doubt that are looked for at a time.
const AT_ONCE: usize = 64;

/// What became of a link of a batch.
#[derive(Debug)]
pub enum Together<L = (Draft, CreateOptions), E = CreateError> {
    /// The link was created, or none can be.
    Ended(Result<Record, E>),
    /// Nothing of the link is stored. It has to be created by itself.
    Left(L),
}

/// A link of a batch, apart from what the store is given.
struct Waiting<'a> {
    place: usize,
    options: CreateOptions,
    number: Option<Number<'a>>,
}

/// A claimed number.
struct Number<'a> {
    minting: &'a Minting,
    claim: Claim,
    minted: Minted,
}

/// What became of a link in the store: its id, creation time and version, if it is stored.
type Inserted = Result<Option<(LinkId, Timestamp, u64)>, Outcome>;

impl Creator {
    /// Creates at most [`store::BATCH_MAX`] links of one API key, and returns what became of each
    /// in the order of `wanted`. Only links with minted codes and with custom slugs are created,
    /// and without deduplication; the others are handed back.
    ///
    /// Await the call to its end, as that of [`create`](Self::create).
    pub async fn create_together(&self, wanted: Vec<(Draft, CreateOptions)>) -> Vec<Together> {
        let Ok(_slot) = self.slots.try_acquire() else {
            return wanted.iter().map(|_| Together::Ended(Err(CreateError::Unavailable))).collect();
        };
        let _under_way = self.tasks.token();
        let deadline = Instant::now() + DEADLINE;
        let mut ends: Vec<Option<Together>> = wanted.iter().map(|_| None).collect();
        let (mut links, mut waiting) = (Vec::new(), Vec::new());
        let mut history = None;
        for (place, (draft, mut options)) in wanted.into_iter().enumerate() {
            match self.make_ready(draft, &mut options, &mut history, deadline).await {
                Ok((link, number)) => {
                    links.push(link);
                    waiting.push(Waiting { place, options, number });
                }
                Err(draft) => ends[place] = Some(Together::Left((*draft, options))),
            }
        }
        for (place, end) in self.insert_all(links, waiting, history, deadline).await {
            ends[place] = Some(end);
        }
        ends.into_iter().flatten().collect()
    }

    /// Makes a link ready for the batch, and moves its tags there. Gives the draft back if the link
    /// cannot be in the batch. `history` is that of the batch's numbers, once it has one.
    async fn make_ready<'a>(
        &'a self,
        draft: Draft,
        options: &mut CreateOptions,
        history: &mut Option<Arc<StoreEpoch>>,
        deadline: Instant,
    ) -> Result<(BatchLink, Option<Number<'a>>), Box<Draft>> {
        if options.idempotency.is_some() || self.config.store.open_bucket().is_some() {
            return Err(Box::new(draft));
        }
        if let CodeChoice::CustomSlug(slug) = &options.code {
            let Ok(mark) = getrandom::u32() else { return Err(Box::new(draft)) };
            let link = self.with_slug(slug.clone(), draft, mark);
            return Ok((BatchLink::Custom(link, std::mem::take(&mut options.tags)), None));
        }
        let Some(minting) = self.minting_for(&options.code) else { return Err(Box::new(draft)) };
        let Ok((claim, minted)) = self.claim(minting, deadline).await else { return Err(Box::new(draft)) };
        if *history.get_or_insert_with(|| Arc::clone(&claim.history)) != claim.history {
            self.settle(minting, claim, Fate::Unused);
            return Err(Box::new(draft));
        }
        let new = NewLink { id: minted.id, draft };
        let link = FullLink { new, code: minted.code.to_string() };
        let tags = std::mem::take(&mut options.tags);
        Ok((BatchLink::Minted(link, tags), Some(Number { minting, claim, minted })))
    }

    async fn insert_all(
        &self,
        links: Vec<BatchLink>,
        waiting: Vec<Waiting<'_>>,
        history: Option<Arc<StoreEpoch>>,
        deadline: Instant,
    ) -> Vec<(usize, Together)> {
        let Some(by) = links.first().map(|link| link.draft().created_by) else { return Vec::new() };
        let Ok(turn) = self.config.turns.take(by).await else {
            let late = |Waiting { place, number, .. }| {
                self.give_back(number);
                (place, Together::Ended(Err(CreateError::PermitTimeout)))
            };
            return waiting.into_iter().map(late).collect();
        };
        self.config.metrics.insert_batches.increment(1);
        let links = Arc::new(links);
        let inserted = self.config.store.insert_together(history.as_deref(), &links).await;
        drop(turn);
        let outcomes: Vec<Inserted> = match inserted {
            Ok(stored) => stored.into_iter().map(Ok).collect(),
            Err(error) => {
                let count = links.len();
                tracing::warn!(error = &error as &dyn std::error::Error, count, "insert links together");
                links.iter().map(|_| Err(Outcome::from(&error))).collect()
            }
        };
        // The store's copy is gone, unless the insert is still under way somewhere.
        let links = Arc::unwrap_or_clone(links);
        let mut inserted = waiting.into_iter().zip(links).zip(outcomes);
        let mut ends = Vec::new();
        loop {
            let some: Vec<_> = inserted.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return ends;
            }
            let some =
                some.into_iter().map(|((waiting, link), outcome)| self.end(waiting, link, outcome, deadline));
            ends.extend(join_all(some).await);
        }
    }

    async fn end(
        &self,
        Waiting { place, options, number }: Waiting<'_>,
        link: BatchLink,
        outcome: Inserted,
        deadline: Instant,
    ) -> (usize, Together) {
        let end = match link {
            BatchLink::Minted(FullLink { new, .. }, tags) => {
                let options = CreateOptions { tags, ..options };
                self.end_minted(number, new.draft, options, outcome, deadline).await
            }
            BatchLink::Custom(link, tags) => {
                let mark = link.draft.details().mark.unwrap_or_default();
                let stored = match outcome {
                    Ok(Some(stored)) => Ok(stored),
                    Err(Outcome::Unknown) if Instant::now() >= deadline => Err(CreateError::NoStore),
                    Err(Outcome::Unknown) => self.find_in_doubt(&link, mark).await,
                    Ok(None) | Err(_) => {
                        return (place, Together::Left((link.draft, CreateOptions { tags, ..options })));
                    }
                };
                let created = match stored {
                    Ok(stored) => Ok(Record { link: self.created_with_slug(link, stored).await, tags }),
                    Err(error) => Err(error),
                };
                Together::Ended(created)
            }
        };
        (place, end)
    }

    async fn end_minted(
        &self,
        number: Option<Number<'_>>,
        draft: Draft,
        options: CreateOptions,
        outcome: Inserted,
        deadline: Instant,
    ) -> Together {
        let outcome = match outcome {
            Ok(Some((_, at, _))) => Outcome::Stored(at),
            Err(outcome @ (Outcome::AnotherHistory | Outcome::Unknown)) => outcome,
            Ok(None) | Err(_) => {
                self.give_back(number);
                return Together::Left((draft, options));
            }
        };
        let Some(Number { minting, claim, minted }) = number else {
            return Together::Left((draft, options));
        };
        match self.conclude(minting, claim, &minted, &draft, outcome, deadline).await {
            Some(Ok(at)) => {
                let link = self.created(minted, draft, at).link;
                Together::Ended(Ok(Record { link, tags: options.tags }))
            }
            Some(Err(error)) => Together::Ended(Err(error)),
            None => Together::Left((draft, options)),
        }
    }

    /// Gives back the number of a link that is surely not stored.
    fn give_back(&self, number: Option<Number<'_>>) {
        if let Some(Number { minting, claim, .. }) = number {
            self.settle(minting, claim, Fate::Unused);
        }
    }
}
