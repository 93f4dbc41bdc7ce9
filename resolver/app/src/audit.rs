//! Use case of the audit log. For operators only.

use links::{
    api_key::Grant,
    audit::{Entry, EntryFilter},
};

use super::{AppError, LinkService, authorize::require_operator};

/// Number of entries on a page.
pub const PER_PAGE: usize = 100;

impl LinkService {
    /// Returns a page of the wanted entries, the latest first.
    pub async fn audit_log(&self, filter: &EntryFilter, by: &Grant) -> Result<Vec<Entry>, AppError> {
        require_operator(by)?;
        let texts = [&filter.by_name, &filter.subject];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            // Postgres takes no such text, and no entry has one.
            return Ok(Vec::new());
        }
        Ok(self.keys.audit_entries(filter, PER_PAGE).await?)
    }
}
