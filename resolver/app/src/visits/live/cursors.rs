//! Which of the rows that were read are new.
//!
//! 1. Ids grow with the time of a visit, and visits are stored some time after it, by several
//!    processes. So each read begins [`OVERLAP`] before the latest visit that was seen. Visits that
//!    are stored later than others by more than that are left out.
//! 2. The ids of one slot and thread are stored in increasing order. So the last one that was seen
//!    tells exactly which of the others were seen.
//! 3. If a read reaches its limit, what lies before its first row is given up.

use std::collections::HashMap;

use visits::{Slot, Thread, VisitId, VisitRow};

/// In microseconds.
const OVERLAP: i64 = 5_000_000;

/// Ids seen of each slot and thread.
pub(super) struct Cursors {
    /// The last id that was seen. There are no more of them than slots and threads.
    by_thread: HashMap<(Slot, Thread), VisitId>,
    /// The time of the latest visit, in microseconds since 1970.
    latest: i64,
    /// Rows with lower ids are given up.
    given_up: VisitId,
}

impl Cursors {
    pub(super) fn after_rows(rows: &[VisitRow], now: i64) -> Self {
        let latest = if rows.is_empty() { now } else { i64::MIN };
        let mut cursors = Self { by_thread: HashMap::new(), latest, given_up: VisitId::floor(0) };
        for row in rows {
            cursors.advance(row.id);
        }
        cursors
    }

    /// Returns the id after which to read. A producer whose clock is ahead does not hide the
    /// others.
    pub(super) fn next(&self, now: i64) -> VisitId {
        VisitId::floor(self.latest.min(now).saturating_sub(OVERLAP)).max(self.given_up)
    }

    /// Returns those of the rows that are new, in the order of their ids. `most` is the limit of
    /// the read.
    pub(super) fn new_rows(&mut self, mut rows: Vec<VisitRow>, most: usize) -> Vec<VisitRow> {
        let is_cut = rows.len() >= most;
        rows.sort_unstable_by_key(|row| row.id);
        if let Some(first) = rows.first().filter(|_| is_cut) {
            self.given_up = first.id;
        }
        rows.retain(|row| self.advance(row.id));
        rows
    }

    /// Notes an id, and returns whether it is new.
    fn advance(&mut self, id: VisitId) -> bool {
        let seen = self.by_thread.entry((id.slot(), id.thread())).or_insert(VisitId::from_stored(i64::MIN));
        let is_new = id > *seen;
        if is_new {
            *seen = id;
            self.latest = self.latest.max(id.micros());
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::poller::tests::row, *};
    use crate::visits::visit_memory::START;

    const MOST: usize = 100;

    fn ids(rows: &[VisitRow]) -> Vec<VisitId> {
        rows.iter().map(|row| row.id).collect()
    }

    fn at(micros: i64, slot: u8, thread: usize) -> VisitId {
        VisitId::new(START + micros, Slot::new(slot).unwrap(), Thread::of(thread))
    }

    #[test]
    fn a_visit_that_is_stored_after_later_ones_is_new_once() {
        let mut cursors = Cursors::after_rows(&[row(at(0, 0, 0))], START);
        let (first, late) = (at(2_000_000, 0, 0), at(1_000_000, 1, 0));
        assert_eq!(ids(&cursors.new_rows(vec![row(first)], MOST)), [first]);
        assert!(cursors.next(START + 3_000_000) < late, "the next read reaches back to it");
        assert_eq!(ids(&cursors.new_rows(vec![row(first), row(late)], MOST)), [late]);
        assert_eq!(ids(&cursors.new_rows(vec![row(first), row(late)], MOST)), []);
    }

    #[test]
    fn rows_that_there_were_at_first_are_not_new_and_those_before_a_cut_are_given_up() {
        let mut cursors = Cursors::after_rows(&[row(at(5, 0, 0)), row(at(7, 0, 1))], START);
        let all = [at(4, 0, 0), at(5, 0, 0), at(6, 0, 0), at(7, 0, 1), at(8, 0, 1)];
        let rows: Vec<VisitRow> = all.into_iter().rev().map(row).collect();
        assert_eq!(ids(&cursors.new_rows(rows, 5)), [all[2], all[4]]);
        assert_eq!(cursors.next(START), all[0], "the read was cut off there");
        assert!(cursors.next(START) > VisitId::floor(START - OVERLAP));
    }

    #[test]
    fn a_clock_that_is_ahead_hides_no_other_producer() {
        let mut cursors = Cursors::after_rows(&[], START);
        cursors.new_rows(vec![row(at(3_600_000_000, 0, 0))], MOST);
        assert_eq!(cursors.next(START + 1), VisitId::floor(START + 1 - OVERLAP));
        let empty = Cursors::after_rows(&[], START);
        assert_eq!(empty.next(START + OVERLAP), VisitId::floor(START - OVERLAP));
    }

    proptest! {
        /// Producers store their visits in order, each up to four seconds late, while reads go on
        /// once a second: each visit is new exactly once.
        #[test]
        fn every_visit_is_new_exactly_once(
            delays in prop::collection::vec((0_u8..4, 0_usize..3, 0..4_000_000_i64), 1..120),
        ) {
            let mut stored: HashMap<(u8, usize), i64> = HashMap::new();
            let mut all = Vec::new();
            for (place, (slot, thread, delay)) in (0_i64..).zip(delays) {
                let micros = place * 100_000;
                let time = stored.entry((slot, thread)).or_insert(i64::MIN);
                *time = (micros + delay).max(*time);
                all.push((at(micros, slot, thread), *time));
            }
            let mut cursors = Cursors::after_rows(&[], START);
            let mut new = Vec::new();
            for second in 1..30 {
                let now = second * 1_000_000;
                let after = cursors.next(START + now);
                let read = all.iter().filter(|(id, stored)| *stored <= now && *id > after);
                new.extend(ids(&cursors.new_rows(read.map(|(id, _)| row(*id)).collect(), usize::MAX)));
            }
            new.sort_unstable();
            let mut expected: Vec<VisitId> = all.into_iter().map(|(id, _)| id).collect();
            expected.sort_unstable();
            prop_assert_eq!(new, expected);
        }
    }
}
