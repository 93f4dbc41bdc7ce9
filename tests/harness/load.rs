//! A closed-loop load: clients that create links, each sending its next request after the last
//! response.
//!
//! 1. Only acknowledged links are returned; a refused or lost create is not a link.
//! 2. Every long URL is used once, so that a link that redirects to another link's URL is noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::Api;
use crate::history::History;
use crate::http::Answer;
use crate::resolver::Resolver;
use crate::wait;

/// The time after which a client gives up on a link that is refused with 503.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);

/// The counter that makes the long URLs of this process distinct.
static LONG_URLS: AtomicU64 = AtomicU64::new(0);

/// A link whose create was answered with a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The short code.
    pub code: String,
    /// The long URL that it must redirect to.
    pub long_url: String,
    /// The index of the load's resolver that created it.
    pub created_on: usize,
}

/// The reaction of a client to a 503 with Retry-After. Any other status but 200 ends the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Ends,
    IsRetried,
}

/// A builder for a load of creates on some resolvers.
#[derive(Clone, Debug)]
pub struct Load {
    apis: Vec<Api>,
    clients: usize,
    creates: usize,
    refusal: Refusal,
    pace: Option<Pace>,
    history: History,
}

impl Load {
    /// Returns a load of 1,000 creates by 16 clients, spread evenly over the resolvers. No create
    /// may fail.
    pub fn on<'a>(resolvers: impl IntoIterator<Item = &'a Resolver>) -> Self {
        let apis = resolvers.into_iter().map(|resolver| resolver.api.clone()).collect();
        let history = History::default();
        Self { apis, clients: 16, creates: 1_000, refusal: Refusal::Ends, pace: None, history }
    }

    /// Sets the number of clients.
    #[must_use]
    pub fn clients(mut self, clients: usize) -> Self {
        self.clients = clients;
        self
    }

    /// Sets the number of links that all clients together create; `usize::MAX` for a load that runs
    /// until [`Running::wind_down`].
    #[must_use]
    pub fn creates(mut self, creates: usize) -> Self {
        self.creates = creates;
        self
    }

    /// Makes clients retry for up to a minute when refused with 503 and Retry-After.
    #[must_use]
    pub fn retries_unavailable(mut self) -> Self {
        self.refusal = Refusal::IsRetried;
        self
    }

    /// Sets a rate of creates per second, over all clients, that catches up after a delay. Without
    /// a rate each client sends its next request right after the last response.
    #[must_use]
    pub fn per_second(mut self, rate: u32) -> Self {
        self.pace = Some(Pace { rate });
        self
    }

    /// Records every attempt and its outcome in this history, which other loads of the test may
    /// share.
    #[must_use]
    pub fn recorded(mut self, history: &History) -> Self {
        self.history = history.clone();
        self
    }

    /// Starts the clients.
    pub fn start(self) -> Running {
        let (claimed, acknowledged) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (started, is_over) = (Instant::now(), Arc::<AtomicBool>::default());
        let mut clients = JoinSet::new();
        for index in 0..self.clients {
            let created_on = index % self.apis.len();
            let client = Client {
                api: self.apis[created_on].clone(),
                created_on,
                creates: self.creates,
                refusal: self.refusal,
                pace: self.pace,
                started,
                history: self.history.clone(),
                is_over: Arc::clone(&is_over),
                claimed: Arc::clone(&claimed),
                acknowledged: Arc::clone(&acknowledged),
            };
            clients.spawn(client.run());
        }
        Running { clients, is_over, acknowledged, ended: Ended::default() }
    }

    /// Runs the load to completion and returns the acknowledged links.
    ///
    /// # Errors
    /// Returns an error if a create failed.
    pub async fn run(self) -> anyhow::Result<Vec<Acknowledged>> {
        self.start().finish().await
    }
}

/// The rate of a load.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Creates per second.
    rate: u32,
}

impl Pace {
    /// Returns the time at which the create with this index in the load is due.
    fn due(self, started: Instant, place: usize) -> Instant {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        started + Duration::from_secs(1) * place / self.rate
    }
}

/// A client's acknowledged links, and its success or the failure that ended it.
type ClientEnd = (Vec<Acknowledged>, anyhow::Result<()>);

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The acknowledged links, in no particular order.
    pub links: Vec<Acknowledged>,
    /// The failures that ended clients before the work was done, one text each.
    pub failures: Vec<String>,
}

