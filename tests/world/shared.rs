//! The state that the tasks of a run share, and how clients record in it what they were told.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use codes::{Code, LinkId};
use links::{DomainId, Draft, Link, LongUrl, api_key::ApiKeyId, reservation::ReservationId};
use store::{Links, Settings, Source};
use tokio::time::Instant;

use super::{
    book::{Acknowledged, Book, Name, Violation},
    ledger::MemoryLedger,
    node::{Common, Ends},
    outcome::Outcome,
    rng::Rng,
};

/// Number of URLs that many links share. So a row for the same URL is not necessarily a create's
/// own.
const SHARED_URLS: u64 = 3;
/// The API key of all calls.
pub(super) const BY: ApiKeyId = ApiKeyId(1);

/// The way in which a link got its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Minted,
    Picked,
    Reserved,
}

/// A reservation that was acknowledged to a client.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) id: ReservationId,
    pub(super) codes: Vec<Code>,
    /// Whether a client has begun to give it up.
    pub(super) is_given_up: bool,
    /// The URLs that clients have tried to store under each code.
    pub(super) tried: HashMap<Code, Vec<String>>,
}

/// The state that the tasks of a run share.
pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) ledger: Arc<MemoryLedger>,
    pub(super) book: Mutex<Book>,
    pub(super) outcome: Mutex<Outcome>,
    pub(super) urls: AtomicU64,
    /// Links to one of a few shared URLs, per thousand.
    pub(super) shared_urls: u64,
    /// Changes of links among the clients' calls, per thousand.
    pub(super) changes: u64,
    /// Reservation calls among the clients' calls, per thousand.
    pub(super) reserves: u64,
    /// Calls that take a code of the youngest keyspace as a custom slug, per thousand.
    pub(super) picks: u64,
    pub(super) reservations: Mutex<Vec<Reserved>>,
    /// The client interfaces of every process ever started. A dead process does not answer.
    pub(super) ends: Mutex<Vec<Ends>>,
    /// Codes that a client has tried to take as custom slugs.
    pub(super) picked: Mutex<HashSet<String>>,
    /// The names of the domains beside the default one.
    pub(super) hosts: Mutex<HashMap<DomainId, String>>,
    /// Number of domains that clients use.
    pub(super) domains: u64,
    pub(super) began: Instant,
    /// Whether the database was ever restored from an older copy.
    pub(super) lossy: AtomicBool,
    /// Whether the ledger was ever restored from an older copy.
    pub(super) ledger_lossy: AtomicBool,
}

impl Shared {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no code panics while it holds this lock")
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Outcome)) {
        count(&mut self.outcome.lock().expect("no code panics while it holds this lock"));
    }

    pub(super) fn draft(&self, rng: &mut Rng) -> Draft {
        let url = if rng.permille(self.shared_urls) {
            format!("https://example.org/shared/{}", rng.between(1, SHARED_URLS))
        } else {
            self.next_url("new")
        };
        Draft {
            long_url: LongUrl::from_stored(url),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: BY,
            details: None,
        }
    }

    /// Returns a URL that no other link has.
    pub(super) fn next_url(&self, kind: &str) -> String {
        format!("https://example.org/{kind}/{}", self.urls.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn with_reservations<T>(&self, with: impl FnOnce(&mut Vec<Reserved>) -> T) -> T {
        with(&mut self.reservations.lock().expect("no code panics while it holds this lock"))
    }

    /// Returns whether a code belongs to an acknowledged reservation that no client has given up.
    pub(super) fn is_reserved(&self, name: &Name) -> bool {
        let is_it =
            |one: &Reserved| !one.is_given_up && one.codes.iter().any(|code| code.as_str() == name.text);
        name.domain.is_default() && self.with_reservations(|all| all.iter().any(is_it))
    }

    async fn is_stored(&self, id: LinkId) -> bool {
        let reading = self.common.database.sqlite.read(&[id], Source::Primary).await;
        reading.is_ok_and(|reading| !reading.links.is_empty())
    }

    /// Records the name that the database has for a link's domain.
    async fn note_host(&self, domain: DomainId) {
        let Ok(polled) = self.common.database.sqlite.poll_settings(None).await else { return };
        let domains = polled.settings.unwrap_or_default().domains;
        let named = domains.into_iter().find(|one| one.id == domain).and_then(|one| one.authority);
        if let Some(name) = named {
            let mut hosts = self.hosts.lock().expect("no code panics while it holds this lock");
            hosts.insert(domain, name.to_string());
        }
    }

    pub(super) async fn acknowledge(&self, text: String, link: &Link, how: How) {
        let name = Name { domain: link.domain(), text };
        tracing::info!(%name, id = ?link.id.unpack(), ?how, "acknowledged");
        let stored = self.is_stored(link.id).await;
        if !name.domain.is_default() {
            self.note_host(name.domain).await;
        }
        let url = link.long_url.as_str().to_owned();
        self.count(|outcome| {
            outcome.acknowledged += 1;
            outcome.on_domains += u64::from(!name.domain.is_default());
        });
        if how == How::Minted && self.is_reserved(&name) {
            self.book().fail(Violation::ReservedTaken { name: name.clone() });
        }
        self.book().acknowledge(Acknowledged::new(name, link.id, url, how == How::Picked), stored);
    }
}
