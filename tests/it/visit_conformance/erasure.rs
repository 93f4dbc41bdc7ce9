//! Erasure of visits by their addresses.

use std::net::IpAddr;

use codes::LinkId;
use links::DomainId;
use visit_store::{
    Batch, Columns, Erasure, ErasureId, Producer, StoredText, TextRef, VisitStore, WriteError,
};
use visits::{AddressNetwork, Day, Outcome, StoredAddress, Subject, TextHash, VisitId, tally::QuarterCounts};

use super::{Visit, all_rows, always, batch, noon, register, store_batch, today, totals};

/// Addresses by the number of the visitor; visitors beyond have none.
const ADDRESSES: [&str; 7] = [
    "198.51.100.7",
    "192.0.2.77",
    "192.0.2.78",
    "192.0.2.0",
    "2001:db8:1:2::3",
    "2001:db8:1:2::4",
    "2001:db8:1::",
];

/// The beginning of the low 32 bits of stored visitors.
const FIRST: i32 = i32::MIN;

/// Returns a batch whose rows have the addresses of their visitors.
pub(crate) async fn with_addresses(store: &dyn VisitStore, producer: &Producer, visits: &[Visit]) -> Batch {
    let (key, _) = store.secrets().await.unwrap();
    let mut batch = batch(producer, visits);
    for row in &mut batch.rows {
        let visitor = usize::try_from(row.visitor - FIRST).unwrap();
        let address: Option<IpAddr> = ADDRESSES.get(visitor).map(|address| address.parse().unwrap());
        row.address = StoredAddress::new(address, |octets| key.hash(octets).get());
        if let Some(IpAddr::V6(whole)) = address.filter(|_| row.address.is_text()) {
            let month = Day::of(row.id.micros()).month();
            let at = TextRef { month, hash: TextHash::from_stored(row.address.get()) };
            batch.addresses.push(StoredText { at, text: whole.octets().to_vec() });
        }
    }
    batch.addresses.sort_unstable_by_key(|text| text.at);
    batch.addresses.dedup();
    batch
}

async fn store_all(store: &dyn VisitStore, producer: &mut Producer, visits: &[Visit]) {
    let known = store.changes(0).await.unwrap().version;
    let batch = with_addresses(store, producer, visits).await;
    store_batch(store, producer, &batch, known).await.unwrap();
    producer.position += 1;
}

/// Visits of ten visitors on two days and two domains: of two links, and of none.
pub(crate) fn visits() -> Vec<Visit> {
    let visit = |number: i64| Visit {
        domain: number % 2,
        is_bot: number % 5 == 0,
        visitor: number.unsigned_abs() % 10,
        outcome: if number % 3 == 0 { Outcome::UnknownCode } else { Outcome::Redirected },
        ..Visit::of(number % 3, noon(i32::try_from(number % 2).unwrap()) + number)
    };
    (0..300).map(visit).collect()
}

pub(crate) fn erasure(network: &str, before: i64) -> Erasure {
    Erasure { network: AddressNetwork::parse(network).unwrap(), before: VisitId::floor(before) }
}

async fn erase(store: &dyn VisitStore, network: &str, before: i64) -> u64 {
    let id = store.erase(&erasure(network, before)).await.unwrap().unwrap();
    assert!(!store.erased(id).await.unwrap().is_done);
    finish(store, id).await.0
}

/// Deletes the rows of an erasure. Returns their number and that of the steps.
pub(crate) async fn finish(store: &dyn VisitStore, id: ErasureId) -> (u64, u32) {
    let mut steps = 0;
    while let Some(deleted) = store.delete_rows().await.unwrap() {
        steps += u32::from(deleted > 0);
    }
    let erased = store.erased(id).await.unwrap();
    assert!(erased.is_done);
    (erased.deleted, steps)
}

/// Returns the visitors of all rows, in the order of their numbers.
pub(crate) async fn visitors(store: &dyn VisitStore) -> Vec<u64> {
    let mut visitors = Vec::new();
    for subject in [Subject::All(None), Subject::Orphans(None, None)] {
        let rows = store.rows(&all_rows(subject)).await.unwrap();
        visitors.extend(rows.iter().map(|row| u64::from(row.visitor.abs_diff(FIRST))));
    }
    visitors.sort_unstable();
    visitors
}

fn visitors_of<'a>(visits: impl IntoIterator<Item = &'a Visit>) -> Vec<u64> {
    let mut visitors: Vec<u64> = visits.into_iter().map(|visit| visit.visitor).collect();
    visitors.sort_unstable();
    visitors
}

/// Checks for each subject that counters say how many rows it has, of bots and of others.
pub(crate) async fn must_say_how_many_rows(store: &dyn VisitStore) {
    let domain = Some(DomainId::from_stored(1));
    let links = [1, 2].map(|link| Subject::Link(LinkId::from_stored(link)));
    let others = [
        Subject::All(None),
        Subject::All(domain),
        Subject::Orphans(None, None),
        Subject::Orphans(None, domain),
        Subject::Orphans(Some(visits::OrphanKind::InvalidShortUrl), domain),
    ];
    for subject in links.into_iter().chain(others) {
        let columns = Columns { quarters: true, ..Columns::default() };
        let (mut listed, mut listed_people) = (0, 0);
        for day in store.days(subject, always(), columns).await.unwrap() {
            let counts = QuarterCounts::from_chunks(&day.counters.quarters).unwrap().total();
            listed += counts.total - counts.unlisted;
            listed_people += counts.total - counts.unlisted - (counts.bots - counts.unlisted_bots);
        }
        let query = all_rows(subject);
        let rows = async |people_only| {
            let rows = store.count_rows(&visit_store::RowQuery { people_only, ..query }).await.unwrap();
            i64::try_from(rows).unwrap()
        };
        assert_eq!((listed, listed_people), (rows(false).await, rows(true).await), "{subject:?}");
    }
}

