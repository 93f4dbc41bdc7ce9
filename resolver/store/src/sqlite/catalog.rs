//! The port [`Catalog`] on SQLite.

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{Filter, Link, LongUrl, Outline, Outlined, Record, Tag, api_key::ApiKeyId};

use super::SqliteStore;
use crate::{
    Catalog, Exported, ImportBatch, ImportPosition, Imported, IndexStep, Indexed, LinkVisits, Renamed,
    StoreError, Sweep, Swept, TagChange, TagCount, Visible, VisitTotals, sql,
};

#[async_trait]
impl Catalog for SqliteStore {
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        let filter = filter.clone();
        self.lister.read(async move |sql| sql::outline(sql, &filter, code).await).await
    }

    async fn outlines_of(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::outlines_of(sql, &ids).await).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::records(sql, &ids).await).await
    }

    async fn plain_links(&self, ids: &[LinkId]) -> Result<Vec<Link>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::plain_links(sql, &ids).await).await
    }

    async fn links_of_url(
        &self,
        url: &LongUrl,
        of: &Visible,
        most: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (url, of, most) = (url.clone(), *of, i64::try_from(most).unwrap_or(i64::MAX));
        self.lister.read(async move |sql| sql::links_of_url(sql, &url, &of, most).await).await
    }

    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>, StoreError> {
        Ok(self
            .lister
            .read(async move |sql| sql::tags_of(sql, &[id]).await)
            .await?
            .remove(&id)
            .unwrap_or_default())
    }

    async fn tags(
        &self,
        search: Option<&str>,
        most: usize,
        of: &Visible,
    ) -> Result<Vec<TagCount>, StoreError> {
        let (search, most, of) = (search.map(str::to_owned), i64::try_from(most).unwrap_or(i64::MAX), *of);
        self.lister.read(async move |sql| sql::tags(sql, search.as_deref(), most, &of).await).await
    }

    async fn tag_names(&self, most: usize, of: &Visible) -> Result<Vec<Tag>, StoreError> {
        let (most, of) = (i64::try_from(most).unwrap_or(i64::MAX), *of);
        self.lister.read(async move |sql| sql::tag_names(sql, most, &of).await).await
    }

    async fn has_tag(&self, tag: &Tag, of: &Visible) -> Result<bool, StoreError> {
        let (tag, of) = (tag.clone(), *of);
        self.lister.read(async move |sql| sql::has_tag(sql, &tag, &of).await).await
    }

    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError> {
        let (old, new) = (old.clone(), new.clone());
        self.writer.write(async move |sql| sql::rename_tag(sql, &old, &new, by).await).await
    }

    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError> {
        let tags = tags.to_vec();
        self.writer.write(async move |sql| sql::delete_tags(sql, &tags, by).await).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        let batch = batch.clone();
        self.writer.write(async move |sql| sql::import(sql, &batch).await).await
    }

    async fn import_position(&self, name: &str) -> Result<ImportPosition, StoreError> {
        let name = name.to_owned();
        self.reader.read(async move |sql| sql::import_position(sql, &name).await).await
    }

    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError> {
        let (after, most) = sql::page_of_ids(after, most);
        self.lister.read(async move |sql| sql::export(sql, after, most).await).await
    }

    async fn link_count(&self) -> Result<Option<u64>, StoreError> {
        self.lister.read(async move |sql| sql::link_count(sql).await).await
    }

    async fn note_visits(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        let seen = seen.to_vec();
        self.writer.write(async move |sql| sql::note_visits(sql, &seen).await).await
    }

    async fn take_imported_visits(&self, link: LinkId) -> Result<u64, StoreError> {
        self.writer.write(async move |sql| sql::take_imported_visits(sql, link).await).await
    }

    async fn add_visits(&self, up_to: i64, visits: &[LinkVisits]) -> Result<(), StoreError> {
        let visits = visits.to_vec();
        self.writer.write(async move |sql| sql::add_visits(sql, up_to, &visits).await).await
    }

    async fn tag_id(&self, tag: &Tag) -> Result<Option<i64>, StoreError> {
        let tag = tag.clone();
        self.lister.read(async move |sql| sql::tag_id(sql, &tag).await).await
    }

    async fn visit_totals(&self, ids: &[LinkId]) -> Result<Vec<(LinkId, VisitTotals)>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::visit_totals(sql, &ids).await).await
    }

    async fn tag_visit_totals(
        &self,
        tags: &[Tag],
        of: &Visible,
    ) -> Result<Vec<(Tag, VisitTotals)>, StoreError> {
        let (tags, of) = (tags.to_vec(), *of);
        self.lister.read(async move |sql| sql::tag_visit_totals(sql, &tags, &of).await).await
    }

    async fn tag_changes(&self, most: usize) -> Result<Vec<TagChange>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.lister.read(async move |sql| sql::tag_changes(sql, most).await).await
    }

    async fn gone_tag(&self) -> Result<Option<i64>, StoreError> {
        self.lister.read(async |sql| sql::gone_tag(sql).await).await
    }

    async fn remove_gone_tag(&self, tag: i64) -> Result<(), StoreError> {
        self.writer.write(async move |sql| sql::remove_gone_tag(sql, tag).await).await
    }

    async fn forget_tag_changes(&self, up_to: i64) -> Result<(), StoreError> {
        self.writer.write(async move |sql| sql::forget_tag_changes(sql, up_to).await).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let sweep = sweep.clone();
        self.writer.write(async move |sql| sql::sweep(sql, &sweep).await).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        let step = step.clone();
        self.writer.write(async move |sql| sql::index_long_urls(sql, &step).await).await
    }
}
