//! The requests that notice an interruption: one of each kind at fixed times.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::Context as _;
use harness::{Acknowledged, Api, Created};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::named::named_values;

/// From one uncached link to the next: links that were created together are on the same node of a
/// distributed database. It has no divisor in common with their number.
const STRIDE: usize = 61_803;

named_values! {
    /// The kinds of requests.
    pub(super) enum Kind {
        Create => "creates",
        /// A redirect of a link that the resolver has not seen before.
        Uncached => "uncached redirects",
        /// A redirect of a link that the resolver has in its cache.
        Cached => "cached redirects",
    }
}

/// One answered or broken-off request.
#[derive(Clone, Copy, Debug)]
struct Sample {
    kind: Kind,
    sent: Instant,
    done: Instant,
    succeeded: bool,
}

/// Results of the requests of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) sent: usize,
    pub(super) failed: usize,
    /// The failures among the requests that were sent after the fault's first second and before
    /// its end, and the number of these.
    pub(super) later: (usize, usize),
    /// The slowest answer, of failures too.
    pub(super) slowest: Duration,
    /// The time from the fault's end to the first answer after the last failure; zero if that came
    /// before the end, `None` if no request failed.
    pub(super) recovered: Option<Duration>,
}

/// All requests to one resolver.
#[derive(Debug)]
pub(super) struct Probes {
    api: Api,
    /// The path and the long URL of the links that are followed once each.
    uncached: Vec<String>,
    next: AtomicUsize,
    cached: Acknowledged,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    samples: Vec<Sample>,
    acknowledged: Vec<Acknowledged>,
    /// The first answer that breaks a promise.
    broken: Option<String>,
}

impl Probes {
    /// Returns probes of the resolver at `api`, for uncached links as `links::create` makes them.
    pub(super) async fn new(api: Api, uncached: Vec<String>) -> anyhow::Result<Self> {
        let long_url = "https://example.org/cached".to_owned();
        let code = api.create(&long_url).await.context("create the link that is cached")?.code;
        let cached = Acknowledged { code, long_url, created_on: 1 };
        Ok(Self { api, uncached, next: AtomicUsize::new(0), cached, log: Mutex::default() })
    }

    /// Sends a request of each kind in every period, until it is aborted.
    pub(super) async fn send(self: Arc<Self>, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let number = self.next.fetch_add(1, Relaxed);
            for kind in Kind::ALL {
                tokio::spawn(Arc::clone(&self).send_one(kind, number));
            }
        }
    }

    async fn send_one(self: Arc<Self>, kind: Kind, number: usize) {
        let sent = Instant::now();
        let asked = match kind {
            Kind::Create => self.create(number).await,
            Kind::Cached => self.follow(&self.cached.code, &self.cached.long_url).await,
            Kind::Uncached if number < self.uncached.len() => {
                let place = number * STRIDE % self.uncached.len();
                let long_url = format!("https://example.org/some/where/{place}");
                self.follow(self.uncached[place].trim_start_matches('/'), &long_url).await
            }
            Kind::Uncached => Err("all uncached links have been followed".to_owned()),
        };
        let mut log = self.log();
        let succeeded = *asked.as_ref().unwrap_or(&false);
        log.samples.push(Sample { kind, sent, done: Instant::now(), succeeded });
        if let Err(broken) = asked {
            log.broken.get_or_insert(broken);
        }
    }

    /// Creates a link and returns whether it was acknowledged.
    async fn create(&self, number: usize) -> Result<bool, String> {
        let long_url = format!("https://example.org/created/{number}");
        let Ok(answer) = self.api.try_create(&long_url).await else { return Ok(false) };
        match answer.status {
            200 => {
                let code = Created::read(&answer).map_err(|error| format!("{error:#}"))?.code;
                self.log().acknowledged.push(Acknowledged { code, long_url, created_on: 1 });
                Ok(true)
            }
            500.. => Ok(false),
            status => Err(format!("a create was answered with {status}")),
        }
    }

    /// Follows a link and returns whether it led to its URL.
    async fn follow(&self, code: &str, long_url: &str) -> Result<bool, String> {
        match self.api.follow(code).await {
            Err(_) => Ok(false),
            Ok((302, Some(location))) if location == long_url => Ok(true),
            Ok((500.., _)) => Ok(false),
            Ok((status, location)) => Err(format!("{code} was answered with {status} {location:?}")),
        }
    }

    /// Forgets the requests so far, but not the links that they created.
    pub(super) fn forget(&self) {
        self.log().samples.clear();
    }

    /// Returns whether requests of every kind were answered in the last `time`, and none failed.
    ///
    /// # Errors
    /// Returns an error if an answer broke a promise.
    pub(super) fn are_steady(&self, time: Duration) -> anyhow::Result<bool> {
        let log = self.log();
        if let Some(broken) = &log.broken {
            anyhow::bail!("{broken}");
        }
        let late: Vec<_> = log.samples.iter().filter(|sample| sample.done.elapsed() < time).collect();
        let has = |kind| late.iter().any(|sample| sample.kind == kind);
        Ok(late.iter().all(|sample| sample.succeeded) && Kind::ALL.into_iter().all(has))
    }

    /// Returns what the requests of a kind met, before and after the fault's end.
    pub(super) fn seen(&self, kind: Kind, fault: Range<Instant>) -> Seen {
        let (end, first) = (fault.end, Duration::from_secs(1));
        let log = self.log();
        let samples: Vec<_> = log.samples.iter().filter(|sample| sample.kind == kind).collect();
        let failed = samples.iter().filter(|sample| !sample.succeeded);
        let last_failed = failed.clone().map(|sample| sample.sent).max();
        let recovered = last_failed.and_then(|last| {
            let later = samples.iter().filter(|sample| sample.sent > last).map(|sample| sample.done);
            later.min().map(|first| first.saturating_duration_since(end))
        });
        let slowest = samples.iter().map(|sample| sample.done - sample.sent).max();
        let later = samples.iter().filter(|sample| (fault.start + first..end).contains(&sample.sent));
        Seen {
            sent: samples.len(),
            later: (later.clone().filter(|sample| !sample.succeeded).count(), later.count()),
            failed: failed.count(),
            slowest: slowest.unwrap_or_default(),
            recovered,
        }
    }

    /// Returns the links created so far.
    pub(super) fn acknowledged(&self) -> Vec<Acknowledged> {
        self.log().acknowledged.clone()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no code panics while it holds this lock")
    }
}
