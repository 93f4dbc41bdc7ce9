//! The store as one process reaches it: the real SQLite one at the end of ways that fail (`ways`).

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
use store::{
    Advanced, BlockEntry, Change, Comparison, Deleted, DomainEdited, DomainRemoved, Edited, Exported,
    FullLink, ImportBatch, Imported, IndexStep, Indexed, InsertError, Inserted, InsertedFull, InsertedNamed,
    LinkStore, NamedLink, Reading, Registration, Renamed, Restored, SettingsPoll, SettingsVersion, Source,
    StoreError, Sweep, Swept, TagCount, Visible,
};
use tokio::sync::{mpsc, watch};

use super::{database::Database, ways::FaultyStore};
use supply::guard::{self, Guard};

/// Nothing is stored in another history than the one that the numbers are of: the real store asks in its
/// statement.
async fn must_be_of(database: &Database, history: &StoreEpoch) -> Result<(), InsertError> {
    if !database.is_compared() {
        return Err(InsertError::Failed(StoreError::NotCompared));
    }
    match database.epoch().await {
        Ok(epoch) if epoch == *history || !guard::is_on(Guard::History) => Ok(()),
        Ok(_) => Err(InsertError::Failed(StoreError::AnotherHistory)),
        Err(error) => Err(InsertError::Failed(error)),
    }
}

#[async_trait]
impl LinkStore for FaultyStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn insert_lanes(&self) -> usize {
        2
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.database.start.subscribe())
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.pass(self.database.epoch()).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        self.pass(async {
            match how.since {
                Some(seen) if Some(seen) != *self.database.start.borrow() => Ok(Advanced::Restarted),
                seen => {
                    let advanced = self.database.sqlite.advance(at_least, how).await?;
                    if seen.is_some() {
                        self.database.note_compared();
                    }
                    Ok(advanced)
                }
            }
        })
        .await
    }

    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        self.poll(known).await
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        self.insert_links(history, links).await
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let (database, history, link) = (Arc::clone(&self.database), history.clone(), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            must_be_of(&database, &history).await?;
            let inserted = database.sqlite.insert_full(&history, &link, &tags, idempotency.as_ref()).await?;
            Ok(match inserted {
                InsertedFull::Stored(_) => InsertedFull::Stored(database.stamp(link.new.id)),
                other => other,
            })
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let (database, link) = (Arc::clone(&self.database), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            let mut inserted = database.sqlite.insert_named(&link, &tags, idempotency.as_ref()).await?;
            if let InsertedNamed::Stored(id, at, _) = &mut inserted {
                let id = *id;
                *at = database.stamp(id);
                let change =
                    if link.mintable.is_some() { Change::Picked(id) } else { Change::Links(vec![id]) };
                database.tell(&change);
            }
            Ok(inserted)
        })
        .await
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        self.change(id, self.database.sqlite.edit(id, edit, by)).await
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        self.change(id, self.database.sqlite.delete(id, precondition, by)).await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        self.read_links(ids, source).await
    }

    async fn tell_changes(&self, changes: mpsc::Sender<Change>) {
        self.tell_all(&changes).await;
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.migrate()).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.check()).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        self.pass(self.database.sqlite.fingerprint()).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        self.pass(self.database.sqlite.adopt_fingerprint(mine)).await
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        self.pass(self.database.sqlite.adopt_ledger(mine)).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.forget_ledger()).await
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        self.pass(self.database.sqlite.adopt_keyspaces(mine)).await
    }

    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        self.pass(self.database.sqlite.register_block(block)).await
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        self.pass(async {
            if !guard::is_on(Guard::OpenReservation) {
                self.database.forget_holders(block, leaked);
            }
            self.database.sqlite.take_over_block(block, leaked).await
        })
        .await
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        self.pass(self.database.sqlite.registered_end(keyspace)).await
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.holds(id, generation, instance)).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        self.pass(self.database.sqlite.unused(keyspace, span)).await
    }

    async fn begin_history(&self, skip: u64) -> Result<Mark, StoreError> {
        self.pass(self.database.sqlite.begin_history(skip)).await
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.release_block(block, kept)).await
    }

    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.is_spent(id)).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        self.pass(self.database.sqlite.find_slug(domain, slug)).await
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        self.pass(self.database.sqlite.add_domain(authority, most, by)).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.pass(self.database.sqlite.remove_domain(id, by)).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.pass(self.database.sqlite.domains_with_links(of)).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        self.pass(self.database.sqlite.edit_domain(id, edit, by)).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.set_target(rule, by)).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.remove_target(pattern, by)).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        self.pass(self.database.sqlite.import(batch)).await
    }

    async fn import_position(&self, name: &str) -> Result<u64, StoreError> {
        self.pass(self.database.sqlite.import_position(name)).await
    }

    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError> {
        self.pass(self.database.sqlite.export(after, most)).await
    }

    async fn link_count(&self) -> Result<Option<u64>, StoreError> {
        self.pass(self.database.sqlite.link_count()).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        self.pass(self.database.sqlite.sweep(sweep)).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        self.pass(self.database.sqlite.index_long_urls(step)).await
    }

    async fn links_of_url(
        &self,
        url: &LongUrl,
        of: &Visible,
        most: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.pass(self.database.sqlite.links_of_url(url, of, most)).await
    }

    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError> {
        self.pass(self.database.sqlite.picked(after, most)).await
    }

    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
    ) -> Result<Option<Link>, StoreError> {
        self.pass(self.database.sqlite.find_deleted(domain, name, code)).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError> {
        self.change(id, self.database.sqlite.restore(id, precondition, keyspaces, by)).await
    }

    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        self.pass(self.database.sqlite.outline(filter, code)).await
    }

    async fn weigh(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        self.pass(self.database.sqlite.weigh(ids)).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        self.pass(self.database.sqlite.records(ids)).await
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

    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError> {
        self.pass(self.database.sqlite.rename_tag(old, new, by)).await
    }

    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.delete_tags(tags, by)).await
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        self.pass(self.database.sqlite.add_reservation(id, keyspace, key)).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        self.pass(self.database.sqlite.reservation(id)).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        self.pass(self.database.sqlite.reservations(of)).await
    }

    async fn reserved(&self, of: ApiKeyId) -> Result<u64, StoreError> {
        self.pass(self.database.sqlite.reserved(of)).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.close_reservation(id)).await
    }

    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError> {
        self.pass(self.database.sqlite.add_api_key(key)).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.add_first_api_key(name, hash)).await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        self.pass(self.database.sqlite.find_api_key(hash)).await
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        self.pass(self.database.sqlite.key_names(ids)).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.pass(self.database.sqlite.list_api_keys()).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.note_keys_used(ids)).await
    }

    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.rotate_api_key(name, hash, keep)).await
    }

    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.pass(self.database.sqlite.audit(before, most)).await
    }

    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.revoke_api_key(name)).await
    }

    async fn use_links(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
        self.pass(self.database.sqlite.use_links(wanted)).await
    }

    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.note_seen(seen)).await
    }
}
