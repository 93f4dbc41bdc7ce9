//! What clients do beside the faults: they create in every way, look up what was acknowledged, and change it
//! (`changes`).

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    Rng,
    book::{Acknowledged, Book, Name},
    ledger::MemoryLedger,
    node::{Common, Ends, Node},
    outcome::Outcome,
};
use crate::{
    api_key::ApiKeyId,
    codes::LinkId,
    create::{CodeWish, CreateError, Wishes},
    links::{Details, DomainId, Draft, Link, LongUrl, Slug, Tag},
    lookup::{Lookup, LookupError, Wanted},
    store::{LinkStore, Source},
};

/// URLs that many links share: a row for the same URL is not therefore one's own.
const SHARED_URLS: u64 = 3;
/// Of a thousand lookups so many are preceded by one for a code that no link may have yet.
const AHEAD: u64 = 150;
/// Whose key everything is done with.
pub(super) const BY: ApiKeyId = ApiKeyId(1);

/// What the tasks of a run share.
pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) ledger: Arc<MemoryLedger>,
    pub(super) book: Mutex<Book>,
    pub(super) outcome: Mutex<Outcome>,
    pub(super) urls: AtomicU64,
    /// Of a thousand links so many are for one of a few URLs.
    pub(super) shared_urls: u64,
    /// Of a thousand things that clients do so many are changes of links.
    pub(super) changes: u64,
    /// Domains beside the default one.
    pub(super) domains: Vec<DomainId>,
    pub(super) began: Instant,
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

    /// A URL that no other link has.
    pub(super) fn next_url(&self, kind: &str) -> String {
        format!("https://example.org/{kind}/{}", self.urls.fetch_add(1, Ordering::Relaxed))
    }

    fn some_domain(&self, rng: &mut Rng) -> Option<DomainId> {
        let place = usize::try_from(rng.next()).unwrap_or(0) % self.domains.len().max(1);
        self.domains.get(place).copied()
    }

    async fn is_stored(&self, id: LinkId) -> bool {
        let reading = self.common.database.sqlite.read(&[id], Source::Primary).await;
        reading.is_ok_and(|reading| !reading.links.is_empty())
    }

    async fn acknowledge(&self, text: String, link: &Link, is_picked: bool) {
        let name = Name { domain: link.domain(), text };
        tracing::info!(%name, id = ?link.id.unpack(), is_picked, "acknowledged");
        let stored = self.is_stored(link.id).await;
        let url = link.long_url.as_str().to_owned();
        self.count(|outcome| {
            outcome.acknowledged += 1;
            outcome.on_domains += u64::from(!name.domain.is_default());
        });
        self.book().acknowledge(Acknowledged::new(name, link.id, url, is_picked), stored);
    }

    /// Whether the keyspace is said to be exhausted.
    fn refused(&self, error: &CreateError) -> bool {
        match error {
            CreateError::Exhausted => self.count(|outcome| outcome.exhausted += 1),
            CreateError::NoStore => self.count(|outcome| outcome.unknown += 1),
            CreateError::NoNumber | CreateError::OtherWish | CreateError::Taken | CreateError::Overloaded => {
            }
        }
        matches!(error, CreateError::Exhausted)
    }

    /// One create of some kind; whether a link was acknowledged, or the keyspace is said to be exhausted.
    pub(super) async fn create(&self, ends: &Ends, rng: &mut Rng) -> bool {
        let draft = self.draft(rng);
        match rng.between(0, 9) {
            0 => self.create_many(ends, rng).await,
            1 => {
                self.pick(ends, draft, rng).await;
                false
            }
            2 => self.create_full(ends, draft, rng).await,
            _ => match ends.creator.create(draft).await {
                Ok(created) => {
                    self.acknowledge(created.code.to_string(), &created.link, false).await;
                    true
                }
                Err(error) => self.refused(&error),
            },
        }
    }

    async fn create_many(&self, ends: &Ends, rng: &mut Rng) -> bool {
        let drafts = (0..rng.between(1, 12)).map(|_| self.draft(rng)).collect();
        let mut any = false;
        for created in ends.creator.create_many(drafts).await {
            any |= match created {
                Ok(created) => {
                    self.acknowledge(created.code.to_string(), &created.link, false).await;
                    true
                }
                Err(error) => self.refused(&error),
            };
        }
        any
    }

    /// A minted code with tags, or on another domain.
    async fn create_full(&self, ends: &Ends, mut draft: Draft, rng: &mut Rng) -> bool {
        let tags = Tag::parse("t").into_iter().collect();
        if let Some(domain) = self.some_domain(rng) {
            draft.details = Some(Box::new(Details { domain: Some(domain), ..Details::default() }));
        }
        match ends.creator.create_full(draft, Wishes { tags, ..Wishes::default() }).await {
            Ok(record) => {
                let text = ends.lookup.name_of(&record.link).unwrap_or_default();
                self.acknowledge(text, &record.link, false).await;
                true
            }
            Err(error) => self.refused(&error),
        }
    }

    /// Picks a code: one that the minter could come to, a word, or on another domain what is a link of the
    /// default one.
    async fn pick(&self, ends: &Ends, mut draft: Draft, rng: &mut Rng) {
        let domain = self.some_domain(rng).filter(|_| rng.permille(700));
        let theirs = self.book().some_link(rng).filter(|_| domain.is_some());
        let text = match theirs {
            Some(link) => link.name.text,
            None => self.some_slug(ends, rng),
        };
        let Ok(slug) = Slug::parse(&text) else { return };
        draft.details = Some(Box::new(Details { domain, ..Details::default() }));
        let wishes = Wishes { code: CodeWish::Picked(slug), ..Wishes::default() };
        match ends.creator.create_full(draft, wishes).await {
            Ok(record) => {
                self.count(|outcome| outcome.slugs += 1);
                self.acknowledge(text, &record.link, true).await;
            }
            Err(error) => {
                self.refused(&error);
            }
        }
    }

    fn some_slug(&self, ends: &Ends, rng: &mut Rng) -> String {
        let (index, keyspace) = &self.common.keyspaces[0];
        let number = rng.next() % keyspace.capacity();
        let minted = ends.mint.code_of(LinkId::new(*index, number)).filter(|_| rng.permille(700));
        let word = || format!("word-{}", self.urls.fetch_add(1, Ordering::Relaxed));
        minted.map_or_else(word, |code| code.to_string())
    }

    /// Looks a link up that was acknowledged before; whether somebody could say.
    pub(super) async fn look(&self, ends: &Ends, link: &Acknowledged) -> bool {
        self.look_from(ends, link, None).await
    }

    /// The same by somebody who knows what was in force from then on.
    pub(super) async fn look_from(&self, ends: &Ends, link: &Acknowledged, from: Option<Instant>) -> bool {
        let began = Instant::now();
        let Ok(found) = find(&ends.lookup, &link.name).await else { return false };
        self.count(|outcome| outcome.looked_up += 1);
        let held = self.held(ends, link.id, found.as_deref(), (began, from));
        self.book().found(link, found.as_deref(), held);
        true
    }

    /// Asks for a code that comes after a link's, and does not wait: the read may be under way when the code gets its link.
    fn ask_ahead(&self, ends: &Ends, link: &Acknowledged, by: u64) {
        let number = link.id.unpack().map(|(keyspace, number)| LinkId::new(keyspace, number + by));
        let Some(code) = number.and_then(|id| ends.mint.code_of(id)) else { return };
        let (lookup, name) =
            (Arc::clone(&ends.lookup), Name { domain: DomainId::DEFAULT, text: code.to_string() });
        tokio::spawn(async move { find(&lookup, &name).await });
    }

    /// Asks another domain for a link of the default one: the domain's own goes first, and if it has none it
    /// gives this one.
    async fn look_elsewhere(&self, ends: &Ends, link: &Acknowledged, domain: DomainId) {
        let name = Name { domain, text: link.name.text.clone() };
        let own = self.book().own(&name);
        let Ok(found) = find(&ends.lookup, &name).await else { return };
        match own {
            Some(own) => self.book().found(&own, found.as_deref(), None),
            None if found.is_none() => self.book().found(link, None, None),
            // The default domain's, or one that somebody has picked a moment ago.
            None => {}
        }
    }
}

