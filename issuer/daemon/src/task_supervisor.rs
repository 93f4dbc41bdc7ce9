//! Supervision of the tasks and threads that a daemon cannot do without.
//!
//! A panic in a task ends the process, so that an external supervisor restarts it. Without that, a
//! daemon whose core task is gone would still answer probes and do nothing else.
//!
//! A thread that serves connections beats once a second from a task of its own runtime. One that
//! computes without end, or waits for a lock for ever, stops to beat, and `/livez` tells. Nothing a
//! server elsewhere does can stop a beat: a restart would not mend that. `/livez` also tells of a
//! task that has failed, should the process not end by itself.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

const EVERY: Duration = Duration::from_secs(1);
/// A thread without a beat for this long is stuck. A machine with too much to do delays beats too.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// The tasks and threads of a process that must not fail. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TaskSupervisor {
    threads: Arc<Mutex<Vec<Thread>>>,
    /// The first task that failed.
    failed: watch::Sender<Option<&'static str>>,
}

/// The name of a thread, and its last beat.
type Thread = (String, Weak<Mutex<Instant>>);

/// The beats of a thread. Dropped when the thread ends as it should.
pub struct Beats(Arc<Mutex<Instant>>);

impl TaskSupervisor {
    /// Spawns a task. A panic counts as a failure; a return does not.
    pub fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let failed = self.failed.clone();
        tokio::spawn(async move {
            let ended = tokio::spawn(task).await;
            if ended.is_err_and(|error| error.is_panic()) {
                // First of all: nothing may keep the process from ending.
                failed.send_modify(|first| *first = first.or(Some(name)));
                tracing::error!(task = name, "a task that the process cannot do without has failed");
            }
        })
    }

    /// Waits for the first failure and returns the task's name. Never returns if no task fails.
    pub async fn first_failure(&self) -> &'static str {
        let mut failed = self.failed.subscribe();
        let first = failed.wait_for(Option::is_some).await.ok().and_then(|name| *name);
        first.expect("the sender is in `self`, and a name is what was waited for")
    }

    /// Adds a thread that has to beat.
    #[must_use]
    pub fn add(&self, name: String) -> Beats {
        let beats = Beats(Arc::new(Mutex::new(Instant::now())));
        lock(&self.threads).push((name, Arc::downgrade(&beats.0)));
        beats
    }

    /// Returns the names of the threads that are stuck, and of the first task that failed.
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
        let supervisor = TaskSupervisor::default();
        let beating = tokio::spawn(supervisor.add("beating".to_owned()).run());
        let (still, ended) = (supervisor.add("still".to_owned()), supervisor.add("ended".to_owned()));
        drop(ended);
        advance(STUCK_AFTER).await;
        assert!(supervisor.stuck().is_empty());
        sleep(EVERY * 2).await;
        assert_eq!(supervisor.stuck(), ["still"]);
        still.beat();
        assert!(supervisor.stuck().is_empty());
        beating.abort();
    }

    #[tokio::test]
    async fn a_panic_is_heard_of_and_an_end_is_not() {
        let supervisor = TaskSupervisor::default();
        supervisor.spawn("well", async {}).await.unwrap();
        supervisor.spawn("ill", async { panic!("as the test wants it") }).await.unwrap();
        assert_eq!(supervisor.first_failure().await, "ill");
        assert_eq!(supervisor.stuck(), ["ill"]);
    }
}
