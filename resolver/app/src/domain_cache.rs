//! Domains, keyspaces and rules about targets, as every resolver keeps them: a copy that is asked about four times a second and read
//! again when it has changed. The same question keeps the database's clock.
//!
//! 1. They are few and change seldom, and a redirect cannot wait for them. To ask for one number is cheaper than to listen, and works through any pooler.
//! 2. A change shows everywhere within [`SHOWN`] of its COMMIT, unless the database is away: then everybody goes on with what they have.
//! 3. A visitor on a host that the copy does not know is one of the default domain's. While the copy is older than [`TRUSTED`] nobody can say so:
//!    links are still led to, but an absence is not reported (I8). Whoever adds a domain answers [`SHOWN`] after the COMMIT.
//! 4. Likewise for keyspaces: while the copy is old, a code of a keyspace that another resolver has
//!    added cannot be told from a slug. No process uses a keyspace before [`SHOWN`] has passed
//!    since it first saw the keyspace committed: not to mint (`prepare`), and not for codes that
//!    people pick (`creator/shown.rs`).
//! 5. A database that lacks a keyspace which this process knows is an older copy of the one that it
//!    was adopted in. Processes that start on it do not know the keyspace, and may give its index
//!    to another one: this process mints no more, denies nothing, and ends. Its next start adopts
//!    the keyspace again.

mod changes;
mod entries;
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

use codes::Contradiction;
use daemon::Vitals;
use jiff::Timestamp;
use links::{Authority, Domain, DomainId, LongUrl, Protocol, REMOVED, Slug, requested_authority};
use store::{Settings, SettingsPoll, SettingsVersion, SharedSettings, StoreError};
use supply::{Closing, Lost};
use tokio::time::{Instant, sleep_until};

use crate::{clock::DatabaseClock, lookup::Lookup};
pub use entries::Entries;
pub use question::Question;
use refreshes::Refreshes;

/// How long a copy is believed to be whole, after the last question that was answered was sent.
pub const TRUSTED: Duration = Duration::from_millis(700);
/// When a change shows everywhere: a copy that does not have it is not trusted any more.
pub const SHOWN: Duration = Duration::from_millis(770);

/// What short links of the default domain begin with.
#[derive(Clone, Debug)]
pub struct PublicUrl {
    /// Its scheme.
    pub protocol: Protocol,
    /// Its host, and its port unless it is the scheme's own.
    pub authority: String,
}

/// What an operator decides about domains and targets.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How many domains there may be beside the default one.
    pub domains_max: u32,
    /// Whether the rules about targets hold for redirects too, and not for new links only.
    pub checks_redirects: bool,
}

/// Where a visitor is.
#[derive(Clone, Debug)]
pub struct Place {
    /// On which domain.
    pub domain: Arc<Domain>,
    /// Whether it is known that the host is none of the other domains'.
    pub is_sure: bool,
}

/// The copy, and the task that keeps it.
pub struct Directory {
    entries: RwLock<Arc<Entries>>,
    /// Whether visitors' hosts have to be looked at: there are other domains, or something is said of the default one. Read with each redirect.
    is_plain: AtomicBool,
    /// When the last question was sent whose answer can be believed.
    heard: Mutex<Option<Instant>>,
    refreshes: Refreshes,
    clock: Arc<DatabaseClock>,
    settings: Arc<dyn Settings>,
    public_url: PublicUrl,
    /// The host of `public_url`, as requests name it.
    default_host: String,
    /// The name of each domain, and when this process first saw it: others may not know it before
    /// [`SHOWN`] has passed.
    first_seen: Mutex<HashMap<DomainId, (Option<Authority>, Instant)>>,
    /// What the operator decided.
    policy: Policy,
    /// What else has to be read again when somebody beside this process writes.
    lookup: Arc<Lookup>,
    /// What ends minting when the database contradicts this process.
    closing: Closing,
    /// What the database says against the keyspaces of this process: from then on nothing is read.
    contradiction: OnceLock<Contradiction>,
}

