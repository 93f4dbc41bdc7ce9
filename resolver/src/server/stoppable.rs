//! Tasks of the daemon that end when they are told to.

use daemon::TaskSupervisor;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A task, and the token that stops it. It has a time limit of its own for what is under way.
pub(super) struct Stoppable {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stoppable {
    pub(super) fn spawn<F>(
        supervisor: &TaskSupervisor,
        name: &'static str,
        run: impl FnOnce(CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = supervisor.spawn(name, run(stop.clone()));
        Self { stop, task }
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        // The supervisor logs a failure.
        let _ = self.task.await;
    }
}
