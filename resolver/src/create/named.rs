//! Creates that more is wished for than a code and a long URL. They are few, and each is a transaction of its own.

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{CreateError, Parts, batch::Outcome};
use crate::{
    codes::{Code, LinkId, is_reserved},
    links::{Details, Draft, Link, NewLink, Slug, Tag},
    lookup::TRUSTED,
    store::{InsertError, InsertedFull, NamedLink, Same, StoreError},
    supply::{ClaimError, Fate},
};

impl Parts {
    /// A minted code, and tags; or the link that was made for the same wish before.
    pub(super) async fn create_unless(
        &self,
        draft: Draft,
        tags: &[Tag],
        same: Option<&Same>,
        deadline: Instant,
    ) -> Result<Link, CreateError> {
        loop {
            let claim = self.minting.claim(deadline).await.map_err(|error| match error {
                ClaimError::TimedOut => CreateError::NoNumber,
                ClaimError::Exhausted => CreateError::Exhausted,
            })?;
            let minted = self.mint.mint(self.minting.index, claim.number);
            if is_reserved(&minted.code) {
                self.settle(claim, Fate::Burned);
                continue;
            }
            let new = NewLink { id: minted.id, draft: draft.clone() };
            let outcome = match self.store.insert_full(&claim.history, &new, tags, same).await {
                Ok(InsertedFull::Stored(at)) => Outcome::Stored(at),
                Ok(InsertedFull::Taken) => Outcome::Taken,
                Ok(InsertedFull::Same(id)) => {
                    self.settle(claim, Fate::Unused);
                    let found = self.lookup.read_fresh(id).await.map_err(|_| CreateError::NoStore)?;
                    match found {
                        Some(link) => return Ok(Link::clone(&link)),
                        // Rows are never removed, so this is a database that has failed over in between.
                        None => return Err(CreateError::NoStore),
                    }
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "insert a link");
                    match error {
                        InsertError::Failed(StoreError::AnotherHistory) => Outcome::AnotherHistory,
                        InsertError::Failed(_) => Outcome::Failed,
                        InsertError::Unknown(_) => Outcome::Unknown,
                    }
                }
            };
            match self.conclude(claim, &minted, &draft, outcome, deadline).await {
                Some(Ok(created_at)) => return Ok(self.created(minted, draft, created_at).link),
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
    }

    /// A code that somebody picked.
    pub(super) async fn create_named(
        &self,
        slug: Slug,
        mut draft: Draft,
        tags: &[Tag],
    ) -> Result<Link, CreateError> {
        let mintable = Code::parse(slug.as_str()).ok().and_then(|code| self.mint.read(&code));
        let mark = getrandom::u32().map_err(|_| CreateError::NoStore)?;
        let details = draft.details.get_or_insert_with(Box::<Details>::default);
        (details.slug, details.mark) = (Some(slug.clone()), Some(mark));
        let link = NamedLink { slug, mintable, draft };
        let stored = match self.store.insert_named(&link, tags).await {
            Ok(stored) => stored,
            Err(InsertError::Failed(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "insert a link with a slug");
                return Err(CreateError::NoStore);
            }
            Err(InsertError::Unknown(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "insert a link with a slug");
                self.metrics.inserts_unknown.increment(1);
                self.find_own(&link).await?
            }
        };
        let (id, at) = stored.ok_or(CreateError::Taken)?;
        self.lookup.changed(id);
        if mintable.is_some() {
            self.lookup.picked(id);
            if self.store.is_shared() {
                // Until no resolver believes any more that nobody has this code.
                sleep(TRUSTED).await;
            }
        }
        self.metrics.creates.increment(1);
        Ok(Link::stored(id, link.draft, at))
    }

    /// Looks whether the row of an insert in doubt is there. If it is not it may still arrive: then its creator, who is told that nobody
    /// knows, finds the slug in use.
    async fn find_own(&self, link: &NamedLink) -> Result<Option<(LinkId, Timestamp)>, CreateError> {
        let id = match link.mintable {
            Some(id) => Some(id),
            None => self.store.find_slug(&link.slug).await.map_err(|_| CreateError::NoStore)?,
        };
        let Some(id) = id else { return Err(CreateError::NoStore) };
        let found = self.lookup.read_fresh(id).await.map_err(|_| CreateError::NoStore)?;
        match found {
            Some(found) if found.is(&link.draft) => Ok(Some((id, found.created_at))),
            Some(_) => Ok(None),
            None => Err(CreateError::NoStore),
        }
    }
}
