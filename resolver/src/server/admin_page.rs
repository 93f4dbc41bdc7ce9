//! The admin listener, and what its metrics page shows in addition to counters.

use std::{convert::Infallible, sync::Arc};

use app::{database_metrics::show_contacts, webhooks::metrics::WebhookMetrics};
use daemon::{Admin, Recorder, Refresh, TaskSupervisor};
use issuer::observer::Observer;
use jiff::Timestamp;
use metrics::{describe_gauge, gauge};
use supply::SupplyMetrics;
use tls::ServerTls;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{databases::OpenDatabases, issuing::Issuing, left_visits::SpoolBacklog};
use crate::config::Role;

/// The admin listener. It serves until it is dropped, so that probes are answered while the process
/// waits for servers.
pub(super) struct AdminPage {
    ready: watch::Sender<bool>,
    shown: watch::Sender<Shown>,
    _serving: AbortOnDropHandle<()>,
}

/// The state that a metrics page shows. It is empty until the daemon has started that far.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) databases: Option<OpenDatabases>,
    pub(super) spool: Option<SpoolBacklog>,
    pub(super) issuing: Option<Issuing>,
    /// The metrics of webhooks, in processes that deliver to receivers.
    pub(super) webhooks: Option<Arc<WebhookMetrics>>,
    pub(super) observer: Option<Arc<Observer>>,
    pub(super) public_tls: Option<ServerTls>,
}

impl AdminPage {
    /// Starts to serve. The process is not ready yet.
    pub(super) fn serve(
        listener: TcpListener,
        (recorder, supervisor): (&Recorder, &TaskSupervisor),
        metrics: &Arc<SupplyMetrics>,
        role: Role,
    ) -> Self {
        let (ready, readiness) = watch::channel(false);
        let (shown, on_page) = watch::channel(Shown::default());
        let probed = readiness.clone();
        let admin = Admin {
            daemon: "resolver",
            recorder: recorder.clone(),
            ready: Arc::new(move || *probed.borrow()),
            supervisor: supervisor.clone(),
            refresh: refresh(recorder, metrics, (role, readiness), on_page),
        };
        let serving = tokio::spawn(admin.serve(listener, CancellationToken::new()));
        Self { ready, shown, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Lets `/readyz` answer 200 once something was waited for. Never returns.
    pub(super) async fn is_ready_after(&self, waited: impl Future<Output = ()>) -> Infallible {
        waited.await;
        self.ready.send_replace(true);
        std::future::pending().await
    }

    /// Lets `/readyz` answer 503: the process is about to stop.
    pub(super) fn set_stopping(&self) {
        self.ready.send_replace(false);
    }

    /// Changes the state that the metrics page shows.
    pub(super) fn show(&self, change: impl FnOnce(&mut Shown)) {
        self.shown.send_modify(change);
    }
}

/// Publishes whether this process is ready, by what it serves: an operator counts both.
fn show_readiness(recorder: &Recorder, role: Role, is_ready: bool) {
    let value = if is_ready { 1.0 } else { 0.0 };
    recorder.with(|| {
        describe_gauge!(
            "resolver_ready",
            "1 while this process is ready, else 0, for what it serves: redirects, creates."
        );
        for (serves, is_served) in [("redirects", role.serves_visitors()), ("creates", role.serves_api())] {
            if is_served {
                gauge!("resolver_ready", "serves" => serves).set(value);
            }
        }
    });
}

fn refresh(
    recorder: &Recorder,
    metrics: &Arc<SupplyMetrics>,
    (role, ready): (Role, watch::Receiver<bool>),
    shown: watch::Receiver<Shown>,
) -> Refresh {
    let (recorder, metrics) = (recorder.clone(), Arc::clone(metrics));
    Arc::new(move || {
        let shown = shown.borrow();
        show_readiness(&recorder, role, *ready.borrow());
        let Shown { databases, issuing, webhooks, .. } = &*shown;
        let databases = databases.iter().flat_map(|databases| &databases.metrics.contacts);
        let issuer = issuing.iter().map(|issuing| &issuing.client.contact);
        let receivers = webhooks.iter().map(|webhooks| &webhooks.receivers);
        show_contacts(&recorder, databases.chain(issuer).chain(receivers));
        if let Some(issuing) = issuing {
            metrics.report(&issuing.client, &issuing.mintings);
        }
        if let Some(OpenDatabases { links, visits, metrics, .. }) = &shown.databases {
            metrics.set_pools(&links.pools());
            metrics.set_pools(&visits.pools());
        }
        if let Some(spool) = &shown.spool {
            spool.metrics.show(&spool.gauge.read(), Timestamp::now());
        }
        metrics
            .certificate("issuer", issuing.as_ref().and_then(|issuing| issuing.tls.as_ref()?.certificate()));
        metrics.certificate("public", shown.public_tls.as_ref().and_then(ServerTls::certificate));
        let observer = shown.observer.clone();
        Box::pin(async move {
            if let Some(observer) = observer {
                observer.observe().await;
            }
        })
    })
}
