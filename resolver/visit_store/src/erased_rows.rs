//! Rows that an erasure deletes: how they are found, and how their visits stay counted.
//!
//! The visits of an erasure move from those with a row to those without one, so that pages of lists
//! are found as before. Totals and dimensions stay, because they name no visitor; sketches of
//! visitors and addresses stay as well, because nothing can be taken out of a sketch, and it does
//! not tell whom it has counted.
//!
//! Rejected: to take the visits away from the counters. Days, browsers and countries would change
//! long after they were reported, and what the visit of an erased row counted for is no longer
//! known once its texts are gone.

use std::collections::{BTreeMap, HashMap};

use codes::LinkId;
use links::DomainId;
use store::Dialect;
use visits::{
    AddressNetwork, Day, Flags, Month, StoredAddress, Subject, SubjectKey, TextKey, VisitId,
    tally::{Quarter, QuarterCounts, Tally},
};

use crate::{DayDelta, Erasure, sql::literal};

/// Maximum number of rows deleted in one step.
pub(crate) const STEP: usize = 20_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ErasedRow {
    /// The link; `None` for an orphan visit.
    pub(crate) link: Option<LinkId>,
    pub(crate) id: VisitId,
    pub(crate) domain: DomainId,
    pub(crate) flags: Flags,
}

impl ErasedRow {
    fn subjects(&self, tags: &HashMap<LinkId, Vec<i64>>) -> Vec<SubjectKey> {
        let domains = [None, Some(self.domain)];
        let Some(link) = self.link else {
            let kind = self.flags.outcome().orphan();
            let of_domain = |domain| [Subject::Orphans(None, domain), Subject::Orphans(kind, domain)];
            let all = domains.into_iter().flat_map(of_domain).map(Subject::key);
            return all.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        };
        let tags = tags.get(&link).into_iter().flatten();
        let of_tags = tags.flat_map(|tag| domains.map(|domain| Subject::Tag(*tag, domain).key()));
        let of_all = domains.map(|domain| Subject::All(domain).key());
        of_tags.chain(of_all).chain([SubjectKey::of_link(link, self.domain)]).collect()
    }
}

/// Returns what moves the visits of deleted rows to those without a row, in the order of keys.
///
/// `cuts` are deletions by link, with the id before which they deleted: the counters of these
/// visits are gone already.
pub(crate) fn unlisted(
    rows: &[ErasedRow],
    cuts: &HashMap<Option<LinkId>, VisitId>,
    tags: &HashMap<LinkId, Vec<i64>>,
) -> Vec<DayDelta> {
    let mut days: BTreeMap<(SubjectKey, Day), QuarterCounts> = BTreeMap::new();
    for row in rows.iter().filter(|row| cuts.get(&row.link).is_none_or(|before| row.id >= *before)) {
        let day = Day::of(row.id.micros());
        let quarter = Quarter::of(row.id.micros());
        for subject in row.subjects(tags) {
            days.entry((subject, day)).or_default().unlist(quarter, row.flags.is_bot());
        }
    }
    let delta = |((subject, day), quarters): ((SubjectKey, Day), QuarterCounts)| {
        let tally = Tally { quarters, ..Tally::default() };
        DayDelta { subject, day, delta: tally.delta() }
    };
    days.into_iter().map(delta).collect()
}

/// SQL condition for rows of a month whose address belongs to a network. All of its parts are
/// numbers and bytes.
pub(crate) fn condition(network: AddressNetwork, key: &TextKey, month: Month, dialect: Dialect) -> String {
    let ranges = network.numbers(|octets| key.hash(octets).get()).into_iter();
    let mut parts: Vec<String> =
        ranges.map(|(first, last)| format!("address BETWEEN {first} AND {last}")).collect();
    if let Some(texts) = texts(network, dialect) {
        let lowest = StoredAddress::TEXTS.get();
        parts.push(format!(
            "address >= {lowest} AND EXISTS (SELECT 1 FROM visit_text
             WHERE month = {} AND hash = visit.address AND {texts})",
            month.get()
        ));
    }
    format!("({})", parts.join(" OR "))
}

