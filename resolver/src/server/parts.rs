//! What the parts of the daemon share, and how they are put together.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use app::{
    LinkPolicy, LinkService,
    clock::DatabaseClock,
    creator::{Creator, CreatorConfig},
    domain_cache::{Directory, DirectoryConfig},
    key_names::KeyNames,
    key_ring::{KeyRing, note_used},
    lookup::Lookup,
    metrics::Metrics,
    passwords::PasswordGuard,
    reservation::Reserver,
    turns::{KeyTurns, Turns},
    unvisited_cleanup::{Seen, Sweeper},
    url_indexer::UrlIndexer,
    visit_limit::Admission,
    visits::Visits,
};
use codes::Mint;
use daemon::{Resources, Vitals};
use store::{LinkStore, SettingsPoll};
use supply::{Ceilings, Clock, IssuerClient, Minting, Owner, SupplierConfig, SupplyMetrics};
use tokio::{runtime, time::Instant};
use web::{
    budgets::{Budgets, ConnectionLimits},
    client_limits::Clients,
};

use super::Supply;
use crate::{
    config::Settings,
    http::{App, Calls, Pictures, Robots},
};

/// What the parts of the daemon share.
pub(super) struct Parts {
    pub(super) mint: Arc<Mint>,
    pub(super) client: Arc<IssuerClient>,
    pub(super) owner: Owner,
    /// The default keyspace's first.
    pub(super) mintings: Vec<Arc<Minting>>,
    /// The clock that they have, and the ceilings.
    pub(super) clock: Clock,
    pub(super) store: Arc<dyn LinkStore>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) supply_metrics: Arc<SupplyMetrics>,
    pub(super) vitals: Vitals,
}

impl Parts {
    /// Starts the supplier and everything that answers requests.
    pub(super) fn assemble(
        self,
        settings: &Settings,
        (asked, shared): (Instant, SettingsPoll),
        resources: &Resources,
    ) -> (Supply, Arc<App>) {
        let (connections, budgets) = (ConnectionLimits::of(resources), Budgets::of(resources));
        let ceilings = Arc::new(Ceilings::new(self.clock));
        let supply = self.start_supply(Arc::clone(&ceilings));
        let lookup = Arc::new(self.start_lookup(settings, ceilings));
        let clock = Arc::new(DatabaseClock::new(shared.now));
        let turns = KeyTurns::default();
        let creator = self.start_creator(Arc::clone(&lookup), Arc::clone(&clock), turns.writes());
        let lookup_and_clock = (Arc::clone(&lookup), clock);
        let directory = self.start_directory(settings, lookup_and_clock, &supply, (asked, shared));
        let reserver = self.reserver(Arc::clone(&directory));
        self.start_sweeper(settings, &lookup);
        let indexer = UrlIndexer { store: Arc::clone(&self.store), holder: self.owner.instance.clone() };
        self.vitals.spawn("indexer of long URLs", indexer.run());
        let Self { store, metrics, vitals, .. } = self;
        let keys = Arc::new(KeyRing::new());
        vitals.spawn("noter of used API keys", note_used(Arc::clone(&keys), Arc::clone(&store)));
        settings.places.follow(&vitals);
        let links = LinkService {
            lookup: Arc::clone(&lookup),
            creator,
            reserver,
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            key_names: KeyNames::default(),
            passwords: PasswordGuard::default(),
            turns,
            policy: LinkPolicy {
                own_hosts: settings.own_hosts.clone(),
                schemes: settings.schemes.clone(),
                find_existing_for: settings.find_existing_for,
                idempotency_for: settings.idempotency_for,
                reserved_max: settings.reserved_max,
            },
        };
        let app = App {
            links,
            directory,
            places: settings.places.clone(),
            stray_targets: settings.stray_targets.clone(),
            tells_gone: settings.tells_gone,
            openapi: OnceLock::new(),
            robots: Robots::new(),
            calls: Calls::new(settings.call_limits),
            pictures: Pictures::new(),
            visits: Visits::start(
                &vitals,
                &metrics,
                Seen::start(&vitals, Arc::clone(&store), settings.remove_unvisited_after),
            ),
            admission: Admission::start(&vitals, Arc::clone(&store)),
            lookup,
            keys,
            clients: Arc::new(Clients::new(settings.client_limits.clone(), connections.per_client)),
            budgets,
            connections,
            store,
            metrics,
            public_url: settings.public_url.clone(),
            time_zone: settings.time_zone.clone(),
            single_step_create: settings.single_step_create,
            redirect_status: settings.redirect_status,
            fast_path: settings.fast_path,
            runtime: runtime::Handle::current(),
            draining: AtomicBool::new(false),
        };
        (supply, Arc::new(app))
    }

    fn start_supply(&self, ceilings: Arc<Ceilings>) -> Supply {
        let config = SupplierConfig {
            owner: self.owner.clone(),
            client: Arc::clone(&self.client),
            store: Arc::clone(&self.store),
            mintings: self.mintings.clone(),
            ceilings,
            metrics: Arc::clone(&self.supply_metrics),
        };
        Supply::start(config, &self.vitals)
    }

    fn start_lookup(&self, settings: &Settings, ceilings: Arc<Ceilings>) -> Lookup {
        Lookup::start(
            &self.vitals,
            settings.lookup,
            Arc::clone(&self.mint),
            ceilings,
            Arc::clone(&self.store),
            Arc::clone(&self.metrics),
        )
    }

    fn start_creator(&self, lookup: Arc<Lookup>, clock: Arc<DatabaseClock>, turns: Arc<Turns>) -> Creator {
        let config = CreatorConfig {
            mint: Arc::clone(&self.mint),
            mintings: self.mintings.clone(),
            store: Arc::clone(&self.store),
            owner: self.owner.clone(),
            lookup,
            clock,
            turns,
            metrics: Arc::clone(&self.metrics),
        };
        Creator::start(&self.vitals, config)
    }

    fn start_directory(
        &self,
        settings: &Settings,
        (lookup, clock): (Arc<Lookup>, Arc<DatabaseClock>),
        supply: &Supply,
        shared: (Instant, SettingsPoll),
    ) -> Arc<Directory> {
        let config = DirectoryConfig {
            store: Arc::clone(&self.store),
            public_url: settings.default_domain.clone(),
            policy: settings.policy,
            lookup,
            clock,
            closing: supply.closing.clone(),
        };
        Directory::start(&self.vitals, config, shared)
    }

    fn reserver(&self, directory: Arc<Directory>) -> Reserver {
        Reserver {
            client: Arc::clone(&self.client),
            store: Arc::clone(&self.store),
            mint: Arc::clone(&self.mint),
            mintings: self.mintings.clone(),
            directory,
            metrics: Arc::clone(&self.metrics),
            supply_metrics: Arc::clone(&self.supply_metrics),
        }
    }

    /// Nothing is removed unless the settings say after how long.
    fn start_sweeper(&self, settings: &Settings, lookup: &Arc<Lookup>) {
        let Some(unvisited_for) = settings.remove_unvisited_after else { return };
        let sweeper = Sweeper {
            store: Arc::clone(&self.store),
            lookup: Arc::clone(lookup),
            metrics: Arc::clone(&self.metrics),
            holder: self.owner.instance.clone(),
            unvisited_for,
        };
        self.vitals.spawn("remover of unvisited links", sweeper.run());
    }
}
