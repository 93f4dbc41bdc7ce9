//! Use case of the audit log. For operators only.

use links::{
    api_key::Grant,
    audit::{Entry, EntryFilter},
};

use super::{AppError, LinkService, authorize::require_operator, find_link::LinkName};

/// Number of entries on a page.
pub const PER_PAGE: usize = 100;

impl LinkService {
    /// Returns a page of the wanted entries, the latest first.
    pub async fn audit_log(&self, filter: &EntryFilter, by: &Grant) -> Result<Vec<Entry>, AppError> {
        require_operator(by)?;
        if filter.by_name.iter().chain(&filter.subjects).any(|text| text.contains('\0')) {
            // Postgres takes no such text, and no entry has one.
            return Ok(Vec::new());
        }
        let _turn = self.turns.query(by.id).await?;
        Ok(self.keys.audit_entries(filter, PER_PAGE).await?)
    }

    /// Returns what the log may call an object of this name: itself, or the numbers of links on the
    /// default domain that have the name or had it.
    ///
    /// # Errors
    /// Returns [`AppError`] if the store does not answer.
    pub async fn audit_subjects(&self, name: String, by: &Grant) -> Result<Vec<String>, AppError> {
        require_operator(by)?;
        let link = LinkName { code: name.clone(), domain: None };
        let found = match self.find_link(&link, by).await {
            Ok(link) => Some(link.id),
            Err(AppError::NoLink { .. }) => None,
            Err(error) => return Err(error),
        };
        let deleted = match self.find_deleted(&link, by).await {
            Ok(link) => Some(link.id),
            Err(AppError::NoLink { .. }) => None,
            Err(error) => return Err(error),
        };
        let ids = [found, deleted, self.lookup.id_of(&name)];
        let mut subjects: Vec<String> = ids.into_iter().flatten().map(|id| id.get().to_string()).collect();
        subjects.push(name);
        subjects.dedup();
        Ok(subjects)
    }
}
