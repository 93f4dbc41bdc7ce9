//! One process of the resolver: its supplier, creator and lookup, started as the daemon starts them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use issuer::{
    daemon::{Recorder, Vitals},
    embedded::Dialer,
};
use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Rng,
    database::Database,
    network::Network,
    ways::{FaultyStore, Trouble},
};
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

/// What clients reach of a process.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) creator: Arc<Creator>,
    pub(super) lookup: Arc<Lookup>,
    pub(super) mint: Arc<Mint>,
    pub(super) store: Arc<dyn LinkStore>,
    pub(super) trouble: Arc<Trouble>,
}

/// A way to the issuer, for as long as the process lives and is not cut off.
fn dialer(common: &Common, is_dead: &Arc<AtomicBool>, cut_off: &Arc<Mutex<Instant>>) -> Dialer {
    let (is_dead, until) = (Arc::clone(is_dead), Arc::clone(cut_off));
    common.network.dialer(move || {
        let until = *until.lock().expect("no code panics while it holds this lock");
        is_dead.load(Ordering::Relaxed) || Instant::now() < until
    })
}

fn mintings(common: &Common, refill_permille: u64) -> Vec<Arc<Minting>> {
    let minting = |(index, keyspace): &(KeyspaceIndex, Keyspace)| {
        Arc::new(Minting::new(*index, keyspace.name.clone(), keyspace.capacity(), refill_permille))
    };
    common.keyspaces.iter().map(minting).collect()
}

/// A process.
pub(super) struct Node {
    pub(super) holder: String,
    pub(super) ends: Ends,
    is_dead: Arc<AtomicBool>,
    /// Until when it does not reach the issuer.
    cut_off: Arc<Mutex<Instant>>,
    stop: CancellationToken,
    lost: watch::Receiver<Option<Lost>>,
    supply: JoinHandle<()>,
    recorder: Recorder,
}

impl Node {
    pub(super) fn start(common: &Common, holder: &str, rng: &mut Rng) -> Self {
        let is_dead = Arc::<AtomicBool>::default();
        let trouble = Arc::<Trouble>::default();
        let store: Arc<dyn LinkStore> = Arc::new(FaultyStore {
            database: Arc::clone(&common.database),
            is_dead: Arc::clone(&is_dead),
            trouble: Arc::clone(&trouble),
        });
        let recorder = Recorder::new();
        let metrics = Metrics::new(&recorder);
        // Its failures are found by the checks: a task that panics mints and answers no more.
        let (vitals, _) = Vitals::new();
        let cut_off = Arc::new(Mutex::new(Instant::now()));
        let dialer = dialer(common, &is_dead, &cut_off);
        let owner = Owner { holder: holder.to_owned(), instance: format!("start-{:016x}", rng.next()) };
        let mintings = mintings(common, rng.between(300, 900));
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
                store: Arc::clone(&store),
                owner,
                lookup: Arc::clone(&lookup),
                clock: Arc::new(DatabaseClock::new(common.database.now())),
                metrics,
            },
        );
        Self {
            holder: holder.to_owned(),
            ends: Ends { creator: Arc::new(creator), lookup, mint, store, trouble },
            is_dead,
            cut_off,
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

    /// Keeps it from the issuer for so long; connections that there are have to be cut.
    pub(super) fn cut_off(&self, time: Duration) {
        *self.cut_off.lock().expect("no code panics while it holds this lock") = Instant::now() + time;
    }

    /// Gives back what it has and ends.
    pub(super) async fn finish(&mut self) {
        self.ends.creator.finish().await;
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
