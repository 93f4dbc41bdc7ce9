//! What the parts of the daemon share, and how they are put together.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use api::{Api, Calls, HealthCheck, rest};
use app::{
    LinkPolicy, LinkService,
    cluster::SpoolGauge,
    creator::{Creator, CreatorConfig},
    delete_visits::DeletionPace,
    key_names::KeyNames,
    key_permits::{DatabasePermits, KeyPermits},
    key_ring::{KeyRing, note_used},
    live::LiveVisits,
    reservation::Reserver,
    unvisited_cleanup::{LastVisits, UnvisitedCleanup},
    url_indexer::UrlIndexer,
    webhooks::{Dispatcher, metrics::WebhookMetrics},
};
use codes::Mint;
use daemon::{TaskSupervisor, traces::Traces};
use limits::{Budgets, ConnectionLimits, Connections, ListenerLimits, Resources};
use lookup::{
    Lookup,
    domain_cache::{DirectoryConfig, DomainCache},
    metrics::Metrics,
    passwords::PasswordGuard,
    visit_limit::VisitLimiter,
};
use pages::{Pages, Renderer};
use recorder::{BlockSink, Recorder, RecorderConfig};
use redirect::{Redirector, qr_code::QrCodeLimits, robots::Robots};
use store::{SettingsPoll, Store, postgres::ConnectionBudget};
use supply::{Clock, Closing, Supplier, SupplierConfig, SupplyMetrics, safety_rule::SafetyRules};
use tls::ServerTls;
use tokio::{runtime, time::Instant};
use tokio_util::sync::CancellationToken;
use visit_store::VisitStore;
use web::{client_limits::Clients, request_durations::RequestDurations};

use super::{issuing::Issuing, stoppable::Stoppable};
use crate::{config::Settings, http::PublicService};

/// Of so many public connections, one can be a subscription to live visits.
const LIVE_SHARE: u64 = 4;

/// What the parts of the daemon share.
pub(super) struct Parts {
    pub(super) mint: Arc<Mint>,
    /// What creates links; `None` on a node that serves visitors only.
    pub(super) issuing: Option<Issuing>,
    /// The clock of the mintings.
    pub(super) clock: Clock,
    pub(super) store: Arc<dyn Store>,
    /// The connections of the store.
    pub(super) budget: ConnectionBudget,
    pub(super) metrics: Arc<Metrics>,
    pub(super) durations: Arc<RequestDurations>,
    pub(super) traces: Option<Arc<Traces>>,
    /// TLS of the public listener, if it has some.
    pub(super) tls: Option<ServerTls>,
    pub(super) webhook_metrics: Arc<WebhookMetrics>,
    pub(super) supply_metrics: Arc<SupplyMetrics>,
    pub(super) supervisor: TaskSupervisor,
    /// Where visits are stored.
    pub(super) visits: Arc<dyn VisitStore>,
    /// What of the spool is not stored yet; `None` if no visits are recorded.
    pub(super) backlog: Option<SpoolGauge>,
    /// Where recorded visits are written.
    pub(super) sink: Arc<dyn BlockSink>,
}

/// The daemon, put together.
pub(super) struct Assembled {
    pub(super) service: Arc<PublicService>,
    /// Tells why this process has to end.
    pub(super) closing: Closing,
    /// The supplier; `None` on a node that serves visitors only.
    pub(super) supply: Option<Stoppable>,
    /// The sender of webhooks; `None` on a node that serves visitors only.
    pub(super) webhooks: Option<Stoppable>,
}

/// What redirects and the API share.
struct Shared {
    lookup: Arc<Lookup>,
    domain_cache: Arc<DomainCache>,
    passwords: Arc<PasswordGuard>,
    clients: Arc<Clients>,
    budgets: Arc<Budgets>,
}

impl Parts {
    /// Starts everything that answers requests, and what creates links.
    pub(super) fn assemble(
        self,
        settings: &Settings,
        (asked, polled): (Instant, SettingsPoll),
        resources: &Resources,
    ) -> Assembled {
        let connections = ConnectionLimits::of(resources, self.tls.is_some());
        let supply = self.issuing.as_ref().map(|issuing| self.start_supply(issuing));
        let (supply, closing) = supply.unzip();
        let closing = closing.unwrap_or_else(Closing::without_minting);
        let lookup = Arc::new(self.start_lookup(settings));
        let domain_cache = self.start_directory(settings, Arc::clone(&lookup), &closing, (asked, polled));
        settings.geoip.follow(&self.supervisor);
        let shared = Shared {
            lookup,
            domain_cache,
            passwords: Arc::new(PasswordGuard::default()),
            clients: Arc::new(Clients::new(
                settings.client_limits.clone(),
                self.metrics.clients_unread.clone(),
            )),
            budgets: Arc::new(Budgets::of(resources)),
        };
        let api =
            self.issuing.as_ref().map(|issuing| self.start_api(settings, &shared, issuing, connections));
        let (api, webhooks) = api.unzip();
        let renderer = Arc::new(Renderer::new(settings.pages.theme.clone(), settings.pages.hsts));
        let pages = api.as_ref().map(|api| {
            Arc::new(Pages::new(Arc::clone(&renderer), Arc::clone(api), settings.pages.public_create))
        });
        let service = PublicService {
            redirector: Arc::new(self.redirector(settings, &shared)),
            api,
            pages,
            renderer,
            is_https: settings.public_url.starts_with("https:"),
            serves_visitors: settings.flags.role.serves_visitors(),
            connections: Arc::new(self.public_connections(settings, &shared, connections)),
            clients: shared.clients,
            durations: self.durations,
            traces: self.traces,
            tls: self.tls,
            access_log: settings.flags.access_log,
            fast_path: settings.fast_path && settings.flags.role.serves_visitors(),
            draining: AtomicBool::new(false),
        };
        Assembled { service: Arc::new(service), closing, supply, webhooks }
    }