/// SQL condition for the texts of whole addresses in a network; `None` for IPv4, whose addresses
/// are numbers. A user agent of 16 bytes that begins with those of the network fits as well.
pub(crate) fn texts(network: AddressNetwork, dialect: Dialect) -> Option<String> {
    let [first, last] = network.texts()?.map(|octets| literal(dialect, &octets));
    let lowest = StoredAddress::TEXTS.get();
    Some(format!("hash >= {lowest} AND octet_length(text) = 16 AND text BETWEEN {first} AND {last}"))
}

/// SQL statement that removes the texts of whole addresses in an erasure's network, except those of
/// later visits; `None` as for [`texts`].
pub(crate) fn remove_texts(erasure: &Erasure, dialect: Dialect) -> Option<String> {
    let texts = texts(erasure.network, dialect)?;
    let before = erasure.before.get();
    Some(format!(
        "DELETE FROM visit_text WHERE {texts}
         AND hash NOT IN (SELECT address FROM visit WHERE id >= {before} AND address IN
             (SELECT hash FROM visit_text WHERE {texts}))"
    ))
}

#[cfg(test)]
mod tests {
    use visits::{Outcome, Slot, Thread, tally::Counts};

    use super::*;

    const NOON: i64 = 1_795_608_000_000_000;

    fn row(link: i64, outcome: Outcome, is_bot: bool) -> ErasedRow {
        ErasedRow {
            link: (link != 0).then(|| LinkId::from_stored(link)),
            id: VisitId::new(NOON, Slot::new(1).unwrap(), Thread::of(0)),
            domain: DomainId::from_stored(4),
            flags: Flags::new(outcome, is_bot),
        }
    }

    fn moved(rows: &[ErasedRow], cuts: &[(Option<i64>, i64)]) -> Vec<(SubjectKey, Counts)> {
        let cuts = cuts.iter().map(|(link, at)| (link.map(LinkId::from_stored), VisitId::floor(*at)));
        let tags = HashMap::from([(LinkId::from_stored(7), vec![70])]);
        let deltas = unlisted(rows, &cuts.collect(), &tags);
        let counts = |delta: &DayDelta| {
            assert_eq!((delta.day, delta.delta.total, delta.delta.bots), (Day::of(NOON), 0, 0));
            (delta.subject, QuarterCounts::from_chunks(&delta.delta.quarters).unwrap().total())
        };
        deltas.iter().map(counts).collect()
    }

    #[test]
    fn erased_visits_lose_their_rows_in_every_list_and_stay_counted() {
        let domain = Some(DomainId::from_stored(4));
        let of_link = SubjectKey::of_link(LinkId::from_stored(7), DomainId::from_stored(4));
        let subjects =
            [Subject::Tag(70, None), Subject::Tag(70, domain), Subject::All(None), Subject::All(domain)];
        let expected: Vec<SubjectKey> = [of_link].into_iter().chain(subjects.map(Subject::key)).collect();
        let rows = [row(7, Outcome::Redirected, false), row(7, Outcome::Tracked, true)];
        let all = moved(&rows, &[]);
        assert_eq!(all.iter().map(|(subject, _)| *subject).collect::<Vec<_>>(), expected);
        let counts = Counts { total: 0, bots: 0, unlisted: 2, unlisted_bots: 1 };
        assert!(all.iter().all(|(_, moved)| *moved == counts), "{all:?}");
        let orphans = moved(&[row(0, Outcome::Expired, false)], &[]);
        assert_eq!(orphans.len(), 4);
        assert!(orphans.iter().all(|(subject, moved)| (subject.kind, moved.unlisted) == (3, 1)));
    }

    #[test]
    fn counters_that_a_deletion_has_taken_are_left_alone() {
        let rows = [row(7, Outcome::Redirected, false), row(0, Outcome::BaseUrl, false)];
        assert_eq!(moved(&rows, &[(Some(7), NOON + 1), (None, NOON + 1)]), []);
        assert_eq!(moved(&rows, &[(Some(7), NOON), (Some(8), NOON + 1)]).len(), 5 + 4);
    }
}