impl Ended {
    fn add(&mut self, client: Result<ClientEnd, JoinError>) -> anyhow::Result<()> {
        let (links, outcome) = client.context("a client's task ended early")?;
        self.links.extend(links);
        self.failures.extend(outcome.err().map(|failed| format!("{failed:#}")));
        Ok(())
    }
}

/// A load that runs in the background. Dropping it aborts its clients.
#[derive(Debug)]
pub struct Running {
    clients: JoinSet<ClientEnd>,
    is_over: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    /// The results of the clients that have ended so far.
    ended: Ended,
}

impl Running {
    /// Returns the number of links acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until that many links are acknowledged.
    ///
    /// # Errors
    /// Returns an error if they are not acknowledged in time or a create failed.
    pub async fn reaches(&mut self, count: usize, within: Duration) -> anyhow::Result<()> {
        let what = format!("{count} creates are acknowledged");
        let reached = wait::until_some(within, &what, async || {
            while let Some(client) = self.clients.try_join_next() {
                if let Err(failed) = self.ended.add(client) {
                    return Some(Err(failed));
                }
            }
            if let Some(failure) = self.ended.failures.first() {
                return Some(Err(anyhow::anyhow!("{failure}")));
            }
            (self.acknowledged() >= count).then_some(Ok(()))
        });
        let reached = reached.await.flatten();
        reached
            .with_context(|| format!("waited for {count} creates, {} are acknowledged", self.acknowledged()))
    }

    /// Ends every client after its current create. Wait for the clients with [`Self::finish`] or
    /// [`Self::end`].
    pub fn wind_down(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits for all clients and returns their links and failures.
    ///
    /// # Errors
    /// Returns an error if a client panicked.
    pub async fn end(mut self) -> anyhow::Result<Ended> {
        while let Some(client) = self.clients.join_next().await {
            self.ended.add(client)?;
        }
        Ok(self.ended)
    }

    /// Waits for all clients and returns the acknowledged links.
    ///
    /// # Errors
    /// Returns an error if a create failed; the message contains every client's failure.
    pub async fn finish(self) -> anyhow::Result<Vec<Acknowledged>> {
        let Ended { links, failures } = self.end().await?;
        let count = failures.len();
        anyhow::ensure!(failures.is_empty(), "{count} clients failed:\n{}", failures.join("\n"));
        Ok(links)
    }
}

struct Client {
    api: Api,
    created_on: usize,
    creates: usize,
    refusal: Refusal,
    pace: Option<Pace>,
    started: Instant,
    history: History,
    is_over: Arc<AtomicBool>,
    claimed: Arc<AtomicUsize>,
    acknowledged: Arc<AtomicUsize>,
}

impl Client {
    async fn run(self) -> ClientEnd {
        let mut links = Vec::new();
        loop {
            let place = self.claimed.fetch_add(1, Ordering::Relaxed);
            if place >= self.creates || self.is_over.load(Ordering::Relaxed) {
                return (links, Ok(()));
            }
            if let Some(pace) = self.pace {
                sleep_until(pace.due(self.started, place)).await;
            }
            match self.create().await {
                Ok(link) => links.push(link),
                Err(failed) => return (links, Err(failed)),
            }
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn create(&self) -> anyhow::Result<Acknowledged> {
        let deadline = Instant::now() + REFUSED_WITHIN;
        loop {
            // A retry uses another URL, because a refused create may have been stored all the same.
            let answer = match self.history.create(&self.api, self.created_on).await? {
                Ok(link) => return Ok(link),
                Err(answer) => answer,
            };
            let is_retried = self.refusal == Refusal::IsRetried && is_unavailable(&answer);
            anyhow::ensure!(is_retried, "a create was answered {answer:?}");
            anyhow::ensure!(Instant::now() < deadline, "refused for {REFUSED_WITHIN:?}: {answer:?}");
            // Much sooner than Retry-After asks for: the load must notice when the server is back.
            sleep(wait::POLL_INTERVAL).await;
        }
    }
}

/// Returns whether the response is a 503 with a Retry-After in seconds.
pub fn is_unavailable(answer: &Answer) -> bool {
    let seconds = answer.header("retry-after").and_then(|value| value.parse::<u32>().ok());
    answer.status == 503 && seconds.is_some()
}

/// Returns a long URL that this process has not used yet.
pub fn next_long_url() -> String {
    format!("https://example.com/target/{}?from=test", LONG_URLS.fetch_add(1, Ordering::Relaxed))
}