    /// Returns the table of connections to the public listener.
    fn public_connections(
        &self,
        settings: &Settings,
        shared: &Shared,
        limits: ConnectionLimits,
    ) -> Connections {
        let per_client = settings.client_limits.connections.map(usize::try_from);
        let per_client = per_client.map_or(limits.per_client, |most| most.unwrap_or(usize::MAX));
        let proxies = Arc::clone(&shared.clients);
        Connections::new("public", ListenerLimits::http(limits.public, per_client))
            .exempting(move |peer| proxies.trusts(peer))
            .with_handshakes(self.tls.is_some())
            .counting(self.metrics.connections_refused.clone())
    }

    /// Starts what answers calls of the API, and the tasks that go with it.
    fn start_api(
        &self,
        settings: &Settings,
        shared: &Shared,
        issuing: &Issuing,
        connections: ConnectionLimits,
    ) -> (Arc<Api>, Stoppable) {
        let turns = DatabasePermits::of(self.budget);
        let creator = self.start_creator(shared, issuing, Arc::clone(&turns.writes));
        self.start_sweeper(settings, shared, issuing);
        let indexer = UrlIndexer { catalog: self.store.clone(), holder: issuing.owner.instance.clone() };
        self.supervisor.spawn("indexer of long URLs", indexer.run());
        let dispatcher = self.dispatcher(settings, shared);
        let webhooks = Stoppable::spawn(&self.supervisor, "sender of webhooks", |stop| dispatcher.run(stop));
        let reserver = self.reserver(shared, issuing);
        let links = Arc::new(self.link_service(settings, shared, (creator, reserver), turns));
        (Arc::new(self.api(settings, shared, links, connections)), webhooks)
    }

    fn dispatcher(&self, settings: &Settings, shared: &Shared) -> Dispatcher {
        Dispatcher {
            store: self.store.clone(),
            lookup: Arc::clone(&shared.lookup),
            domain_cache: Arc::clone(&shared.domain_cache),
            sender: Arc::clone(&settings.webhooks),
            metrics: Arc::clone(&self.webhook_metrics),
        }
    }

    fn redirector(&self, settings: &Settings, shared: &Shared) -> Redirector {
        Redirector {
            lookup: Arc::clone(&shared.lookup),
            domain_cache: Arc::clone(&shared.domain_cache),
            passwords: Arc::clone(&shared.passwords),
            admission: VisitLimiter::start(&self.supervisor, self.store.clone()),
            visits: self.start_recorder(settings),
            catalog: self.store.clone(),
            clients: Arc::clone(&shared.clients),
            budgets: Arc::clone(&shared.budgets),
            metrics: Arc::clone(&self.metrics),
            geoip: settings.geoip.clone(),
            fallbacks: settings.fallbacks.clone(),
            tells_gone: settings.flags.tell_gone,
            status: settings.redirect_status,
            pictures: QrCodeLimits::default(),
            logo: settings.pages.qr_logo.clone(),
            robots: Robots::default(),
            runtime: runtime::Handle::current(),
        }
    }

    /// Starts the recorder of visits. Without a spool, redirects are only noted for the removal of
    /// unvisited links.
    fn start_recorder(&self, settings: &Settings) -> Arc<Recorder> {
        let mut last_visits =
            LastVisits::start(&self.supervisor, self.store.clone(), settings.flags.remove_unvisited_after);
        let config = RecorderConfig {
            threads: settings.threads,
            flush: settings.visits.flush,
            rules: settings.visits.rules.clone(),
            sink: self.sink.clone(),
            seen: Box::new(move |link, at| last_visits.note(link, at)),
            metrics: Arc::clone(&self.metrics),
        };
        Recorder::start(&self.supervisor, config)
    }

