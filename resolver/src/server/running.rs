//! The daemon while it serves, and how it stops.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::{Api, grpc};
use daemon::{Liveness, TaskSupervisor};
use issuer::embedded::Embedded;
use supply::Closing;
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    databases::Databases,
    left_visits::LeftVisits,
    parts::Assembled,
    stoppable::Stoppable,
    visits_task::{self, OpenSpool, VisitTasks},
};
use crate::{
    Error,
    config::Settings,
    http::{self, PublicService},
};

/// The deadline for creates under way when the process stops.
const FINISH_DEADLINE: Duration = Duration::from_secs(10);

/// What has to be stopped, in this order.
pub(super) struct Running {
    service: Arc<PublicService>,
    /// Lets the public listener close when it is dropped.
    listening: DropGuard,
    /// The task of the public listener.
    pub(super) public: JoinHandle<io::Result<()>>,
    /// Tells why this process has to end.
    pub(super) closing: Closing,
    /// The links API over gRPC.
    grpc: Option<Stoppable>,
    webhooks: Option<Stoppable>,
    storing: Option<VisitTasks>,
    supply: Option<Stoppable>,
    embedded: Option<Embedded>,
    databases: Databases,
}

impl Running {
    /// Starts the tasks of visits and the listeners.
    pub(super) fn start(
        settings: &Settings,
        Assembled { service, closing, supply, webhooks }: Assembled,
        (public, grpc): (Vec<std::net::TcpListener>, Option<TcpListener>),
        (databases, spool, embedded): (Databases, Option<OpenSpool>, Option<Embedded>),
        (liveness, supervisor): (Liveness, &TaskSupervisor),
    ) -> Self {
        let domains = &service.redirector.domain_cache;
        if settings.visits.is_on && settings.flags.role.serves_api() {
            visits_task::start_upkeep(supervisor, settings, &databases.visits, domains);
        }
        let storing = spool.map(|spool| VisitTasks::start(settings, spool, &databases.visits, domains));
        let stop = CancellationToken::new();
        let public = tokio::spawn(http::serve(public, Arc::clone(&service), stop.clone(), liveness));
        let listening = stop.drop_guard();
        let grpc = grpc.zip(service.api.clone());
        let grpc = grpc.map(|(listener, api)| {
            Stoppable::spawn(supervisor, "links API", |stop| serve_grpc(listener, api, stop))
        });
        Self { service, listening, public, closing, grpc, webhooks, storing, supply, embedded, databases }
    }

    /// Keeps the listeners open for `delay`, then stops everything in order. Returns the result of
    /// the public listener, and what tells of visits that are left.
    pub(super) async fn stop(self, delay: Duration) -> (Result<(), Error>, Option<LeftVisits>) {
        let grpc = async {
            sleep(delay).await;
            stop(self.grpc).await;
        };
        let drained = drain(&self.service, self.listening, self.public, delay);
        let (drained, (), ()) = tokio::join!(drained, grpc, stop(self.webhooks));
        self.service.redirector.visits.finish().await;
        let left = match self.storing {
            Some(storing) => Some(storing.finish().await),
            None => None,
        };
        stop(self.supply).await;
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
        self.databases.close().await;
        (drained, left)
    }
}

async fn stop(task: Option<Stoppable>) {
    if let Some(task) = task {
        task.stop().await;
    }
}

/// Serves the links API over gRPC. A failure ends the process, as that of every supervised task.
async fn serve_grpc(listener: TcpListener, api: Arc<Api>, stop: CancellationToken) {
    let served = grpc::serve(listener, api, stop).await.inspect_err(|error| {
        tracing::error!(error = error as &dyn std::error::Error, "serve the links API");
    });
    served.expect("a failure has to end this process");
}

/// Returns the result of the public listener's task.
pub(super) fn joined(ended: Result<io::Result<()>, JoinError>) -> Result<(), Error> {
    Ok(ended.unwrap_or_else(|_| Err(io::Error::other("the listener's task failed")))?)
}

/// Drains for `delay`, closes the listeners, and lets the last creates finish.
async fn drain(
    service: &PublicService,
    listening: DropGuard,
    public: JoinHandle<io::Result<()>>,
    delay: Duration,
) -> Result<(), Error> {
    service.draining.store(true, Ordering::Relaxed);
    let api = service.api.as_ref();
    if let Some(live) = api.and_then(|api| api.live.as_ref()) {
        live.close();
    }
    sleep(delay).await;
    drop(listening);
    if let Some(api) = api {
        api.stop.cancel();
    }
    let ended = public.await;
    if let Some(api) = api
        && timeout(FINISH_DEADLINE, api.links.creator.finish()).await.is_err()
    {
        tracing::warn!("creates were still waiting for the database at the end: their numbers are in doubt");
    }
    joined(ended)
}
