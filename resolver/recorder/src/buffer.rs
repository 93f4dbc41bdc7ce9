//! The buffer of one listener's thread.

use std::sync::{
    Arc, Mutex, MutexGuard,
    mpsc::{SyncSender, TrySendError},
};

use visits::{Arena, Event, Outcome, Thread};

use super::spooler::{Job, Spooler};
use lookup::metrics::Metrics;

/// The buffer into which a listener's thread records visits. Its lock is never contended, unless
/// there are more threads than [`Thread::COUNT`], which then share buffers.
pub struct VisitBuffer {
    thread: Thread,
    /// Whether this thread itself writes its visits, before the answers of each turn leave.
    writes_each_turn: bool,
    jobs: SyncSender<Job>,
    spooler: Arc<Spooler>,
    metrics: Arc<Metrics>,
    noted: Mutex<Noted>,
}

struct Noted {
    /// `None` after visits were handed over and no arena was spare.
    arena: Option<Arena>,
    /// The time of the last visit, in microseconds since 1970.
    last: i64,
    counts: Counts,
}

/// Counts since the last flush. A counter that all threads write costs each of them more than
/// everything else that is recorded.
#[derive(Default)]
struct Counts {
    redirects: u64,
    visits: u64,
    orphan_visits: u64,
    dropped: u64,
}

impl Noted {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> bool {
        let Some(at) = self.arena.as_mut().and_then(|arena| arena.push(event, self.last)) else {
            return false;
        };
        self.last = at;
        true
    }

    fn has_visits(&self) -> bool {
        self.arena.as_ref().is_some_and(|arena| arena.count() > 0)
    }
}

impl VisitBuffer {
    pub(super) fn new(
        thread: Thread,
        writes_each_turn: bool,
        jobs: SyncSender<Job>,
        spooler: Arc<Spooler>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let noted = Noted { arena: spooler.pool.take(), last: 0, counts: Counts::default() };
        Self { thread, writes_each_turn, jobs, spooler, metrics, noted: Mutex::new(noted) }
    }

    /// Records a visit, and counts the redirect if it is one. A visit in the same microsecond as
    /// the last one is recorded one microsecond later.
    #[inline]
    pub fn note(&self, event: &Event<'_>) {
        let noted = &mut *self.noted();
        let is_redirect = event.outcome == Outcome::Redirected;
        noted.counts.redirects += u64::from(is_redirect);
        let is_recorded = noted.push(event) || self.push_to_next(noted, event);
        match (is_recorded, event.outcome.is_of_link()) {
            (true, true) => noted.counts.visits += 1,
            (true, false) => noted.counts.orphan_visits += 1,
            (false, _) => noted.counts.dropped += 1,
        }
    }

    /// Counts a redirect that is no visit, or one that is not recorded.
    pub fn note_redirect(&self) {
        self.noted().counts.redirects += 1;
    }

    /// Writes the visits noted so far, if this thread writes its own ([`Flush::Turn`]). Called
    /// before the answers of a turn leave.
    ///
    /// [`Flush::Turn`]: super::Flush::Turn
    #[inline]
    pub fn commit(&self) {
        if self.writes_each_turn {
            let noted = &mut *self.noted();
            if noted.has_visits() {
                self.move_on(noted);
            }
        }
    }

    /// Hands over or writes the visits noted so far, and publishes the counts.
    pub fn flush(&self) {
        let noted = &mut *self.noted();
        if noted.has_visits() {
            self.move_on(noted);
        }
        let Counts { redirects, visits, orphan_visits, dropped } = std::mem::take(&mut noted.counts);
        self.metrics.redirects.increment(redirects);
        self.metrics.visits.increment(visits);
        self.metrics.orphan_visits.increment(orphan_visits);
        self.metrics.visits_dropped.increment(dropped);
    }

    #[cold]
    #[inline(never)]
    fn push_to_next(&self, noted: &mut Noted, event: &Event<'_>) -> bool {
        self.move_on(noted);
        noted.push(event)
    }

    /// Hands over or writes the visits of the arena, and puts an empty one in its place, if one is
    /// spare.
    fn move_on(&self, noted: &mut Noted) {
        let Some(mut arena) = noted.arena.take() else {
            noted.arena = self.spooler.pool.take();
            return;
        };
        if self.writes_each_turn {
            self.spooler.write(self.thread, &mut arena);
            noted.arena = Some(arena);
            return;
        }
        match self.jobs.try_send(Job::Write(self.thread, arena)) {
            Ok(()) => noted.arena = self.spooler.pool.take(),
            // The spool's thread has ended. The channel is never full: it has room for all arenas.
            Err(TrySendError::Disconnected(job) | TrySendError::Full(job)) => {
                if let Job::Write(_, mut arena) = job {
                    noted.counts.dropped += u64::from(arena.count());
                    arena.clear();
                    noted.arena = Some(arena);
                }
            }
        }
    }

    #[inline]
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("no code panics while it holds this lock")
    }
}
