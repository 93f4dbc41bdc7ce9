//! Batches: recorded visits turned into rows, texts and counters.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::Duration,
};

use codes::LinkId;
use visit_store::{Batch, DayDelta, LinkVisits, StoredText, TextRef};
use visits::{
    Day, DaySecret, Event, Flags, Slot, StoredAddress, Subject, SubjectKey, TextHash, TextKey, Thread, Urls,
    VisitId, VisitRow,
    tally::{Counted, Dimension, Quarter, Tally},
};

use crate::{
    announce::Announcer,
    enrich::{Derived, Enricher, Imported},
    known_texts::KnownTexts,
};

/// Inputs of a batch beside its visits.
pub struct Context<'a> {
    /// The slot of this producer.
    pub slot: Slot,
    /// The key of the hashes of texts.
    pub texts: &'a TextKey,
    /// Secrets of the days that the visits lie in; a day without one has no visitors.
    pub secrets: &'a HashMap<Day, Option<DaySecret>>,
    /// Deletions by link; `None` for orphan visits.
    pub cuts: &'a HashMap<Option<LinkId>, VisitId>,
    /// The tags that visits of a link count for.
    pub tags: &'a HashMap<LinkId, Vec<i64>>,
    /// Derives what is stored of a visit.
    pub enricher: &'a mut Enricher,
    /// The texts that the store has.
    pub known: &'a mut KnownTexts,
    /// Tells webhooks; `None` if none is called for visits.
    pub announcer: Option<Announcer<'a>>,
    /// The current day.
    pub today: Day,
    /// The time since any fixed instant.
    pub now: Duration,
}

/// A batch that is being made.
pub struct BatchMaker<'a> {
    context: Context<'a>,
    tallies: HashMap<(SubjectKey, Day), Tally>,
    links: BTreeMap<LinkId, LinkVisits>,
    rows: Vec<VisitRow>,
    addresses: BTreeMap<TextRef, [u8; 16]>,
    /// Visits that were deleted before they were stored.
    pub deleted: u64,
}

impl<'a> BatchMaker<'a> {
    /// Begins a batch.
    pub fn new(context: Context<'a>) -> Self {
        Self {
            context,
            tallies: HashMap::new(),
            links: BTreeMap::new(),
            rows: Vec::new(),
            addresses: BTreeMap::new(),
            deleted: 0,
        }
    }

    /// Adds a visit.
    pub fn add(&mut self, event: &Event<'_>, thread: Thread) {
        let Some(id) = self.id_of(event, thread) else { return };
        let context = &mut self.context;
        let secret = context.secrets.get(&Day::of(event.at)).and_then(Option::as_ref);
        let derived = context.enricher.derive(event, secret, context.today);
        self.put(event, id, &derived);
    }

    /// Adds a visit that another system has recorded. Returns false if it was deleted here.
    pub fn add_imported(&mut self, event: &Event<'_>, imported: Imported<'_>, thread: Thread) -> bool {
        let Some(id) = self.id_of(event, thread) else { return false };
        let context = &mut self.context;
        let derived = context.enricher.derive_imported(event, imported, context.texts, context.today);
        self.put(event, id, &derived);
        true
    }

    /// Returns the id of a visit, unless it was deleted before it is stored.
    fn id_of(&mut self, event: &Event<'_>, thread: Thread) -> Option<VisitId> {
        let id = VisitId::new(event.at, self.context.slot, thread);
        let is_deleted = self.context.cuts.get(&listed_under(event)).is_some_and(|before| id < *before);
        self.deleted += u64::from(is_deleted);
        (!is_deleted).then_some(id)
    }

    fn put(&mut self, event: &Event<'_>, id: VisitId, derived: &Derived) {
        let (context, listed_under) = (&mut self.context, listed_under(event));
        if let Some(announcer) = &mut context.announcer {
            let tags = listed_under.and_then(|link| context.tags.get(&link));
            announcer.add(event, listed_under, derived, tags.map_or(&[][..], Vec::as_slice));
        }
        let day = Day::of(event.at);
        self.count(event, derived, day);
        if let Some(link) = listed_under {
            let one = LinkVisits { link, total: 0, bots: 0, last: 0, imported: 0 };
            let visits = self.links.entry(link).or_insert(one);
            visits.total += 1;
            visits.bots += i64::from(derived.is_bot);
            visits.last = visits.last.max(event.at);
            visits.imported += i64::from(derived.is_imported);
        }
        if derived.is_listed {
            let row = self.row(event, id, listed_under, derived);
            if row.address.is_text()
                && let Some(IpAddr::V6(whole)) = derived.kept
            {
                let hash = TextHash::from_stored(row.address.get());
                self.addresses.insert(TextRef { month: day.month(), hash }, whole.octets());
            }
            self.rows.push(row);
        }
    }

