//! Creates with a custom slug, tags, a domain or deduplication. Each is a transaction of its own,
//! except that a link with only a slug that is a mintable code is inserted in a batch first; if
//! that does not store it, the transaction decides. Calls for many have batches of their own
//! (`together.rs`).

use std::collections::HashSet;

use codes::LinkId;
use jiff::Timestamp;
use links::{Details, Draft, Idempotency, Link, NewLink, Slug, Tag};
use store::{CustomSlugLink, FullLink, InsertError, InsertedLink};
use tokio::time::Instant;

use super::{
    CreateError, Creator,
    batch::{Outcome, queue},
};
use supply::{Fate, Minting};

/// Maximum number of digests that are tried for one URL: a thousand candidates. One of them is free
/// unless hardly any code of that length is.
pub(crate) const SALTS_MAX: u32 = 250;

impl Creator {
    /// Creates a link with a minted code and tags, or returns the earlier link of the same request.
    pub(super) async fn create_unless(
        &self,
        minting: &Minting,
        draft: Draft,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
        deadline: Instant,
    ) -> Result<Link, CreateError> {
        while Instant::now() < deadline {
            let (claim, minted) = self.claim(minting, deadline).await?;
            let new = NewLink { id: minted.id, draft: draft.clone() };
            let link = FullLink { new, code: minted.code.to_string() };
            let Ok(turn) = self.config.turns.take(draft.created_by).await else {
                self.settle(minting, claim, Fate::Unused);
                return Err(CreateError::PermitTimeout);
            };
            let inserted = self.config.store.insert_full(&claim.history, &link, tags, idempotency).await;
            drop(turn);
            let outcome = match inserted {
                Ok(InsertedLink::Stored(_, at, _)) => Outcome::Stored(at),
                Ok(InsertedLink::Taken) => Outcome::Taken,
                Ok(InsertedLink::CodeTaken) => Outcome::CodeTaken,
                Ok(InsertedLink::KeyReused) => {
                    self.settle(minting, claim, Fate::Unused);
                    return Err(CreateError::KeyReused);
                }
                Ok(InsertedLink::NoDomain) => {
                    self.settle(minting, claim, Fate::Unused);
                    return Err(CreateError::Unavailable);
                }
                Ok(InsertedLink::Existing(id)) => {
                    self.settle(minting, claim, Fate::Unused);
                    return self.given_before(id).await;
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "insert a link");
                    Outcome::from(&error)
                }
            };
            match self.conclude(minting, claim, &minted, &draft, outcome, deadline).await {
                Some(Ok(created_at)) => return Ok(self.created(minted, draft, created_at).link),
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Err(CreateError::Unavailable)
    }

    pub(super) async fn create_with_slug(
        &self,
        slug: Slug,
        draft: Draft,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
        deadline: Instant,
    ) -> Result<Link, CreateError> {
        let mark = getrandom::u32().map_err(|_| CreateError::NoStore)?;
        let link = self.with_slug(slug, draft, mark);
        if tags.is_empty()
            && idempotency.is_none()
            && let Some(stored) = self.insert_batched(&link, mark, deadline).await?
        {
            return Ok(self.created_with_slug(link, stored).await);
        }
        if Instant::now() >= deadline {
            return Err(CreateError::NoStore);
        }
        let turn = self.config.turns.take(link.draft.created_by).await;
        let turn = turn.map_err(|_| CreateError::PermitTimeout)?;
        let inserted = self.config.store.insert_with_slug(&link, tags, idempotency).await;
        drop(turn);
        let stored = match inserted {
            Ok(InsertedLink::Stored(id, at, version)) => Some((id, at, version)),
            Ok(InsertedLink::Taken | InsertedLink::CodeTaken) => None,
            Ok(InsertedLink::NoDomain) => return Err(CreateError::Unavailable),
            Ok(InsertedLink::KeyReused) => return Err(CreateError::KeyReused),
            Ok(InsertedLink::Existing(id)) => return self.given_before(id).await,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "insert a link with a slug");
                if matches!(error, InsertError::Failed(_)) {
                    return Err(CreateError::NoStore);
                }
                Some(self.find_in_doubt(&link, mark).await?)
            }
        };
        Ok(self.created_with_slug(link, stored.ok_or(CreateError::Taken)?).await)
    }

    /// Returns a link under a custom slug, with the mark by which its creator recognizes it.
    pub(super) fn with_slug(&self, slug: Slug, mut draft: Draft, mark: u32) -> CustomSlugLink {
        // Counted before the code is looked up, so that a keyspace that this process hears of in
        // between makes the database refuse the slug.
        let keyspaces = self.config.lookup.mint.keyspaces();
        let slug = slug.as_minted(&self.config.lookup.mint);
        // On another domain a code does not belong to its number alone: the table of slugs decides.
        let mintable = slug.code_on(draft.domain()).and_then(|code| self.config.lookup.mint.read(&code));
        let details = draft.details.get_or_insert_with(Box::<Details>::default);
        (details.slug, details.mark) = (Some(slug.clone()), Some(mark));
        CustomSlugLink { slug, mintable, keyspaces, draft }
    }

    /// Inserts a link in a batch, if its slug is a mintable code. Returns `None` if it is not
    /// stored.
    async fn insert_batched(
        &self,
        link: &CustomSlugLink,
        mark: u32,
        deadline: Instant,
    ) -> Result<Option<(LinkId, Timestamp, u64)>, CreateError> {
        let Some(id) = link.mintable else { return Ok(None) };
        let new = NewLink { id, draft: link.draft.clone() };
        match queue(&self.slugs, new, (), deadline).await {
            Outcome::Stored(at) => Ok(Some((id, at, link.draft.details().version))),
            Outcome::Taken | Outcome::CodeTaken => Ok(None),
            Outcome::Failed | Outcome::AnotherHistory => Err(CreateError::NoStore),
            Outcome::Unknown => self.find_in_doubt(link, mark).await.map(Some),
        }
    }

    pub(super) async fn created_with_slug(
        &self,
        CustomSlugLink { mut draft, .. }: CustomSlugLink,
        (id, at, version): (LinkId, Timestamp, u64),
    ) -> Link {
        draft.details.get_or_insert_default().version = version;
        self.config.lookup.changed(id);
        self.config.metrics.creates.increment(1);
        self.config.lookup.wait_until_shown(id).await;
        Link::stored(id, draft, at)
    }

    /// Creates a link with a code from a digest of the tenant and the long URL. The first free
    /// candidate is taken, and the store decides whether it is free (D3).
    pub(super) async fn create_by_digest(
        &self,
        (tenant, prefix, len): (&str, &str, usize),
        draft: &Draft,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
        deadline: Instant,
    ) -> Result<Link, CreateError> {
        let (mut tried, input) = (HashSet::new(), format!("{tenant}{}", draft.long_url.as_str()));
        for salt in 0..SALTS_MAX {
            for candidate in self.config.lookup.mint.candidates(&input, salt, len) {
                if !tried.insert(candidate.clone()) {
                    continue;
                }
                // A reserved word of the URL paths cannot be a slug.
                let Ok(slug) = Slug::parse(&format!("{prefix}{candidate}")).and_then(|slug| slug.kept())
                else {
                    continue;
                };
                // Nor is a text that a typing error makes of a printed code.
                let code = slug.code_on(draft.domain());
                if code.is_some_and(|code| self.config.lookup.mint.mistyped(&code).is_some()) {
                    continue;
                }
                match self.create_with_slug(slug, draft.clone(), tags, idempotency, deadline).await {
                    Err(CreateError::Taken) => self.config.metrics.conflicts.increment(1),
                    end => return end,
                }
                if Instant::now() >= deadline {
                    return Err(CreateError::NoStore);
                }
            }
        }
        Err(CreateError::Exhausted)
    }

    async fn given_before(&self, id: LinkId) -> Result<Link, CreateError> {
        let found = self.config.lookup.read_fresh(id).await.map_err(|_| CreateError::NoStore)?;
        // Rows are never removed, so without one the database has failed over in the meantime.
        let link = found.ok_or(CreateError::NoStore)?;
        self.config.lookup.wait_until_shown(link.id).await;
        Ok(Link::clone(&link))
    }

    /// Looks for the row of an insert in doubt, as [`find_own`](Self::find_own) does.
    pub(super) async fn find_in_doubt(
        &self,
        link: &CustomSlugLink,
        mark: u32,
    ) -> Result<(LinkId, Timestamp, u64), CreateError> {
        self.config.metrics.inserts_unknown.increment(1);
        self.find_own(link, mark).await?.ok_or(CreateError::Taken)
    }

    /// Looks for the row of an insert in doubt, and returns its id, creation time and version.
    ///
    /// Returns `None` if another link has the slug. A row that is absent may still arrive, also
    /// after that of a deleted link. The create then fails with an unknown outcome, and a retry
    /// finds the slug in use.
    async fn find_own(
        &self,
        link: &CustomSlugLink,
        mark: u32,
    ) -> Result<Option<(LinkId, Timestamp, u64)>, CreateError> {
        let domain = link.draft.domain();
        let mut former = None;
        if let Some(number) = link.mintable {
            former = self.config.lookup.read_fresh(number).await.map_err(|_| CreateError::NoStore)?;
            match &former {
                Some(found) if found.details().mark != Some(mark) && found.leaves_code(&link.slug) => {}
                Some(found) => return Ok(is_own(found, mark)),
                None => return Err(CreateError::NoStore),
            }
        }
        let entry =
            self.config.store.find_slug(domain, &link.slug).await.map_err(|_| CreateError::NoStore)?;
        let found = match entry {
            Some(id) => self.config.lookup.read_fresh(id).await.map_err(|_| CreateError::NoStore)?,
            None => former,
        };
        match found {
            Some(found) if found.details().mark == Some(mark) => Ok(is_own(&found, mark)),
            Some(found) if !found.is_deleted() || found.is_blocked() => Ok(None),
            Some(_) | None => Err(CreateError::NoStore),
        }
    }
}

/// Returns the id, creation time and version of a link, if it has this mark.
fn is_own(link: &Link, mark: u32) -> Option<(LinkId, Timestamp, u64)> {
    (link.details().mark == Some(mark)).then(|| (link.id, link.created_at, link.version()))
}
