//! The supply of numbers as a task of the daemon.

use daemon::TaskSupervisor;
use supply::{Closing, StopReason, Supplier, SupplierConfig};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// The task of the supplier, with its handles.
pub(super) struct Supply {
    stop: CancellationToken,
    lost: watch::Receiver<Option<StopReason>>,
    pub(super) closing: Closing,
    task: JoinHandle<()>,
}

impl Supply {
    pub(super) fn start(config: SupplierConfig, supervisor: &TaskSupervisor) -> Self {
        let stop = CancellationToken::new();
        let supplier = Supplier::new(config);
        let (lost, closing) = (supplier.lost(), supplier.closing());
        Self { task: supervisor.spawn("supplier", supplier.run(stop.clone())), stop, lost, closing }
    }

    /// Waits until this process may mint no more, and returns the reason.
    pub(super) async fn lost(&self) -> StopReason {
        let mut lost = self.lost.clone();
        match lost.wait_for(Option::is_some).await.map(|lost| lost.clone()) {
            Ok(Some(lost)) => lost,
            // The supplier's task has ended, and its failure ends the process on another path.
            _ => std::future::pending().await,
        }
    }

    /// Stops the supplier, which returns the unused numbers within its own time limit.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the supplier failed: its numbers are leaked");
        }
    }
}
