//! Leader election: one key in etcd, bound to a lease, created only if absent.
//!
//! 1. The leader key's `create_revision` is the epoch. Holding the key gives liveness only; safety
//!    comes from the compare in every ledger transaction.
//! 2. The local deadline of the lease counts from *before* the keep-alive was sent, so this side
//!    gives up first.
//! 3. A watch is a hint to read the key again, never the only source: a poll runs beside it.
//!
//! Rejected: etcd's own `Campaign`. It blocks for as long as another candidate leads, so a
//! channel's timeout kills it, and it returns without reading its key again.

use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, LeaseKeepAliveStream, LeaseKeeper, PutOptions, Txn, TxnOp, TxnOpResponse,
    WatchFilterType, WatchOptions,
};
use numbers::Epoch;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::{Event, Leader},
    ledger::{Ledger, LedgerError, Snapshot, etcd::EtcdLedger},
    metrics::ElectionMetrics,
};

/// Interval at which a follower reads the leader key without a hint from its watch.
const POLL: Duration = Duration::from_secs(1);
/// Back-off after a failed call to etcd.
const PAUSE: Duration = Duration::from_millis(200);

/// A candidate that campaigns for leadership until shutdown.
pub(crate) struct Election {
    /// Client of etcd for the election alone, because its streams last as long as a term.
    pub(crate) client: Client,
    /// Ledger, which is read once after each won election.
    pub(crate) ledger: EtcdLedger,
    /// URL that followers point callers to while this issuer leads.
    pub(crate) advertise: String,
    pub(crate) lease_ttl: Duration,
    pub(crate) elections: mpsc::Sender<Event>,
    /// Count of the driver's abdications; grows when the driver wants to end its term.
    pub(crate) abdications: watch::Receiver<u64>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) metrics: ElectionMetrics,
}

struct Lease {
    id: i64,
    ttl: Duration,
    deadline: Instant,
}

enum Attempt {
    Won { lease: Lease, epoch: Epoch },
    Lost(Leader),
}

impl Election {
    /// Campaigns, leads, resigns and follows. Returns after shutdown, when the key is given up.
    pub(crate) async fn run(mut self) {
        while !self.shutdown.is_cancelled() {
            match self.campaign().await {
                Ok(Attempt::Won { lease, epoch }) => self.lead(lease, epoch).await,
                Ok(Attempt::Lost(leader)) => {
                    self.tell(Event::Following(Some(leader))).await;
                    self.wait_for_vacancy().await;
                }
                Err(error) => {
                    self.failed("campaign", &error);
                    self.pause(PAUSE).await;
                }
            }
        }
    }

