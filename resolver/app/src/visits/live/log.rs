//! The log of live visits: those of the last minute, as far as they fit.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;
use visits::VisitId;

use super::LiveEvent;

/// How long a visit stays in the log.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(60);
const ENTRIES_MAX: usize = 20_000;
/// Maximum memory of the entries, as it is estimated.
const BYTES_MAX: usize = 32 << 20;
const ENTRY_BYTES: usize = 64;

impl LiveEvent {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Visit(visit) => visit.bytes(),
            Self::Skipped(_) => ENTRY_BYTES,
        }
    }
}

/// The entries, in the order in which they were added. Each has a number, one more than the entry
/// before.
#[derive(Default)]
pub(super) struct Log {
    pub(super) first: u64,
    entries: VecDeque<(Instant, LiveEvent)>,
    bytes: usize,
}

impl Log {
    pub(super) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Adds an entry, and removes those that are too old or do not fit any more. `removed` receives
    /// these with their numbers.
    pub(super) fn push(&mut self, now: Instant, entry: LiveEvent, mut removed: impl FnMut(u64, &LiveEvent)) {
        self.bytes += entry.bytes();
        self.entries.push_back((now, entry));
        while let Some((added, entry)) = self.entries.front() {
            let fits = self.bytes <= BYTES_MAX && self.entries.len() <= ENTRIES_MAX;
            if fits && now.duration_since(*added) < KEPT_FOR {
                break;
            }
            removed(self.first, entry);
            self.bytes -= entry.bytes();
            self.first += 1;
            self.entries.pop_front();
        }
    }

    /// Returns the entries from a number on, each with its number. Numbers before the first entry
    /// stand for the first.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &LiveEvent)> {
        let passed = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let numbers = self.first.max(number)..;
        numbers.zip(self.entries.iter().skip(passed).map(|(_, entry)| entry))
    }

    /// Returns the number of the entry after a visit, and whether the log surely has all that were
    /// told after it. If the visit is not in the log, later ones by id follow it.
    pub(super) fn after(&self, id: VisitId) -> (u64, bool) {
        let ids = || {
            self.since(0).filter_map(|(number, entry)| match entry {
                LiveEvent::Visit(visit) => Some((number, visit.id)),
                LiveEvent::Skipped(_) => None,
            })
        };
        if let Some((number, _)) = ids().find(|(_, other)| *other == id) {
            return (number + 1, true);
        }
        let next = ids().find(|(_, other)| *other > id);
        (next.map_or(self.end(), |(number, _)| number), false)
    }

    pub(super) fn clear(&mut self) {
        self.first = self.end();
        self.entries.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::poller::tests::live_visit, *};

    fn visit(number: i64) -> LiveEvent {
        LiveEvent::Visit(Arc::new(live_visit(number, None)))
    }

    fn id(number: i64) -> VisitId {
        live_visit(number, None).id
    }

    fn numbers(log: &Log, since: u64) -> Vec<u64> {
        log.since(since).map(|(number, _)| number).collect()
    }

    #[test]
    fn entries_leave_with_their_age_and_keep_their_numbers() {
        let (mut log, start, mut removed) = (Log::default(), Instant::now(), Vec::new());
        for second in 0..62 {
            log.push(start + Duration::from_secs(second), visit(1), |number, _| removed.push(number));
        }
        assert_eq!((log.first, log.end(), removed), (2, 62, vec![0, 1]));
        assert_eq!((numbers(&log, 0).len(), numbers(&log, 60)), (60, vec![60, 61]));
        assert!(numbers(&log, 62).is_empty());
        log.clear();
        assert_eq!((log.first, log.end(), log.bytes), (62, 62, 0));
    }

    #[test]
    fn the_memory_of_the_log_is_bounded() {
        let (mut log, now) = (Log::default(), Instant::now());
        for _ in 0..ENTRIES_MAX + 5 {
            log.push(now, LiveEvent::Skipped(Some(1)), |_, _| ());
        }
        assert_eq!((log.first, log.entries.len()), (5, ENTRIES_MAX));
        let mut long = live_visit(1, None);
        long.view.referrer = "x".repeat(BYTES_MAX / 5).into();
        let long = Arc::new(long);
        for _ in 0..3 {
            log.push(now, LiveEvent::Visit(Arc::clone(&long)), |_, _| ());
        }
        assert!(log.bytes <= BYTES_MAX && log.entries.len() == 2, "{} bytes", log.bytes);
    }

    #[test]
    fn the_log_continues_after_a_visit_by_its_place_or_by_its_id() {
        let (mut log, now) = (Log::default(), Instant::now());
        for number in [10, 30, 20] {
            log.push(now, visit(number), |_, _| ());
        }
        assert_eq!(log.after(id(30)), (2, true));
        assert_eq!(log.after(id(20)), (3, true));
        assert_eq!(log.after(id(15)), (1, false));
        assert_eq!(log.after(id(5)), (0, false));
        assert_eq!(log.after(id(99)), (3, false));
    }
}
