//! The daemon while it serves, and how it stops.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::{Api, grpc};
use cli::wrong_value;
use daemon::TaskSupervisor;
use ingest::upkeep;
use issuer::embedded::Embedded;
use limits::Resources;
use listener::PublicService;
use supply::StopReason;
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
    visits_task::{OpenSpool, VisitTasks},
};
use crate::{
    Error,
    config::{Config, Settings},
};

/// The deadline for creates under way when the process stops.
const FINISH_DEADLINE: Duration = Duration::from_secs(10);

/// The servers, tasks and databases to stop; [`stop`](Self::stop) has the order.
pub(super) struct Running {
    pub(super) assembled: Assembled,
    /// Lets the public listener close when it is dropped.
    listening: DropGuard,
    pub(super) public: JoinHandle<io::Result<()>>,
    grpc: Option<Stoppable>,
    storing: Option<VisitTasks>,
    warm: Option<Stoppable>,
    embedded: Option<Embedded>,
    databases: Databases,
}

impl Running {
    pub(super) fn start(
        settings: &Settings,
        resources: &Resources,
        assembled: Assembled,
        (public, grpc): (Vec<std::net::TcpListener>, Option<TcpListener>),
        (databases, spool, embedded): (Databases, Option<OpenSpool>, Option<Embedded>),
        supervisor: &TaskSupervisor,
    ) -> Self {
        let service = &assembled.service;
        let domains = &service.redirector.domain_cache;
        if settings.flags.role.serves_api() {
            let (store, clock) = (Arc::clone(&databases.open.visits), Arc::clone(domains));
            let upkeep = upkeep::run(store, settings.visits.retention(), move || {
                // What is removed by a clock that is ahead does not come back.
                clock.now().min(jiff::Timestamp::now())
            });
            supervisor.spawn("upkeep of visits", upkeep);
        }
        let storing =
            spool.map(|spool| VisitTasks::start(settings, resources, spool, &databases.open.visits, domains));
        let stop = CancellationToken::new();
        let public =
            tokio::spawn(listener::serve(public, Arc::clone(service), stop.clone(), supervisor.clone()));
        let listening = stop.drop_guard();
        let grpc = grpc.zip(service.api.clone());
        let grpc = grpc.map(|(listener, api)| {
            Stoppable::spawn(supervisor, "links API", |stop| serve_grpc(listener, api, stop))
        });
        let warm = assembled.warm.clone().map(|warm| {
            Stoppable::spawn(supervisor, "keeper of the list of cached links", |stop| warm.keep(stop))
        });
        Self { assembled, listening, public, grpc, storing, warm, embedded, databases }
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
        tokio::join!(service.redirector.visits.finish(), stop(self.warm));
        let left = match self.storing {
            Some(storing) => Some(storing.finish().await),
            None => None,
        };
        stop(supply).await;
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
        self.databases.open.visits.close().await;
        self.databases.open.links.close().await;
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

/// Returns how long the listeners stay open after the process has asked its clients to leave.
pub(super) fn drain_delay(lost: Option<&StopReason>, flags: &Config) -> Duration {
    match lost {
        // Hand-picked codes need no numbers, so a process whose keyspaces are contradicted would
        // continue to accept them.
        Some(StopReason::Keyspaces(_)) => Duration::ZERO,
        Some(StopReason::Superseded(_) | StopReason::AnotherLedger { .. }) | None => flags.drain_delay,
    }
}

pub(super) fn stopped_by(lost: &StopReason, settings: &Settings) -> Error {
    let flags = &settings.flags;
    match lost {
        StopReason::Superseded(reason) => wrong_value(
            "--holder-id",
            &settings.holder,
            format!(
                "another process has started under this name since, so this one stops: \
                 give each process a name of its own ({reason})"
            ),
        ),
        StopReason::AnotherLedger { issuer, database } => wrong_value(
            "--issuer",
            if flags.issuer.is_empty() { "(embedded)".to_owned() } else { flags.issuer.join(",") },
            format!(
                "its ledger is {issuer}, but this database's numbers come from ledger {database}: two ledgers would hand out \
                 the same numbers. Use the issuer that this database has had before, or its own database for this one. \
                 If the former ledger is lost for good, run `resolver migrate --forget-ledger`"
            ),
        ),
        StopReason::Keyspaces(contradiction) => wrong_value(
            "--database",
            &flags.database.database,
            format!(
                "{contradiction}: an older copy of the database has taken over, so this process stops. \
                 Start it again: it adopts its keyspaces, and waits until every resolver knows them"
            ),
        ),
    }
}
