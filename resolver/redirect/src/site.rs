//! A public site for tests: redirects over a SQLite file, with a sink that keeps recorded visits.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use codes::{CodeKey, Keyspace, LinkId, Mint};
use daemon::TaskSupervisor;
use geoip::GeoIp;
use hyper::StatusCode;
use limits::{Budgets, Resources};
use links::{Authority, Details, DomainId, Draft, LongUrl, Protocol, Redirects, Slug, api_key::ApiKeyId};
use lookup::{
    Lookup, LookupConfig,
    domain_cache::{DomainCache, DomainCacheConfig, Policy, PublicUrl},
    metrics::Metrics,
    passwords::PasswordGuard,
    visit_limit::VisitLimiter,
};
use recorder::{BlockSink, CaptureRules, Flush, Recorder, RecorderConfig};
use store::{CustomSlugLink, InsertedLink, Store, sqlite::SqliteStore};
use supply::{Closing, safety_rule::SafetyRules};
use tempfile::TempDir;
use tokio::{runtime, time::Instant};
use web::client_limits::{ClientLimits, Clients};

use crate::{Redirector, ThreadContext, Visitor, fallback_page::FallbackTargets};

/// The host of the second domain.
pub(crate) const OTHER_HOST: &str = "other.example";
/// The fallback target for paths that no link can have.
pub(crate) const REGULAR_404: &str = "https://regular.example/";

#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Vec<u8>>>);

impl BlockSink for Kept {
    fn write(&self, block: &[u8], _: u32, _: (i64, i64)) {
        self.0.lock().unwrap().push(block.to_vec());
    }
}

pub(crate) struct Site {
    pub(crate) thread: ThreadContext,
    /// The id of the domain [`OTHER_HOST`].
    pub(crate) other: DomainId,
    pub(crate) page: daemon::Recorder,
    store: Arc<dyn Store>,
    kept: Arc<Kept>,
    _folder: TempDir,
}

impl Site {
    /// Starts a site. Codes have six characters; other names are slugs.
    pub(crate) async fn start(rules: CaptureRules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("links.db")).unwrap());
        store.migrate().await.unwrap();
        let keyspace = Keyspace::parse("default=6:0-9A-Za-z").unwrap();
        let keyspaces = store.adopt_keyspaces(&[keyspace]).await.unwrap();
        let host = Authority::parse(OTHER_HOST).unwrap();
        let other = store.add_domain(&host, 9, ApiKeyId(1)).await.unwrap().unwrap();
        let key = CodeKey::parse(&"5a".repeat(32)).unwrap();
        let (mint, page) = (Arc::new(Mint::new(&key, keyspaces)), daemon::Recorder::new());
        let kept = Arc::<Kept>::default();
        let redirector = Arc::new(redirector(&store, mint, &page, (rules, kept.clone())).await);
        let thread = ThreadContext::new(redirector, 0);
        Self { thread, other, page, store, kept, _folder: folder }
    }

    /// Creates a link to `https://example.com/` followed by its name.
    pub(crate) async fn create(&self, name: &str, details: Details) -> LinkId {
        let long_url = LongUrl::from_stored(format!("https://example.com/{name}"));
        let link = CustomSlugLink {
            slug: Slug::parse(name).unwrap(),
            mintable: self.thread.redirector.lookup.id_of(name),
            keyspaces: self.store.adopt_keyspaces(&[]).await.unwrap().len(),
            draft: Draft {
                long_url,
                title: None,
                crawlable: false,
                forward_query: true,
                created_by: ApiKeyId(1),
                details: Some(Box::new(Details { slug: Slug::parse(name).ok(), ..details })),
            },
        };
        match self.store.insert_with_slug(&link, &[], None).await.unwrap() {
            InsertedLink::Stored(id, ..) => id,
            refused => panic!("{name}: {refused:?}"),
        }
    }

    pub(crate) async fn delete(&self, link: LinkId) {
        self.store.delete(link, &links::Precondition::default(), ApiKeyId(1)).await.unwrap().unwrap();
    }

    pub(crate) fn is_code(&self, name: &str) -> bool {
        codes::Code::parse(name).is_ok_and(|code| self.thread.redirector.lookup.mint.belongs(&code))
    }

    /// Commits the turn, and returns the blocks written since the last call.
    pub(crate) fn take_blocks(&self) -> Vec<Vec<u8>> {
        self.thread.commit();
        std::mem::take(&mut self.kept.0.lock().unwrap())
    }
}

pub(crate) fn visitor(address: &str) -> Visitor {
    let address: IpAddr = address.parse().unwrap();
    Visitor { peer: address, client: address, country: None, scheme: links::Protocol::Http }
}

async fn redirector(
    store: &Arc<dyn Store>,
    mint: Arc<Mint>,
    page: &daemon::Recorder,
    (rules, sink): (CaptureRules, Arc<Kept>),
) -> Redirector {
    let (supervisor, metrics) = (TaskSupervisor::default(), Metrics::new(page));
    let lookup_config = LookupConfig {
        cache_bytes: 1 << 20,
        warm_links: 0,
        replica_lag: Duration::ZERO,
        serve_stale_for: Duration::from_secs(3_600),
        rules: SafetyRules::default(),
    };
    let lookup =
        Arc::new(Lookup::start(&supervisor, lookup_config, mint, store.clone(), Arc::clone(&metrics)));
    let config = DomainCacheConfig {
        settings: store.clone(),
        public_url: PublicUrl {
            protocol: Protocol::Http,
            authority: "sho.rt".to_owned(),
            path: String::new(),
        },
        policy: Policy { domains_max: 9, checks_redirects: true },
        lookup: Arc::clone(&lookup),
        closing: Closing::without_minting(),
    };
    let polled = (Instant::now(), store.poll_settings(None).await.unwrap());
    let (threads, flush, counts) = (1, Flush::Turn, Arc::clone(&metrics));
    let recorded = RecorderConfig { threads, flush, rules, sink, seen: Box::new(|_, _| {}), metrics: counts };
    let limits = ClientLimits {
        connections: None,
        unknown_codes: 20,
        trusted_proxies: Vec::new(),
        client_header: None,
        country_header: None,
    };
    let redirects = Redirects { regular_404: Some(REGULAR_404.to_owned()), ..Redirects::default() };
    Redirector {
        domain_cache: DomainCache::start(&supervisor, config, polled),
        lookup,
        passwords: Arc::new(PasswordGuard::default()),
        visit_limiter: Arc::new(VisitLimiter::start(&supervisor, store.clone())),
        visits: Recorder::start(&supervisor, recorded),
        catalog: store.clone(),
        clients: Arc::new(Clients::new(limits, metrics.clients_unread.clone())),
        budgets: Arc::new(Budgets::of(&Resources { descriptors: 1_024, memory: 1 << 30 })),
        metrics,
        geoip: GeoIp::default(),
        fallbacks: FallbackTargets { redirects, ..FallbackTargets::default() },
        tells_gone: true,
        status: StatusCode::FOUND,
        qr_codes: Arc::default(),
        logo: None,
        robots: Arc::default(),
        runtime: runtime::Handle::current(),
    }
}
