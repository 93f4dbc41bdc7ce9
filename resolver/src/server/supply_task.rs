//! The supply of numbers as a task of the daemon.

use daemon::TaskSupervisor;
use supply::{Closing, Supplier, SupplierConfig};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The task of the supplier, with its handles.
pub(super) struct Supply {
    stop: CancellationToken,
    pub(super) closing: Closing,
    task: JoinHandle<()>,
}

impl Supply {
    pub(super) fn start(config: SupplierConfig, supervisor: &TaskSupervisor) -> Self {
        let stop = CancellationToken::new();
        let supplier = Supplier::new(config);
        let closing = supplier.closing();
        Self { task: supervisor.spawn("supplier", supplier.run(stop.clone())), stop, closing }
    }

    /// Stops the supplier, which returns the unused numbers within its own time limit.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the supplier failed: its numbers are leaked");
        }
    }
}
