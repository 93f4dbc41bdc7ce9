//! The daemon while it serves, and how it stops.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::{Api, grpc};
use daemon::{Liveness, TaskSupervisor};
use ingest::upkeep;
use issuer::embedded::Embedded;
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    databases::Databases,
    left_visits::SpoolBacklog,
    parts::Assembled,
    stoppable::Stoppable,
    visits_task::{OpenSpool, VisitTasks},
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
    pub(super) assembled: Assembled,
    /// Lets the public listener close when it is dropped.
    listening: DropGuard,
    pub(super) public: JoinHandle<io::Result<()>>,
    grpc: Option<Stoppable>,
    storing: Option<VisitTasks>,
    embedded: Option<Embedded>,
    databases: Databases,
}

impl Running {
    pub(super) fn start(
        settings: &Settings,
        assembled: Assembled,
        (public, grpc): (Vec<std::net::TcpListener>, Option<TcpListener>),
        (databases, spool, embedded): (Databases, Option<OpenSpool>, Option<Embedded>),
        (liveness, supervisor): (Liveness, &TaskSupervisor),
    ) -> Self {
        let service = &assembled.service;
        let domains = &service.redirector.domain_cache;
        if settings.visits.is_on && settings.flags.role.serves_api() {
            let (store, clock) = (Arc::clone(&databases.visits), Arc::clone(domains));
            let upkeep = upkeep::run(store, settings.visits.keep_days(), move || clock.now());
            supervisor.spawn("upkeep of visits", upkeep);
        }
        let storing = spool.map(|spool| VisitTasks::start(settings, spool, &databases.visits, domains));
        let stop = CancellationToken::new();
        let public = tokio::spawn(http::serve(public, Arc::clone(service), stop.clone(), liveness));
        let listening = stop.drop_guard();
        let grpc = grpc.zip(service.api.clone());
        let grpc = grpc.map(|(listener, api)| {
            Stoppable::spawn(supervisor, "links API", |stop| serve_grpc(listener, api, stop))
        });
        Self { assembled, listening, public, grpc, storing, embedded, databases }
    }

    /// Keeps the listeners open for `delay`, then stops everything in order. Returns the result of
    /// the public listener, and the visits that are left.
    pub(super) async fn stop(self, delay: Duration) -> (Result<(), Error>, Option<SpoolBacklog>) {
        let Assembled { service, supply, webhooks, .. } = self.assembled;
        let grpc = async {
            sleep(delay).await;
            stop(self.grpc).await;
        };
        let drained = drain(&service, self.listening, self.public, delay);
        let (drained, (), ()) = tokio::join!(drained, grpc, stop(webhooks));
        service.redirector.visits.finish().await;
        let left = match self.storing {
            Some(storing) => Some(storing.finish().await),
            None => None,
        };
        stop(supply).await;
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