    fn api(
        &self,
        settings: &Settings,
        shared: &Shared,
        links: Arc<LinkService>,
        connections: ConnectionLimits,
    ) -> Api {
        let keys = Arc::new(KeyRing::new());
        self.supervisor.spawn("noter of used API keys", note_used(Arc::clone(&keys), self.store.clone()));
        let live = self.live_visits(settings, &links, connections);
        Api {
            links,
            lookup: Arc::clone(&shared.lookup),
            domain_cache: Arc::clone(&shared.domain_cache),
            live,
            keys,
            store: self.store.clone(),
            health: HealthCheck::default(),
            clients: Arc::clone(&shared.clients),
            calls: Calls::new(settings.call_limits),
            budgets: Arc::clone(&shared.budgets),
            connections,
            metrics: Arc::clone(&self.metrics),
            openapi: OnceLock::new(),
            fallback_redirects: settings.fallbacks.redirects.clone(),
            public_url: settings.public_url.clone(),
            router: rest::router(settings.flags.single_step_create),
            time_zone: settings.time_zone.clone(),
            stop: CancellationToken::new(),
            runtime: runtime::Handle::current(),
        }
    }

    /// Returns live visits; `None` if single visits are not stored.
    fn live_visits(
        &self,
        settings: &Settings,
        links: &Arc<LinkService>,
        connections: ConnectionLimits,
    ) -> Option<Arc<LiveVisits>> {
        let has_rows = settings.visits.is_on && settings.visits.keep.is_some();
        let most = u64::try_from(connections.public).unwrap_or(u64::MAX) / LIVE_SHARE;
        has_rows.then(|| LiveVisits::new(&self.supervisor, Arc::<LinkService>::clone(links), most))
    }

    fn link_service(
        &self,
        settings: &Settings,
        shared: &Shared,
        (creator, reserver): (Creator, Reserver),
        turns: DatabasePermits,
    ) -> LinkService {
        LinkService {
            lookup: Arc::clone(&shared.lookup),
            creator,
            reserver,
            domain_cache: Arc::clone(&shared.domain_cache),
            store: self.store.clone(),
            visits: Arc::clone(&self.visits),
            backlog: self.backlog.clone(),
            key_names: KeyNames::default(),
            passwords: Arc::clone(&shared.passwords),
            webhook_policy: settings.webhooks.policy.clone(),
            turns,
            deletions: DeletionPace::default(),
            policy: LinkPolicy {
                own_hosts: settings.own_hosts.clone(),
                schemes: settings.schemes.clone(),
                find_existing_for: settings.find_existing_for,
                idempotency_for: settings.idempotency_for,
                reserved_max: settings.reserved_max,
                addresses: settings.visits.addresses,
            },
        }
    }

    fn start_supply(&self, issuing: &Issuing) -> (Stoppable, Closing) {
        let supplier = Supplier::new(SupplierConfig {
            owner: issuing.owner.clone(),
            client: Arc::clone(&issuing.client),
            register: self.store.clone(),
            mintings: issuing.mintings.clone(),
            clock: self.clock,
            metrics: Arc::clone(&self.supply_metrics),
            begins_at: issuing.begins_at,
            rules: SafetyRules::default(),
        });
        let closing = supplier.closing();
        (Stoppable::spawn(&self.supervisor, "supplier", |stop| supplier.run(stop)), closing)
    }

    fn start_lookup(&self, settings: &Settings) -> Lookup {
        Lookup::start(
            &self.supervisor,
            settings.lookup,
            Arc::clone(&self.mint),
            self.store.clone(),
            Arc::clone(&self.metrics),
        )
    }

    fn start_creator(&self, shared: &Shared, issuing: &Issuing, turns: Arc<KeyPermits>) -> Creator {
        let config = CreatorConfig {
            mintings: issuing.mintings.clone(),
            store: self.store.clone(),
            owner: issuing.owner.clone(),
            lookup: Arc::clone(&shared.lookup),
            turns,
            metrics: Arc::clone(&self.metrics),
        };
        Creator::start(&self.supervisor, config)
    }

    fn start_directory(
        &self,
        settings: &Settings,
        lookup: Arc<Lookup>,
        closing: &Closing,
        polled: (Instant, SettingsPoll),
    ) -> Arc<DomainCache> {
        let config = DirectoryConfig {
            settings: self.store.clone(),
            public_url: settings.default_domain.clone(),
            policy: settings.policy,
            lookup,
            closing: closing.clone(),
        };
        DomainCache::start(&self.supervisor, config, polled)
    }

    fn reserver(&self, shared: &Shared, issuing: &Issuing) -> Reserver {
        Reserver {
            client: Arc::clone(&issuing.client),
            store: self.store.clone(),
            mint: Arc::clone(&self.mint),
            mintings: issuing.mintings.clone(),
            domain_cache: Arc::clone(&shared.domain_cache),
            metrics: Arc::clone(&self.metrics),
            supply_metrics: Arc::clone(&self.supply_metrics),
            lookup: Arc::clone(&shared.lookup),
        }
    }

    /// Starts the removal of unvisited links, if the settings have an age for it.
    fn start_sweeper(&self, settings: &Settings, shared: &Shared, issuing: &Issuing) {
        let Some(unvisited_for) = settings.flags.remove_unvisited_after else { return };
        let sweeper = UnvisitedCleanup {
            catalog: self.store.clone(),
            lookup: Arc::clone(&shared.lookup),
            metrics: Arc::clone(&self.metrics),
            holder: issuing.owner.instance.clone(),
            unvisited_for,
        };
        self.supervisor.spawn("remover of unvisited links", sweeper.run());
    }
}
