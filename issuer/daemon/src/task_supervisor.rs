//! Supervision of the tasks that a daemon cannot do without. A panic in one of them ends the
//! process, so that an external supervisor restarts it. Without that, a daemon whose core task is
//! gone would still answer probes and do nothing else.

use tokio::{sync::watch, task::JoinHandle};

use crate::Liveness;

/// Spawns supervised tasks, and reports the first that panics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TaskSupervisor(Liveness);

/// Receives the name of the first supervised task that panicked.
#[derive(Debug)]
pub struct Failures(watch::Receiver<Option<&'static str>>);

impl TaskSupervisor {
    /// Creates the spawner and the receiver of its failures.
    pub fn new() -> (Self, Failures) {
        Self::watched_by(Liveness::default())
    }

    /// Creates the spawner for a process whose `/livez` tells of its failures too.
    pub fn watched_by(liveness: Liveness) -> (Self, Failures) {
        let failures = Failures(liveness.failed.subscribe());
        (Self(liveness), failures)
    }

    /// Spawns a task. A panic counts as a failure; a return does not.
    pub fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let failed = self.0.failed.clone();
        tokio::spawn(async move {
            let ended = tokio::spawn(task).await;
            if ended.is_err_and(|error| error.is_panic()) {
                // First of all: nothing may keep the process from ending.
                failed.send_modify(|first| *first = first.or(Some(name)));
                tracing::error!(task = name, "a task that the process cannot do without has failed");
            }
        })
    }
}

impl Failures {
    /// Waits for the first failure and returns the task's name. Never returns if no task fails.
    pub async fn first(&mut self) -> &'static str {
        match self.0.wait_for(Option::is_some).await.ok().and_then(|name| *name) {
            Some(name) => name,
            // All senders are dropped: every task has ended without a panic.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_heard_of_and_an_end_is_not() {
        let liveness = Liveness::default();
        let (supervisor, mut failures) = TaskSupervisor::watched_by(liveness.clone());
        supervisor.spawn("well", async {}).await.unwrap();
        supervisor.spawn("ill", async { panic!("as the test wants it") }).await.unwrap();
        assert_eq!(failures.first().await, "ill");
        assert_eq!(liveness.stuck(), ["ill"]);
    }
}