    fn count(&mut self, event: &Event<'_>, derived: &Derived, day: Day) {
        let values = Dimension::ALL.map(|dimension| derived.value(event, dimension));
        let counted = Counted {
            quarter: Quarter::of(event.at),
            is_bot: derived.is_bot,
            is_listed: derived.is_listed,
            is_redirected: event.outcome.is_of_link(),
            visitor: derived.visitor,
            address: derived.address,
            values: values.each_ref().map(|value| &**value),
        };
        let (domain, tags) = (Some(event.domain), self.context.tags);
        if let Some(link) = event.link {
            self.tally(SubjectKey::of_link(link, event.domain), day).add(&counted);
            for tag in tags.get(&link).into_iter().flatten() {
                self.tally(Subject::Tag(*tag, None).key(), day).add(&counted);
                self.tally(Subject::Tag(*tag, domain).key(), day).add(&counted);
            }
        }
        self.tally(Subject::All(None).key(), day).add(&counted);
        self.tally(Subject::All(domain).key(), day).add(&counted);
        if let Some(kind) = event.outcome.orphan() {
            // As an orphan visit it counts in all dimensions.
            let counted = Counted { is_redirected: true, ..counted };
            for subject in [
                Subject::Orphans(None, None),
                Subject::Orphans(Some(kind), None),
                Subject::Orphans(None, domain),
                Subject::Orphans(Some(kind), domain),
            ] {
                self.tally(subject.key(), day).add(&counted);
            }
        }
    }

    fn tally(&mut self, subject: SubjectKey, day: Day) -> &mut Tally {
        self.tallies.entry((subject, day)).or_default()
    }

    /// Returns the row of a visit. Texts that are not kept are referred to as such.
    fn row(&mut self, event: &Event<'_>, id: VisitId, link: Option<LinkId>, derived: &Derived) -> VisitRow {
        let Context { texts, known, now, .. } = &mut self.context;
        let month = Day::of(event.at).month();
        let mut keep = |text: &[u8]| {
            let hash = texts.hash(text);
            let is_kept = text.is_empty() || known.keep(TextRef { month, hash }, text, *now);
            if is_kept { hash } else { TextHash::OTHER }
        };
        VisitRow {
            link,
            id,
            visitor: visitor(derived.visitor),
            user_agent: keep(event.user_agent),
            referrer: keep(event.referrer),
            urls: keep(&Urls { request: event.request, target: event.target }.join()),
            place: keep(&derived.located.text),
            address: StoredAddress::new(derived.kept, |octets| texts.hash(octets).get()),
            domain: event.domain,
            language: derived.language,
            flags: Flags::new(event.outcome, derived.is_bot),
            rule: event.rule,
        }
    }

    /// Returns the batch of the blocks from `from` to before `to`.
    pub fn finish(mut self, from: u64, to: u64) -> Batch {
        // In the order of the index on rows, and of the counters' keys.
        self.rows.sort_unstable_by_key(|row| (row.link, row.id));
        let mut days: Vec<DayDelta> = self
            .tallies
            .into_iter()
            .map(|((subject, day), tally)| DayDelta { subject, day, delta: tally.delta() })
            .collect();
        days.sort_unstable_by_key(|delta| (delta.subject, delta.day));
        Batch {
            from,
            to,
            rows: self.rows,
            texts: self.context.known.take_added(),
            addresses: self
                .addresses
                .into_iter()
                .map(|(at, octets)| StoredText { at, text: octets.into() })
                .collect(),
            days,
            links: self.links.into_values().collect(),
            tags: HashMap::new(),
            events: self.context.announcer.map(Announcer::events).unwrap_or_default(),
        }
    }
}

/// Returns the link whose visit it is; `None` for an orphan visit.
fn listed_under(event: &Event<'_>) -> Option<LinkId> {
    event.link.filter(|_| event.outcome.is_of_link())
}

/// Returns the part of a visitor's key that rows keep; 0 for none.
fn visitor(key: Option<u64>) -> i32 {
    let Some(key) = key else { return 0 };
    let [a, b, c, d, ..] = key.to_le_bytes();
    match i32::from_le_bytes([a, b, c, d]) {
        0 => 1,
        part => part,
    }
}

#[cfg(test)]
mod tests {
    use geoip::GeoIp;
    use links::DomainId;
    use serde_json::{Value, json};
    use visits::{AddressMode, AddressSecret, OrphanKind, Outcome, tally::Dimension};

