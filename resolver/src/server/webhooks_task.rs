//! The delivery of events to webhooks as a task of the daemon.

use app::webhooks::Dispatcher;
use daemon::TaskSupervisor;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The task of the dispatcher.
pub(super) struct WebhooksTask {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl WebhooksTask {
    pub(super) fn start(dispatcher: Dispatcher, supervisor: &TaskSupervisor) -> Self {
        let stop = CancellationToken::new();
        let task = supervisor.spawn("sender of webhooks", dispatcher.run(stop.clone()));
        Self { stop, task }
    }

    /// Stops the dispatcher, which waits for attempts under way within its own time limit.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // A failure ends the process on another path.
        let _ = self.task.await;
    }
}
