//! Observes the committed state every few seconds, and whenever a metrics page is requested.
//! Publishes it in the metrics, forecasts when each namespace runs out, and raises an alarm long
//! before that.

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

/// Interval between observations.
const INTERVAL: Duration = Duration::from_secs(10);
/// Deadline of one observation.
const DEADLINE: Duration = Duration::from_millis(500);

/// Observer of the leader's state. On a follower it has nothing to publish.
pub struct Observer {
    handle: Handle,
    metrics: Metrics,
    started: Instant,
    /// A std mutex, because it is never held across an await.
    watched: Mutex<BTreeMap<Namespace, Watched>>,
}

#[derive(Default)]
struct Watched {
    forecast: Forecast,
    low: bool,
}

impl Observer {
    /// Creates an observer that has not observed anything yet.
    #[must_use]
    pub fn new(handle: Handle, metrics: Metrics) -> Self {
        Self { handle, metrics, started: Instant::now(), watched: Mutex::default() }
    }

    /// Starts observing at a fixed interval, until the returned handle is dropped.
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

    /// Observes the state once. If this issuer does not lead, or does not answer by the deadline,
    /// the metrics keep their last values.
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
