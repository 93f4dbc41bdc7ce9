//! The SQLite implementation of [`LinkStore`], for one machine.
//!
//! SQLite allows one writer, so one thread owns the writing connection. Two other threads read: one
//! of them serves lists. Calls reach the threads over bounded queues. A commit is durable when it
//! returns: write-ahead log with `synchronous = FULL`.
//!
//! Rejected: an asynchronous mutex around a connection. It blocks a worker thread for each disk
//! flush.

mod calls;
mod migrations;
mod open;
mod reservations;
mod transaction;
mod worker;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codes::{Fingerprint, Keyspace, KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    Authority, DomainEdit, DomainId, Edit, Filter, Idempotency, Link, LongUrl, NewLink, Outline, Outlined,
    Precondition, Record, Slug, Tag,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey},
    audit::Entry,
    reservation::{Reservation, ReservationId},
    targets::TargetRule,
};
use numbers::{Mark, Span, StoreEpoch};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use transaction::{insert_error, write};
use worker::Worker;

use super::{
    Advanced, BlockEntry, Change, Comparison, Deleted, DomainEdited, DomainRemoved, Edited, Exported,
    FullLink, ImportBatch, Imported, IndexStep, Indexed, InsertError, Inserted, InsertedFull, InsertedNamed,
    LinkStore, NamedLink, Reading, Registration, Renamed, Restored, SettingsPoll, SettingsVersion, Source,
    StoreError, Sweep, Swept, TagCount, Visible, Witness, sql,
};

/// A store in a SQLite file.
pub struct SqliteStore {
    writer: Worker,
    reader: Worker,
    /// A reader of its own for lists: they may take long, and no redirect waits for one.
    lister: Worker,
    /// The witness file, if the operator keeps one.
    witness: Option<Arc<Witness>>,
}

impl SqliteStore {
    /// Adds a witness file, which outlasts the database file.
    #[must_use]
    pub fn witnessed_by(self, witness: Arc<Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }
}

