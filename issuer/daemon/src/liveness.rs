//! Liveness of threads: whether each still does its work, or is stuck.
//!
//! A thread that serves connections beats once a second from a task of its own runtime. One that
//! computes without end, or waits for a lock for ever, stops to beat, and `/livez` tells. Nothing a
//! server elsewhere does can stop a beat: a restart would not mend that. `/livez` also tells of a
//! supervised task that has failed, should the process not end by itself.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

const EVERY: Duration = Duration::from_secs(1);
/// A thread without a beat for this long is stuck. A machine with too much to do delays beats too.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// The threads of a process that have to beat; cheap to clone.
#[derive(Clone, Debug)]
pub struct Liveness {
    since: Instant,
    threads: Arc<Mutex<Vec<Thread>>>,
    failed: Arc<Mutex<Vec<&'static str>>>,
}

/// The name of a thread, and its last beat.
type Thread = (String, Weak<AtomicU64>);

/// The beats of a thread. Dropped when the thread ends as it should.
pub struct Beats {
    since: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { since: Instant::now(), threads: Arc::default(), failed: Arc::default() }
    }
}

impl Liveness {
    /// Adds a thread.
    #[must_use]
    pub fn add(&self, name: String) -> Beats {
        let beats = Beats { since: self.since, last_ms: Arc::default() };
        beats.beat();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push((name, Arc::downgrade(&beats.last_ms)));
        beats
    }

    /// Notes that a supervised task has failed.
    pub(crate) fn fail(&self, task: &'static str) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Returns the names of the threads that are stuck, and of supervised tasks that failed.
    pub fn stuck(&self) -> Vec<String> {
        let now = millis(self.since.elapsed());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|(_, last)| last.strong_count() > 0);
        let is_stuck = |last: &Weak<AtomicU64>| {
            let last = last.upgrade().map_or(now, |last| last.load(Ordering::Relaxed));
            now.saturating_sub(last) > millis(STUCK_AFTER)
        };
        let stuck = threads.iter().filter(|(_, last)| is_stuck(last)).map(|(name, _)| name.clone());
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        stuck.chain(failed.iter().map(|name| (*name).to_owned())).collect()
    }
}

impl Beats {
    /// Beats until it is dropped. Has to run as a task of the thread.
    pub async fn run(self) {
        loop {
            self.beat();
            sleep(EVERY).await;
        }
    }

    fn beat(&self) {
        self.last_ms.store(millis(self.since.elapsed()), Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_stops_to_beat_is_stuck_and_one_that_has_ended_is_not() {
        let liveness = Liveness::default();
        let beating = tokio::spawn(liveness.add("beating".to_owned()).run());
        let (still, ended) = (liveness.add("still".to_owned()), liveness.add("ended".to_owned()));
        drop(ended);
        advance(STUCK_AFTER).await;
        assert!(liveness.stuck().is_empty());
        sleep(EVERY * 2).await;
        assert_eq!(liveness.stuck(), ["still"]);
        still.beat();
        assert!(liveness.stuck().is_empty());
        beating.abort();
    }
}
