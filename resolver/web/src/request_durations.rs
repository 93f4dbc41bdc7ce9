//! Durations of requests by route and status, for the metrics page.
//!
//! Each listener's thread counts for itself, so that a redirect writes no memory of another core's;
//! the page adds them up. A histogram of the metrics library would keep every sample until its next
//! upkeep: half a million of them at a hundred thousand redirects a second.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use daemon::{DURATION_BUCKETS, Recorder};
use hyper::StatusCode;

use crate::{Answer, lock};

const NAME: &str = "resolver_request_duration_seconds";
const HELP: &str =
    "Time from the head of a request to the head of its answer, by route and status of the answer.";
const BUCKETS: usize = DURATION_BUCKETS.len() + 1;

/// The route of a request, as metrics, logs and traces name it; an extension of its answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteName(Arc<str>);

impl RouteName {
    /// Creates the name of a route. There is a bounded number of them: none is made from a request.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the route that an answer is marked with.
pub fn route_of(answer: &Answer) -> Option<&RouteName> {
    answer.extensions().get()
}

/// The durations of all threads.
#[derive(Default)]
pub struct RequestDurations {
    threads: Mutex<Vec<Arc<ThreadDurations>>>,
}

/// The durations of the requests of one thread.
pub struct ThreadDurations {
    /// Cached redirects, which are almost all requests.
    redirects: Mutex<Counts>,
    status: StatusCode,
    others: Mutex<BTreeMap<Series, Counts>>,
}

type Series = (RouteName, u16);

#[derive(Clone, Debug, Default, PartialEq)]
struct Counts {
    buckets: [u64; BUCKETS],
    sum: Duration,
}

impl Counts {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = DURATION_BUCKETS.iter().position(|bound| seconds <= *bound);
        self.buckets[bucket.unwrap_or(BUCKETS - 1)] += 1;
        self.sum += duration;
    }

    fn add_all(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }
}

impl RequestDurations {
    /// The route of redirects.
    pub const REDIRECT: &str = "redirect";

    /// Creates the histograms, and shows them on the metrics page.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        let durations = Arc::new(Self::default());
        let shown = Arc::clone(&durations);
        recorder.add_page(Arc::new(move |page| shown.write(page)));
        durations
    }

    /// Adds a thread; `status` is that of its cached redirects.
    pub fn thread(&self, status: StatusCode) -> Arc<ThreadDurations> {
        let thread =
            Arc::new(ThreadDurations { redirects: Mutex::default(), status, others: Mutex::default() });
        lock(&self.threads).push(Arc::clone(&thread));
        thread
    }

    fn sum(&self) -> BTreeMap<Series, Counts> {
        let mut all: BTreeMap<Series, Counts> = BTreeMap::new();
        for thread in lock(&self.threads).iter() {
            let redirect = (RouteName::new(Self::REDIRECT), thread.status.as_u16());
            all.entry(redirect).or_default().add_all(&lock(&thread.redirects));
            for (series, counts) in lock(&thread.others).iter() {
                all.entry(series.clone()).or_default().add_all(counts);
            }
        }
        all
    }

    /// Writes the histograms in Prometheus' text format.
    fn write(&self, page: &mut String) {
        // Writing to a string does not fail.
        let _ = writeln!(page, "# HELP {NAME} {HELP}\n# TYPE {NAME} histogram");
        for ((RouteName(route), status), counts) in self.sum() {
            let labels = format!("route=\"{route}\",status=\"{status}\"");
            let mut count = 0;
            for (bound, more) in DURATION_BUCKETS.iter().zip(counts.buckets) {
                count += more;
                let _ = writeln!(page, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {count}");
            }
            count += counts.buckets[BUCKETS - 1];
            let sum = counts.sum.as_secs_f64();
            let _ = writeln!(
                page,
                "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}\n{NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {count}"
            );
        }
    }
}

impl ThreadDurations {
    /// Counts a cached redirect.
    #[inline]
    pub fn record_redirect(&self, duration: Duration) {
        lock(&self.redirects).add(duration);
    }

    /// Counts any other request.
    pub fn record(&self, route: &RouteName, status: StatusCode, duration: Duration) {
        let mut others = lock(&self.others);
        others.entry((route.clone(), status.as_u16())).or_default().add(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up_and_buckets_count_all_that_is_shorter() {
        let durations = RequestDurations::default();
        let threads = [durations.thread(StatusCode::FOUND), durations.thread(StatusCode::FOUND)];
        for thread in &threads {
            thread.record_redirect(Duration::from_micros(50));
            thread.record(&RouteName::new("create_short_url"), StatusCode::OK, Duration::from_millis(2));
        }
        threads[0].record(&RouteName::new("redirect"), StatusCode::FOUND, Duration::from_secs(60));
        let mut page = String::new();
        durations.write(&mut page);
        for line in [
            "# TYPE resolver_request_duration_seconds histogram",
            "resolver_request_duration_seconds_bucket{route=\"redirect\",status=\"302\",le=\"0.00005\"} 2",
            "resolver_request_duration_seconds_bucket{route=\"redirect\",status=\"302\",le=\"10\"} 2",
            "resolver_request_duration_seconds_bucket{route=\"redirect\",status=\"302\",le=\"+Inf\"} 3",
            "resolver_request_duration_seconds_sum{route=\"redirect\",status=\"302\"} 60.0001",
            "resolver_request_duration_seconds_bucket{route=\"create_short_url\",status=\"200\",le=\"0.001\"} 0",
            "resolver_request_duration_seconds_count{route=\"create_short_url\",status=\"200\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
        }
    }
}
