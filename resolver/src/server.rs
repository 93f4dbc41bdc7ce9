//! The resolver as a daemon. It starts the admin listener first, then the database, then the supply
//! of numbers, then the public listener.

mod admin_page;
mod databases;
mod issuing;
mod left_visits;
mod parts;
mod readiness;
mod running;
mod visits_task;
mod warm_start;

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use admin_page::AdminPage;
use app::webhooks::metrics::WebhookMetrics;
use cli::wrong_value;
use codes::Mint;
use daemon::{Exit, Recorder, TaskSupervisor, cancel_on_signals, greet, traces::Traces};
use databases::Databases;
use issuing::Issuing;
use left_visits::SpoolBacklog;
use limits::Resources;
use lookup::metrics::Metrics;
use parts::Parts;
use readiness::{longest_wait, wait_for_numbers, with_links};
use recorder::NoSink;
use running::{Running, drain_delay, joined, stopped_by};
use store::Register;
use supply::{Clock, StopReason, SupplyMetrics};
use tokio::{net::TcpListener, time::Instant};
use tokio_util::sync::CancellationToken;
use visits_task::OpenSpool;
use web::request_durations::RequestDurations;

use crate::{
    Error,
    bootstrap::{Bootstrapped, bootstrap},
    config::{Config, Settings},
};

struct Listeners {
    /// One per thread.
    public: Vec<std::net::TcpListener>,
    admin: TcpListener,
    grpc: Option<TcpListener>,
}

impl Listeners {
    fn bind(settings: &Settings) -> Result<Self, Error> {
        let flags = &settings.flags;
        let wrong = |flag, address: std::net::SocketAddr| {
            move |error: io::Error| wrong_value(flag, address, format!("cannot listen: {error}"))
        };
        Ok(Self {
            public: listener::bind(flags.listen, settings.threads)
                .map_err(wrong("--listen", flags.listen))?,
            admin: daemon::bind(flags.admin_listen).map_err(wrong("--admin-listen", flags.admin_listen))?,
            grpc: flags
                .grpc_listen
                .map(|address| daemon::bind(address).map_err(wrong("--grpc-listen", address)))
                .transpose()?,
        })
    }
}

/// Serves until a signal. Then it drains, finishes requests under way and returns unused numbers.
pub(crate) async fn run(config: &Config) -> Result<Exit, Error> {
    let settings = config.settings()?;
    let listeners = Listeners::bind(&settings)?;
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    serve(settings, listeners, shutdown).await?;
    Ok(Exit::Clean)
}