/// Where a name leads.
async fn find(lookup: &Lookup, name: &Name) -> Result<Option<String>, LookupError> {
    let found = if name.domain.is_default() {
        lookup.find_named(name.domain, &name.text).await?
    } else {
        match Wanted::of_path(lookup, &format!("/{}", name.text)) {
            Some(wanted) => lookup.find_on(name.domain, &wanted).await?,
            None => None,
        }
    };
    let found = found.filter(|found| !found.is_deleted());
    Ok(found.map(|found| found.long_url.as_str().to_owned()))
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
            clients.push(tokio::spawn(write(Arc::clone(shared), node.ends.clone(), rng.fork())));
        }
        clients.push(tokio::spawn(read(Arc::clone(shared), node.ends.clone(), rng.fork())));
        Self { node, clients }
    }

    pub(super) fn kill(&self) {
        self.node.kill();
        self.clients.iter().for_each(JoinHandle::abort);
    }
}

/// A client that creates and changes links.
async fn write(shared: Arc<Shared>, ends: Ends, mut rng: Rng) {
    loop {
        sleep(rng.millis(5, 250)).await;
        if rng.permille(shared.changes) {
            shared.change(&ends, &mut rng).await;
        } else {
            shared.create(&ends, &mut rng).await;
        }
    }
}

/// One that looks links up.
async fn read(shared: Arc<Shared>, ends: Ends, mut rng: Rng) {
    loop {
        sleep(rng.millis(1, 60)).await;
        let link = shared.book().some_link(&mut rng);
        let Some(link) = link else { continue };
        if rng.permille(AHEAD) {
            shared.ask_ahead(&ends, &link, rng.between(1, 3));
        }
        match shared.some_domain(&mut rng) {
            Some(domain) if link.name.domain.is_default() && rng.permille(500) => {
                shared.look_elsewhere(&ends, &link, domain).await;
            }
            _ => {
                shared.look(&ends, &link).await;
            }
        }
    }
}
