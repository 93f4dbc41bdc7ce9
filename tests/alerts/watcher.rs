//! The alerts that fired, from when until when, as Prometheus tells it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use harness::{Alert, Prometheus};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::rules::Name;

const LOOK: Duration = Duration::from_millis(250);
/// How long Alertmanager waits by default before it notifies anybody (`group_wait`): an outage that
/// fires within this time still inhibits its consequences. Divided by the factor of the rules.
const GROUP_WAIT: Duration = Duration::from_secs(30);

/// A time in which an alert fired without a pause.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) name: Name,
    pub(crate) from: Instant,
    /// `None` while it fires.
    pub(crate) until: Option<Instant>,
    /// Whether another alert told of the outage already, so that this one reached nobody.
    pub(crate) is_inhibited: bool,
}

impl Span {
    /// Returns whether it woke somebody up.
    pub(crate) fn is_page(&self) -> bool {
        self.name.severity == "critical" && !self.is_inhibited
    }
}

/// Asks for the alerts until it is dropped.
pub(crate) struct Watcher {
    spans: Arc<Mutex<Vec<Span>>>,
    task: JoinHandle<()>,
}

impl Watcher {
    /// Starts to ask. All times of the rules are divided by the factor.
    pub(crate) fn start(prometheus: Arc<Prometheus>, factor: u32) -> Self {
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let task = tokio::spawn(watch(prometheus, Arc::clone(&spans), GROUP_WAIT / factor));
        Self { spans, task }
    }

    /// Returns all spans, from the earliest.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the span in which the alert fires now, or last fired, if it began after a time.
    pub(crate) fn span(&self, name: &Name, since: Instant) -> Option<Span> {
        self.spans().into_iter().rev().find(|span| span.name == *name && span.from >= since)
    }

    /// Returns what fires now.
    pub(crate) fn firing(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.until.is_none()).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(prometheus: Arc<Prometheus>, spans: Arc<Mutex<Vec<Span>>>, wait: Duration) {
    loop {
        // A server under load may miss a look; the next one is soon.
        if let Ok(alerts) = prometheus.alerts().await {
            note(&alerts, &mut spans.lock().unwrap_or_else(PoisonError::into_inner), wait);
        }
        sleep(LOOK).await;
    }
}

/// Opens and closes spans by what fires.
fn note(alerts: &[Alert], spans: &mut Vec<Span>, wait: Duration) {
    let firing: Vec<&Alert> = alerts.iter().filter(|alert| alert.state == "firing").collect();
    let is_of = |alert: &Alert, name: &Name| {
        alert.label("alertname") == name.alert && alert.label("severity") == name.severity
    };
    for span in spans.iter_mut().filter(|span| span.until.is_none()) {
        if !firing.iter().any(|alert| is_of(alert, &span.name)) {
            span.until = Some(Instant::now());
        }
    }
    for &alert in &firing {
        let is_inhibited = is_inhibited(alert, &firing);
        if let Some(open) = spans.iter_mut().find(|span| span.until.is_none() && is_of(alert, &span.name)) {
            open.is_inhibited |= is_inhibited && open.from.elapsed() < wait;
            continue;
        }
        let name =
            Name { alert: alert.label("alertname").to_owned(), severity: alert.label("severity").to_owned() };
        spans.push(Span { name, from: Instant::now(), until: None, is_inhibited });
    }
}

/// Returns whether an outage that fires is one of those that the alert follows, as the shipped
/// rules of inhibition say.
fn is_inhibited(alert: &Alert, firing: &[&Alert]) -> bool {
    let outages: Vec<&str> = firing.iter().map(|other| other.label("outage")).collect();
    alert.label("follows").split(',').any(|outage| !outage.is_empty() && outages.contains(&outage))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use harness::Alert;

    use super::{GROUP_WAIT, note};

    fn alert(name: &str, label: &str, value: &str) -> Alert {
        let labels = [("alertname", name), ("severity", "critical"), (label, value)];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Alert { labels: labels.into(), state: "firing".to_owned() }
    }

    #[test]
    fn a_consequence_of_an_outage_that_fires_wakes_nobody_up() {
        let mut spans = Vec::new();
        let (cause, follower) =
            (alert("Cause", "outage", "etcd"), alert("Follower", "follows", "leader,etcd"));
        note(&[cause.clone(), follower.clone(), alert("Other", "follows", "leader")], &mut spans, GROUP_WAIT);
        let pages: Vec<&str> =
            spans.iter().filter(|span| span.is_page()).map(|span| span.name.alert.as_str()).collect();
        assert_eq!(pages, ["Cause", "Other"]);
        note(std::slice::from_ref(&cause), &mut spans, GROUP_WAIT);
        assert_eq!(spans.iter().filter(|span| span.until.is_none()).count(), 1);
        note(std::slice::from_ref(&follower), &mut spans, GROUP_WAIT);
        assert!(spans.last().unwrap().is_page(), "its cause does not fire");
        note(&[follower.clone(), cause.clone()], &mut spans, Duration::ZERO);
        assert!(
            spans.last().is_some_and(|span| span.name.alert == "Cause") && spans[spans.len() - 2].is_page()
        );
        note(&[follower, cause], &mut spans, GROUP_WAIT);
        assert!(!spans[spans.len() - 2].is_page(), "its cause fires before anybody is told");
    }
}
