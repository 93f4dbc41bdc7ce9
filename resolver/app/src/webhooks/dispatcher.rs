//! The task that delivers events. Every process of a database runs it.
//!
//! 1. A delivery is attempted by the process that has its lease. A process that ends between an
//!    attempt and the report of it leaves the delivery to another one, which sends the event again
//!    with the same message id: at least once.
//! 2. At most [`ATTEMPTS_MAX`] attempts are under way at once, [`PER_RECEIVER`] of them for one
//!    webhook or one host, so that a receiver that hangs delays no other one.
//! 3. Without webhooks the task only removes what is left of former ones: the settings say that
//!    there are none.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use links::webhook::{Webhook, WebhookId, host};
use store::{AfterAttempt, ClaimedDelivery, Store, StoreError};
use tokio::{
    task::{self, JoinSet},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    attempt::{UNCHANGED, attempt, end_of},
    metrics::WebhookMetrics,
};
use ::webhooks::Sender;
use lookup::{Lookup, domain_cache::DomainCache};

const ATTEMPTS_MAX: usize = 16;
/// Maximum number of attempts under way for one webhook, and for one host.
const PER_RECEIVER: usize = 4;
/// How often the database is asked for events and due deliveries.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a delivery is left to its process. An attempt ends within 15 s.
const LEASE: Duration = Duration::from_secs(60);
/// How long the report of an attempt is tried. After it, the lease of the delivery ends.
const REPORT_FOR: Duration = Duration::from_secs(30);
const REPORT_PAUSE: Duration = Duration::from_secs(2);
/// How often old deliveries are removed and the gauges are set.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);
/// How long ended deliveries are shown, and open ones of a disabled webhook are kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);
const REMOVED_AT_ONCE: u32 = 1_000;
const STEPS_MAX: usize = 20;
/// How long the end of the process waits for attempts under way.
pub const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The task that turns events into deliveries and attempts them.
pub struct Dispatcher {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Knows the codes of links.
    pub lookup: Arc<Lookup>,
    /// Knows the domains, whether there are webhooks, and the time.
    pub domain_cache: Arc<DomainCache>,
    /// Makes attempts.
    pub sender: Arc<Sender>,
    /// Counters and gauges.
    pub metrics: Arc<WebhookMetrics>,
}

/// The receiver of an attempt under way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    webhook: WebhookId,
    host: String,
}

impl Slot {
    fn of(webhook: &Webhook) -> Self {
        Self { webhook: webhook.id, host: host(&webhook.url) }
    }
}

#[derive(Debug, Default)]
struct UnderWay {
    slots: HashMap<task::Id, Slot>,
    tasks: JoinSet<()>,
}

/// Returns how many attempts each of these webhooks may begin beside those that have taken slots.
/// The share of each is small, so that all get their turn.
fn room(mut taken: Vec<Slot>, due: &[Webhook]) -> Vec<(WebhookId, u32)> {
    let mut room: Vec<(WebhookId, u32)> = due.iter().map(|webhook| (webhook.id, 0)).collect();
    for _ in 0..PER_RECEIVER {
        for (webhook, (_, share)) in due.iter().zip(&mut room) {
            let slot = Slot::of(webhook);
            let of_webhook = taken.iter().filter(|other| other.webhook == slot.webhook).count();
            let of_host = taken.iter().filter(|other| other.host == slot.host).count();
            if taken.len() < ATTEMPTS_MAX && of_webhook < PER_RECEIVER && of_host < PER_RECEIVER {
                taken.push(slot);
                *share += 1;
            }
        }
    }
    room.retain(|(_, share)| *share > 0);
    room
}

impl UnderWay {
    /// Waits for the end of an attempt; for ever if none is under way. Frees the slots of all that
    /// have ended, also of those that panicked.
    async fn next(&mut self) {
        let mut ended = self.tasks.join_next_with_id().await;
        if ended.is_none() {
            std::future::pending::<()>().await;
        }
        while let Some(attempt) = ended {
            let id = attempt.map_or_else(|error| error.id(), |(id, ())| id);
            self.slots.remove(&id);
            ended = self.tasks.try_join_next_with_id();
        }
    }
}

