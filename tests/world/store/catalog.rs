//! The port [`Catalog`] of a process in the simulated world.

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{Filter, Link, LongUrl, Outline, Outlined, Record, Tag, api_key::ApiKeyId};
use store::{
    Catalog, Exported, ImportBatch, ImportPosition, Imported, IndexStep, Indexed, LinkVisits, Renamed,
    StoreError, Sweep, Swept, TagChange, TagCount, Visible, VisitTotals,
};

use super::super::ways::FaultyStore;

#[async_trait]
impl Catalog for FaultyStore {
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        self.pass(self.database.sqlite.outline(filter, code)).await
    }

    async fn outlines_of(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        self.pass(self.database.sqlite.outlines_of(ids)).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        self.pass(self.database.sqlite.records(ids)).await
    }

    async fn plain_links(&self, ids: &[LinkId]) -> Result<Vec<Link>, StoreError> {
        self.pass(self.database.sqlite.plain_links(ids)).await
    }

    async fn links_of_url(
        &self,
        url: &LongUrl,
        of: &Visible,
        most: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.pass(self.database.sqlite.links_of_url(url, of, most)).await
    }

    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>, StoreError> {
        self.pass(self.database.sqlite.tags_of(id)).await
    }

    async fn tags(
        &self,
        search: Option<&str>,
        most: usize,
        of: &Visible,
    ) -> Result<Vec<TagCount>, StoreError> {
        self.pass(self.database.sqlite.tags(search, most, of)).await
    }

    async fn tag_names(&self, most: usize, of: &Visible) -> Result<Vec<Tag>, StoreError> {
        self.pass(self.database.sqlite.tag_names(most, of)).await
    }

    async fn has_tag(&self, tag: &Tag, of: &Visible) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.has_tag(tag, of)).await
    }

    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError> {
        self.pass(self.database.sqlite.rename_tag(old, new, by)).await
    }

    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.delete_tags(tags, by)).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        self.pass(self.database.sqlite.import(batch)).await
    }

    async fn import_position(&self, name: &str) -> Result<ImportPosition, StoreError> {
        self.pass(self.database.sqlite.import_position(name)).await
    }

    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError> {
        self.pass(self.database.sqlite.export(after, most)).await
    }

    async fn link_count(&self) -> Result<Option<u64>, StoreError> {
        self.pass(self.database.sqlite.link_count()).await
    }

    async fn note_visits(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.note_visits(seen)).await
    }

    async fn take_imported_visits(&self, link: LinkId) -> Result<u64, StoreError> {
        self.pass(self.database.sqlite.take_imported_visits(link)).await
    }

    async fn add_visits(&self, up_to: i64, visits: &[LinkVisits]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.add_visits(up_to, visits)).await
    }

    async fn tag_changes(&self, most: usize) -> Result<Vec<TagChange>, StoreError> {
        self.pass(self.database.sqlite.tag_changes(most)).await
    }

    async fn gone_tag(&self) -> Result<Option<i64>, StoreError> {
        self.pass(self.database.sqlite.gone_tag()).await
    }

    async fn remove_gone_tag(&self, tag: i64) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.remove_gone_tag(tag)).await
    }

    async fn forget_tag_changes(&self, up_to: i64) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.forget_tag_changes(up_to)).await
    }

    async fn tag_id(&self, tag: &Tag) -> Result<Option<i64>, StoreError> {
        self.pass(self.database.sqlite.tag_id(tag)).await
    }

    async fn visit_totals(&self, ids: &[LinkId]) -> Result<Vec<(LinkId, VisitTotals)>, StoreError> {
        self.pass(self.database.sqlite.visit_totals(ids)).await
    }

    async fn tag_visit_totals(
        &self,
        tags: &[Tag],
        of: &Visible,
    ) -> Result<Vec<(Tag, VisitTotals)>, StoreError> {
        self.pass(self.database.sqlite.tag_visit_totals(tags, of)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        self.pass(self.database.sqlite.sweep(sweep)).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        self.pass(self.database.sqlite.index_long_urls(step)).await
    }
}
