//! Use case of the audit log. For operators only.

use links::{api_key::Grant, audit::Entry};

use super::{AppError, LinkService, authorize::require_operator};

/// Number of entries on a page.
pub const PER_PAGE: usize = 100;

impl LinkService {
    /// Returns a page of entries that precede the entry `before`, the latest first. `None` returns
    /// the latest page.
    pub async fn audit_log(&self, before: Option<i64>, by: &Grant) -> Result<Vec<Entry>, AppError> {
        require_operator(by)?;
        Ok(self.keys.audit_entries(before, PER_PAGE).await?)
    }
}
