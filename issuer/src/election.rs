//! Who leads: one key in etcd, bound to a lease, created only if absent.
//!
//! 1. The leader key's `create_revision` is the epoch. Holding it gives liveness only; safety comes from the compare
//!    in every transaction of the ledger.
//! 2. The local deadline of the lease counts from *before* the keep-alive was sent, so this side gives up first.
//! 3. A watch is a hint to look again, never the only source: a poll runs beside it.
//!
//! Rejected: etcd's own `Campaign`. It blocks for as long as somebody else leads, so a channel's time limit kills it,
//! and it returns without looking at its key again.

use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, GetOptions, LeaseKeepAliveStream, LeaseKeeper, PutOptions, Txn, TxnOp,
    TxnOpResponse, WatchFilterType, WatchOptions,
};
use numbers::Epoch;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::Leader,
    driver::Tidings,
    ledger::{
        Ledger, LedgerError,
        etcd::{EtcdLedger, leader_key},
    },
    metrics::ElectionMetrics,
};

/// How often a follower looks without having been told to.
const POLL: Duration = Duration::from_secs(1);
/// Pause after trouble with etcd.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs for leader again and again until told to stop.
pub(crate) struct Election {
    /// A client of its own: its streams live as long as a term.
    pub client: Client,
    /// Read once after each victory.
    pub ledger: EtcdLedger,
    /// The cluster's name.
    pub cluster: String,
    /// The address that followers point callers to.
    pub advertise: String,
    /// The time to live to ask for.
    pub lease_ttl: Duration,
    /// No call waits longer.
    pub deadline: Duration,
    /// Tells the driver of victories and defeats.
    pub tidings: mpsc::Sender<Tidings>,
    /// Grows when the driver wants out of its current term.
    pub abdications: watch::Receiver<u64>,
    /// Ends the candidate.
    pub shutdown: CancellationToken,
    /// What an operator sees.
    pub metrics: ElectionMetrics,
}

/// A lease with its local deadline.
struct Lease {
    id: i64,
    ttl: Duration,
    deadline: Instant,
}

