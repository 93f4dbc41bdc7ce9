//! The Prometheus metrics recorder. It is held by value, without global state, so two daemons fit
//! into one process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

/// Bucket bounds, in seconds, of every duration histogram in both daemons: from an answer out of
/// memory to a slow failover.
pub const DURATION_BUCKETS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// The end of a line with an unknown value.
const UNKNOWN: &str = " NaN\n";

/// Writes a part of the metrics page, for what the recorder would count too slowly.
pub type Page = Arc<dyn Fn(&mut String) + Send + Sync>;

/// A metrics recorder, which renders its page; cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    recorder: Arc<PrometheusRecorder>,
    more: Arc<Mutex<Vec<Page>>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Creates a recorder with histogram buckets. Without buckets histograms become summaries,
    /// which cannot be added up over pods.
    pub fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets(DURATION_BUCKETS).expect("the list of buckets is not empty");
        Self { recorder: Arc::new(builder.build_recorder()), more: Arc::default() }
    }

    /// Runs `register` with this recorder as the target of the `metrics` macros.
    pub fn with<T>(&self, register: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&*self.recorder, register)
    }

    /// Describes a counter without labels, and returns its handle.
    pub fn counter(&self, name: &'static str, help: &'static str) -> Counter {
        self.with(|| counter!(description: help, name))
    }

    /// Describes a gauge without labels, and returns its handle.
    pub fn gauge(&self, name: &'static str, help: &'static str) -> Gauge {
        self.with(|| gauge!(description: help, name))
    }

    /// Describes a histogram without labels, and returns its handle.
    pub fn histogram(&self, name: &'static str, help: &'static str) -> Histogram {
        self.with(|| histogram!(description: help, name))
    }

    /// Renders the metrics page in Prometheus' text format. A gauge that is NaN, because its value
    /// is not known here, is left out: in a sum over pods it would make everything NaN.
    pub fn render(&self) -> String {
        let mut page = self.recorder.handle().render();
        for more in self.pages().iter() {
            more(&mut page);
        }
        if !page.contains(UNKNOWN) {
            return page;
        }
        page.split_inclusive('\n').filter(|line| !line.ends_with(UNKNOWN)).collect()
    }

    /// Adds a part to the page, at its end.
    pub fn add_page(&self, page: Page) {
        self.pages().push(page);
    }

    fn pages(&self) -> MutexGuard<'_, Vec<Page>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folds histogram samples into buckets, which else accumulate without bound (metrics #467).
    pub fn upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_whose_value_is_unknown_is_not_on_the_page() {
        let recorder = Recorder::new();
        let gauges = recorder.with(|| ["one", "other"].map(|name| metrics::gauge!(name)));
        gauges.iter().for_each(|gauge| gauge.set(f64::NAN));
        assert!(!recorder.render().contains("NaN"));
        gauges[1].set(7.0);
        let page = recorder.render();
        let lines: Vec<&str> =
            page.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(lines, ["other 7"]);
    }
}