    use super::*;
    use crate::{
        announce::tests::subscription,
        enrich::{self, Options},
    };

    const NOON: i64 = 1_795_608_000_000_000;

    fn event(at: i64, link: i64, outcome: Outcome, user_agent: &'static [u8]) -> Event<'static> {
        Event {
            outcome,
            link: (link != 0).then(|| LinkId::from_stored(link)),
            domain: DomainId::from_stored(4),
            country: Some(*b"DE"),
            is_opted_out: link == 9,
            user_agent,
            referrer: b"https://www.example.com/x",
            languages: b"de",
            ..enrich::tests::event(&format!("192.0.2.{}", at % 7), at)
        }
    }

    fn events() -> Vec<Event<'static>> {
        let firefox = b"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
        vec![
            event(NOON, 7, Outcome::Redirected, firefox),
            event(NOON + 1, 7, Outcome::Redirected, b"curl/8"),
            event(NOON + 2, 7, Outcome::Expired, firefox),
            event(NOON + 3, 8, Outcome::Redirected, firefox),
            event(NOON + 4, 9, Outcome::Redirected, firefox),
            event(NOON + 5, 0, Outcome::UnknownCode, firefox),
            event(NOON + 6, 0, Outcome::BaseUrl, firefox),
        ]
    }

    fn batch(cuts: &[(Option<i64>, i64)], keep_days: i32) -> (Batch, u64) {
        let (batch, deleted, _) = batch_with(cuts, keep_days, 1 << 20);
        (batch, deleted)
    }

    /// Returns a batch that tells of every group, how many visits were deleted, and the room that
    /// is left for single visits.
    fn batch_with(cuts: &[(Option<i64>, i64)], keep_days: i32, room: usize) -> (Batch, u64, usize) {
        let kinds = ["visits.recorded", "orphan-visits.recorded"].map(subscription).into();
        let base = |domain: DomainId| format!("https://d{}.test", domain.get());
        let options = Options { addresses: AddressMode::Cut, keep_days };
        let mut enricher = Enricher::new(options, GeoIp::default(), AddressSecret::new([1; 16]));
        let (mut left, day) = (room, Day::of(NOON));
        let cuts = cuts.iter().map(|(link, at)| (link.map(LinkId::from_stored), VisitId::floor(*at)));
        let context = Context {
            slot: Slot::new(3).unwrap(),
            texts: &TextKey::new([2; 16]),
            secrets: &HashMap::from([(day, Some(DaySecret::new([3; 16])))]),
            cuts: &cuts.collect(),
            tags: &HashMap::from([(LinkId::from_stored(7), vec![70])]),
            enricher: &mut enricher,
            known: &mut KnownTexts::default(),
            announcer: Announcer::new(kinds, &base, &mut left),
            today: day,
            now: Duration::ZERO,
        };
        let mut maker = BatchMaker::new(context);
        events().iter().for_each(|event| maker.add(event, Thread::of(1)));
        let deleted = maker.deleted;
        (maker.finish(5, 6), deleted, left)
    }

    fn key_of(link: i64) -> SubjectKey {
        SubjectKey::of_link(LinkId::from_stored(link), DomainId::from_stored(4))
    }

    fn tally(batch: &Batch, subject: SubjectKey) -> Tally {
        let found = batch.days.iter().find(|delta| delta.subject == subject);
        found.map_or_else(Tally::default, |found| Tally::from_chunks(&found.delta).unwrap())
    }

    #[test]
    fn without_room_for_single_visits_webhooks_are_told_of_counts() {
        let told = |room: usize| {
            let (batch, _, left) = batch_with(&[], 90, room);
            let data: Vec<Value> =
                batch.events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
            let visits: u64 = data.iter().map(|data| data["visits"].as_u64().unwrap()).sum();
            let samples: usize = data.iter().map(|data| data["sample"].as_array().unwrap().len()).sum();
            (visits, samples, left)
        };
        let (visits, samples, left) = told(1 << 20);
        assert!(samples > 1 && left < 1 << 20);
        assert_eq!(told(0), (visits, 0, 0));
        assert_eq!(told(1), (visits, 1, 0), "one that does not fit uses the room up");
    }