    async fn campaign(&mut self) -> Result<Attempt, LedgerError> {
        if let Some(leader) = self.current_leader().await? {
            return Ok(Attempt::Lost(leader));
        }
        let lease = self.grant().await?;
        let key = self.ledger.leader_key.as_str();
        let put = PutOptions::new().with_lease(lease.id);
        let txn = Txn::new()
            .when([Compare::create_revision(key, CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key, self.advertise.as_str(), Some(put))])
            .or_else([TxnOp::get(key, None)]);
        let answer = match self.within(self.client.kv_client().txn(txn)).await {
            Ok(answer) => answer,
            Err(error) => {
                // The key may have been created. Revoking the lease removes it, if etcd receives
                // the call; otherwise the lease expires by itself.
                self.revoke(lease.id).await;
                return Err(error);
            }
        };
        if answer.succeeded() {
            let header = answer.header().ok_or(LedgerError::Incomplete("a header"))?;
            return Ok(Attempt::Won { lease, epoch: epoch_of(header.revision()) });
        }
        self.revoke(lease.id).await;
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(get) => get.kvs().first().map(leader_of),
            _ => None,
        });
        found.map(Attempt::Lost).ok_or(LedgerError::Incomplete("the leader key"))
    }

    async fn current_leader(&self) -> Result<Option<Leader>, LedgerError> {
        let key = self.ledger.leader_key.as_str();
        let answer = self.within(self.client.kv_client().get(key, None)).await?;
        Ok(answer.kvs().first().map(leader_of))
    }

    async fn grant(&self) -> Result<Lease, LedgerError> {
        let asked = Instant::now();
        let seconds = i64::try_from(self.lease_ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let answer = self.within(self.client.lease_client().grant(seconds, None)).await?;
        // etcd silently raises a small TTL, so its answer counts.
        let ttl = Duration::from_secs(u64::try_from(answer.ttl()).unwrap_or(0));
        Ok(Lease { id: answer.id(), ttl, deadline: asked + ttl })
    }

    /// Leads until the lease is lost, the driver abdicates or the process stops.
    async fn lead(&mut self, mut lease: Lease, epoch: Epoch) {
        // An abdication of an earlier term must not end this one.
        self.abdications.mark_unchanged();
        // The lease is kept alive meanwhile: a slow read of the ledger must not cost the term.
        let loaded = tokio::select! {
            loaded = self.load() => Some(loaded),
            () = self.hold(&mut lease) => None,
        };
        match loaded {
            Some(Ok(snapshot)) => {
                tracing::info!(%epoch, keys = snapshot.records.len(), "elected");
                self.tell(Event::Elected { epoch, snapshot }).await;
                self.hold(&mut lease).await;
            }
            None => {}
            Some(Err(error)) => {
                self.metrics.errors.increment(1);
                tracing::error!(error = &error as &dyn std::error::Error, "read the ledger at take-over");
            }
        }
        self.metrics.lease_deadline.send_replace(None);
        self.tell(Event::Following(None)).await;
        self.resign(epoch, lease.id).await;
        tracing::info!(%epoch, "stepped down");
        if !self.shutdown.is_cancelled() {
            self.pause(PAUSE).await;
        }
    }

    /// Reads the ledger. A call that is not answered is made again, to another member, for as long
    /// as the lease lasts: to stand down would cost the platform another election.
    async fn load(&self) -> Result<Snapshot, LedgerError> {
        loop {
            match self.ledger.load().await {
                Err(error @ (LedgerError::TimedOut | LedgerError::Etcd(_))) => {
                    self.failed("read the ledger at take-over", &error);
                    sleep(PAUSE / 10).await;
                }
                loaded => return loaded,
            }
        }
    }

    /// Keeps the lease alive until it is lost or the driver abdicates. The driver also abdicates on
    /// shutdown, after its last transaction, so this does not wait for shutdown itself.
    async fn hold(&self, lease: &mut Lease) {
        let mut abdications = self.abdications.clone();
        while Instant::now() < lease.deadline {
            tokio::select! {
                _ = abdications.changed() => return,
                lost = self.keep_alive(lease) => match lost {
                    Ok(()) => {
                        tracing::warn!("etcd revoked the lease");
                        return;
                    }
                    Err(error) => {
                        // Opens another stream, maybe to another member, while the lease lasts.
                        self.failed("keep the lease alive", &error);
                        sleep(PAUSE.min(lease.ttl / 20)).await;
                    }
                },
            }
        }
        tracing::warn!("the lease ran out");
    }

    /// Runs one keep-alive stream, at most until the lease's deadline. `Ok` means that etcd no
    /// longer has the lease.
    ///
    /// A quarter of the TTL passes before each beat, and another is what its answer may take, as
    /// well as the opening of a stream. So one member that falls silent does not cost the term,
    /// even if the next stream is opened to the same one.
    async fn keep_alive(&self, lease: &mut Lease) -> Result<(), LedgerError> {
        let opened = Instant::now();
        let mut client = self.client.lease_client();
        let opening = lease.deadline.min(opened + lease.ttl / 4);
        let (mut keeper, mut stream) = until(opening, client.keep_alive(lease.id)).await?;
        self.extend(lease, opened);
        loop {
            sleep(lease.ttl / 4).await;
            let sent = Instant::now();
            let answer_by = lease.deadline.min(sent + lease.ttl / 4);
            let Some(ttl) = beat(&mut keeper, &mut stream, answer_by).await? else { return Ok(()) };
            lease.ttl = ttl;
            self.extend(lease, sent);
            self.metrics.keep_alive_seconds.record(sent.elapsed());
        }
    }

    /// Moves the lease's deadline to one TTL after a beat was sent.
    fn extend(&self, lease: &mut Lease, sent: Instant) {
        self.metrics.etcd.succeeded();
        lease.deadline = sent + lease.ttl;
        self.metrics.lease_deadline.send_replace(Some(lease.deadline));
    }

    /// Deletes the leader key, if it is still of this term, and revokes the lease.
    async fn resign(&self, epoch: Epoch, lease: i64) {
        let key = self.ledger.leader_key.as_str();
        let Ok(created) = i64::try_from(epoch.0) else { return };
        let txn = Txn::new()
            .when([Compare::create_revision(key, CompareOp::Equal, created)])
            .and_then([TxnOp::delete(key, None)]);
        if let Err(error) = self.within(self.client.kv_client().txn(txn)).await {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "resign: the lease will run out by itself");
        }
        self.revoke(lease).await;
    }

    async fn revoke(&self, lease: i64) {
        if let Err(error) = self.within(self.client.lease_client().revoke(lease)).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "revoke the lease");
        }
    }

    /// Waits until the leader key should be read again: it was deleted, the poll interval has
    /// passed, or the process is stopping.
    async fn wait_for_vacancy(&self) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = sleep(POLL) => {}
            watched = self.watch_deletion() => if let Err(error) = watched {
                tracing::debug!(error = &error as &dyn std::error::Error, "watch the leader key");
                self.pause(PAUSE).await;
            },
        }
    }

    /// Waits until the leader key is deleted. The watch starts right after the revision at which
    /// the key was last read, so that no deletion is missed.
    async fn watch_deletion(&self) -> Result<(), LedgerError> {
        let key = self.ledger.leader_key.as_str();
        let seen = self.within(self.client.kv_client().get(key, None)).await?;
        if seen.kvs().is_empty() {
            return Ok(());
        }
        let from = seen.header().map_or(0, etcd_client::ResponseHeader::revision) + 1;
        let options = WatchOptions::new().with_start_revision(from).with_filters([WatchFilterType::NoPut]);
        let mut stream = self.within(self.client.watch_client().watch(key, Some(options))).await?;
        while let Some(answer) = stream.message().await? {
            if answer.canceled() || !answer.events().is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, LedgerError> {
        let answer = timeout(self.ledger.deadline, call).await;
        let answer = answer.map_err(|_| LedgerError::TimedOut)??;
        self.metrics.etcd.succeeded();
        Ok(answer)
    }

    fn failed(&self, action: &str, error: &(dyn std::error::Error + 'static)) {
        self.metrics.errors.increment(1);
        tracing::warn!(error, "{action}");
    }

    async fn pause(&self, length: Duration) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = sleep(length) => {}
        }
    }

    async fn tell(&self, result: Event) {
        // A driver that is gone has stopped serving, and needs no message.
        let _ = self.elections.send(result).await;
    }
}

