//! Metrics of the process itself and of its build.
//!
//! `process_…` are the names that Prometheus' own client libraries give them, and that dashboards
//! and alerts of others expect. All other metrics begin with the daemon's name.

use metrics::{Counter, counter, describe_counter, describe_gauge, gauge};
use metrics_process::Collector;

use crate::{Recorder, logs::dropped_lines};

/// The metrics of a process: processor time, memory, descriptors, threads, start, and lost logs.
#[derive(Clone)]
pub(crate) struct Process {
    recorder: Recorder,
    collector: Collector,
    dropped_lines: Counter,
}

impl Process {
    /// Registers the metrics, and `NAME_build_info` with the version as a label.
    pub(crate) fn new(recorder: &Recorder, daemon: &str) -> Self {
        let collector = Collector::default();
        let name = format!("{daemon}_build_info");
        let dropped = format!("{daemon}_log_lines_dropped_total");
        let dropped_lines = recorder.with(|| {
            collector.describe();
            describe_gauge!(name.clone(), "1, with the version of the build as a label.");
            gauge!(name, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
            describe_counter!(dropped.clone(), "Log lines that standard error did not take.");
            counter!(dropped)
        });
        Self { recorder: recorder.clone(), collector, dropped_lines }
    }

    /// Sets the metrics. Called when a metrics page is requested.
    pub(crate) fn look(&self) {
        self.recorder.with(|| self.collector.collect());
        self.dropped_lines.absolute(dropped_lines());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_of_the_process_and_its_build() {
        let recorder = Recorder::new();
        Process::new(&recorder, "issuer").look();
        let page = recorder.render();
        let value = |name: &str| -> f64 {
            let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{page}"));
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes ") > 1_000_000.0);
        assert!(value("process_open_fds ") >= 3.0);
        assert!(value("process_start_time_seconds ") > 1_600_000_000.0);
        assert!((value("issuer_build_info{version=") - 1.0).abs() < f64::EPSILON);
    }
}
