//! The task that serves the links API over gRPC.

use std::{sync::Arc, time::Duration};

use api::{Api, grpc};
use daemon::TaskSupervisor;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// The server of the links API over gRPC.
pub(super) struct GrpcTask {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl GrpcTask {
    /// Starts to serve, if there is a listener for it and this node answers the API.
    pub(super) fn start(
        listener: Option<TcpListener>,
        api: Option<&Arc<Api>>,
        supervisor: &TaskSupervisor,
    ) -> Self {
        let stop = CancellationToken::new();
        let serve = |(listener, api): (TcpListener, &Arc<Api>)| {
            let serving = grpc::serve(listener, Arc::clone(api), stop.clone());
            // A failure of the links API ends the process, like that of every other supervised
            // task.
            supervisor.spawn("links API", async move {
                let served = serving.await;
                let served = served.inspect_err(|error| {
                    tracing::error!(error = error as &dyn std::error::Error, "serve the links API");
                });
                served.expect("a failure has to end this process");
            })
        };
        Self { task: listener.zip(api).map(serve), stop }
    }

    /// Stops the server after the same delay as the public listener.
    pub(super) async fn stop(self, delay: Duration) {
        sleep(delay).await;
        self.stop.cancel();
        if let Some(task) = self.task {
            let _ = task.await;
        }
    }
}
