//! Clients that create links, each sending its next request when the last one was answered.
//!
//! 1. Only what a resolver acknowledged is returned; what was refused or lost is no link.
//! 2. A client's long URLs are its own, so that a link that leads to another's is noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::{Api, Created};
use crate::history::History;
use crate::http::Answer;
use crate::resolver::Resolver;
use crate::wait;

/// How long one link may be refused with 503 before its client gives up.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);

/// Numbers the long URLs of this process.
static LONG_URLS: AtomicU64 = AtomicU64::new(0);

/// A link whose creator was told so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Its code.
    pub code: String,
    /// Where it must lead.
    pub long_url: String,
    /// Which of the load's resolvers created it.
    pub created_on: usize,
}

/// What a client does with a 503 that has a Retry-After; every other answer but 200 ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Ends,
    IsRetried,
}

/// What to create, and on whom.
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
    /// 1,000 creates by 16 clients, spread evenly over the resolvers. No create may fail.
    pub fn on<'a>(resolvers: impl IntoIterator<Item = &'a Resolver>) -> Self {
        let apis = resolvers.into_iter().map(|resolver| resolver.api.clone()).collect();
        let history = History::default();
        Self { apis, clients: 16, creates: 1_000, refusal: Refusal::Ends, pace: None, history }
    }

    /// How many clients.
    #[must_use]
    pub fn clients(mut self, clients: usize) -> Self {
        self.clients = clients;
        self
    }

    /// How many links all clients together create; `usize::MAX` for a load that goes on until [`Running::wind_down`].
    #[must_use]
    pub fn creates(mut self, creates: usize) -> Self {
        self.creates = creates;
        self
    }

    /// Clients that are refused with 503 and Retry-After try again, for a minute at most.
    #[must_use]
    pub fn retries_unavailable(mut self) -> Self {
        self.refusal = Refusal::IsRetried;
        self
    }

    /// Starts that many creates each second, all clients together, and catches up after a delay. Without a rate each client
    /// sends its next request as soon as the last one was answered.
    #[must_use]
    pub fn per_second(mut self, rate: u32) -> Self {
        self.pace = Some(Pace { rate });
        self
    }

    /// Writes every attempt and its outcome into this history, as other loads of the test may.
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

    /// Runs to the end.
    ///
    /// # Errors
    /// A create failed.
    pub async fn run(self) -> anyhow::Result<Vec<Acknowledged>> {
        self.start().finish().await
    }
}

/// How fast a load goes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Creates each second.
    rate: u32,
}

impl Pace {
    /// When the create with this place in the load is due.
    fn due(self, started: Instant, place: usize) -> Instant {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        started + Duration::from_secs(1) * place / self.rate
    }
}

/// What one client was told, and why it ended.
type ClientEnd = (Vec<Acknowledged>, anyhow::Result<()>);

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// What was acknowledged, in no particular order.
    pub links: Vec<Acknowledged>,
    /// Why clients ended before the work was done, one text each.
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

/// A load that goes on while the test does something else. Dropping it ends its clients.
#[derive(Debug)]
pub struct Running {
    clients: JoinSet<ClientEnd>,
    is_over: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    /// Of the clients that were seen to end.
    ended: Ended,
}

impl Running {
    /// How many links were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until that many links are acknowledged.
    ///
    /// # Errors
    /// They are not in time, or a create failed.
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

    /// Lets every client end after the create it is at; wait for them with [`Self::finish`] or [`Self::end`].
    pub fn wind_down(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits for all clients, however they end.
    ///
    /// # Errors
    /// A client panicked.
    pub async fn end(mut self) -> anyhow::Result<Ended> {
        while let Some(client) = self.clients.join_next().await {
            self.ended.add(client)?;
        }
        Ok(self.ended)
    }

    /// Waits for all clients to do their work.
    ///
    /// # Errors
    /// A create failed; the message holds every client's failure.
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
            // Another URL each time: one that was refused may be stored all the same.
            let long_url = next_long_url();
            let attempt = self.history.attempt();
            let answer = self.api.try_create(&long_url).await;
            let answer = answer.with_context(|| format!("create {long_url}"))?;
            if answer.status == 200 {
                let code = Created::read(&answer)?.code;
                let link = Acknowledged { code, long_url, created_on: self.created_on };
                attempt.acknowledged(&link);
                return Ok(link);
            }
            attempt.failed();
            let is_retried = self.refusal == Refusal::IsRetried && is_unavailable(&answer);
            anyhow::ensure!(is_retried, "create {long_url}: answered {answer:?}");
            anyhow::ensure!(Instant::now() < deadline, "refused for {REFUSED_WITHIN:?}: {answer:?}");
            // Much sooner than Retry-After asks for: the load must notice when the server is back.
            sleep(wait::POLL_INTERVAL).await;
        }
    }
}

/// Whether the answer is a 503 that says when to come again, in seconds.
pub fn is_unavailable(answer: &Answer) -> bool {
    let seconds = answer.header("retry-after").and_then(|value| value.parse::<u32>().ok());
    answer.status == 503 && seconds.is_some()
}

/// A URL that this process has not used yet.
pub fn next_long_url() -> String {
    format!("https://example.com/target/{}?from=test", LONG_URLS.fetch_add(1, Ordering::Relaxed))
}
