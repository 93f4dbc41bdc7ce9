//! Observes the committed state every few seconds, and whenever a metrics page is requested.
//! Publishes it in the metrics, forecasts when each namespace runs out, and raises an alarm long
//! before that. For `GetStatus` it also keeps what is not in the ledger: reports of holders,
//! forecasts, and reclaimed numbers. Nothing is decided by these; they are lost with the process.
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
use proto::issuer::v1 as pb;
use tokio::time::{Instant, interval, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    core::{Answer, Request, StatusReport},
    driver::Handle,
    forecast::{Forecast, Outlook},
    metrics::Metrics,
};

const INTERVAL: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_millis(500);

/// Observer of the leader's state. On a follower it has nothing to publish.
pub struct Observer {
    handle: Handle,
    metrics: Metrics,
    started: Instant,
    /// A std mutex, because it is never held across an await.
    notes: Mutex<Notes>,
}

/// Observations that are not in the ledger.
#[derive(Default)]
pub(crate) struct Notes {
    watched: BTreeMap<Namespace, Watched>,
    /// Whether the gauges show a report.
    is_shown: bool,
    /// The last report of each holder that the ledger knows: an unknown one gets no answer. The
    /// beats of a term replace the reports of the term before.
    pub(crate) supplies: BTreeMap<HolderId, Vec<pb::Supply>>,
    /// Numbers of leaked blocks that were allocated again since the start of the process. A block
    /// whose caller went away before its answer is not counted.
    reclaimed: BTreeMap<Namespace, u64>,
}

#[derive(Default)]
struct Watched {
    forecast: Forecast,
    low: bool,
    /// How long the namespace lasts at the rate of the last hours; infinite if nothing is consumed.
    seconds: f64,
}

impl Observer {
    /// Creates an observer that has not observed anything yet.
    pub fn new(handle: Handle, metrics: Metrics) -> Self {
        Self { handle, metrics, started: Instant::now(), notes: Mutex::default() }
    }

    /// Starts observing at a fixed interval, until the returned handle is dropped.
    pub fn start(self: &Arc<Self>) -> AbortOnDropHandle<()> {
        let observer = Arc::clone(self);
        AbortOnDropHandle::new(tokio::spawn(async move {
            let mut ticks = interval(INTERVAL);
            loop {
                ticks.tick().await;
                observer.observe().await;
            }
        }))
    }

    /// Observes the state once. If this issuer leads and does not answer by the deadline, the
    /// metrics keep their last values. If it does not lead, it is not asked, because the question
    /// would count as a refused call, and the gauges are withdrawn.
    pub async fn observe(&self) {
        if self.serving().is_none() {
            return self.withdraw();
        }
        if let Ok(Ok(Answer::Status(report))) = timeout(DEADLINE, self.handle.call(Request::Status)).await {
            self.publish(&report);
        }
    }

    /// Publishes a report of the present term. The term may have ended since the answer.
    fn publish(&self, report: &StatusReport) {
        let mut notes = self.notes();
        if self.serving() == Some(report.epoch) {
            notes.is_shown = true;
            self.metrics.holders_alive(report.holders.iter().filter(|holder| holder.alive).count());
            self.publish_forecasts(report, &mut notes.watched);
            let known: BTreeSet<&HolderId> = report.holders.iter().map(|holder| &holder.id).collect();
            notes.supplies.retain(|holder, _| known.contains(holder));
        }
    }

    /// Withdraws the gauges of a term that has ended.
    fn withdraw(&self) {
        let mut notes = self.notes();
        if mem::take(&mut notes.is_shown) {
            self.metrics.withdraw(notes.watched.keys());
        }
    }

    fn publish_forecasts(&self, report: &StatusReport, watched: &mut BTreeMap<Namespace, Watched>) {
        let now = Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        for namespace in &report.namespaces {
            let one = watched.entry(namespace.name.clone()).or_default();
            let outlook = one.forecast.look(now, &namespace.record);
            self.metrics.namespace(namespace, &outlook);
            if outlook.is_low() && !one.low {
                let Outlook { remaining, ratio, seconds } = outlook;
                let text =
                    "the numbers of a namespace are running low: add a keyspace, or raise the capacity";
                tracing::error!(namespace = %namespace.name, remaining, ratio, seconds, "{text}");
            }
            (one.low, one.seconds) = (outlook.is_low(), outlook.seconds);
        }
    }

    /// Returns the epoch that this issuer serves as leader.
    fn serving(&self) -> Option<Epoch> {
        self.handle.standing.borrow().serving
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("no code panics while it holds this lock")
    }
}

