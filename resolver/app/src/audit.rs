//! Use cases of the audit log: all of it, for operators only, and the history of a link, for those
//! who may read it; and the removal of old entries.

use std::{sync::Arc, time::Duration};

use codes::LinkId;
use links::{
    api_key::Grant,
    audit::{Action, Entry, EntryFilter, Object},
    scope::Scope,
};
use store::{Keys, Sweep};
use tokio::time::sleep;

use super::{
    AppError, LinkService,
    authorize::{require, require_operator},
    chore,
    find_link::LinkName,
    list_links::whole_second,
};

/// Number of entries on a page.
pub const PER_PAGE: usize = 100;
/// Pause after a removal, and interval at which a process asks whether it is its turn.
const EVERY: Duration = Duration::from_secs(3_600);

/// Removes entries that are older than `kept_for`, whenever it is this process's turn. No other
/// process has the name `holder`.
pub async fn remove_old_entries(keys: Arc<dyn Keys>, holder: String, kept_for: Duration) {
    let sweep = Sweep { holder, held_for: chore::HELD_FOR, kept_for, every: EVERY };
    loop {
        let step = keys.remove_old_audit_entries(&sweep).await;
        sleep(chore::pause("remove old audit entries", EVERY, step)).await;
    }
}

impl LinkService {
    /// Returns a page of the wanted entries, the latest first.
    pub async fn audit_log(&self, filter: &EntryFilter, by: &Grant) -> Result<Vec<Entry>, AppError> {
        require_operator(by)?;
        if filter
            .by_name
            .iter()
            .chain(filter.object.as_ref().map(|object| &object.name))
            .any(|text| text.contains('\0'))
        {
            // Postgres takes no such text, and no entry has one.
            return Ok(Vec::new());
        }
        // Entries have fractions of a second.
        let filter = EntryFilter { until: filter.until.map(whole_second), ..filter.clone() };
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.audit_entries(&filter, PER_PAGE).await?)
    }

    /// Returns a page of the entries about a link, the latest first. Only operators learn who took
    /// it down.
    pub async fn link_history(
        &self,
        name: &LinkName,
        before: Option<i64>,
        by: &Grant,
    ) -> Result<Vec<Entry>, AppError> {
        require(by, Scope::Read)?;
        let link = self.find_link(name, by).await?.id;
        let filter = EntryFilter { before, ..EntryFilter::default() };
        let mut entries = self.entries_of(link, filter, PER_PAGE, by).await?;
        let is_takedown = |entry: &Entry| {
            matches!(Action::parse(&entry.action), Some(Action::BlockLink | Action::UnblockLink))
        };
        if require_operator(by).is_err() {
            entries.iter_mut().filter(|entry| is_takedown(entry)).for_each(|entry| entry.by_name = None);
        }
        Ok(entries)
    }

    /// Returns the latest of the wanted entries about a link. For a key of one domain they end with
    /// the arrival of the link there: such a key does not learn of other domains.
    pub(crate) async fn entries_of(
        &self,
        link: LinkId,
        filter: EntryFilter,
        most: usize,
        by: &Grant,
    ) -> Result<Vec<Entry>, AppError> {
        let object = Some(Object { name: String::new(), links: vec![link] });
        let _turn = self.turns.queries.take(by.id).await?;
        let mut entries = self.store.audit_entries(&EntryFilter { object, ..filter }, most).await?;
        if let Some(domain) = by.limits.domain {
            let there = entries.iter().take_while(|entry| entry.stays_on(domain)).count();
            entries.truncate(there);
        }
        Ok(entries)
    }

    /// Returns the object of a name: links on the default domain that have the name or had it,
    /// those on another domain if the name is `domain/name`, and anything else of that name.
    pub async fn audit_object(&self, name: String, by: &Grant) -> Result<Object, AppError> {
        require_operator(by)?;
        let mut links: Vec<_> = self.lookup.id_of(&name).into_iter().collect();
        let on_default = LinkName { code: name.clone(), domain: None };
        let elsewhere = name
            .split_once('/')
            .map(|(domain, code)| LinkName { code: code.to_owned(), domain: Some(domain.to_owned()) });
        for link in [on_default].into_iter().chain(elsewhere) {
            let found = self.find_link(&link, by).await.map(|link| link.id);
            let deleted = self.find_deleted(&link, by).await.map(|link| link.id);
            for id in [found, deleted] {
                match id {
                    Ok(id) => links.push(id),
                    Err(AppError::NoLink { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Object { name, links })
    }
}
