//! Imports of single visits that another system has recorded.
//!
//! 1. A source of visits is a producer, as a spool is: its position is the number of items that
//!    were taken of it, and moves in the transaction that stores them. So an import that was killed
//!    goes on where it stopped, and a repeated one stores nothing twice.
//! 2. Batches are made by the code that makes those of spools, and respect the same changes. No
//!    webhook is told of them.
//! 3. The id of an imported visit follows from its time, its link and its place in the source. So
//!    where rows are in a database of their own, they are stored before their batch: an import that
//!    goes on stores them again under the same ids. A spool cannot, since its batches get ids of
//!    the slot that it has at the time.
//! 4. Visits of days whose rows are not kept any more count, and get no row.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use codes::LinkId;
use geoip::GeoIp;
use jiff::Timestamp;
use links::DomainId;
use tokio::time::sleep;
use visit_store::{Batch, Producer, RowsRecord, SpoolId, Standing, VisitStore, VisitStoreError, WriteError};
use visits::{AddressMode, DAY, Day, Event, Outcome, PlaceText, Slot, TextKey, Thread, VisitId};

use crate::{
    batch::{BatchMaker, Context},
    enrich::{Enricher, Imported, Options},
    known_texts::KnownTexts,
};

/// The name of the holder of imports.
const HOLDER: &str = "import of visits";
/// Maximum number of visits in a batch, so that all their texts are new within one minute.
pub const BATCH: usize = 1_000;
/// The first day that ids can have: 2020-01-01.
const FIRST: Day = Day::from_stored(18_262);
const SECOND: i64 = 1_000_000;
const MILLISECOND: i64 = 1_000;
/// The maximum number of tries for a batch.
const TRIES: u32 = 5;
/// Pause before the next try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A visit as another system has recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedVisit {
    /// Its position in the source.
    pub place: u64,
    /// The link.
    pub link: LinkId,
    /// The domain of the link.
    pub domain: DomainId,
    /// When it was.
    pub at: Timestamp,
    /// The user agent; empty if absent.
    pub user_agent: String,
    /// The referrer; empty if absent.
    pub referrer: String,
    /// The place; empty if unknown.
    pub location: PlaceText,
    /// Whether a bot made it; `None` if the other system does not tell.
    pub is_bot: Option<bool>,
}

impl ImportedVisit {
    /// Returns its time in microseconds since 1970. Most systems tell whole seconds, or
    /// milliseconds: within one, visits keep their order, and those of other links seldom have the
    /// same microsecond.
    fn micros(&self) -> i64 {
        let at = self.at.as_microsecond();
        let Some(unit) = [SECOND, MILLISECOND].into_iter().find(|unit| at % unit == 0) else { return at };
        let spread = (self.hash() >> 40).wrapping_add(self.place) % unit.unsigned_abs();
        at.saturating_add_unsigned(spread)
    }

    fn thread(&self) -> Thread {
        Thread::of(usize::try_from(self.hash() & 0xffff).unwrap_or(0))
    }

    fn hash(&self) -> u64 {
        self.link.get().cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn event(&self) -> Event<'_> {
        let event = Event {
            at: self.micros(),
            outcome: Outcome::Redirected,
            link: Some(self.link),
            domain: self.domain,
            rule: 0,
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            country: None,
            is_opted_out: false,
            user_agent: self.user_agent.as_bytes(),
            referrer: self.referrer.as_bytes(),
            languages: b"",
            request: b"",
            target: b"",
        };
        event.cut()
    }
}

/// What came of the visits of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Visits that are stored.
    pub stored: u64,
    /// Those of them that count without a row.
    pub unlisted: u64,
    /// Visits that are not: the place of each, and why.
    pub refused: Vec<(u64, &'static str)>,
}

/// An import under way.
pub struct VisitImport {
    store: Arc<dyn VisitStore>,
    enricher: Enricher,
    texts: TextKey,
    cuts: HashMap<Option<LinkId>, VisitId>,
    /// The version of the changes that the next batch respects; below zero if they are not known.
    version: i64,
    counts_from: Option<Day>,
    now: i64,
}

