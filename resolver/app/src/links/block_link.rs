//! Blocks a link (a takedown), and lifts the block again. For operators only; `links/src/block.rs`
//! describes the effects of a block.

use codes::LinkId;
use links::{Block, Edit, Link, Precondition, Record, api_key::Grant};

use crate::{AppError, FieldErrors, LinkService, authorize::require_operator, find_link::LinkName};

impl LinkService {
    /// Blocks a link for a reason.
    pub async fn block_link(
        &self,
        name: &LinkName,
        reason: Option<&str>,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<Record, AppError> {
        require_operator(by)?;
        let reason = reason.map(str::trim).unwrap_or_default();
        let fits = (1..=Block::REASON_BYTES).contains(&reason.len()) && !reason.chars().any(char::is_control);
        if !fits {
            wrong.add("reason", Block::expected_reason());
        }
        wrong.finish()?;
        self.set_block(name, Some(reason.to_owned()), by).await
    }

    /// Lifts the block of a link. Has no effect on a link without one.
    pub async fn unblock_link(&self, name: &LinkName, by: &Grant) -> Result<Record, AppError> {
        require_operator(by)?;
        self.set_block(name, None, by).await
    }

    /// Changes the link that has the name or had it last, since a deleted link may be about to be
    /// restored. If another link takes the name in the meantime, that one is changed too.
    async fn set_block(
        &self,
        name: &LinkName,
        reason: Option<String>,
        by: &Grant,
    ) -> Result<Record, AppError> {
        let link = match self.find_link(name, by).await {
            Ok(link) => Link::clone(&link),
            Err(AppError::NoLink { .. }) => self.find_deleted(name, by).await?,
            Err(other) => return Err(other),
        };
        let edit = Edit { block: Some(reason), precondition: Precondition::of(&link), ..Edit::default() };
        let record = self.blocked(link.id, &edit, name, by).await?;
        let Some(slug) = record.link.slug().filter(|_| record.link.is_deleted()) else { return Ok(record) };
        let turn = self.turns.writes.take(by.id).await?;
        let holder = self.store.find_slug(record.link.domain(), slug).await?;
        drop(turn);
        if let Some(other) = holder.filter(|id| *id != link.id) {
            let edit = Edit { precondition: Precondition::default(), ..edit };
            return self.blocked(other, &edit, name, by).await;
        }
        // A deleted link that is blocked holds its slug again, as a new link would.
        self.lookup.wait_until_shown(record.link.id).await;
        Ok(record)
    }

    async fn blocked(
        &self,
        link: LinkId,
        edit: &Edit,
        name: &LinkName,
        by: &Grant,
    ) -> Result<Record, AppError> {
        // Only a move is blocked, or finds its name taken.
        self.store_edit(link, edit, by.id).await?.map_err(|_| self.no_link(name))
    }
}