    #[test]
    fn webhooks_are_told_of_visits_by_link_and_of_orphan_visits_by_domain() {
        let (batch, _) = batch(&[], 90);
        let told: Vec<(Option<i64>, &[i64], Value)> = batch
            .events
            .iter()
            .map(|event| (event.link.map(LinkId::get), &event.tags[..], event.data.parse().unwrap()))
            .collect();
        let number = |data: &Value, name: &str| data[name].as_u64().unwrap();
        let count = |(link, tags, data): &(Option<i64>, &[i64], Value)| {
            (*link, tags.len(), number(data, "visits"), number(data, "bots"))
        };
        let counts: Vec<_> = told.iter().map(count).collect();
        let expected = [(None, 0, 3, 0), (Some(7), 1, 2, 1), (Some(8), 0, 1, 0), (Some(9), 0, 1, 0)];
        assert_eq!(counts, expected);
        let samples = |number: usize| told[number].2["sample"].as_array().unwrap();
        let bot = &samples(1)[1];
        assert_eq!((&bot["userAgent"], &bot["potentialBot"]), (&json!("curl/8"), &json!(true)));
        assert_eq!((&bot["visitedUrl"], &bot["type"]), (&Value::Null, &Value::Null));
        assert_eq!(samples(0)[1]["type"], "invalid_short_url");
        assert!(samples(3).is_empty(), "this visitor asked not to be tracked");
    }

    #[test]
    fn every_visit_counts_for_its_link_its_tags_its_domain_and_everything() {
        let (batch, _) = batch(&[], 90);
        let total = |subject: SubjectKey| tally(&batch, subject).quarters.total().total;
        let domain = Some(DomainId::from_stored(4));
        assert_eq!([7, 8, 9].map(|id| total(key_of(id))), [2, 1, 1]);
        assert_eq!(total(Subject::Tag(70, None).key()), 2);
        assert_eq!(total(Subject::Tag(70, domain).key()), 2);
        assert_eq!([None, domain].map(|domain| total(Subject::All(domain).key())), [4, 4]);
        let orphans = |kind, domain| total(Subject::Orphans(kind, domain).key());
        assert_eq!([orphans(None, None), orphans(None, domain)], [3, 3]);
        let kinds = OrphanKind::ALL.map(|kind| orphans(Some(kind), domain));
        assert_eq!(kinds, [1, 2, 0]);
        let outcomes = tally(&batch, key_of(7)).dimensions.sum(Dimension::Outcome);
        assert_eq!(outcomes.total, 3, "an ineffective redirect counts by its outcome");
    }

    #[test]
    fn rows_and_each_dimension_add_up_to_the_counters() {
        let (batch, _) = batch(&[], 90);
        for link in [7, 8] {
            let id = LinkId::from_stored(link);
            let tally = tally(&batch, key_of(link));
            let rows = batch.rows.iter().filter(|row| row.link == Some(id)).count();
            let counts = tally.quarters.total();
            assert_eq!(counts.total - counts.unlisted, i64::try_from(rows).unwrap(), "{link}");
            for dimension in Dimension::ALL.into_iter().filter(|it| *it != Dimension::Outcome) {
                assert_eq!(tally.dimensions.sum(dimension).total, counts.total, "{link} {dimension:?}");
            }
            let visits = batch.links.iter().find(|visits| visits.link == id).unwrap();
            assert_eq!((visits.total, visits.bots), (counts.total, counts.bots));
        }
        assert!(batch.rows.is_sorted_by_key(|row| (row.link, row.id)));
        assert!(batch.days.is_sorted_by_key(|delta| (delta.subject, delta.day)));
        assert_eq!((batch.from, batch.to), (5, 6));
    }

    #[test]
    fn who_opted_out_is_counted_and_leaves_nothing_else() {
        let (batch, _) = batch(&[], 90);
        let id = LinkId::from_stored(9);
        assert!(batch.rows.iter().all(|row| row.link != Some(id)));
        let tally = tally(&batch, key_of(9));
        let counts = tally.quarters.total();
        assert_eq!((counts.total, counts.unlisted), (1, 1));
        assert!(tally.visitors.estimate().count == 0 && tally.addresses.estimate().count == 0);
    }

    #[test]
    fn without_retention_there_are_counters_and_no_rows() {
        let (batch, _) = batch(&[], 0);
        assert!(batch.rows.is_empty() && batch.texts.is_empty());
        let counts = tally(&batch, Subject::All(None).key()).quarters.total();
        assert_eq!((counts.total, counts.unlisted), (4, 4));
    }

    #[test]
    fn deleted_visits_do_not_come_back_from_the_spool() {
        let (batch, deleted) = batch(&[(Some(7), NOON + 1), (None, NOON + 6)], 90);
        assert_eq!(deleted, 1 + 2, "one of link 7, and two orphans");
        assert_eq!(tally(&batch, key_of(7)).quarters.total().total, 1);
        assert_eq!(tally(&batch, Subject::Orphans(None, None).key()).quarters.total().total, 1);
        assert_eq!(batch.rows.iter().filter(|row| row.link.is_none()).count(), 1);
    }
}
