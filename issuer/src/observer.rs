//! Observes the committed state every few seconds, and whenever a metrics page is requested.
//! Publishes it in the metrics, forecasts when each namespace runs out, and raises an alarm long
//! before that.
//!
//! Only a leader knows the state. When its term has ended, the gauges leave the page: any number
//! would be a statement about a state that is unknown here, and sums over issuers would count it
//! twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use numbers::{Epoch, HolderId, Millis, Namespace};
use tokio::{
    sync::watch,
    time::{Instant, interval, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    board::Board,
    core::{Answer, Request, StatusReport},
    driver::{DriverState, Handle},
    forecast::{Forecast, Outlook},
    metrics::Metrics,
};

const INTERVAL: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_millis(500);

/// Observer of the leader's state. On a follower it has nothing to publish.
pub struct Observer {
    handle: Handle,
    standing: watch::Receiver<DriverState>,
    metrics: Metrics,
    board: Board,
    started: Instant,
    /// A std mutex, because it is never held across an await.
    published: Mutex<Published>,
}

#[derive(Default)]
struct Published {
    watched: BTreeMap<Namespace, Watched>,
    is_shown: bool,
}

#[derive(Default)]
struct Watched {
    forecast: Forecast,
    low: bool,
}

impl Observer {
    /// Creates an observer that has not observed anything yet.
    pub fn new(
        handle: Handle,
        standing: watch::Receiver<DriverState>,
        metrics: Metrics,
        board: Board,
    ) -> Self {
        Self { handle, standing, metrics, board, started: Instant::now(), published: Mutex::default() }
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

    /// Observes the state once. If this issuer leads and does not answer by the deadline, the
    /// metrics keep their last values. If it does not lead, it is not asked, because the question
    /// would count as a refused call, and the gauges are withdrawn.
    pub async fn look(&self) {
        if self.serving().is_none() {
            return self.withdraw();
        }
        if let Ok(Ok(Answer::Status(report))) = timeout(DEADLINE, self.handle.call(Request::Status)).await {
            self.publish(&report);
        }
    }

    /// Publishes a report of the present term. The term may have ended since the answer.
    fn publish(&self, report: &StatusReport) {
        let mut published = self.published();
        if self.serving() == Some(report.epoch) {
            published.is_shown = true;
            self.metrics.report(report);
            self.foretell(report, &mut published.watched);
            let known: BTreeSet<&HolderId> = report.holders.iter().map(|holder| &holder.id).collect();
            self.board.retain(|holder| known.contains(holder));
        }
    }

    fn withdraw(&self) {
        let mut published = self.published();
        if mem::take(&mut published.is_shown) {
            self.metrics.withdraw(published.watched.keys());
        }
    }

    fn foretell(&self, report: &StatusReport, watched: &mut BTreeMap<Namespace, Watched>) {
        let now = Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        for namespace in &report.namespaces {
            let one = watched.entry(namespace.name.clone()).or_default();
            let outlook = one.forecast.look(now, namespace);
            self.metrics.outlook(&namespace.name, &outlook);
            self.board.note_outlook(&namespace.name, outlook.seconds);
            if outlook.is_low() && !one.low {
                raise(&namespace.name, &outlook);
            }
            one.low = outlook.is_low();
        }
    }

    fn serving(&self) -> Option<Epoch> {
        self.standing.borrow().serving
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().expect("no code panics while it holds this lock")
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

#[cfg(test)]
mod tests {
    use daemon::Recorder;
    use numbers::Instance;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        core::{Event, Limits},
        driver::{Driver, DriverChannels},
        ledger::{Ledger as _, embedded::EmbeddedLedger},
    };

    /// Returns the values of the ledger's gauges on the metrics page.
    fn gauges(recorder: &Recorder) -> Vec<f64> {
        let page = recorder.render();
        let is_gauge =
            |line: &&str| line.contains("namespace=\"") || line.starts_with("issuer_holders_alive ");
        page.lines().filter(is_gauge).map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn only_a_leader_is_asked_and_its_gauges_end_with_its_term() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(EmbeddedLedger::open(&folder.path().join("ledger.json")).unwrap());
        let elected =
            async || Event::Elected { epoch: ledger.epoch(), snapshot: ledger.load().await.unwrap() };
        let recorder = Recorder::new();
        let metrics = Metrics::new(&recorder);
        let (driver, ends) = Driver::new(Limits::default(), ledger.clone(), metrics.clone());
        let DriverChannels { handle, elections, mut standing, .. } = ends;
        let observer = Observer::new(handle.clone(), standing.clone(), metrics, Board::default());
        tokio::spawn(driver.run(CancellationToken::new()));

        observer.look().await;
        assert!(gauges(&recorder).is_empty(), "a follower has nothing to publish");
        for _ in 0..2 {
            elections.send(elected().await).await.unwrap();
            standing.wait_for(|standing| standing.serving.is_some()).await.unwrap();
            let (holder, instance) = (HolderId::new("h").unwrap(), Instance::new("start").unwrap());
            let namespaces = vec![(Namespace::new("web").unwrap(), 1_000_000)];
            let register = Request::Register { holder, instance, namespaces, reserved: false };
            handle.call(register).await.unwrap();
            observer.look().await;
            let shown = gauges(&recorder);
            assert_eq!(shown.len(), 13, "{shown:?}");

            elections.send(Event::Following(None)).await.unwrap();
            standing.wait_for(|standing| standing.serving.is_none()).await.unwrap();
            observer.look().await;
            assert_eq!(gauges(&recorder), [0.0; 0], "withdrawn");
        }
        assert!(recorder.render().lines().any(|line| line == "issuer_refusals_total 0"));
    }
}