/// What a directory works with.
pub struct DirectoryConfig {
    /// Where settings are stored.
    pub settings: Arc<dyn Settings>,
    /// What short links of the default domain begin with.
    pub public_url: PublicUrl,
    /// What the operator decided.
    pub policy: Policy,
    /// What has to hear of keyspaces and rules.
    pub lookup: Arc<Lookup>,
    /// The clock that the polls keep.
    pub clock: Arc<DatabaseClock>,
    /// What ends minting when the database contradicts this process.
    pub closing: Closing,
}

impl Directory {
    /// A copy of these settings, which were asked for at this instant, and the task that keeps it, on the current runtime.
    #[must_use]
    pub fn start(
        vitals: &Vitals,
        config: DirectoryConfig,
        (asked, polled): (Instant, SettingsPoll),
    ) -> Arc<Self> {
        let DirectoryConfig { settings, public_url, policy, lookup, clock, closing } = config;
        let directory = Arc::new(Self {
            entries: RwLock::new(Arc::new(Entries::nothing())),
            is_plain: AtomicBool::new(true),
            heard: Mutex::default(),
            first_seen: Mutex::default(),
            refreshes: Refreshes::new(),
            clock,
            settings,
            default_host: requested_authority(&public_url.authority).into_owned(),
            public_url,
            policy,
            lookup,
            closing,
            contradiction: OnceLock::new(),
        });
        if directory.replace(polled.settings.unwrap_or_default()).is_ok() {
            directory.note_heard(asked);
        }
        vitals.spawn("reader of domains", Arc::clone(&directory).follow());
        directory
    }

    async fn follow(self: Arc<Self>) {
        self.refreshes.run(|| self.read()).await;
    }

