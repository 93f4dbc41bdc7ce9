//! Deletes visits: those of a link, or those that no link redirected.
//!
//! The visits up to this moment are deleted, also those that are not stored yet. Later ones count
//! from zero.

use links::{api_key::Grant, scope::Scope};
use visits::{Subject, VisitId};

use super::{AppError, LinkService, authorize::require, find_link::LinkName};

impl LinkService {
    /// Deletes the visits of a link, and returns how many there were.
    pub async fn delete_link_visits(&self, name: &LinkName, by: &Grant) -> Result<u64, AppError> {
        require(by, Scope::Delete)?;
        let link = self.find_link(name, by).await?;
        self.delete_visits(Subject::Link(link.id), by).await
    }

    /// Deletes all visits that no link redirected, and returns how many there were. For keys
    /// without limits, because these visits belong to all domains.
    pub async fn delete_orphan_visits(&self, by: &Grant) -> Result<u64, AppError> {
        require(by, Scope::Delete)?;
        if by.limits.hides_links() {
            return Err(AppError::LimitedKey);
        }
        self.delete_visits(Subject::Orphans(None, None), by).await
    }

    async fn delete_visits(&self, subject: Subject, by: &Grant) -> Result<u64, AppError> {
        let now = self.domain_cache.now().as_microsecond();
        let _turn = self.turns.write(by.id).await?;
        // Ids of this microsecond are included.
        Ok(self.visits.delete(subject, VisitId::floor(now.saturating_add(1))).await?)
    }
}
