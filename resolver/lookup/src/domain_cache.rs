//! Each resolver's copy of the domains, keyspaces and target rules. A poll about four times a
//! second reads them again if their version has changed. The same poll adjusts the estimate of the
//! database's clock.
//!
//! 1. They are few and change seldom, and a redirect cannot wait for them. Polling one number costs
//!    little, and each answer proves that the copy is complete, as silence of LISTEN would not.
//! 2. A change is visible everywhere within [`SHOWN`] of its COMMIT, unless a resolver cannot reach
//!    the database. Then it continues with its copy, for as long as `serve_stale_for` says. After
//!    that it redirects nothing: a target rule may have been added, or a domain disabled.
//! 3. A visitor on a host that the copy does not know belongs to the default domain. While the copy
//!    is older than [`TRUSTED`] that is not certain: links still redirect, but an absence is not
//!    reported (I8). A call that adds a domain is answered [`SHOWN`] after the COMMIT.
//! 4. Likewise for keyspaces: while the copy is old, a code of a keyspace that another resolver has
//!    added cannot be told from a slug. So no process uses a keyspace before [`SHOWN`] has passed
//!    since it first saw the keyspace committed (`keyspaces.rs`).
//! 5. A database that lacks a keyspace which this process knows is an older copy of the one that
//!    adopted it. Processes that start on that copy do not know the keyspace, and may give its
//!    index to another one. So this process stops minting, reports no absence, and ends. Its next
//!    start adopts the keyspace again.

mod changes;
mod entries;
mod page_host;
mod question;
mod refreshes;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use daemon::TaskSupervisor;
use jiff::Timestamp;
use links::{
    Authority, Domain, DomainId, Invalid, LongUrl, Protocol, REMOVED, Slug, StoredObject as _,
    requested_authority,
};
use store::{Settings, SettingsPoll, SettingsVersion, SharedSettings, StoreError};
use supply::{Closing, StopReason};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{clock::DatabaseClock, lookup::Lookup};
pub use entries::Entries;
pub use page_host::PageHost;
use page_host::UnknownHosts;
pub use question::Question;
use refreshes::Refreshes;

/// How long a copy is trusted to be complete after the last answered poll was sent.
pub const TRUSTED: Duration = Duration::from_millis(700);
/// Delay after which a change is visible everywhere: a copy that lacks it is no longer trusted.
pub const SHOWN: Duration = Duration::from_millis(770);

/// The base of the default domain's short links.
#[derive(Clone, Debug)]
pub struct PublicUrl {
    /// The scheme.
    pub protocol: Protocol,
    /// The host, and the port unless it is the scheme's default.
    pub authority: String,
    /// The path below which the default domain is served, without a slash at its end; empty at the
    /// root.
    pub path: String,
}

/// The operator's settings for domains and target rules.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Maximum number of domains beside the default one.
    pub domains_max: u32,
    /// Whether the target rules apply to redirects as well, not only to new links.
    pub checks_redirects: bool,
}

/// The copy of the settings, and the state of the task that refreshes it.
pub struct DomainCache {
    /// The configuration that it was started with.
    pub config: DomainCacheConfig,
    entries: RwLock<Arc<Entries>>,
    /// Whether hosts need no lookup: there are no other domains, and the default domain has no
    /// settings. Read with each redirect.
    is_plain: AtomicBool,
    /// When the last answered poll was sent.
    heard: watch::Sender<Option<Instant>>,
    refreshes: Refreshes,
    clock: DatabaseClock,
    /// The host of the public URL, normalised as requests name it.
    default_host: String,
    /// Whether it is an IP address or `localhost`.
    is_local: bool,
    unknown_hosts: UnknownHosts,
    /// The name of each domain, and when this process first saw it. Other processes may not know it
    /// before [`SHOWN`] has passed.
    first_seen: Mutex<HashMap<DomainId, (Option<Authority>, Instant)>>,
    /// How the database contradicts the keyspaces of this process. Once set, the settings are not
    /// read again.
    contradiction: OnceLock<Invalid>,
}

