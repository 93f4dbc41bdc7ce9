//! What clients do beside the faults: they create in every way, and look up what was acknowledged.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{task::JoinHandle, time::sleep};

use super::{
    Rng,
    book::{Acknowledged, Book},
    ledger::MemoryLedger,
    node::{Common, Node},
    outcome::Outcome,
};
use crate::{
    api_key::ApiKeyId,
    codes::{LinkId, Mint},
    create::{CodeWish, CreateError, Creator, Wishes},
    links::{Details, DomainId, Draft, Link, LongUrl, Slug, Tag},
    lookup::Lookup,
    store::{LinkStore, Source},
};

/// URLs that many links share: a row for the same URL is not therefore one's own.
const SHARED_URLS: u64 = 3;

/// What the tasks of a run share.
pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) ledger: Arc<MemoryLedger>,
    pub(super) book: Mutex<Book>,
    pub(super) outcome: Mutex<Outcome>,
    pub(super) urls: AtomicU64,
    /// Of a thousand links so many are for one of a few URLs.
    pub(super) shared_urls: u64,
    /// Whether the database or the ledger was ever put back.
    pub(super) lossy: AtomicBool,
    pub(super) ledger_lossy: AtomicBool,
}

impl Shared {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no code panics while it holds this lock")
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Outcome)) {
        count(&mut self.outcome.lock().expect("no code panics while it holds this lock"));
    }

    fn draft(&self, rng: &mut Rng) -> Draft {
        let url = if rng.permille(self.shared_urls) {
            format!("https://example.org/shared/{}", rng.between(1, SHARED_URLS))
        } else {
            format!("https://example.org/{}", self.urls.fetch_add(1, Ordering::Relaxed))
        };
        Draft {
            long_url: LongUrl::from_stored(url),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: ApiKeyId(1),
            details: None,
        }
    }

    pub(super) async fn is_stored(&self, id: LinkId) -> bool {
        let reading = self.common.database.sqlite.read(&[id], Source::Primary).await;
        reading.is_ok_and(|reading| !reading.links.is_empty())
    }

    async fn acknowledge(&self, name: String, link: &Link) {
        self.acknowledge_as(name, link, false).await;
    }

    async fn acknowledge_as(&self, name: String, link: &Link, is_picked: bool) {
        tracing::info!(name, id = ?link.id.unpack(), is_picked, "acknowledged");
        let (stored, lossy) = (self.is_stored(link.id).await, self.lossy.load(Ordering::Relaxed));
        let url = link.long_url.as_str().to_owned();
        self.count(|outcome| outcome.acknowledged += 1);
        self.book().acknowledge(Acknowledged { name, id: link.id, url, is_picked }, stored, lossy);
    }

    fn refused(&self, error: &CreateError) {
        match error {
            CreateError::Exhausted => self.count(|outcome| outcome.exhausted += 1),
            CreateError::NoStore => self.count(|outcome| outcome.unknown += 1),
            CreateError::NoNumber | CreateError::OtherWish | CreateError::Taken | CreateError::Overloaded => {
            }
        }
    }

    /// One create of some kind; whether a link was acknowledged, or the keyspace is said to be exhausted.
    pub(super) async fn create(
        &self,
        creator: &Creator,
        lookup: &Lookup,
        mint: &Mint,
        rng: &mut Rng,
    ) -> bool {
        let draft = self.draft(rng);
        match rng.between(0, 9) {
            0 => {
                let drafts = (0..rng.between(1, 12)).map(|_| self.draft(rng)).collect();
                let mut any = false;
                for created in creator.create_many(drafts).await {
                    match created {
                        Ok(created) => {
                            self.acknowledge(created.code.to_string(), &created.link).await;
                            any = true;
                        }
                        Err(error) => {
                            self.refused(&error);
                            any |= matches!(error, CreateError::Exhausted);
                        }
                    }
                }
                any
            }
            1 => {
                self.pick(creator, mint, draft, rng).await;
                false
            }
            2 => {
                let tags = Tag::parse("t").into_iter().collect();
                let wishes = Wishes { tags, ..Wishes::default() };
                self.told(lookup, creator.create_full(draft, wishes).await.map(|record| record.link)).await
            }
            _ => match creator.create(draft).await {
                Ok(created) => {
                    self.acknowledge(created.code.to_string(), &created.link).await;
                    true
                }
                Err(error) => {
                    self.refused(&error);
                    matches!(error, CreateError::Exhausted)
                }
            },
        }
    }

    async fn told(&self, lookup: &Lookup, created: Result<Link, CreateError>) -> bool {
        match created {
            Ok(link) => {
                let name = lookup.name_of(&link).unwrap_or_default();
                self.acknowledge(name, &link).await;
                true
            }
            Err(error) => {
                self.refused(&error);
                matches!(error, CreateError::Exhausted)
            }
        }
    }

    /// Picks a code: one that the minter could come to, or a word.
    async fn pick(&self, creator: &Creator, mint: &Mint, mut draft: Draft, rng: &mut Rng) {
        let (index, keyspace) = &self.common.keyspaces[0];
        let number = rng.next() % keyspace.capacity();
        let minted = mint.code_of(LinkId::new(*index, number)).filter(|_| rng.permille(700));
        let word = || format!("word-{}", self.urls.fetch_add(1, Ordering::Relaxed));
        let text = minted.map_or_else(word, |code| code.to_string());
        let Ok(slug) = Slug::parse(&text) else { return };
        draft.details = Some(Box::<Details>::default());
        let wishes = Wishes { code: CodeWish::Picked(slug), ..Wishes::default() };
        match creator.create_full(draft, wishes).await {
            Ok(record) => {
                self.count(|outcome| outcome.slugs += 1);
                self.acknowledge_as(text, &record.link, true).await;
            }
            Err(error) => self.refused(&error),
        }
    }

    /// Looks a link up that was acknowledged before; whether somebody could say.
    pub(super) async fn look(&self, lookup: &Lookup, link: &Acknowledged) -> bool {
        let Ok(found) = lookup.find_named(DomainId::DEFAULT, &link.name).await else { return false };
        let found = found.filter(|found| !found.is_deleted());
        self.count(|outcome| outcome.looked_up += 1);
        self.book().found(link, found.as_ref().map(|found| found.long_url.as_str()));
        true
    }

    fn some_link(&self, rng: &mut Rng) -> Option<Acknowledged> {
        let book = self.book();
        let last = book.links.len().checked_sub(1)? as u64;
        // The youngest links are those that somebody may not know yet.
        let place =
            if rng.permille(600) { last.saturating_sub(rng.between(0, 3)) } else { rng.between(0, last) };
        book.links.get(usize::try_from(place).ok()?).cloned()
    }
}

