//! How long a server has not answered, whether or not anything is asked of it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// The last answer of a server, for the metrics page.
#[derive(Debug)]
pub struct Contact {
    /// The server's name on the page.
    pub server: &'static str,
    since: Instant,
    is_polled: bool,
    /// The time of the last success, in milliseconds since `since`, plus one; 0 before the first.
    succeeded: AtomicU64,
    /// The time of the first failure after it, likewise.
    failed: AtomicU64,
}

impl Contact {
    /// Creates the contact of a server that is asked every few seconds. Its age counts from the
    /// last success, or from now before the first.
    #[must_use]
    pub fn polled(server: &'static str) -> Self {
        Self::new(server, true)
    }

    /// Creates the contact of servers that are only asked when there is something for them. Its age
    /// counts from the first failure after the last success, and is 0 while there is none.
    #[must_use]
    pub fn on_demand(server: &'static str) -> Self {
        Self::new(server, false)
    }

    fn new(server: &'static str, is_polled: bool) -> Self {
        let (succeeded, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { server, since: Instant::now(), is_polled, succeeded, failed }
    }

    /// Notes that the server has done what it was asked for.
    pub fn succeeded(&self) {
        self.succeeded.store(self.now(), Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Notes that the server has refused or not answered.
    pub fn failed(&self) {
        let _ = self.failed.compare_exchange(0, self.now(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns for how long the server has not answered.
    #[must_use]
    pub fn age(&self) -> Duration {
        let from = if self.is_polled { &self.succeeded } else { &self.failed };
        match (from.load(Ordering::Relaxed), self.is_polled) {
            (0, false) => Duration::ZERO,
            (from, _) => Duration::from_millis(self.now().saturating_sub(from.max(1))),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_polled_server_ages_from_its_last_success() {
        let contact = Contact::polled("issuer");
        advance(2 * SECOND).await;
        assert_eq!(contact.age(), 2 * SECOND, "it has never answered");
        contact.succeeded();
        assert_eq!(contact.age(), Duration::ZERO);
        advance(SECOND).await;
        contact.failed();
        advance(SECOND).await;
        assert_eq!(contact.age(), 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_asked_on_demand_ages_from_the_first_failure() {
        let contact = Contact::on_demand("receivers");
        advance(2 * SECOND).await;
        assert_eq!(contact.age(), Duration::ZERO, "nothing was asked");
        contact.failed();
        advance(SECOND).await;
        contact.failed();
        assert_eq!(contact.age(), SECOND);
        contact.succeeded();
        advance(SECOND).await;
        assert_eq!(contact.age(), Duration::ZERO);
    }
}