/// The parts that a [`DomainCache`] works with.
pub struct DomainCacheConfig {
    /// The database that stores the settings.
    pub settings: Arc<dyn Settings>,
    /// The base of the default domain's short links.
    pub public_url: PublicUrl,
    /// The operator's settings.
    pub policy: Policy,
    /// Learns of keyspaces and target rules.
    pub lookup: Arc<Lookup>,
    /// Ends minting when the database contradicts this process.
    pub closing: Closing,
}

impl DomainCache {
    /// Creates a copy from settings whose poll was sent at `asked`, and starts the task that
    /// refreshes it on the current runtime.
    pub fn start(
        supervisor: &TaskSupervisor,
        config: DomainCacheConfig,
        (asked, polled): (Instant, SettingsPoll),
    ) -> Arc<Self> {
        let (default_host, is_local) = config.public_url.requested();
        let domain_cache = Arc::new(Self {
            entries: RwLock::new(Arc::new(Entries::nothing())),
            is_plain: AtomicBool::new(true),
            heard: watch::Sender::new(None),
            first_seen: Mutex::default(),
            refreshes: Refreshes::default(),
            clock: DatabaseClock::new(polled.now),
            default_host,
            is_local,
            unknown_hosts: UnknownHosts::default(),
            contradiction: OnceLock::new(),
            config,
        });
        if domain_cache.replace(polled.settings.unwrap_or_default()).is_ok() {
            domain_cache.note_heard(asked);
        }
        let reader = Arc::clone(&domain_cache);
        let read = async move { reader.refreshes.run(|| reader.read()).await };
        supervisor.spawn("reader of domains", read);
        if domain_cache.config.settings.is_shared() {
            supervisor.spawn("watch of the settings' age", Arc::clone(&domain_cache).watch_age());
        }
        domain_cache
    }