impl Dispatcher {
    /// Runs until `stop` is cancelled, and then waits for attempts under way, at most
    /// [`STOP_WITHIN`].
    pub async fn run(self, stop: CancellationToken) {
        let this = Arc::new(self);
        let (mut under_way, mut upkeep) = (UnderWay::default(), Instant::now());
        while !stop.is_cancelled() {
            if let Err(error) = this.round(&mut under_way).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "deliver events to webhooks");
            }
            if upkeep <= Instant::now() {
                this.keep_up().await;
                upkeep = Instant::now() + UPKEEP_EVERY;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = under_way.next() => {}
                () = sleep(INTERVAL) => {}
            }
        }
        let ended = async { while under_way.tasks.join_next().await.is_some() {} };
        if timeout(STOP_WITHIN, ended).await.is_err() {
            tracing::warn!("attempts to deliver events were under way at the end: they will be made again");
        }
    }

    async fn round(self: &Arc<Self>, under_way: &mut UnderWay) -> Result<(), StoreError> {
        if self.domain_cache.entries().webhooks.is_empty() {
            return Ok(());
        }
        self.fan_out().await?;
        if under_way.slots.len() >= ATTEMPTS_MAX {
            return Ok(());
        }
        let mut due = self.store.due_webhooks().await?;
        // Each process begins with another webhook, and in each round.
        let first = usize::try_from(getrandom::u32().unwrap_or(0)).unwrap_or(0) % due.len().max(1);
        due.rotate_left(first);
        let room = room(under_way.slots.values().cloned().collect(), &due);
        if room.is_empty() {
            return Ok(());
        }
        for delivery in self.store.claim_deliveries(&room, LEASE).await? {
            let Some(webhook) = due.iter().find(|webhook| webhook.id == delivery.webhook) else { continue };
            let (this, slot, webhook) = (Arc::clone(self), Slot::of(webhook), webhook.clone());
            let task = under_way.tasks.spawn(async move { this.deliver(&webhook, &delivery).await });
            under_way.slots.insert(task.id(), slot);
        }
        Ok(())
    }

    /// Makes an attempt, and reports its end.
    async fn deliver(&self, webhook: &Webhook, delivery: &ClaimedDelivery) {
        let now = || -> Timestamp { self.domain_cache.now() };
        let attempt = attempt(&self.sender, webhook, delivery, now()).await;
        let jitter = getrandom::u32().unwrap_or(UNCHANGED);
        let end = end_of(webhook, delivery, attempt, now(), jitter);
        match end.next {
            AfterAttempt::Delivered => {
                self.metrics.receivers.succeeded();
                self.metrics.delivered.increment(1);
            }
            AfterAttempt::RetryIn(_) => {
                self.metrics.receivers.failed();
                self.metrics.retried.increment(1);
            }
            AfterAttempt::Dead => {
                self.metrics.receivers.failed();
                self.metrics.dead.increment(1);
            }
        }
        let until = Instant::now() + REPORT_FOR;
        loop {
            match self.store.end_attempt(&end).await {
                Ok(false) => return,
                Ok(true) => {
                    self.metrics.disabled.increment(1);
                    let reason = end.disable.map_or("", store::Disable::reason);
                    let host = host(&webhook.url);
                    tracing::warn!(webhook = %webhook.id, host, reason, "a webhook is disabled");
                    return;
                }
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "record a delivery");
                    return;
                }
                Err(_) => sleep(REPORT_PAUSE).await,
            }
        }
    }

    /// Removes old deliveries and events, and sets the gauges.
    async fn keep_up(&self) {
        for _ in 0..STEPS_MAX {
            match self.store.purge_webhooks(KEPT_FOR, REMOVED_AT_ONCE).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "remove old deliveries");
                    break;
                }
            }
        }
        let backlog = self.store.webhook_backlog().await;
        let log = |error: &StoreError| {
            tracing::warn!(error = error as &dyn std::error::Error, "count open deliveries");
        };
        self.metrics.set_backlog(backlog.inspect_err(log).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::webhook, *};

    fn shares(taken: Vec<Slot>, due: &[Webhook]) -> Vec<(i64, u32)> {
        room(taken, due).into_iter().map(|(id, share)| (id.get(), share)).collect()
    }

    #[test]
    fn webhooks_of_one_host_share_its_attempts() {
        let due =
            [webhook(1, "https://a.test/1"), webhook(2, "https://a.test/2"), webhook(3, "https://b.test/")];
        assert_eq!(shares(Vec::new(), &due), [(1, 2), (2, 2), (3, 4)]);
        let slot = |webhook: i64, host: &str| Slot {
            webhook: WebhookId::from_stored(webhook),
            host: host.to_owned(),
        };
        let mut taken = vec![slot(3, "b.test"); 3];
        taken.push(slot(9, "a.test"));
        assert_eq!(shares(taken.clone(), &due), [(1, 2), (2, 1), (3, 1)]);
        assert_eq!(shares(taken.split_off(1), &due[2..]), [(3, 2)]);
    }

    #[test]
    fn many_webhooks_get_a_turn_each_and_no_more_than_all_attempts() {
        let due: Vec<Webhook> = (1..=20).map(|id| webhook(id, &format!("https://h{id}.test/"))).collect();
        let room = shares(Vec::new(), &due);
        assert_eq!(room.len(), ATTEMPTS_MAX);
        assert!(room.iter().all(|(_, share)| *share == 1), "{room:?}");
    }
}