async fn serve(
    mut settings: Settings,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (started, resources) = (Instant::now(), Resources::claim());
    settings.fit(&resources);
    let recorder = Recorder::new();
    let supply_metrics = SupplyMetrics::new(&recorder);
    let supervisor = TaskSupervisor::default();
    let page =
        AdminPage::serve(listeners.admin, (&recorder, &supervisor), &supply_metrics, settings.flags.role);

    let tls = settings.flags.public_tls()?;
    page.show(|shown| shown.public_tls.clone_from(&tls));
    let (databases, spool) = Databases::open(&settings, &recorder).await?;
    let backlog = spool.as_ref().map(|spool| spool.backlog.clone());
    page.show(|shown| (shown.databases, shown.spool) = (Some(databases.open.clone()), backlog.clone()));
    let bootstrapping = bootstrap(&settings, &*databases.open.links);
    let Some(bootstrapped) = shutdown.run_until_cancelled(bootstrapping).await else {
        SpoolBacklog::log_end(backlog.as_ref());
        return Ok(());
    };
    let Bootstrapped { code_key, adopted, new_key, polled } = bootstrapped?;
    let (traces, clock) = (traces(&settings)?, Clock::start());
    if settings.flags.role.serves_api() {
        databases.migrate_visits(&settings.flags.database.database).await?;
    }
    let numbers = (clock, &*databases.open.links as &dyn Register);
    let (issuing, embedded) = Issuing::start(&settings, &adopted, numbers, (&recorder, &supervisor)).await?;
    let webhook_metrics = WebhookMetrics::new(&recorder);
    page.show(|shown| {
        shown.issuing.clone_from(&issuing);
        shown.observer = embedded.as_ref().map(|embedded| Arc::clone(&embedded.observer));
        shown.webhooks = settings.flags.role.serves_api().then(|| Arc::clone(&webhook_metrics));
    });
    let default_keyspace = issuing.as_ref().and_then(|issuing| issuing.mintings.first().cloned());
    let parts = Parts {
        mint: Arc::new(Mint::new(&code_key, adopted.keyspaces)),
        issuing,
        clock,
        databases: databases.open.clone(),
        metrics: Metrics::new(&recorder),
        durations: RequestDurations::new(&recorder),
        traces: traces.clone(),
        tls,
        webhook_metrics,
        supply_metrics,
        supervisor: supervisor.clone(),
        backlog: spool.as_ref().map(OpenSpool::state),
        spool_files: spool.as_ref().map(|spool| spool.sidecars.clone()),
        sink: spool.as_ref().map_or_else(|| Arc::new(NoSink) as _, |spool| spool.sink.clone() as _),
    };
    let assembled = parts.assemble(&settings, polled, &resources);
    let (listeners, sources) = ((listeners.public, listeners.grpc), (databases, spool, embedded));
    let mut running = Running::start(&settings, &resources, assembled, listeners, sources, &supervisor);
    tracing::info!(public_url = settings.public_url, admin = %settings.flags.admin_listen, "serving");
    greet(
        greeting(&settings.public_url, new_key.as_deref()),
        "a first API key is lost; `resolver api-key create` makes another",
    );
    let ready_by = started + longest_wait(settings.flags.role, settings.flags.database.start_deadline);
    let numbers = wait_for_numbers(default_keyspace, ready_by);
    let ready = page.is_ready_after(with_links(numbers, running.assembled.warm.clone()));
    let stopping = wait_for_end(ready, &mut running, &supervisor);
    let lost = shutdown.run_until_cancelled(stopping).await.transpose()?;
    page.set_stopping();
    stop(running, drain_delay(lost.as_ref(), &settings.flags), traces).await?;
    lost.map_or(Ok(()), |lost| Err(stopped_by(&lost, &settings)))
}

/// Returns the message of the daemon at its start. With a first API key, which cannot be shown
/// again, it has a command to copy that creates the first link.
fn greeting(url: &str, new_key: Option<&str>) -> String {
    let Some(key) = new_key else { return format!("Shortmint serves {url}\n") };
    format!(
        "Shortmint serves {url}\n\nYour API key, shown only this once: {key}\n\n\
         Manage links in a browser, with this key: {url}/manage\n\nCreate a link:\n  \
         curl -X POST {url}/rest/v3/short-urls -H 'X-Api-Key: {key}' -d '{{\"longUrl\": \"https://example.com\"}}'\n\n"
    )
}

/// Waits until this process may mint no more, and returns the reason.
async fn wait_for_end(
    ready: impl Future<Output = Infallible>,
    running: &mut Running,
    supervisor: &TaskSupervisor,
) -> Result<StopReason, Error> {
    tokio::select! {
        never = ready => match never {},
        ended = &mut running.public => joined(ended).and(Err(io::Error::other("the listener ended").into())),
        task = supervisor.first_failure() => Err(Error::TaskFailed(task)),
        lost = running.assembled.closing.closed() => Ok(lost),
    }
}

/// Stops everything in order, and sends the last traces.
async fn stop(running: Running, delay: Duration, traces: Option<Arc<Traces>>) -> Result<(), Error> {
    let (drained, left) = running.stop(delay).await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    SpoolBacklog::log_end(left.as_ref());
    drained
}

fn traces(settings: &Settings) -> Result<Option<Arc<Traces>>, Error> {
    let Some(otlp) = &settings.flags.otlp else { return Ok(None) };
    let of = ("shortmint-resolver", settings.holder.as_str());
    let started = Traces::start(otlp, settings.flags.trace_share, of);
    started.map(Some).map_err(|error| wrong_value("--otlp", otlp, daemon::reasons(&error)))
}