    /// Waits for a refresh that covers every change committed before this call.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.refreshes.next().await
    }

    /// Polls for changed settings. There is one poll at a time.
    async fn read(&self) -> Result<(), StoreError> {
        if let Some(contradiction) = self.contradiction.get() {
            return Err(StoreError::Keyspace(contradiction.to_string()));
        }
        let (sent, known) = (Instant::now(), self.entries().version.clone());
        let SettingsPoll { now, settings } = self.config.settings.poll_settings(known.as_ref()).await?;
        self.clock.learn(sent, now);
        if let Some(settings) = settings {
            self.replace(settings)?;
        }
        self.note_heard(sent);
        Ok(())
    }

    fn note_heard(&self, sent: Instant) {
        self.heard.send_modify(|heard| {
            *heard = Some(sent);
            // Within the lock, so that `watch_age` does not set it afterwards.
            self.config.lookup.set_cut_off(false);
        });
    }

    /// Stops redirects whenever the copy becomes too old. The answer to a poll starts them again.
    async fn watch_age(self: Arc<Self>) {
        let (began, mut polls) = (Instant::now(), self.heard.subscribe());
        loop {
            let last = *polls.borrow_and_update();
            let end = last.unwrap_or(began) + self.config.lookup.config.serve_stale_for;
            if timeout_at(end, polls.changed()).await.is_ok() {
                continue;
            }
            self.heard.send_if_modified(|heard| {
                if *heard == last {
                    self.config.lookup.set_cut_off(true);
                    tracing::error!(
                        "cut off from the database for --serve-stale-for: all redirects are answered 503"
                    );
                }
                false
            });
            // This task holds the sender, so the channel cannot be closed.
            let _ = polls.changed().await;
        }
    }

    /// Replaces the settings. The new ones may be older than the present ones, if an older copy of
    /// the database was restored. If it lacks a keyspace that this process uses, domains and rules
    /// are replaced, and the copy is no longer trusted.
    fn replace(&self, settings: SharedSettings) -> Result<(), StoreError> {
        let adopted = self.config.lookup.adopt(&settings.keyspaces);
        self.replace_entries(settings);
        adopted.map_err(|contradiction| {
            tracing::error!(
                %contradiction,
                "an older copy of the database has taken over: this process mints no more and ends; \
                 start it again, and it adopts its keyspaces again"
            );
            self.config.closing.close(StopReason::Keyspaces(contradiction.clone()));
            StoreError::Keyspace(self.contradiction.get_or_init(|| contradiction).to_string())
        })
    }

    fn replace_entries(&self, settings: SharedSettings) {
        let mut entries = self.entries.write().expect("no code panics while it holds this lock");
        self.note_seen(entries.version.as_ref(), &settings);
        let new = Entries::new(settings);
        let is_plain = new.is_plain();
        if self.config.policy.checks_redirects && new.targets != entries.targets {
            self.config.lookup.judge_by(new.targets.clone());
        }
        *entries = Arc::new(new);
        self.is_plain.store(is_plain, Ordering::Release);
    }

    /// Records which domains are new or have new names. In another copy of the database the same id
    /// may belong to another domain.
    fn note_seen(&self, known: Option<&SettingsVersion>, settings: &SharedSettings) {
        let mut first_seen = self.first_seen.lock().expect("no code panics while it holds this lock");
        if known.is_some_and(|known| known.copy != settings.version.copy) {
            first_seen.clear();
        }
        let now = Instant::now();
        for domain in &settings.domains {
            let is_known = first_seen.get(&domain.id).is_some_and(|(name, _)| *name == domain.authority);
            if !is_known {
                first_seen.insert(domain.id, (domain.authority.clone(), now));
            }
        }
    }

    /// Returns the present copy.
    pub fn entries(&self) -> Arc<Entries> {
        Arc::clone(&self.entries.read().expect("no code panics while it holds this lock"))
    }

    /// Returns whether every host belongs to the default domain, which has no settings.
    pub fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Acquire)
    }

    /// Returns whether a visitor of this host gets the default domain's links only, and their
    /// redirects alone: the default domain is enabled, lets no scripts of other origins in, and
    /// adds no parameters.
    pub fn is_default(&self, host: Option<&str>) -> bool {
        let entries = self.entries.read().expect("no code panics while it holds this lock");
        let is_other = |host: &str| self.of_host(&entries, host).is_some();
        let settings = &entries.default.settings;
        let is_changed = settings.cross_origin || settings.query_template.is_some();
        let is_usual = !settings.disabled && !is_changed && !settings.is_of_later_release();
        is_usual && !host.is_some_and(is_other)
    }

    /// Returns whether scripts of other origins may follow links on this host.
    pub fn is_cross_origin(&self, host: Option<&str>) -> bool {
        !self.is_plain() && self.place(host).0.settings.cross_origin
    }

    /// Returns the domain of a visitor's host, and whether that is the default domain for certain:
    /// by its name.
    pub fn place(&self, host: Option<&str>) -> (Arc<Domain>, bool) {
        let entries = self.entries();
        let is_default = host.is_some_and(|host| self.is_default_name(host));
        let other = host.and_then(|host| self.of_host(&entries, host));
        if let Some(host) = host.filter(|_| other.is_none() && !is_default)
            && self.unknown_hosts.is_new(host)
        {
            tracing::warn!(
                host,
                public_host = self.default_host,
                "no domain has this host, so its visitors get the default domain's links: if it is a proxy's \
                 own name for this server, let the proxy pass the header Host on, with the port; if it is a \
                 domain of short links, add it"
            );
        }
        (Arc::clone(other.unwrap_or(&entries.default)), is_default)
    }

    /// Returns the domain of a host; `None` if that is the default domain or unknown.
    fn of_host<'a>(&self, entries: &'a Entries, host: &str) -> Option<&'a Arc<Domain>> {
        if host == self.default_name() {
            return None;
        }
        let host = requested_authority(host);
        if *host == self.default_host { None } else { entries.named(&host) }
    }

    /// Returns whether a host is a spelling of the default domain's name.
    pub fn is_default_name(&self, host: &str) -> bool {
        host == self.default_name() || *requested_authority(host) == self.default_host
    }

    /// Returns the estimated time of the database.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns whether the copy has every change that a client may know of.
    pub fn is_fresh(&self) -> bool {
        let heard = *self.heard.borrow();
        heard.is_some_and(|heard| !self.config.settings.is_shared() || heard.elapsed() < TRUSTED)
    }

    /// Returns the id of the default domain if the domain `id` has its name, or else `id`. The
    /// domain that --public-url names is always the default one.
    pub fn settled(&self, id: DomainId) -> DomainId {
        let entries = self.entries();
        let name = entries.domain(id).and_then(|domain| domain.authority.as_ref());
        let is_its = |name: &&Authority| [self.default_name(), &*self.default_host].contains(&name.as_str());
        if name.filter(is_its).is_some() { DomainId::DEFAULT } else { id }
    }

    /// Returns whether a URL is the short URL of this name on this domain. A link to it would lead
    /// to itself.
    pub fn is_short_url(&self, url: &LongUrl, domain: DomainId, name: &str) -> bool {
        let mint = &self.config.lookup.mint;
        self.slug_at(url, domain).is_some_and(|slug| slug.is_same(name) || slug.as_minted(mint).is_same(name))
    }

    /// Returns the name for which a URL would be the short URL on this domain.
    pub fn slug_at(&self, url: &LongUrl, domain: DomainId) -> Option<Slug> {
        let entries = self.entries();
        let (authority, path) = url.authority_and_path();
        let base = match self.of_host(&entries, &authority) {
            Some(other) if other.id == domain => "",
            None if domain.is_default() && self.is_default_name(&authority) => &*self.config.public_url.path,
            _ => return None,
        };
        path.strip_prefix(base).and_then(Slug::of_path)
    }

    /// Returns the path below which a host is served, without a slash at its end: that of the
    /// public URL, unless another domain has the host.
    pub fn base_path(&self, host: Option<&str>) -> &str {
        let path = &self.config.public_url.path;
        let is_other = |host: &str| self.of_host(&self.entries(), host).is_some();
        if path.is_empty() || host.is_some_and(is_other) { "" } else { path }
    }

    /// Returns a path of a host without the path below which the host is served. Requests may leave
    /// that out.
    pub fn path_below<'a>(&self, host: &str, path: &'a str) -> &'a str {
        match path.strip_prefix(self.base_path(Some(host))) {
            Some("") => "/",
            Some(below) if below.starts_with('/') => below,
            _ => path,
        }
    }

    /// Returns the default domain's name.
    pub fn default_name(&self) -> &str {
        &self.config.public_url.authority
    }

    /// Returns the name of a domain as links show it: `None` for the default domain, [`REMOVED`]
    /// for one that was removed.
    pub fn shown_name(&self, id: DomainId) -> Option<String> {
        if id.is_default() {
            return None;
        }
        let entries = self.entries();
        let name = |domain: &Domain| domain.authority.as_ref().map(ToString::to_string);
        entries.domain(id).map_or_else(|| Some(REMOVED.to_owned()), |domain| name(domain))
    }

    /// Returns the base of a domain's short links, without a slash at the end. A domain that this
    /// copy does not have yet has no links here.
    pub fn base(&self, id: DomainId) -> String {
        let entries = self.entries();
        let domain = entries.domain(id);
        let protocol =
            domain.and_then(|domain| domain.settings.protocol).unwrap_or(self.config.public_url.protocol);
        let (name, path) = match domain.and_then(|domain| domain.authority.as_ref()) {
            Some(name) => (name.as_str(), ""),
            None => (self.default_name(), &*self.config.public_url.path),
        };
        format!("{}://{name}{path}", protocol.as_str())
    }
}