pub(crate) async fn erased_visits_lose_their_rows_and_stay_counted(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visits = visits();
    store_all(store, &mut producer, &visits).await;
    must_say_how_many_rows(store).await;
    let subjects = [Subject::All(None), Subject::Orphans(None, None), Subject::Link(LinkId::from_stored(1))];
    let mut before = Vec::new();
    for subject in subjects {
        before.push(totals(store, subject).await);
    }
    // An address that was cut may be the one that is erased.
    let end = noon(0) + 200;
    let is_erased = |visit: &&Visit| matches!(visit.visitor, 1 | 3) && visit.at < end;
    let (erased, left): (Vec<&Visit>, Vec<&Visit>) = visits.iter().partition(is_erased);
    assert_eq!(erase(store, "192.0.2.77", end).await, erased.len() as u64);
    assert_eq!(visitors(store).await, visitors_of(left));
    must_say_how_many_rows(store).await;
    for (subject, before) in subjects.into_iter().zip(before) {
        assert_eq!(totals(store, subject).await, before, "{subject:?}");
    }
    assert_eq!(erase(store, "192.0.2.77", end).await, 0, "for the second time");
    assert_eq!(erase(store, "203.0.113.0/24", noon(-1)).await, 0);
    assert!(erase(store, "192.0.0.0/16", noon(-1)).await > 0);
    let left = visits.iter().filter(|visit| !matches!(visit.visitor, 1..=3));
    assert_eq!(visitors(store).await, visitors_of(left));
    must_say_how_many_rows(store).await;
}

pub(crate) async fn whole_addresses_are_erased_with_their_texts(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visits = visits();
    let stored = with_addresses(store, &producer, &visits).await;
    store_all(store, &mut producer, &visits).await;
    let texts: Vec<TextRef> = stored.addresses.iter().map(|text| text.at).collect();
    assert!(texts.len() >= 2);
    let of =
        |visitors: &[u64]| visits.iter().filter(|visit| visitors.contains(&visit.visitor)).count() as u64;
    assert_eq!(erase(store, "2001:db8:1:2::3", noon(-1)).await, of(&[4, 6]));
    let kept = store.texts(&texts).await.unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|text| text.text[15] == 4), "{kept:?}");
    assert_eq!(erase(store, "2001:db8:1:2::/64", noon(-1)).await, of(&[5]));
    assert_eq!(store.texts(&texts).await.unwrap(), []);
    let left = visits.iter().filter(|visit| !(4..=6).contains(&visit.visitor));
    assert_eq!(visitors(store).await, visitors_of(left));
    must_say_how_many_rows(store).await;
}

pub(crate) async fn whole_addresses_that_visit_again_can_be_erased_again(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visit = |at: i64, visitor: u64| Visit { visitor, ..Visit::of(1, noon(1) + at) };
    let first = [visit(1, 4), visit(2, 5), visit(20, 4), visit(21, 0)];
    store_all(store, &mut producer, &first).await;
    assert_eq!(erase(store, "2001:db8:1:2::/64", noon(1) + 10).await, 2);
    assert_eq!(visitors(store).await, [0, 4]);
    // One of them comes back once its text is gone, and the resolver has stored that before.
    store_all(store, &mut producer, &[visit(30, 5)]).await;
    assert_eq!(erase(store, "2001:db8:1:2::/64", noon(1) + 40).await, 2);
    assert_eq!(visitors(store).await, [0]);
    must_say_how_many_rows(store).await;
}

pub(crate) async fn rows_of_an_erasure_go_in_steps(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visit =
        |number: i64| Visit { visitor: number.unsigned_abs() % 50 / 49, ..Visit::of(1, noon(1) + number) };
    let visits: Vec<Visit> = (0..21_000).map(visit).collect();
    for part in visits.chunks(7_000) {
        store_all(store, &mut producer, part).await;
    }
    let id = store.erase(&erasure("198.51.100.7", noon(0))).await.unwrap().unwrap();
    assert_eq!(finish(store, id).await, (21_000 / 50 * 49, 2));
    assert_eq!(visitors(store).await, vec![1; 21_000 / 50]);
    must_say_how_many_rows(store).await;
}

pub(crate) async fn batches_respect_erasures_until_their_visits_are_too_old(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let known = store.changes(0).await.unwrap();
    assert_eq!(known.erasures, []);
    let asked = erasure("2001:db8:1:2::/56", noon(0));
    let id = store.erase(&asked).await.unwrap().unwrap();
    let made_before = batch(&producer, &[Visit::of(1, noon(1))]);
    let refused = store_batch(store, &producer, &made_before, known.version).await.unwrap_err();
    assert!(matches!(refused, WriteError::Outdated), "{refused}");
    let changes = store.changes(known.version).await.unwrap();
    assert_eq!(changes.erasures, [asked]);
    assert_eq!(store.changes(changes.version).await.unwrap().erasures, []);
    store_all(store, &mut producer, &[Visit::of(1, noon(0) + 1)]).await;
    // It is kept while rows are, and until its own rows are gone.
    store.keep(today()).await.unwrap();
    finish(store, id).await;
    store.keep(today()).await.unwrap();
    assert_eq!(store.changes(0).await.unwrap().erasures, [asked]);
    store.keep(today().next()).await.unwrap();
    assert_eq!(store.changes(0).await.unwrap().erasures, []);
    assert!(store.erased(id).await.unwrap().is_done);
}
