//! State that the parts of the daemon share, and how they are put together.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use api::{Api, Calls, HealthCheck, qr_pack, rest};
use app::{
    LinkService, audit,
    cluster::SpoolGauge,
    creator::{Creator, CreatorConfig},
    delete_visits::DeletionPace,
    explain_link::Explainer,
    fetch_titles::{TitleQueue, fetch_titles},
    icons::Icons,
    key_names::KeyNames,
    key_permits::DatabasePermits,
    key_ring::{KeyRing, note_used},
    link_indexer::index_links,
    live::LiveVisits,
    scheduled_edits::make_due_edits,
    unvisited_cleanup::{LastVisits, remove_unvisited},
    webhooks::{Dispatcher, metrics::WebhookMetrics},
};
use codes::Mint;
use compat::Facades;
use daemon::{TaskSupervisor, traces::Traces};
use limits::{Budgets, ConnectionLimits, Connections, ListenerLimits, Resources};
use listener::PublicService;
use lookup::{
    Lookup,
    domain_cache::{DomainCache, DomainCacheConfig},
    metrics::Metrics,
    passwords::PasswordGuard,
    visit_limit::VisitLimiter,
};
use pages::{Pages, Renderer};
use recorder::{BlockSink, Recorder, RecorderConfig};
use redirect::Redirector;
use spool::Sidecars;
use store::{LinkIndex, SettingsPoll};
use supply::{Clock, Closing, Supplier, SupplierConfig, SupplyMetrics, safety_rule::SafetyRules};
use tls::ServerTls;
use tokio::{
    runtime,
    sync::{OnceCell, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use web::{client_limits::Clients, request_durations::RequestDurations};

use super::{databases::OpenDatabases, issuing::Issuing, running::Stoppable, warm_start::WarmStart};
use crate::config::Settings;

/// Of so many public connections, one can be a subscription to live visits.
const LIVE_SHARE: u64 = 4;

pub(super) struct Parts {
    pub(super) mint: Arc<Mint>,
    /// Source of numbers for new links; `None` on a node that serves visitors only.
    pub(super) issuing: Option<Issuing>,
    pub(super) clock: Clock,
    pub(super) databases: OpenDatabases,
    pub(super) metrics: Arc<Metrics>,
    pub(super) durations: Arc<RequestDurations>,
    pub(super) traces: Option<Arc<Traces>>,
    pub(super) tls: Option<ServerTls>,
    pub(super) webhook_metrics: Arc<WebhookMetrics>,
    pub(super) supply_metrics: Arc<SupplyMetrics>,
    pub(super) supervisor: TaskSupervisor,
    /// Backlog of spooled visits; `None` if no visits are recorded.
    pub(super) backlog: Option<SpoolGauge>,
    pub(super) spool_files: Option<Sidecars>,
    pub(super) sink: Arc<dyn BlockSink>,
}

pub(super) struct Assembled {
    pub(super) service: Arc<PublicService>,
    /// Tells why this process has to end.
    pub(super) closing: Closing,
    /// The supplier and the sender of webhooks; `None` on a node that serves visitors only.
    pub(super) supply: Option<Stoppable>,
    pub(super) webhooks: Option<Stoppable>,
    /// What caches links at the start; `None` unless the operator wants it.
    pub(super) warm: Option<Arc<WarmStart>>,
}

/// The parts, and what redirects and the API share of them.
struct Assembly<'a> {
    settings: &'a Settings,
    parts: Parts,
    lookup: Arc<Lookup>,
    domain_cache: Arc<DomainCache>,
    passwords: Arc<PasswordGuard>,
    clients: Arc<Clients>,
    budgets: Arc<Budgets>,
    limits: ConnectionLimits,
}

impl Parts {
    /// Starts everything that answers requests, and what creates links.
    pub(super) fn assemble(
        self,
        settings: &Settings,
        polled: (Instant, SettingsPoll),
        resources: &Resources,
    ) -> Assembled {
        let (supply, closing) = self.start_supply().unzip();
        let closing = closing.unwrap_or_else(Closing::without_minting);
        let lookup = Arc::new(Lookup::start(
            &self.supervisor,
            settings.lookup,
            Arc::clone(&self.mint),
            self.databases.links.clone(),
            Arc::clone(&self.metrics),
        ));
        let domain_cache_config = DomainCacheConfig {
            settings: self.databases.links.clone(),
            public_url: settings.default_domain.clone(),
            policy: settings.policy,
            lookup: Arc::clone(&lookup),
            closing: closing.clone(),
        };
        let domain_cache = DomainCache::start(&self.supervisor, domain_cache_config, polled);
        settings.geoip.follow(&self.supervisor);
        let clients = Clients::new(settings.client_limits.clone(), self.metrics.clients_unread.clone());
        let assembly = Assembly {
            settings,
            lookup,
            domain_cache,
            passwords: Arc::new(PasswordGuard::default()),
            clients: Arc::new(clients),
            budgets: Arc::new(Budgets::of(resources)),
            limits: ConnectionLimits::of(resources, self.tls.is_some()),
            parts: self,
        };
        let redirector = Arc::new(assembly.redirector());
        let (api, webhooks) = assembly.start_api(&redirector).unzip();
        let warm = assembly.warm_start();
        Assembled { service: Arc::new(assembly.service(api, redirector)), closing, supply, webhooks, warm }
    }

    fn start_supply(&self) -> Option<(Stoppable, Closing)> {
        let issuing = self.issuing.as_ref()?;
        let supplier = Supplier::new(SupplierConfig {
            owner: issuing.owner.clone(),
            client: Arc::clone(&issuing.client),
            register: self.databases.links.clone(),
            mintings: issuing.mintings.clone(),
            clock: self.clock,
            metrics: Arc::clone(&self.supply_metrics),
            begins_at: issuing.begins_at,
            rules: SafetyRules::default(),
        });
        let closing = supplier.closing.clone();
        Some((Stoppable::spawn(&self.supervisor, "supplier", |stop| supplier.run(stop)), closing))
    }
}

impl Assembly<'_> {
    fn service(self, api: Option<Arc<Api>>, redirector: Arc<Redirector>) -> PublicService {
        let settings = self.settings;
        let renderer = Arc::new(Renderer::new(settings.pages.theme.clone(), settings.flags.hsts));
        let pages = api.as_ref().map(|api| {
            Arc::new(Pages::new(Arc::clone(&renderer), Arc::clone(api), settings.pages.public_create))
        });
        let serves_visitors = settings.flags.role.serves_visitors();
        PublicService {
            redirector,
            api,
            pages,
            compat: Facades::new(&settings.flags.compat),
            renderer,
            is_https: settings.public_url.starts_with("https:"),
            serves_visitors,
            connections: Arc::new(self.public_connections()),
            clients: self.clients,
            durations: self.parts.durations,
            traces: self.parts.traces,
            tls: self.parts.tls,
            access_log: settings.flags.access_log,
            fast_path: settings.fast_path && serves_visitors,
            draining: AtomicBool::new(false),
        }
    }

    fn warm_start(&self) -> Option<Arc<WarmStart>> {
        let settings = self.settings;
        let is_wanted = settings.lookup.warm_links > 0 && settings.flags.role.serves_visitors();
        let warm = || WarmStart {
            lookup: Arc::clone(&self.lookup),
            store: self.parts.databases.links.clone(),
            files: self.parts.spool_files.clone(),
            most: settings.lookup.warm_links.min(settings.lookup.room()),
            loaded: OnceCell::new(),
        };
        is_wanted.then(|| Arc::new(warm()))
    }

    fn public_connections(&self) -> Connections {
        let per_client = self.settings.client_limits.connections.map(usize::try_from);
        let per_client = per_client.map_or(self.limits.per_client, |most| most.unwrap_or(usize::MAX));
        let proxies = Arc::clone(&self.clients);
        let limits = ListenerLimits::http(self.limits.public, per_client);
        let mut connections = Connections::new("public", limits).with_handshakes(self.parts.tls.is_some());
        connections.is_exempt = Box::new(move |peer| proxies.trusts(peer));
        connections.refused = self.parts.metrics.connections_refused.clone();
        connections
    }

    fn redirector(&self) -> Redirector {
        let (settings, parts) = (self.settings, &self.parts);
        let unvisited_for = settings.flags.remove_unvisited_after;
        let mut last_visits =
            LastVisits::start(&parts.supervisor, parts.databases.links.clone(), unvisited_for);
        // Without a spool, redirects are only noted for the removal of unvisited links.
        let visits = RecorderConfig {
            threads: settings.threads,
            flush: settings.visits.flush,
            rules: settings.visits.rules.clone(),
            sink: parts.sink.clone(),
            seen: Box::new(move |link, at| last_visits.note(link, at)),
            metrics: Arc::clone(&parts.metrics),
        };
        Redirector {
            lookup: Arc::clone(&self.lookup),
            domain_cache: Arc::clone(&self.domain_cache),
            passwords: Arc::clone(&self.passwords),
            visit_limiter: Arc::new(VisitLimiter::start(&parts.supervisor, parts.databases.links.clone())),
            visits: Recorder::start(&parts.supervisor, visits),
            catalog: parts.databases.links.clone(),
            clients: Arc::clone(&self.clients),
            budgets: Arc::clone(&self.budgets),
            metrics: Arc::clone(&parts.metrics),
            geoip: settings.geoip.clone(),
            fallbacks: settings.fallbacks.clone(),
            tells_gone: settings.flags.tell_gone,
            status: settings.redirect_status,
            qr_codes: Arc::default(),
            logo: settings.pages.qr_logo.clone(),
            robots: Arc::default(),
            runtime: runtime::Handle::current(),
        }
    }

    /// Starts what answers calls of the API, and the tasks that go with it; nothing on a node that
    /// serves visitors only.
    fn start_api(&self, redirector: &Redirector) -> Option<(Arc<Api>, Stoppable)> {
        let Parts { issuing, databases, metrics, supervisor, .. } = &self.parts;
        let (issuing, store) = (issuing.as_ref()?, &databases.links);
        let turns = DatabasePermits::of(databases.budget);
        let creator = CreatorConfig {
            mintings: issuing.mintings.clone(),
            store: store.clone(),
            owner: issuing.owner.clone(),
            lookup: Arc::clone(&self.lookup),
            domain_cache: Arc::clone(&self.domain_cache),
            client: Arc::clone(&issuing.client),
            turns: Arc::clone(&turns.writes),
            metrics: Arc::clone(metrics),
            supply_metrics: Arc::clone(&self.parts.supply_metrics),
        };
        let creator = Creator::start(supervisor, creator);
        if let Some(unvisited_for) = self.settings.flags.remove_unvisited_after {
            let (lookup, metrics) = (Arc::clone(&self.lookup), Arc::clone(metrics));
            let holder = issuing.owner.instance.clone();
            let cleanup = remove_unvisited(store.clone(), lookup, metrics, holder, unvisited_for);
            supervisor.spawn("remover of unvisited links", cleanup);
        }
        if let Some(kept_for) = self.settings.audit_for {
            let holder = issuing.owner.instance.clone();
            let cleanup = audit::remove_old_entries(store.clone(), holder, kept_for);
            supervisor.spawn("remover of old audit entries", cleanup);
        }
        for (index, task) in
            [(LinkIndex::LongUrls, "indexer of long URLs"), (LinkIndex::Texts, "indexer of texts")]
        {
            supervisor.spawn(task, index_links(store.clone(), index, issuing.owner.instance.clone()));
        }
        let dispatcher = Dispatcher {
            store: store.clone(),
            lookup: Arc::clone(&self.lookup),
            domain_cache: Arc::clone(&self.domain_cache),
            sender: Arc::clone(&self.settings.webhooks),
            metrics: Arc::clone(&self.parts.webhook_metrics),
        };
        let webhooks = Stoppable::spawn(supervisor, "sender of webhooks", |stop| dispatcher.run(stop));
        let (titles, untitled) = TitleQueue::open();
        let links = Arc::new(self.link_service(creator, turns, explainer(redirector), titles));
        let reader = self.settings.webhooks.page_reader();
        supervisor.spawn("fetcher of titles", fetch_titles(Arc::clone(&links), reader, untitled));
        supervisor.spawn("maker of scheduled edits", make_due_edits(Arc::clone(&links)));
        Some((Arc::new(self.api(links)), webhooks))
    }

    fn link_service(
        &self,
        creator: Arc<Creator>,
        turns: DatabasePermits,
        explainer: Explainer,
        titles: TitleQueue,
    ) -> LinkService {
        let (settings, databases) = (self.settings, &self.parts.databases);
        LinkService {
            lookup: Arc::clone(&self.lookup),
            creator,
            domain_cache: Arc::clone(&self.domain_cache),
            store: databases.links.clone(),
            visits: Arc::clone(&databases.visits),
            backlog: self.parts.backlog.clone(),
            key_names: KeyNames::default(),
            passwords: Arc::clone(&self.passwords),
            titles,
            icons: settings.pages.icons.then(|| Icons::new(&settings.webhooks.page_reader())),
            webhook_policy: settings.webhooks.policy.clone(),
            turns,
            deletions: DeletionPace::default(),
            explainer,
            policy: settings.link_policy.clone(),
        }
    }

    fn api(&self, links: Arc<LinkService>) -> Api {
        let (settings, parts) = (self.settings, &self.parts);
        let keys = Arc::new(KeyRing::default());
        let noter = note_used(Arc::clone(&keys), parts.databases.links.clone());
        parts.supervisor.spawn("noter of used API keys", noter);
        // Live visits need single visits.
        let has_rows = settings.visits.is_on && settings.visits.keep.is_some();
        let most = u64::try_from(self.limits.public).unwrap_or(u64::MAX) / LIVE_SHARE;
        let live =
            has_rows.then(|| LiveVisits::new(&parts.supervisor, Arc::<LinkService>::clone(&links), most));
        Api {
            links,
            lookup: Arc::clone(&self.lookup),
            domain_cache: Arc::clone(&self.domain_cache),
            live,
            keys,
            store: parts.databases.links.clone(),
            health: HealthCheck::default(),
            clients: Arc::clone(&self.clients),
            calls: Calls::new(settings.call_limits),
            budgets: Arc::clone(&self.budgets),
            packs: Semaphore::new(qr_pack::AT_ONCE),
            connections: self.limits,
            metrics: Arc::clone(&parts.metrics),
            openapi: OnceLock::new(),
            fallback_redirects: settings.fallbacks.redirects.clone(),
            public_url: settings.public_url.clone(),
            router: rest::router(settings.flags.single_step_create),
            time_zone: settings.time_zone.clone(),
            stop: CancellationToken::new(),
            runtime: runtime::Handle::current(),
        }
    }
}

/// Returns the decision of redirects for the API, which does not know them.
fn explainer(redirector: &Redirector) -> Explainer {
    let redirector = Arc::new(redirector.for_examples());
    Arc::new(move |example| {
        let redirector = Arc::clone(&redirector);
        Box::pin(async move { redirector.explain(&example).await })
    })
}