/// What one attempt came to.
enum Attempt {
    Won { lease: Lease, epoch: Epoch },
    Lost(Leader),
}

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
enum ElectionError {
    #[error("etcd")]
    Etcd(#[from] etcd_client::Error),
    #[error("read the ledger")]
    Ledger(#[from] LedgerError),
    #[error("etcd did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("etcd answered without {0}")]
    Incomplete(&'static str),
}

impl Election {
    /// Campaigns, leads, resigns, follows; returns when shut down, its key given up.
    pub(crate) async fn run(mut self) {
        while !self.shutdown.is_cancelled() {
            match self.campaign().await {
                Ok(Attempt::Won { lease, epoch }) => self.lead(lease, epoch).await,
                Ok(Attempt::Lost(leader)) => {
                    self.tell(Tidings::Following(Some(leader))).await;
                    self.wait_for_vacancy().await;
                }
                Err(error) => {
                    self.metrics.errors.increment(1);
                    tracing::warn!(error = &error as &dyn std::error::Error, "campaign");
                    self.pause(PAUSE).await;
                }
            }
        }
    }

    async fn campaign(&mut self) -> Result<Attempt, ElectionError> {
        if let Some(leader) = self.current_leader().await? {
            return Ok(Attempt::Lost(leader));
        }
        let lease = self.grant().await?;
        let key = leader_key(&self.cluster);
        let put = PutOptions::new().with_lease(lease.id);
        let txn = Txn::new()
            .when([Compare::create_revision(key.as_str(), CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key.as_str(), self.advertise.as_str(), Some(put))])
            .or_else([TxnOp::get(key.as_str(), None)]);
        let answer = match self.within(self.client.kv_client().txn(txn)).await {
            Ok(answer) => answer,
            Err(error) => {
                // The key may have been created: revoking the lease takes it away again, if etcd hears it; else
                // the lease runs out by itself.
                self.revoke(lease.id).await;
                return Err(error);
            }
        };
        if answer.succeeded() {
            let header = answer.header().ok_or(ElectionError::Incomplete("a header"))?;
            return Ok(Attempt::Won { lease, epoch: epoch_of(header.revision()) });
        }
        self.revoke(lease.id).await;
        let found = answer.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(get) => get.kvs().first().map(leader_of),
            _ => None,
        });
        found.map(Attempt::Lost).ok_or(ElectionError::Incomplete("the leader key"))
    }

    async fn current_leader(&self) -> Result<Option<Leader>, ElectionError> {
        let key = leader_key(&self.cluster);
        let answer = self.within(self.client.kv_client().get(key, None)).await?;
        Ok(answer.kvs().first().map(leader_of))
    }

    async fn grant(&self) -> Result<Lease, ElectionError> {
        let asked = Instant::now();
        let seconds = i64::try_from(self.lease_ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let answer = self.within(self.client.lease_client().grant(seconds, None)).await?;
        // etcd raises a small TTL without a word: its answer counts.
        let ttl = Duration::from_secs(u64::try_from(answer.ttl()).unwrap_or(0));
        Ok(Lease { id: answer.id(), ttl, deadline: asked + ttl })
    }

    /// One term: from the take-over read until the lease is lost, the driver abdicates or the process stops.
    async fn lead(&mut self, mut lease: Lease, epoch: Epoch) {
        // An abdication of an earlier term must not end this one.
        self.abdications.mark_unchanged();
        // The lease is kept alive meanwhile: a ledger that takes long to read must not cost the term.
        let loaded = tokio::select! {
            loaded = self.ledger.load() => Some(loaded),
            () = self.hold(&mut lease) => None,
        };
        match loaded {
            Some(Ok(snapshot)) => {
                tracing::info!(%epoch, keys = snapshot.records.len(), "elected");
                self.tell(Tidings::Elected { epoch, snapshot }).await;
                self.hold(&mut lease).await;
            }
            None => {}
            Some(Err(error)) => {
                self.metrics.errors.increment(1);
                tracing::error!(error = &error as &dyn std::error::Error, "read the ledger at take-over");
            }
        }
        self.metrics.lease_deadline.send_replace(None);
        self.tell(Tidings::Following(None)).await;
        self.resign(epoch, lease.id).await;
        tracing::info!(%epoch, "stepped down");
        if !self.shutdown.is_cancelled() {
            self.pause(PAUSE).await;
        }
    }

    /// Keeps the lease alive until there is a reason to stop. The driver abdicates on shutdown too, once its last
    /// transaction has ended, so shutdown alone is no reason here.
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
                        // Another stream, maybe to another member, while the lease lasts.
                        self.metrics.errors.increment(1);
                        tracing::warn!(error = &error as &dyn std::error::Error, "keep the lease alive");
                        sleep(PAUSE).await;
                    }
                },
            }
        }
        tracing::warn!("the lease ran out");
    }

    /// Runs one keep-alive stream, at most until the lease's deadline. `Ok` means that the lease is gone.
    async fn keep_alive(&self, lease: &mut Lease) -> Result<(), ElectionError> {
        let opened = Instant::now();
        let mut client = self.client.lease_client();
        let (mut keeper, mut stream) = until(lease.deadline, client.keep_alive(lease.id)).await?;
        self.extend(lease, opened);
        loop {
            sleep(lease.ttl / 4).await;
            let sent = Instant::now();
            let Some(ttl) = beat(&mut keeper, &mut stream, lease.deadline).await? else { return Ok(()) };
            lease.ttl = ttl;
            self.extend(lease, sent);
            self.metrics.keep_alive_seconds.record(sent.elapsed());
        }
    }

    /// The deadline counts from before a beat was sent.
    fn extend(&self, lease: &mut Lease, sent: Instant) {
        lease.deadline = sent + lease.ttl;
        self.metrics.lease_deadline.send_replace(Some(lease.deadline));
    }

    /// Gives up the key, if it is still of this term, and the lease.
    async fn resign(&self, epoch: Epoch, lease: i64) {
        let key = leader_key(&self.cluster);
        let Ok(created) = i64::try_from(epoch.0) else { return };
        let txn = Txn::new()
            .when([Compare::create_revision(key.as_str(), CompareOp::Equal, created)])
            .and_then([TxnOp::delete(key.as_str(), None)]);
        if let Err(error) = self.within(self.client.kv_client().txn(txn)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "resign: the lease will run out by itself"
            );
        }
        self.revoke(lease).await;
    }

    async fn revoke(&self, lease: i64) {
        if let Err(error) = self.within(self.client.lease_client().revoke(lease)).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "revoke the lease");
        }
    }

    /// Returns when it is worth looking at the key again: it was deleted, or a while has passed.
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

    /// Watches from the revision at which the key was last seen present, so that no deletion falls in between.
    async fn watch_deletion(&self) -> Result<(), ElectionError> {
        let key = leader_key(&self.cluster);
        let seen = self.within(self.client.kv_client().get(key.as_str(), Some(GetOptions::new()))).await?;
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
    ) -> Result<T, ElectionError> {
        Ok(timeout(self.deadline, call).await.map_err(|_| ElectionError::TimedOut(self.deadline))??)
    }

    async fn pause(&self, length: Duration) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = sleep(length) => {}
        }
    }

    async fn tell(&self, tidings: Tidings) {
        // A driver that is gone has stopped serving: there is nobody left to tell.
        let _ = self.tidings.send(tidings).await;
    }
}

/// One beat: the lease's new time to live, or none when it is gone.
async fn beat(
    keeper: &mut LeaseKeeper,
    stream: &mut LeaseKeepAliveStream,
    deadline: Instant,
) -> Result<Option<Duration>, ElectionError> {
    // `keep_alive` only puts the beat into a queue; the answer must be read.
    until(deadline, keeper.keep_alive()).await?;
    let answer = until(deadline, stream.message()).await?.ok_or(ElectionError::Incomplete("a beat"))?;
    Ok(u64::try_from(answer.ttl()).ok().filter(|ttl| *ttl > 0).map(Duration::from_secs))
}

async fn until<T>(
    deadline: Instant,
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, ElectionError> {
    let left = deadline.saturating_duration_since(Instant::now());
    Ok(timeout(left, call).await.map_err(|_| ElectionError::TimedOut(left))??)
}

fn leader_of(kv: &etcd_client::KeyValue) -> Leader {
    let url = String::from_utf8_lossy(kv.value()).into_owned();
    Leader { url, epoch: epoch_of(kv.create_revision()) }
}

/// etcd counts revisions from 1.
fn epoch_of(revision: i64) -> Epoch {
    Epoch(u64::try_from(revision).unwrap_or(0))
}
