//! Steady traffic of visitors and API clients, as every installation has. Its failures are not
//! looked at: the alerts have to tell of them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use harness::{Answer, Api, Resolver, load};
use tokio::{sync::Semaphore, task::JoinHandle, time::interval};

/// The time between two redirects.
const REDIRECT_EVERY: Duration = Duration::from_millis(10);
/// A create comes with every so many redirects, and a redirect of a link that no cache has.
const CREATE_EVERY: usize = 10;
/// Links that were created for it. A cache has each of them after its first redirect.
const LINKS: usize = 20_000;
/// Requests that wait for an answer at once.
const WAITING_MAX: usize = 200;

/// Traffic that goes on until it is dropped.
pub(crate) struct Traffic {
    to: Arc<Mutex<Vec<Api>>>,
    task: JoinHandle<()>,
}

impl Traffic {
    /// Creates links, and starts to send.
    ///
    /// # Errors
    /// Returns an error if the links cannot be created.
    pub(crate) async fn start(resolver: &Resolver) -> anyhow::Result<Self> {
        let codes = create(resolver, LINKS).await?;
        let to = Arc::new(Mutex::new(vec![resolver.api.clone()]));
        let task = tokio::spawn(send(Arc::clone(&to), codes));
        Ok(Self { to, task })
    }

    /// Sends to these resolvers from now on, in turns.
    pub(crate) fn to<'a>(&self, resolvers: impl IntoIterator<Item = &'a Resolver>) {
        let apis = resolvers.into_iter().map(|resolver| resolver.api.clone()).collect();
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = apis;
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Creates links by a bulk call, so that no cache has them, and returns their codes.
///
/// # Errors
/// Returns an error if the call fails.
pub(crate) async fn create(resolver: &Resolver, count: usize) -> anyhow::Result<Vec<String>> {
    let api = &resolver.api;
    let request = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    let body = "{\"longUrl\":\"https://example.com/some/where\"}\n".repeat(count);
    let answer = Answer::to(request.header("X-Api-Key", api.key()).body(body)).await?.success()?;
    let codes = answer.body.lines().map(|line| {
        let link: serde_json::Value = serde_json::from_str(line)?;
        Ok(link["shortCode"].as_str().with_context(|| line.to_owned())?.to_owned())
    });
    codes.collect()
}

async fn send(to: Arc<Mutex<Vec<Api>>>, codes: Vec<String>) {
    let waiting = Arc::new(Semaphore::new(WAITING_MAX));
    let mut ticks = interval(REDIRECT_EVERY);
    for number in 0.. {
        ticks.tick().await;
        let apis = to.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // As a proxy in front, which has no more connections.
        let Ok(permit) = Arc::clone(&waiting).try_acquire_owned() else { continue };
        let Some(api) = apis.get(number / CREATE_EVERY % apis.len().max(1)).cloned() else { continue };
        // The first of ten is a link that no cache has, and the others are few.
        let place = number % CREATE_EVERY;
        let code = codes[if place == 0 { number / CREATE_EVERY % codes.len() } else { place }].clone();
        let is_create = place == 1;
        tokio::spawn(async move {
            if is_create {
                let _ = api.try_create(&load::next_long_url()).await;
            } else {
                let _ = api.follow(&code).await;
            }
            drop(permit);
        });
    }
}
