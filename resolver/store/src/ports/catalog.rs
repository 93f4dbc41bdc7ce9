//! Links as a collection: lists, tags, imports and exports, and the upkeep that goes through all of
//! them.

use std::time::Duration;

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{Filter, Link, LongUrl, Outline, Outlined, Record, Tag, api_key::ApiKeyId};

use crate::{
    Database, Exported, ImportBatch, ImportPosition, Imported, Indexed,
    Lane::{List, LongWrite, Read, Write},
    LinkIndex, LinkVisits, Renamed, Result, Sweep, TagChange, TagCount, Visible, VisitTotals, Walked,
    operation::run,
    sql::{import, link_index, list, long_urls, sweep, tags, visits, walk},
};

/// Lists, tags, imports and exports of links, and their upkeep.
#[async_trait]
pub trait Catalog: Database {
    /// Returns one page of a list of links as outlines. `code` is the id of the searched text, if
    /// that is a code.
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline> {
        let args = (filter.clone(), code);
        run(self, List, args, |sql, (filter, code)| Box::pin(list::outline(sql, filter, *code))).await
    }

    /// Returns the next links that meet a filter after the one with the id `after`, in the order of
    /// their ids, whatever order the filter has. A step may find none and still not be the last.
    async fn walk(
        &self,
        filter: &Filter,
        code: Option<LinkId>,
        after: Option<LinkId>,
        most: usize,
    ) -> Result<Walked> {
        run(self, List, (filter.clone(), code, (after, most)), |sql, (filter, code, step)| {
            Box::pin(walk::walk(sql, filter, *code, *step))
        })
        .await
    }

    /// Returns current outlines of these links, in the order of `ids`. A link may have grown since
    /// its page was outlined.
    async fn outlines_of(&self, ids: &[LinkId]) -> Result<Vec<Outlined>> {
        run(self, List, ids.to_vec(), |sql, ids| Box::pin(list::outlines_of(sql, ids))).await
    }

    /// Returns links with their tags, in the order of `ids`. Links that do not exist are left out.
    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>> {
        run(self, List, ids.to_vec(), |sql, ids| Box::pin(list::records(sql, ids))).await
    }

    /// Returns links without tags and without [`links::Details::LONG`], in any order; at most
    /// [`BATCH_MAX`](crate::BATCH_MAX).
    async fn plain_links(&self, ids: &[LinkId]) -> Result<Vec<Link>> {
        run(self, List, ids.to_vec(), |sql, ids| Box::pin(list::plain_links(sql, ids))).await
    }

    /// Returns at most `most` links that lead to a long URL and are visible under `of`, in the
    /// order of their ids. Deleted links are left out.
    async fn links_of_url(&self, url: &LongUrl, of: &Visible, most: usize) -> Result<Vec<Record>> {
        let args = (url.clone(), *of, most);
        run(self, List, args, |sql, (url, of, most)| Box::pin(long_urls::links_of_url(sql, url, of, *most)))
            .await
    }

    /// Returns the tags of a link, sorted.
    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>> {
        run(self, Read, id, |sql, id| Box::pin(tags::tags_of_link(sql, *id))).await
    }

    /// Returns at most `most` tags that contain the searched text, sorted, each with the number of
    /// visible links that have it. Tags without such a link are left out, unless all links are
    /// visible.
    async fn tags(&self, search: Option<&str>, most: usize, of: &Visible) -> Result<Vec<TagCount>> {
        run(self, List, (search.map(str::to_owned), most, *of), |sql, (search, most, of)| {
            Box::pin(tags::tags(sql, search.as_deref(), *most, of))
        })
        .await
    }

    /// Returns the names of at most `most` tags of visible links, sorted, without the counts of
    /// [`Self::tags`], which read every link that has a tag. If all links are visible, tags without
    /// a link are included.
    async fn tag_names(&self, most: usize, of: &Visible) -> Result<Vec<Tag>> {
        run(self, List, (most, *of), |sql, (most, of)| Box::pin(tags::tag_names(sql, *most, of))).await
    }

    /// Returns the number of the tag with exactly this name, if a visible link has it. If all links
    /// are visible, a tag without a link counts too.
    async fn tag_id(&self, tag: &Tag, of: &Visible) -> Result<Option<i64>> {
        run(self, List, (tag.clone(), *of), |sql, (tag, of)| Box::pin(tags::tag_id(sql, tag, of))).await
    }

    /// Returns at most `most` links, those with the most visits first. It reads a row for each link
    /// that was ever visited.
    async fn most_visited(&self, most: usize) -> Result<Vec<LinkId>> {
        run(self, List, most, |sql, most| Box::pin(visits::most_visited(sql, *most))).await
    }

    /// Returns how often links were visited, at most [`BATCH_MAX`](crate::BATCH_MAX) of them, in
    /// any order. Links without visits may be left out.
    async fn visit_totals(&self, ids: &[LinkId]) -> Result<Vec<(LinkId, VisitTotals)>> {
        run(self, List, ids.to_vec(), |sql, ids| Box::pin(visits::visit_totals(sql, ids))).await
    }

    /// Returns how often a link was visited and by how many bots, without imported visits.
    async fn counted_visits(&self, link: LinkId) -> Result<(i64, i64)> {
        run(self, Write, link, |sql, link| Box::pin(visits::counted_visits(sql, *link))).await
    }