#[async_trait]
impl LinkStore for SqliteStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        self.writer.run(migrations::run).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.reader.run(migrations::check).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        self.reader.run(|connection| calls::fingerprint(connection)).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        let mine = mine.clone();
        self.writer.run(move |connection| calls::adopt_fingerprint(connection, &mine)).await
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        let mine = mine.to_owned();
        self.writer.run(move |connection| calls::adopt_ledger(connection, &mine)).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        self.writer.run(|connection| calls::forget_ledger(connection)).await
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        let mine = mine.to_vec();
        self.writer.run(move |connection| calls::adopt_keyspaces(connection, &mine)).await
    }

    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        let entry = block.clone();
        let registered = self.writer.run(move |connection| calls::register_block(connection, &entry)).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(registered)
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        let entry = block.clone();
        let taken =
            self.writer.run(move |connection| calls::take_over_block(connection, &entry, leaked)).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(taken)
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        self.reader.run(move |connection| calls::registered_end(connection, keyspace)).await
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        let instance = instance.to_owned();
        self.reader.run(move |connection| calls::holds(connection, id, generation, &instance)).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        self.reader.run(move |connection| calls::unused(connection, keyspace, span)).await
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.reader.run(|connection| calls::epoch(connection)).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        let at_least = at_least.max(Witness::mark_of(self.witness.as_ref()));
        let registered = Witness::registered_of(self.witness.as_ref());
        let (advanced, history) =
            self.writer.write(async move |sql| sql::advance(sql, at_least, how, &registered).await).await?;
        Witness::note_advanced(self.witness.as_ref(), advanced, history);
        Ok(advanced)
    }

    async fn begin_history(&self, skip: u64) -> Result<Mark, StoreError> {
        self.writer.write(async move |sql| sql::begin_history(sql, skip).await).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        None
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        let (block, kept) = (block.clone(), kept.to_vec());
        self.writer.run(move |connection| calls::release_block(connection, &block, &kept)).await
    }

    fn is_shared(&self) -> bool {
        false
    }

    /// One lane: SQLite has one writer.
    fn insert_lanes(&self) -> usize {
        1
    }

    /// Inserts links without a check of the history. A history begins before a number of it is
    /// claimed, and no other process uses the file.
    async fn insert(&self, _history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        let (links, witness) = (links.to_vec(), self.witness.clone());
        self.writer
            .run(move |connection| {
                let (outcomes, mark) = calls::insert(connection, &links, witness.is_some())?;
                // Recorded before any caller learns of the links.
                Witness::note_mark_in(witness.as_ref(), mark);
                Ok(outcomes)
            })
            .await
            .map_err(insert_error)
    }

    async fn insert_full(
        &self,
        _history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        let witness = self.witness.clone();
        self.writer
            .run(move |connection| {
                let (outcome, mark) = write(connection, async |sql| {
                    let outcome = sql::insert_full(sql, &link, &tags, idempotency.as_ref()).await?;
                    let mark = if witness.is_some() { sql::raise(sql).await? } else { Mark(0) };
                    Ok((outcome, mark))
                })?;
                Witness::note_mark_in(witness.as_ref(), mark);
                Ok(outcome)
            })
            .await
            .map_err(insert_error)
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        self.writer
            .write(async move |sql| sql::insert_named(sql, &link, &tags, idempotency.as_ref()).await)
            .await
            .map_err(insert_error)
    }

    async fn use_links(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
        let wanted = wanted.to_vec();
        self.writer.write(async move |sql| sql::use_links(sql, &wanted).await).await
    }

    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError> {
        self.reader.read(async move |sql| sql::is_spent(sql, id).await).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        let slug = slug.clone();
        self.reader.read(async move |sql| sql::find_slug(sql, domain, slug.as_str()).await).await
    }

    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        let known = known.cloned();
        let asked =
            self.reader.read(async move |sql| sql::shared_settings(sql, known.as_ref()).await).await?;
        // SQLite's clock is this machine's.
        Ok(SettingsPoll { now: Timestamp::now(), settings: asked })
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        let authority = authority.clone();
        self.writer.write(async move |sql| sql::add_domain(sql, &authority, most, by).await).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.writer.write(async move |sql| sql::remove_domain(sql, id, by).await).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.lister.read(async move |sql| sql::domains_with_links(sql, of).await).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        let edit = edit.clone();
        self.writer.write(async move |sql| sql::edit_domain(sql, id, &edit, by).await).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        let rule = rule.clone();
        self.writer.write(async move |sql| sql::set_target(sql, &rule, by).await).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        let pattern = pattern.to_owned();
        self.writer.write(async move |sql| sql::remove_target(sql, &pattern, by).await).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        let batch = batch.clone();
        self.writer.write(async move |sql| sql::import(sql, &batch).await).await
    }

    async fn import_position(&self, name: &str) -> Result<u64, StoreError> {
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

    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        let seen = seen.to_vec();
        self.writer.write(async move |sql| sql::note_seen(sql, &seen).await).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let sweep = sweep.clone();
        self.writer.write(async move |sql| sql::sweep(sql, &sweep).await).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        let step = step.clone();
        self.writer.write(async move |sql| sql::index_long_urls(sql, &step).await).await
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

    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError> {
        let (after, most) = sql::page_of_ids(after, most);
        self.reader.read(async move |sql| sql::unminted_slugs(sql, after, most).await).await
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        let edit = edit.clone();
        self.writer.write(async move |sql| sql::edit(sql, id, &edit, by).await).await
    }

    async fn close(&self) {
        let checkpoint = |connection: &mut rusqlite::Connection| {
            Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
        };
        // The write-ahead log beside the file has all data as well, so a failure loses nothing.
        match self.writer.run(checkpoint).await {
            Ok(0) => {}
            Ok::<i64, _>(_) => tracing::warn!("somebody else reads the database: its -wal file stays"),
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "put the -wal file in"),
        }
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        let precondition = precondition.clone();
        self.writer.write(async move |sql| sql::delete(sql, id, &precondition, by).await).await
    }

    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
    ) -> Result<Option<Link>, StoreError> {
        let name = name.to_owned();
        self.lister.read(async move |sql| sql::find_deleted(sql, domain, &name, code).await).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError> {
        let precondition = precondition.clone();
        self.writer.write(async move |sql| sql::restore(sql, id, &precondition, keyspaces, by).await).await
    }

    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        let filter = filter.clone();
        self.lister.read(async move |sql| sql::outline(sql, &filter, code).await).await
    }

    async fn weigh(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::weigh(sql, &ids).await).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        let ids = ids.to_vec();
        self.lister.read(async move |sql| sql::records(sql, &ids).await).await
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

    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError> {
        let (old, new) = (old.clone(), new.clone());
        self.writer.write(async move |sql| sql::rename_tag(sql, &old, &new, by).await).await
    }

    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError> {
        let tags = tags.to_vec();
        self.writer.write(async move |sql| sql::delete_tags(sql, &tags, by).await).await
    }

    /// Reports [`Change::Alone`]: one process uses the file, so no other process changes links.
    async fn tell_changes(&self, changes: mpsc::Sender<Change>) {
        for change in [Change::Alone, Change::Listening(Instant::now())] {
            let _ = changes.send(change).await;
        }
    }

    async fn read(&self, ids: &[LinkId], _source: Source) -> Result<Reading, StoreError> {
        let ids = ids.to_vec();
        let links = self.reader.run(move |connection| calls::read(connection, &ids)).await?;
        Ok(Reading { links, complete: true, as_of: None })
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        let id = id.clone();
        self.writer.run(move |connection| reservations::add(connection, &id, keyspace, key)).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        let id = id.clone();
        self.reader.run(move |connection| reservations::find(connection, &id)).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        self.reader.run(move |connection| reservations::list(connection, of)).await
    }

    async fn reserved(&self, of: ApiKeyId) -> Result<u64, StoreError> {
        self.reader.run(move |connection| reservations::reserved(connection, of)).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        let id = id.clone();
        self.writer.run(move |connection| reservations::close(connection, &id)).await
    }

    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError> {
        let key = key.clone();
        self.writer.write(async move |sql| sql::add_api_key(sql, &key).await).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        let (name, hash) = (name.to_owned(), hash.clone());
        self.writer.run(move |connection| calls::add_first_api_key(connection, &name, &hash)).await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        let hash = hash.clone();
        self.reader.read(async move |sql| sql::find_api_key(sql, &hash).await).await
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        let ids = ids.to_vec();
        self.reader.read(async move |sql| sql::key_names(sql, &ids).await).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.reader.read(async |sql| sql::list_api_keys(sql).await).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.writer.write(async move |sql| sql::note_keys_used(sql, &ids).await).await
    }

    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.writer.write(async move |sql| sql::revoke_api_key(sql, &name).await).await
    }

    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration) -> Result<bool, StoreError> {
        let (name, hash, keep) = (name.to_owned(), hash.clone(), sql::milliseconds(keep));
        self.writer.write(async move |sql| sql::rotate_api_key(sql, &name, &hash, keep).await).await
    }

    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.lister.read(async move |sql| sql::audit(sql, before, most).await).await
    }
}
