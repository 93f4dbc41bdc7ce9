//! Metrics of the process itself and of its build.
//!
//! `process_…` are the names that Prometheus' own client libraries give them, and that dashboards
//! and alerts of others expect. All other metrics begin with the daemon's name.

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_process::Collector;

use crate::{Recorder, logs::dropped_lines};

/// Describes the metrics of a process: processor time, memory, descriptors, threads, start, and
/// lost logs.
pub(crate) fn describe(recorder: &Recorder, daemon: &str) {
    recorder.with(|| {
        Collector::default().describe();
        describe_gauge!(format!("{daemon}_build_info"), "1, with the version of the build as a label.");
        describe_counter!(dropped_name(daemon), "Log lines that standard error did not take.");
    });
}

/// Sets the metrics, among them `NAME_build_info` with the version as a label. Called when a
/// metrics page is requested.
pub(crate) fn show(recorder: &Recorder, daemon: &str) {
    recorder.with(|| {
        Collector::default().collect();
        gauge!(format!("{daemon}_build_info"), "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        counter!(dropped_name(daemon)).absolute(dropped_lines());
    });
}

fn dropped_name(daemon: &str) -> String {
    format!("{daemon}_log_lines_dropped_total")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_of_the_process_and_its_build() {
        let recorder = Recorder::new();
        show(&recorder, "issuer");
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
