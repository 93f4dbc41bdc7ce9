//! The Prometheus metrics recorder. It is held by value, without global state, so two daemons fit
//! into one process.

use std::sync::Arc;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Bucket bounds, in seconds, of every duration histogram in both daemons: from a local write to a
/// slow failover.
const DURATION_BUCKETS: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A metrics recorder with the handle that renders its page; cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    recorder: Arc<PrometheusRecorder>,
    page: PrometheusHandle,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Creates a recorder with histogram buckets. Without buckets histograms become summaries,
    /// which cannot be added up over pods.
    #[must_use]
    pub fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets(DURATION_BUCKETS).expect("the list of buckets is not empty");
        let recorder = builder.build_recorder();
        let page = recorder.handle();
        Self { recorder: Arc::new(recorder), page }
    }

    /// Runs `register` with this recorder as the target of the `metrics` macros.
    pub fn with<T>(&self, register: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&*self.recorder, register)
    }

    /// Renders the metrics page in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.page.render()
    }

    /// Folds histogram samples into buckets. Without this call they accumulate without bound
    /// (metrics #467).
    pub fn upkeep(&self) {
        self.page.run_upkeep();
    }
}