impl VisitImport {
    /// Prepares an import at a time of the database's clock. Of visitors of `untracked` domains
    /// nothing but counts is kept.
    pub async fn begin(
        store: Arc<dyn VisitStore>,
        untracked: HashSet<DomainId>,
        now: Timestamp,
    ) -> Result<Self, VisitStoreError> {
        let (texts, addresses) = store.secrets().await?;
        let now = now.as_microsecond();
        let rows_from = store.rows_from().await?.map_or(FIRST, |from| from.max(FIRST));
        let keep_days = Day::of(now).get().saturating_sub(rows_from.get()).saturating_add(1);
        let options = Options { addresses: AddressMode::None, keep_days };
        let mut enricher = Enricher::new(options, GeoIp::default(), addresses);
        enricher.untracked = untracked;
        let counts_from = store.counts_from().await?;
        Ok(Self { store, enricher, texts, cuts: HashMap::new(), version: -1, counts_from, now })
    }

    /// Opens a source, whose position tells how many of its items were taken already. An import of
    /// the same source that is still under way stores nothing more.
    pub async fn open(&self, source: SpoolId) -> Result<Producer, VisitStoreError> {
        self.store.register(source, HOLDER).await
    }

    /// Closes a source. Its position stays.
    pub async fn close(&self, producer: &Producer) -> Result<(), VisitStoreError> {
        self.store.release(producer).await
    }

    /// Stores visits of a source, at most [`BATCH`], and moves its position to `to`.
    pub async fn take(
        &mut self,
        producer: &mut Producer,
        visits: &[ImportedVisit],
        to: u64,
    ) -> Result<Taken, WriteError> {
        let mut tries = 0;
        loop {
            let (batch, taken) = self.make(producer, visits, to).await.map_err(WriteError::Failed)?;
            let stored = self.store(producer, &batch).await;
            if matches!(stored, Err(WriteError::Outdated)) {
                self.version = -1;
                continue;
            }
            // An earlier try may have been stored after all.
            if stored.is_ok() || self.is_at(producer, to).await {
                producer.position = to;
                return Ok(taken);
            }
            tries += 1;
            if let Err(error) = stored
                && (tries == TRIES || matches!(error, WriteError::Fenced))
            {
                return Err(error);
            }
            sleep(RETRY_AFTER).await;
        }
    }

    /// Returns whether a position is stored.
    async fn is_at(&self, producer: &Producer, to: u64) -> bool {
        matches!(self.store.standing(producer).await, Ok(Standing::At(position)) if position == to)
    }

    async fn make(
        &mut self,
        producer: &Producer,
        visits: &[ImportedVisit],
        to: u64,
    ) -> Result<(Batch, Taken), VisitStoreError> {
        if self.version < 0 {
            let changes = self.store.changes(-1).await?;
            self.cuts = changes.cuts.iter().map(|cut| (cut.link, cut.before)).collect();
            self.version = changes.version;
        }
        let links: HashSet<LinkId> = visits.iter().map(|visit| visit.link).collect();
        let links: Vec<LinkId> = links.into_iter().collect();
        let mut tags = self.store.tags_of(&links).await?;
        let (secrets, mut known) = (HashMap::new(), KnownTexts::default());
        let mut maker = BatchMaker::new(Context {
            slot: Slot::new(Slot::COUNT - 1).expect("the last slot is below their number"),
            texts: &self.texts,
            secrets: &secrets,
            cuts: &self.cuts,
            tags: &tags,
            enricher: &mut self.enricher,
            known: &mut known,
            announcer: None,
            today: Day::of(self.now),
            now: Duration::ZERO,
        });
        let mut taken = Taken::default();
        for visit in visits {
            let event = visit.event();
            let imported = Imported { place: &visit.location, is_bot: visit.is_bot };
            let refused = refusal(event.at, self.now, self.counts_from);
            let deleted = || (!maker.add_imported(&event, imported, visit.thread())).then_some(DELETED);
            match refused.or_else(deleted) {
                Some(reason) => taken.refused.push((visit.place, reason)),
                None => taken.stored += 1,
            }
        }
        let batch = maker.finish(producer.position, to);
        taken.unlisted = taken.stored.saturating_sub(batch.rows.len() as u64);
        // The store compares them: links without a tag may have got one meanwhile.
        links.into_iter().for_each(|link| _ = tags.entry(link).or_default());
        Ok((Batch { tags, ..batch }, taken))
    }

