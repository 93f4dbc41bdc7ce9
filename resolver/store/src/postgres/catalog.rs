//! The port [`Catalog`] on Postgres.

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{Filter, Link, LongUrl, Outline, Outlined, Record, Tag, api_key::ApiKeyId};
use tokio_postgres::error::SqlState;

use super::{PostgresStore, deadline::DEADLINE, reads};
use crate::{
    Catalog, Exported, ImportBatch, ImportPosition, Imported, IndexStep, Indexed, LinkVisits, Renamed,
    StoreError, Sweep, Swept, TagChange, TagCount, Visible, VisitTotals, sql,
};

#[async_trait]
impl Catalog for PostgresStore {
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        self.run_on(&self.lists, async |sql| sql::outline(sql, filter, code).await).await
    }

    async fn outlines_of(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::outlines_of(sql, ids).await).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::records(sql, ids).await).await
    }

    async fn plain_links(&self, ids: &[LinkId]) -> Result<Vec<Link>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.get()).collect();
        let rows = self.plain_reader.read(DEADLINE, &[&ids]).await.map_err(StoreError::from)?;
        rows.iter().map(reads::link).collect()
    }

    async fn links_of_url(
        &self,
        url: &LongUrl,
        of: &Visible,
        most: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::links_of_url(sql, url, of, most).await).await
    }

    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>, StoreError> {
        let mut found = self.run(async |sql| sql::tags_of(sql, &[id]).await).await?;
        Ok(found.remove(&id).unwrap_or_default())
    }

    async fn tags(
        &self,
        search: Option<&str>,
        most: usize,
        of: &Visible,
    ) -> Result<Vec<TagCount>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::tags(sql, search, most, of).await).await
    }

    async fn tag_names(&self, most: usize, of: &Visible) -> Result<Vec<Tag>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::tag_names(sql, most, of).await).await
    }

    async fn has_tag(&self, tag: &Tag, of: &Visible) -> Result<bool, StoreError> {
        self.run_on(&self.lists, async |sql| sql::has_tag(sql, tag, of).await).await
    }

    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError> {
        match self.run(async |sql| sql::rename_tag(sql, old, new, by).await).await {
            // Another transaction has taken the name since the check.
            Err(StoreError::Postgres(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                Ok(Renamed::Taken)
            }
            renamed => renamed,
        }
    }

    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError> {
        self.run(async |sql| sql::delete_tags(sql, tags, by).await).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        self.run_long(async |sql| sql::import(sql, batch).await).await
    }

    async fn import_position(&self, name: &str) -> Result<ImportPosition, StoreError> {
        self.run(async |sql| sql::import_position(sql, name).await).await
    }

    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError> {
        let (after, most) = sql::page_of_ids(after, most);
        self.run_on(&self.lists, async |sql| sql::export(sql, after, most).await).await
    }

    async fn link_count(&self) -> Result<Option<u64>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::link_count(sql).await).await
    }

    async fn note_visits(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        self.run(async |sql| sql::note_visits(sql, seen).await).await
    }

    async fn take_imported_visits(&self, link: LinkId) -> Result<u64, StoreError> {
        self.run(async |sql| sql::take_imported_visits(sql, link).await).await
    }

    async fn add_visits(&self, up_to: i64, visits: &[LinkVisits]) -> Result<(), StoreError> {
        self.run_long(async |sql| sql::add_visits(sql, up_to, visits).await).await
    }

    async fn tag_id(&self, tag: &Tag) -> Result<Option<i64>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::tag_id(sql, tag).await).await
    }

    async fn visit_totals(&self, ids: &[LinkId]) -> Result<Vec<(LinkId, VisitTotals)>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::visit_totals(sql, ids).await).await
    }

    async fn tag_visit_totals(
        &self,
        tags: &[Tag],
        of: &Visible,
    ) -> Result<Vec<(Tag, VisitTotals)>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::tag_visit_totals(sql, tags, of).await).await
    }

    async fn tag_changes(&self, most: usize) -> Result<Vec<TagChange>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run(async |sql| sql::tag_changes(sql, most).await).await
    }

    async fn gone_tag(&self) -> Result<Option<i64>, StoreError> {
        self.run(async |sql| sql::gone_tag(sql).await).await
    }

    async fn remove_gone_tag(&self, tag: i64) -> Result<(), StoreError> {
        self.run(async |sql| sql::remove_gone_tag(sql, tag).await).await
    }

    async fn forget_tag_changes(&self, up_to: i64) -> Result<(), StoreError> {
        self.run(async |sql| sql::forget_tag_changes(sql, up_to).await).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        self.run_long(async |sql| sql::sweep(sql, sweep).await).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        self.run_long(async |sql| sql::index_long_urls(sql, step).await).await
    }
}