/// A process with the tasks of its clients.
pub(super) struct Running {
    pub(super) node: Node,
    pub(super) clients: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) fn start(shared: &Arc<Shared>, holder: &str, rng: &mut Rng) -> Self {
        let node = Node::start(&shared.common, holder, rng);
        let mut clients = Vec::new();
        for _ in 0..2 {
            let (shared, creator, lookup) =
                (Arc::clone(shared), Arc::clone(&node.creator), Arc::clone(&node.lookup));
            let (mint, mut rng) = (Arc::clone(&node.mint), rng.fork());
            clients.push(tokio::spawn(async move {
                loop {
                    sleep(rng.millis(5, 250)).await;
                    shared.create(&creator, &lookup, &mint, &mut rng).await;
                }
            }));
        }
        let (shared, lookup, mut rng) = (Arc::clone(shared), Arc::clone(&node.lookup), rng.fork());
        clients.push(tokio::spawn(async move {
            loop {
                sleep(rng.millis(1, 60)).await;
                if let Some(link) = shared.some_link(&mut rng) {
                    shared.look(&lookup, &link).await;
                }
            }
        }));
        Self { node, clients }
    }

    pub(super) fn kill(&self) {
        self.node.kill();
        self.clients.iter().for_each(JoinHandle::abort);
    }
}