    /// Returns how often the visible links of tags were visited, deleted links excepted; at most
    /// [`BATCH_MAX`](crate::BATCH_MAX) tags, in any order. Tags without visits may be left out.
    async fn tag_visit_totals(&self, tags: &[Tag], of: &Visible) -> Result<Vec<(Tag, VisitTotals)>> {
        let args = (tags.to_vec(), *of);
        run(self, List, args, |sql, (tags, of)| Box::pin(visits::tag_visit_totals(sql, tags, of))).await
    }

    /// Renames a tag.
    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed> {
        let args = (old.clone(), new.clone(), by);
        let renamed =
            run(self, Write, args, |sql, (old, new, by)| Box::pin(tags::rename_tag(sql, old, new, *by)));
        match renamed.await {
            // Another transaction has taken the name since the check.
            Err(error) if error.is_conflict() => Ok(Renamed::Taken),
            renamed => renamed,
        }
    }

    /// Removes tags from every link, and deletes them.
    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<()> {
        let args = (tags.to_vec(), by);
        run(self, Write, args, |sql, (tags, by)| Box::pin(tags::delete_tags(sql, tags, *by))).await
    }

    /// Stores a batch of an import together with the import's position, in one transaction.
    /// Idempotent: for a batch that was stored before, it returns the present state of the items.
    ///
    /// # Errors
    /// Returns `StoreError::NoFreeCode` if all candidate codes of an item are taken and there are
    /// more. Nothing is stored then.
    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>> {
        run(self, LongWrite, batch.clone(), |sql, batch| Box::pin(import::import(sql, batch))).await
    }

    /// Returns how far an import has come.
    async fn import_position(&self, name: &str) -> Result<ImportPosition> {
        run(self, Read, name.to_owned(), |sql, name| Box::pin(import::import_position(sql, name))).await
    }

    /// Returns links with an id above `after`, in the order of their ids, deleted links included.
    /// Returns at most `most` links, and fewer if they are long.
    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>> {
        run(self, List, (after, most), |sql, (after, most)| Box::pin(import::export(sql, *after, *most)))
            .await
    }

    /// Returns the estimated number of links, deleted ones included. Returns `None` if the database
    /// has no estimate yet.
    async fn link_count(&self) -> Result<Option<u64>> {
        run(self, List, (), |sql, ()| Box::pin(import::link_count(sql))).await
    }

    /// Records the last visits of links. Idempotent. The ids must ascend, so that two resolvers
    /// cannot deadlock.
    async fn note_visits(&self, seen: &[(LinkId, Timestamp)]) -> Result<()> {
        run(self, Write, seen.to_vec(), |sql, seen| Box::pin(sweep::note_visits(sql, seen))).await
    }

    /// Removes the imported visits of a link from its total, and returns how many there were.
    async fn take_imported_visits(&self, link: LinkId) -> Result<u64> {
        run(self, Write, link, |sql, link| Box::pin(visits::take_imported_visits(sql, *link))).await
    }

    /// Adds visits of a store in another database to links, and sets the position of what was added
    /// to `up_to`, in one transaction. Does nothing if the position is there already, so a retry
    /// counts nothing twice. Each link occurs once, and the ids must ascend.
    async fn add_visits(&self, up_to: i64, visits: &[LinkVisits]) -> Result<()> {
        run(self, LongWrite, (up_to, visits.to_vec()), |sql, (up_to, visits)| {
            Box::pin(visits::add_visits(sql, *up_to, visits))
        })
        .await
    }

    /// Returns the oldest links whose tags have changed, at most `most`, each with the numbers of
    /// its present tags.
    async fn tag_changes(&self, most: usize) -> Result<Vec<TagChange>> {
        run(self, List, most, |sql, most| Box::pin(visits::tag_changes(sql, *most))).await
    }

    /// Forgets changes of tags up to a number, after the counters of visits have followed them. For
    /// a database with one writer: with several, a change with a lower number may be committed
    /// later.
    async fn forget_tag_changes(&self, up_to: i64) -> Result<()> {
        run(self, Write, up_to, |sql, up_to| Box::pin(visits::forget_tag_changes(sql, *up_to))).await
    }

    /// Returns a deleted tag whose links are not removed yet.
    async fn gone_tag(&self) -> Result<Option<i64>> {
        run(self, List, (), |sql, ()| Box::pin(tags::gone_tag(sql))).await
    }

    /// Removes some links of a deleted tag, or forgets the tag if it has none. Called once the
    /// counters of visits have forgotten it.
    async fn remove_gone_tag(&self, tag: i64) -> Result<()> {
        run(self, Write, tag, |sql, tag| Box::pin(tags::remove_gone_tag(sql, *tag))).await
    }

    /// Runs one step of the removal of unvisited links. Returns the links that were removed, of
    /// which more may be left; `None` if there is nothing to do for now.
    async fn sweep(&self, sweep: &Sweep) -> Result<Option<Vec<LinkId>>> {
        run(self, LongWrite, sweep.clone(), |sql, sweep| Box::pin(sweep::sweep(sql, sweep))).await
    }

    /// Runs one step of an index of links. The process that runs it has the lease for `held_for`.
    async fn index_links(&self, index: LinkIndex, holder: &str, held_for: Duration) -> Result<Indexed> {
        run(self, LongWrite, (index, holder.to_owned(), held_for), |sql, (index, holder, held_for)| {
            Box::pin(link_index::index_links(sql, *index, holder, *held_for))
        })
        .await
    }

    /// Returns the creation time of the oldest link that is not in an index yet; `None` if all are.
    async fn unindexed_since(&self, index: LinkIndex) -> Result<Option<Timestamp>> {
        run(self, List, index, |sql, index| Box::pin(link_index::unindexed_since(sql, *index))).await
    }
}

impl<D: Database> Catalog for D {}
