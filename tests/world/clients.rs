//! Clients of the simulated resolvers. While faults strike, they create links in every way, look up
//! acknowledged links (`looks`), change them (`changes`), and reserve codes (`reserved`).

use std::sync::{Arc, atomic::Ordering};

use app::creator::{CodeChoice, CreateError, CreateOptions, Together};
use codes::{Keyspace, KeyspaceIndex, LinkId};
use links::{Authority, Details, DomainId, Draft, Slug, Tag};
use tokio::{task::JoinHandle, time::sleep};

use super::{
    book::Name,
    node::{Ends, Node, Setup},
    rng::Rng,
    shared::{BY, How, Shared},
};

/// Lookups that are preceded by one for a code that may have no link yet, per thousand.
const AHEAD: u64 = 150;
/// Lookups by a path that continues behind the link's name, per thousand.
const BEHIND: u64 = 200;

impl Shared {
    /// Returns a random domain whose name is known to the simulation.
    fn some_domain(&self, rng: &mut Rng) -> Option<DomainId> {
        let hosts = self.hosts.lock().expect("no code panics while it holds this lock");
        let mut domains: Vec<DomainId> = hosts.keys().copied().collect();
        domains.sort();
        let place = usize::try_from(rng.next()).unwrap_or(0) % domains.len().max(1);
        domains.get(place).copied()
    }

    /// Returns the domain of a new link, and adds it if it does not exist. The number of domains
    /// grows with time.
    async fn domain_for_link(&self, ends: &Ends, rng: &mut Rng) -> Option<DomainId> {
        let highest = (self.began.elapsed().as_secs() / 2).min(self.domains.checked_sub(1)?);
        let name = Authority::parse(&host(rng.between(0, highest))).ok()?;
        match ends.domain_cache.find_for_link(name.as_str()).await {
            Ok(None) => {
                let added = ends.domain_cache.add(&name, BY).await.ok()??;
                self.count(|outcome| outcome.domains += 1);
                Some(added)
            }
            Ok(found) => found,
            Err(_) => None,
        }
    }

    /// Counts an error. Returns whether it says that the keyspace is exhausted.
    fn refused(&self, error: &CreateError) -> bool {
        match error {
            CreateError::Exhausted => self.count(|outcome| outcome.exhausted += 1),
            CreateError::NoStore => self.count(|outcome| outcome.unknown += 1),
            CreateError::Unavailable
            | CreateError::KeyReused
            | CreateError::Taken
            | CreateError::PermitTimeout => {}
        }
        matches!(error, CreateError::Exhausted)
    }

    /// Creates a link in a random way. Returns whether a link was acknowledged, or the keyspace is
    /// exhausted.
    pub(super) async fn create(&self, ends: &Ends, rng: &mut Rng) -> bool {
        let draft = self.draft(rng);
        match rng.between(0, 9) {
            0 => self.create_many(ends, rng).await,
            1 => {
                self.pick(ends, draft, rng).await;
                false
            }
            2 if rng.permille(500) => self.create_together(ends, rng).await,
            2 => self.create_full(ends, draft, rng).await,
            _ => self.create_minted(ends, draft, CreateOptions::default()).await,
        }
    }

    async fn create_many(&self, ends: &Ends, rng: &mut Rng) -> bool {
        let drafts = (0..rng.between(1, 12)).map(|_| self.draft(rng)).collect();
        let mut any = false;
        for created in ends.creator.create_many(drafts).await {
            any |= match created {
                Ok(created) => {
                    self.acknowledge(created.code.to_string(), &created.link, How::Minted).await;
                    true
                }
                Err(error) => self.refused(&error),
            };
        }
        any
    }

    /// Creates links with tags together, under minted codes and custom slugs, and those by
    /// themselves that are left.
    async fn create_together(&self, ends: &Ends, rng: &mut Rng) -> bool {
        let mut wanted = Vec::new();
        for _ in 0..rng.between(1, 8) {
            let mut draft = self.draft(rng);
            let tags = Tag::parse("t").into_iter().collect();
            let mut options = CreateOptions { tags, ..CreateOptions::default() };
            let domain = if rng.permille(500) { self.domain_for_link(ends, rng).await } else { None };
            if domain.is_some() {
                draft.details = Some(Box::new(Details { domain, ..Details::default() }));
            }
            if rng.permille(500) {
                let text = self.some_slug(ends, rng.permille(500), rng);
                let Ok(slug) = Slug::parse(&text) else { continue };
                if domain.is_none() {
                    self.picked.lock().expect("no code panics while it holds this lock").insert(text);
                }
                options.code = CodeChoice::CustomSlug(slug);
            }
            wanted.push((draft, options));
        }
        let of_options = |options: &CreateOptions| match options.code {
            CodeChoice::CustomSlug(_) => How::Picked,
            _ => How::Minted,
        };
        let ways: Vec<How> = wanted.iter().map(|(_, options)| of_options(options)).collect();
        let mut any = false;
        for (how, created) in ways.into_iter().zip(ends.creator.create_together(wanted).await) {
            let created = match created {
                Together::Ended(created) => created,
                Together::Left((draft, options)) => ends.creator.create(draft, options).await,
            };
            any |= match created {
                Ok(record) => {
                    let text = ends.lookup.name_of(&record.link).unwrap_or_default();
                    self.count(|outcome| outcome.slugs += u64::from(how == How::Picked));
                    self.acknowledge(text, &record.link, how).await;
                    true
                }
                Err(error) => self.refused(&error),
            };
        }
        any
    }

