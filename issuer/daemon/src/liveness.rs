//! Liveness of threads: whether each still does its work, or is stuck.
//!
//! A thread that serves connections beats once a second from a task of its own runtime. One that
//! computes without end, or waits for a lock for ever, stops to beat, and `/livez` tells. Nothing a
//! server elsewhere does can stop a beat: a restart would not mend that. `/livez` also tells of a
//! supervised task that has failed, should the process not end by itself.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

const EVERY: Duration = Duration::from_secs(1);
/// A thread without a beat for this long is stuck. A machine with too much to do delays beats too.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// The threads of a process that have to beat; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    threads: Arc<Mutex<Vec<Thread>>>,
    /// The first supervised task that failed.
    pub(crate) failed: watch::Sender<Option<&'static str>>,
}

/// The name of a thread, and its last beat.
type Thread = (String, Weak<Mutex<Instant>>);

/// The beats of a thread. Dropped when the thread ends as it should.
pub struct Beats(Arc<Mutex<Instant>>);

impl Liveness {
    /// Adds a thread.
    #[must_use]
    pub fn add(&self, name: String) -> Beats {
        let beats = Beats(Arc::new(Mutex::new(Instant::now())));
        lock(&self.threads).push((name, Arc::downgrade(&beats.0)));
        beats
    }

    /// Returns the names of the threads that are stuck, and of the supervised task that failed.
    pub fn stuck(&self) -> Vec<String> {
        let mut threads = lock(&self.threads);
        threads.retain(|(_, last)| last.strong_count() > 0);
        let is_stuck = |last: &Weak<Mutex<Instant>>| {
            last.upgrade().is_some_and(|last| lock(&last).elapsed() > STUCK_AFTER)
        };
        let stuck = threads.iter().filter(|(_, last)| is_stuck(last)).map(|(name, _)| name.clone());
        let failed = *self.failed.borrow();
        stuck.chain(failed.map(str::to_owned)).collect()
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
        *lock(&self.0) = Instant::now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