impl Notes {
    pub(crate) fn note_reclaimed(&mut self, namespace: &Namespace, numbers: u64) {
        let count = self.reclaimed.entry(namespace.clone()).or_default();
        *count = count.saturating_add(numbers);
    }

    /// Adds what is not in the ledger to an answer.
    pub(crate) fn complete(&self, mut answer: pb::GetStatusResponse) -> pb::GetStatusResponse {
        for holder in answer.holders.iter_mut().filter(|holder| holder.alive) {
            let noted = HolderId::new(holder.id.clone()).ok().and_then(|id| self.supplies.get(&id));
            holder.supplies = noted.cloned().unwrap_or_default();
        }
        for namespace in &mut answer.namespaces {
            let Ok(name) = Namespace::new(namespace.name.clone()) else { continue };
            let seconds = self.watched.get(&name).map(|watched| watched.seconds);
            namespace.exhaustion_seconds = seconds.filter(|seconds| seconds.is_finite());
            namespace.reclaimed = self.reclaimed.get(&name).copied().unwrap_or_default();
        }
        answer
    }
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
        let DriverChannels { handle, elections, .. } = ends;
        let (observer, mut standing) = (Observer::new(handle.clone(), metrics), handle.standing.clone());
        tokio::spawn(driver.run(CancellationToken::new()));

        observer.observe().await;
        assert!(gauges(&recorder).is_empty(), "a follower has nothing to publish");
        for _ in 0..2 {
            elections.send(elected().await).await.unwrap();
            standing.wait_for(|standing| standing.serving.is_some()).await.unwrap();
            let (holder, instance) = (HolderId::new("h").unwrap(), Instance::new("start").unwrap());
            for known in [&holder, &HolderId::new("gone").unwrap()] {
                observer.notes().supplies.insert(known.clone(), Vec::new());
            }
            let namespaces = vec![(Namespace::new("web").unwrap(), 1_000_000)];
            let register = Request::Register { holder, instance, namespaces, reserved: false };
            handle.call(register).await.unwrap();
            observer.observe().await;
            let shown = gauges(&recorder);
            assert_eq!(shown.len(), 13, "{shown:?}");
            assert_eq!(observer.notes().supplies.len(), 1, "the ledger does not know the other one");

            elections.send(Event::Following(None)).await.unwrap();
            standing.wait_for(|standing| standing.serving.is_none()).await.unwrap();
            observer.observe().await;
            assert_eq!(gauges(&recorder), [0.0; 0], "withdrawn");
        }
        assert!(recorder.render().lines().any(|line| line == "issuer_refusals_total 0"));
    }

    fn holder(id: &str, alive: bool) -> pb::HolderStatus {
        pb::HolderStatus { id: id.to_owned(), alive, ..pb::HolderStatus::default() }
    }

    #[test]
    fn notes_are_shown_with_what_the_ledger_knows() {
        let (mut notes, web) = (Notes::default(), Namespace::new("web").unwrap());
        let supply = pb::Supply { namespace: "web".to_owned(), in_hand: 7, lasts_ms: Some(60_000) };
        for id in ["a", "b"] {
            notes.supplies.insert(HolderId::new(id).unwrap(), vec![supply.clone()]);
        }
        notes.watched.entry(web.clone()).or_default().seconds = 86_400.0;
        notes.note_reclaimed(&web, 5);
        notes.note_reclaimed(&web, 6);
        let namespace = |name: &str| pb::NamespaceStatus { name: name.to_owned(), ..Default::default() };
        let answer = pb::GetStatusResponse {
            namespaces: vec![namespace("app"), namespace("web")],
            holders: vec![holder("a", true), holder("b", false), holder("new", true)],
            ..pb::GetStatusResponse::default()
        };
        let shown = notes.complete(answer);
        assert_eq!(shown.holders[0].supplies, [supply]);
        assert!(shown.holders[1..].iter().all(|holder| holder.supplies.is_empty()), "silent, or unheard of");
        let told = |at: usize| (shown.namespaces[at].exhaustion_seconds, shown.namespaces[at].reclaimed);
        assert_eq!([told(0), told(1)], [(None, 0), (Some(86_400.0), 11)]);
        notes.watched.entry(web).or_default().seconds = f64::INFINITY;
        let answer = pb::GetStatusResponse { namespaces: vec![namespace("web")], ..Default::default() };
        assert_eq!(notes.complete(answer).namespaces[0].exhaustion_seconds, None);
    }
}