    /// Creates a link under a minted code, with tags or on another domain.
    async fn create_full(&self, ends: &Ends, mut draft: Draft, rng: &mut Rng) -> bool {
        let tags = Tag::parse("t").into_iter().collect();
        if let Some(domain) = self.domain_for_link(ends, rng).await {
            draft.details = Some(Box::new(Details { domain: Some(domain), ..Details::default() }));
        }
        self.create_minted(ends, draft, CreateOptions { tags, ..CreateOptions::default() }).await
    }

    async fn create_minted(&self, ends: &Ends, draft: Draft, options: CreateOptions) -> bool {
        match ends.creator.create(draft, options).await {
            Ok(record) => {
                let text = ends.lookup.name_of(&record.link).unwrap_or_default();
                self.acknowledge(text, &record.link, How::Minted).await;
                true
            }
            Err(error) => self.refused(&error),
        }
    }

    /// Creates a link under a custom slug: a mintable code, a word, or on another domain the name
    /// of an existing link.
    async fn pick(&self, ends: &Ends, draft: Draft, rng: &mut Rng) {
        let domain = if rng.permille(700) { self.domain_for_link(ends, rng).await } else { None };
        let theirs = self.book().some_link(rng).filter(|_| domain.is_some());
        let text = match theirs {
            Some(link) => link.name.text,
            // Other processes may not know the youngest keyspace that this process knows.
            None => self.some_slug(ends, rng.permille(500), rng),
        };
        self.pick_name(ends, draft, domain, text).await;
    }

    /// Takes a code of the youngest keyspace that the process knows, or a word, as a custom slug.
    /// Looks it up in every process as soon as it is acknowledged.
    async fn pick_youngest(self: &Arc<Self>, ends: &Ends, rng: &mut Rng) {
        let (draft, text) = (self.draft(rng), self.some_slug(ends, true, rng));
        self.pick_name(ends, draft, None, text.clone()).await;
        let Some(link) = self.book().own(&Name { domain: DomainId::DEFAULT, text }) else { return };
        let all = self.ends.lock().expect("no code panics while it holds this lock").clone();
        for ends in all {
            let (shared, link) = (Arc::clone(self), link.clone());
            tokio::spawn(async move { shared.look(&ends, &link).await });
        }
    }

    async fn pick_name(&self, ends: &Ends, mut draft: Draft, domain: Option<DomainId>, text: String) {
        let Ok(slug) = Slug::parse(&text) else { return };
        if domain.is_none() {
            self.picked.lock().expect("no code panics while it holds this lock").insert(text.clone());
        }
        draft.details = Some(Box::new(Details { domain, ..Details::default() }));
        let options = CreateOptions { code: CodeChoice::CustomSlug(slug), ..CreateOptions::default() };
        match ends.creator.create(draft, options).await {
            Ok(record) => {
                self.count(|outcome| outcome.slugs += 1);
                self.acknowledge(text, &record.link, How::Picked).await;
            }
            Err(error) => {
                self.refused(&error);
            }
        }
    }

    /// Returns a code of the youngest or the first keyspace, or a word.
    fn some_slug(&self, ends: &Ends, is_youngest: bool, rng: &mut Rng) -> String {
        let place = if is_youngest { ends.mint.keyspaces().saturating_sub(1) } else { 0 };
        let mint = |keyspace: &Keyspace| {
            let index = KeyspaceIndex::new(i64::try_from(place).ok()? + 1).ok()?;
            ends.mint.code_of(LinkId::new(index, rng.next() % keyspace.capacity()))
        };
        let minted = self.common.keyspaces.get(place).and_then(mint).filter(|_| rng.permille(700));
        let word = || format!("word-{}", self.urls.fetch_add(1, Ordering::Relaxed));
        minted.map_or_else(word, |code| code.to_string())
    }
}

/// Returns the name of a domain.
pub(super) fn host(number: u64) -> String {
    format!("d{number}.test")
}

/// A process with the tasks of its clients.
pub(super) struct Running {
    pub(super) node: Node,
    pub(super) setup: Setup,
    pub(super) clients: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) async fn start(shared: &Arc<Shared>, holder: &str, setup: Setup, rng: &mut Rng) -> Self {
        let node = Node::start(&shared.common, holder, &setup, rng).await;
        shared.ends.lock().expect("no code panics while it holds this lock").push(node.ends.clone());
        let mut clients = Vec::new();
        for _ in 0..2 {
            clients.push(tokio::spawn(write(Arc::clone(shared), node.ends.clone(), rng.fork())));
        }
        clients.push(tokio::spawn(read(Arc::clone(shared), node.ends.clone(), rng.fork())));
        Self { node, setup, clients }
    }

    /// Starts a successor of this process with the same configuration.
    pub(super) async fn again(&self, shared: &Arc<Shared>, rng: &mut Rng) -> Self {
        Self::start(shared, &self.node.holder, self.setup.clone(), rng).await
    }

    pub(super) fn kill(&self) {
        self.node.kill();
        self.clients.iter().for_each(JoinHandle::abort);
    }
}

/// Runs a client that creates and changes links.
async fn write(shared: Arc<Shared>, ends: Ends, mut rng: Rng) {
    loop {
        sleep(rng.millis(5, 250)).await;
        if rng.permille(shared.changes) {
            shared.change(&ends, &mut rng).await;
        } else if rng.permille(shared.reserves) {
            shared.use_reservation(&ends, &mut rng).await;
        } else if rng.permille(shared.picks) {
            shared.pick_youngest(&ends, &mut rng).await;
        } else {
            shared.create(&ends, &mut rng).await;
        }
    }
}

/// Runs a client that looks up links.
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
            _ if rng.permille(BEHIND) => {
                shared.look_behind(&ends, &link).await;
            }
            _ => {
                shared.look(&ends, &link).await;
            }
        }
    }
}