/// Sends a beat and returns the lease's new TTL, or `None` if the lease is gone.
async fn beat(
    keeper: &mut LeaseKeeper,
    stream: &mut LeaseKeepAliveStream,
    deadline: Instant,
) -> Result<Option<Duration>, LedgerError> {
    // `keep_alive` only queues the beat; the answer must be read.
    until(deadline, keeper.keep_alive()).await?;
    let answer = until(deadline, stream.message()).await?.ok_or(LedgerError::Incomplete("a beat"))?;
    Ok(u64::try_from(answer.ttl()).ok().filter(|ttl| *ttl > 0).map(Duration::from_secs))
}

async fn until<T>(
    deadline: Instant,
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, LedgerError> {
    let left = deadline.saturating_duration_since(Instant::now());
    Ok(timeout(left, call).await.map_err(|_| LedgerError::TimedOut)??)
}

fn leader_of(kv: &etcd_client::KeyValue) -> Leader {
    let url = String::from_utf8_lossy(kv.value()).into_owned();
    Leader { url, epoch: epoch_of(kv.create_revision()) }
}

/// Converts a revision of etcd to an epoch. etcd counts revisions from 1.
fn epoch_of(revision: i64) -> Epoch {
    Epoch(u64::try_from(revision).unwrap_or(0))
}
