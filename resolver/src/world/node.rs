//! One process of the resolver: its supplier, creator and lookup, started as the daemon starts them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use issuer::daemon::{Recorder, Vitals};
use jiff::Timestamp;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Rng, database::Database, network::Network, store::FaultyStore};
use crate::{
    clock::DatabaseClock,
    codes::{Keyspace, KeyspaceIndex, Mint},
    create::{Creator, CreatorConfig},
    lookup::{Lookup, LookupSizes},
    metrics::Metrics,
    store::LinkStore,
    supply::{Ceilings, IssuerClient, Lost, Minting, Owner, Supplier, SupplierConfig, Target},
};

/// What every process of a run has in common.
pub(super) struct Common {
    pub(super) database: Arc<Database>,
    pub(super) network: Network,
    pub(super) mint: Arc<Mint>,
    pub(super) keyspaces: Vec<(KeyspaceIndex, Keyspace)>,
    pub(super) replica_lag: Duration,
}

/// A process.
pub(super) struct Node {
    pub(super) holder: String,
    pub(super) creator: Arc<Creator>,
    pub(super) lookup: Arc<Lookup>,
    pub(super) mint: Arc<Mint>,
    is_dead: Arc<AtomicBool>,
    stop: CancellationToken,
    lost: watch::Receiver<Option<Lost>>,
    supply: JoinHandle<()>,
    recorder: Recorder,
}

impl Node {
    pub(super) fn start(common: &Common, holder: &str, rng: &mut Rng) -> Self {
        let is_dead = Arc::<AtomicBool>::default();
        let store: Arc<dyn LinkStore> =
            Arc::new(FaultyStore { database: Arc::clone(&common.database), is_dead: Arc::clone(&is_dead) });
        let recorder = Recorder::new();
        let metrics = Metrics::new(&recorder);
        // Its failures are found by the checks: a task that panics mints and answers no more.
        let (vitals, _) = Vitals::new();
        let flag = Arc::clone(&is_dead);
        let dialer = common.network.dialer(move || flag.load(Ordering::Relaxed));
        let owner = Owner { holder: holder.to_owned(), instance: format!("start-{:016x}", rng.next()) };
        let permille = rng.between(300, 900);
        let minting = |(index, keyspace): &(KeyspaceIndex, Keyspace)| {
            Arc::new(Minting::new(*index, keyspace.name.clone(), keyspace.capacity(), permille))
        };
        let mintings: Vec<_> = common.keyspaces.iter().map(minting).collect();
        let ceilings = Arc::new(Ceilings::default());
        let supplier = Supplier::new(SupplierConfig {
            owner: owner.clone(),
            client: Arc::new(IssuerClient::new(Target::Embedded(dialer))),
            store: Arc::clone(&store),
            mintings: mintings.clone(),
            ceilings: Arc::clone(&ceilings),
            metrics: Arc::clone(&metrics),
        });
        let (stop, lost) = (CancellationToken::new(), supplier.lost());
        let supply = tokio::spawn(supplier.run(stop.clone()));
        let sizes = LookupSizes { cache_bytes: 1 << 20, replica_lag: common.replica_lag };
        let mint = Arc::clone(&common.mint);
        let lookup = Arc::new(Lookup::start(
            &vitals,
            sizes,
            Arc::clone(&mint),
            ceilings,
            Arc::clone(&store),
            Arc::clone(&metrics),
        ));
        let creator = Creator::start(
            &vitals,
            CreatorConfig {
                mint: Arc::clone(&mint),
                mintings,
                store,
                owner,
                lookup: Arc::clone(&lookup),
                clock: Arc::new(DatabaseClock::new(Timestamp::now())),
                metrics,
            },
        );
        Self {
            holder: holder.to_owned(),
            creator: Arc::new(creator),
            lookup,
            mint,
            is_dead,
            stop,
            lost,
            supply,
            recorder,
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Whether it ends because another one has its name.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// The process dies: nothing that it has sent is answered, and it sends nothing more.
    pub(super) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.supply.abort();
    }

    /// Gives back what it has and ends.
    pub(super) async fn finish(&mut self) {
        self.creator.finish().await;
        self.stop.cancel();
        let _ = (&mut self.supply).await;
    }

    /// How often the register has refused a block.
    pub(super) fn overlaps(&self) -> bool {
        let page = self.recorder.render();
        let line = page.lines().find(|line| line.starts_with("resolver_blocks_overlapping_total"));
        line.is_some_and(|line| !line.ends_with(" 0"))
    }
}