    async fn store(&self, producer: &Producer, batch: &Batch) -> Result<(), WriteError> {
        if self.store.keeps_rows_apart() && !batch.rows.is_empty() {
            let record = RowsRecord { may_be_stored: true, ..RowsRecord::of(batch, self.version) };
            self.store.store_rows(&record).await.map_err(WriteError::Failed)?;
        }
        self.store.store(producer, batch, self.version).await
    }
}

const DELETED: &str = "the visits of the link up to then were deleted here";

/// Returns why a visit of a time cannot be stored.
fn refusal(at: i64, now: i64, counts_from: Option<Day>) -> Option<&'static str> {
    if at <= 0 {
        Some("its time is before 1970")
    } else if at > now.saturating_add(DAY) {
        Some("its time is in the future")
    } else if counts_from.is_some_and(|from| Day::of(at) < from) {
        Some("it is older than the counts that are kept (--limit visit-counts-days)")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "2026-11-25T12:00:00Z";

    fn visit(link: i64, place: u64, at: &str) -> ImportedVisit {
        ImportedVisit {
            place,
            link: LinkId::from_stored(link),
            domain: DomainId::DEFAULT,
            at: at.parse().unwrap(),
            user_agent: String::new(),
            referrer: String::new(),
            location: PlaceText::default(),
            is_bot: None,
        }
    }

    #[test]
    fn visits_of_a_second_have_times_of_their_own_in_it_and_the_same_ones_again() {
        let noon: Timestamp = NOON.parse().unwrap();
        let noon = noon.as_microsecond();
        let mut seen = HashSet::new();
        for link in 1..50 {
            for place in 1..50 {
                let visit = visit(link, place, NOON);
                let at = visit.event().at;
                assert!((noon..noon + SECOND).contains(&at), "{at}");
                assert!(seen.insert((at, visit.thread())), "{link} {place}");
                assert_eq!((visit.event().at, visit.thread()), (at, visit.thread()));
            }
        }
        let exact = visit(1, 1, "2026-11-25T12:00:00.000007Z");
        assert_eq!(exact.event().at, noon + 7);
        let [one, next] = [1, 2].map(|place| visit(3, place, NOON).event().at);
        assert_eq!(next, one + 1, "they keep their order");
        let in_one = [1, 2].map(|place| visit(3, place, "2026-11-25T12:00:00.007Z").event().at);
        assert!(in_one.iter().all(|at| (noon + 7_000..noon + 8_000).contains(at)), "{in_one:?}");
        assert_ne!(in_one[0], in_one[1]);
    }

    #[test]
    fn visits_that_cannot_count_are_refused() {
        let now = 20_000 * DAY;
        let from = Some(Day::from_stored(19_000));
        for (at, counts_from, part) in [
            (0, None, Some("before 1970")),
            (now + DAY, None, None),
            (now + DAY + 1, None, Some("future")),
            (1, None, None),
            (19_000 * DAY, from, None),
            (19_000 * DAY - 1, from, Some("older")),
        ] {
            let reason = refusal(at, now, counts_from);
            assert_eq!(reason.is_some(), part.is_some(), "{at}");
            assert!(reason.is_none_or(|reason| reason.contains(part.unwrap_or_default())), "{at}");
        }
    }
}
