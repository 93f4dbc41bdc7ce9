//! Looks at the committed state every few seconds, and whenever a metrics page is asked for: shows it in the metrics, forecasts the
//! end of each namespace and raises the alarm long before it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use numbers::{Millis, Namespace};
use tokio::time::{Instant, interval, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    core::{Answer, Request, StatusReport},
    driver::Handle,
    forecast::{Forecast, Outlook},
    metrics::Metrics,
};

/// How often it looks of itself.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long it waits for the committed state.
const DEADLINE: Duration = Duration::from_millis(500);

/// The looker. A follower has nothing to show.
pub struct Observer {
    handle: Handle,
    metrics: Metrics,
    started: Instant,
    /// A std mutex: never held across an await.
    watched: Mutex<BTreeMap<Namespace, Watched>>,
}

#[derive(Default)]
struct Watched {
    forecast: Forecast,
    low: bool,
}

impl Observer {
    /// Has not looked yet.
    #[must_use]
    pub fn new(handle: Handle, metrics: Metrics) -> Self {
        Self { handle, metrics, started: Instant::now(), watched: Mutex::default() }
    }

    /// Looks again and again, until what is returned is dropped.
    pub fn start(self: &Arc<Self>) -> AbortOnDropHandle<()> {
        let observer = Arc::clone(self);
        AbortOnDropHandle::new(tokio::spawn(async move {
            let mut ticks = interval(INTERVAL);
            loop {
                ticks.tick().await;
                observer.look().await;
            }
        }))
    }

    /// Looks once. One that does not lead, or has no time, shows what was last seen.
    pub async fn look(&self) {
        if let Ok(Ok(Answer::Status(report))) = timeout(DEADLINE, self.handle.call(Request::Status)).await {
            self.metrics.report(&report);
            self.foretell(&report);
        }
    }

    fn foretell(&self, report: &StatusReport) {
        let now = Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        let mut watched = self.watched();
        for namespace in &report.namespaces {
            let one = watched.entry(namespace.name.clone()).or_default();
            let outlook = one.forecast.look(now, namespace);
            self.metrics.outlook(&namespace.name, &outlook);
            if outlook.is_low() && !one.low {
                raise(&namespace.name, &outlook);
            }
            one.low = outlook.is_low();
        }
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<Namespace, Watched>> {
        self.watched.lock().expect("no code panics while it holds this lock")
    }
}

fn raise(namespace: &Namespace, outlook: &Outlook) {
    tracing::error!(
        %namespace,
        remaining = outlook.remaining,
        ratio = outlook.ratio,
        seconds = outlook.seconds,
        "the numbers of a namespace are running low: add a keyspace, or raise the capacity"
    );
}