    /// Reads settings again that have changed before this call.
    ///
    /// # Errors
    /// When the store does not say in time.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.refreshes.next().await
    }

    /// Asks for settings that have changed. There is one such question at a time.
    async fn read(&self) -> Result<(), StoreError> {
        if let Some(contradiction) = self.contradiction.get() {
            return Err(StoreError::Keyspace(contradiction.to_string()));
        }
        let (sent, known) = (Instant::now(), self.entries().version.clone());
        let SettingsPoll { now, settings } = self.settings.poll_settings(known.as_ref()).await?;
        self.clock.learn(sent, now);
        if let Some(settings) = settings {
            self.replace(settings)?;
            if !self.settings.is_shared() {
                // Nobody tells of what an import beside this process brings.
                self.lookup.reload_picked();
            }
        }
        self.note_heard(sent);
        Ok(())
    }

    fn note_heard(&self, sent: Instant) {
        *self.heard.lock().expect("no code panics while it holds this lock") = Some(sent);
    }

    /// Takes in other settings. They may be older than those in force: an older copy of the
    /// database was put back. If it lacks a keyspace that this process uses, domains and rules are
    /// taken in, and nothing is believed to be whole.
    fn replace(&self, settings: SharedSettings) -> Result<(), StoreError> {
        let adopted = self.lookup.adopt(&settings.keyspaces);
        self.replace_entries(settings);
        adopted.map_err(|contradiction| {
            tracing::error!(
                %contradiction,
                "an older copy of the database has taken over: this process mints no more and ends; \
                 start it again, and it adopts its keyspaces again"
            );
            self.closing.close(Lost::Keyspaces(contradiction.clone()));
            StoreError::Keyspace(self.contradiction.get_or_init(|| contradiction).to_string())
        })
    }

    fn replace_entries(&self, settings: SharedSettings) {
        let mut entries = self.entries.write().expect("no code panics while it holds this lock");
        self.note_seen(entries.version.as_ref(), &settings);
        let new = Entries::new(settings);
        let is_plain = new.is_plain();
        if self.policy.checks_redirects && new.targets() != entries.targets() {
            self.lookup.judge_by(new.targets().clone());
        }
        *entries = Arc::new(new);
        self.is_plain.store(is_plain, Ordering::Release);
    }

    /// Notes which domains are new, or have new names. In another copy of the database the same
    /// number may be another domain's.
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

    /// Waits until every resolver knows a domain by its name: a link on it would be an unknown code
    /// of the default one to those that do not.
    async fn wait_until_known(&self, domain: DomainId) {
        if self.settings.is_shared() && !domain.is_default() {
            let first_seen = self
                .first_seen
                .lock()
                .expect("no code panics while it holds this lock")
                .get(&domain)
                .map(|(_, seen)| *seen);
            sleep_until(first_seen.unwrap_or_else(Instant::now) + SHOWN).await;
        }
    }

    /// The copy as it is now.
    #[must_use]
    pub fn entries(&self) -> Arc<Entries> {
        Arc::clone(&self.entries.read().expect("no code panics while it holds this lock"))
    }

    /// Whether every host is the default domain's, of which nothing is said.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Acquire)
    }

    /// Whether a visitor of this host is led by the default domain's links, and by nothing else.
    #[must_use]
    pub fn is_default(&self, host: Option<&str>) -> bool {
        let entries = self.entries.read().expect("no code panics while it holds this lock");
        let is_other = |host: &str| self.of_host(&entries, host).is_some();
        !entries.default_domain().settings.disabled && !host.is_some_and(is_other)
    }

    /// Where a visitor of this host is.
    #[must_use]
    pub fn place(&self, host: Option<&str>) -> Place {
        // Before the copy is asked: it may be replaced between the two.
        let was_fresh = self.is_fresh();
        let entries = self.entries();
        let is_default = host.is_some_and(|host| self.is_default_name(host));
        let other = host.and_then(|host| self.of_host(&entries, host));
        let domain = Arc::clone(other.unwrap_or(entries.default_domain()));
        Place { domain, is_sure: is_default || was_fresh }
    }

    /// The domain of a visitor's host; none when it is the default one's, or nobody's.
    fn of_host<'a>(&self, entries: &'a Entries, host: &str) -> Option<&'a Arc<Domain>> {
        if host == self.default_name() {
            return None;
        }
        let host = requested_authority(host);
        if *host == self.default_host { None } else { entries.named(&host) }
    }

    /// Whether this is the name of the default domain, however it is written.
    #[must_use]
    pub fn is_default_name(&self, host: &str) -> bool {
        host == self.default_name() || *requested_authority(host) == self.default_host
    }

    /// The database's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether the copy lacks nothing that a client may know of.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        let heard = *self.heard.lock().expect("no code panics while it holds this lock");
        heard.is_some_and(|heard| !self.settings.is_shared() || heard.elapsed() < TRUSTED)
    }

    /// The domain itself, or the default one if it has that one's name: --public-url decides whose it is.
    #[must_use]
    pub fn settled(&self, id: DomainId) -> DomainId {
        let entries = self.entries();
        let name = entries.domain(id).and_then(|domain| domain.authority.as_ref());
        let is_its = |name: &&Authority| [self.default_name(), &*self.default_host].contains(&name.as_str());
        if name.filter(is_its).is_some() { DomainId::DEFAULT } else { id }
    }

    /// Whether a URL is the short URL of this name on this domain: a link that led there would lead
    /// to itself.
    #[must_use]
    pub fn is_short_url(&self, url: &LongUrl, domain: DomainId, name: &str) -> bool {
        let entries = self.entries();
        let authority = url.authority();
        let is_there = match self.of_host(&entries, &authority) {
            Some(other) => other.id == domain,
            None => domain.is_default() && self.is_default_name(&authority),
        };
        is_there && Slug::of_path(&url.path()).is_some_and(|slug| slug.as_str() == name)
    }

    /// The default domain's name.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.public_url.authority
    }

    /// Returns the name of a domain as links show it: `None` for the default domain, [`REMOVED`] for
    /// one that was removed.
    #[must_use]
    pub fn shown_name(&self, id: DomainId) -> Option<String> {
        if id.is_default() {
            return None;
        }
        let entries = self.entries();
        let name = |domain: &Domain| domain.authority.as_ref().map(ToString::to_string);
        entries.domain(id).map_or_else(|| Some(REMOVED.to_owned()), |domain| name(domain))
    }

    /// What short links of a domain begin with, without a slash at the end. A domain that this copy does not have yet has no links here.
    #[must_use]
    pub fn base(&self, id: DomainId) -> String {
        let entries = self.entries();
        let domain = entries.domain(id);
        let protocol = domain.and_then(|domain| domain.settings.protocol).unwrap_or(self.public_url.protocol);
        let name = domain
            .and_then(|domain| domain.authority.as_ref())
            .map_or(self.default_name(), Authority::as_str);
        format!("{}://{name}", protocol.as_str())
    }
}
