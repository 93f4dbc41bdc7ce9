//! How long a server has not answered, whether or not anything is asked of it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The last answer of a server, for the metrics page.
#[derive(Debug)]
pub struct Contact {
    /// The server's name on the page.
    pub server: &'static str,
    is_polled: bool,
    /// The instant from which its age counts.
    since: Mutex<Option<Instant>>,
}

impl Contact {
    /// Creates the contact of a server that is asked every few seconds. Its age counts from the
    /// last success, or from now before the first.
    pub fn polled(server: &'static str) -> Self {
        Self { server, is_polled: true, since: Mutex::new(Some(Instant::now())) }
    }

    /// Creates the contact of servers that are only asked when there is something for them. Its age
    /// counts from the first failure after the last success, and is 0 while there is none.
    pub fn on_demand(server: &'static str) -> Self {
        Self { server, is_polled: false, since: Mutex::default() }
    }

    /// Notes that the server has done what it was asked for.
    pub fn succeeded(&self) {
        *self.since() = self.is_polled.then(Instant::now);
    }

    /// Notes that the server has refused or not answered.
    pub fn failed(&self) {
        self.since().get_or_insert_with(Instant::now);
    }

    /// Returns for how long the server has not answered.
    pub fn age(&self) -> Duration {
        self.since().map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_polled_server_ages_from_its_last_success_and_others_from_their_first_failure() {
        const SECOND: Duration = Duration::from_secs(1);
        let (polled, other) = (Contact::polled("issuer"), Contact::on_demand("receivers"));
        let ages = || (polled.age(), other.age());
        advance(2 * SECOND).await;
        assert_eq!(ages(), (2 * SECOND, Duration::ZERO), "one has never answered, the other was not asked");
        [&polled, &other].into_iter().for_each(Contact::succeeded);
        assert_eq!(ages(), (Duration::ZERO, Duration::ZERO));
        advance(SECOND).await;
        [&polled, &other].into_iter().for_each(Contact::failed);
        advance(SECOND).await;
        [&polled, &other].into_iter().for_each(Contact::failed);
        assert_eq!(ages(), (2 * SECOND, SECOND));
        [&polled, &other].into_iter().for_each(Contact::succeeded);
        assert_eq!(ages(), (Duration::ZERO, Duration::ZERO));
    }
}
