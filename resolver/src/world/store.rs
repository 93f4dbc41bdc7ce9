//! The store as one process reaches it: every call may come late, fail, or lose its answer.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use issuer::{block::Span, names::StoreEpoch, tokens::Mark};
use jiff::Timestamp;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use super::database::Database;
use crate::{
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey},
    audit::Entry,
    codes::{Fingerprint, Keyspace, KeyspaceIndex, LinkId},
    links::{
        Authority, DomainEdit, DomainId, Edit, Filter, Link, LongUrl, NewLink, Outline, Record, Slug, Tag,
    },
    reservation::{Reservation, ReservationId},
    store::{
        Advanced, BlockEntry, Change, Comparison, Deleted, DomainEdited, DomainRemoved, Edited, Exported,
        FullLink, ImportBatch, Imported, IndexStep, Indexed, InsertError, Inserted, InsertedFull,
        InsertedNamed, LinkStore, NamedLink, Reading, Registration, Renamed, Restored, Same, SettingsPoll,
        Source, StoreError, Sweep, Swept, TagCount, Visible,
    },
    targets::TargetRule,
};

/// How often a listener asks whether it still hears, as the real one does.
const ASKED_EVERY: Duration = Duration::from_millis(100);
/// How long a broken listener rests.
const DEAF_FOR: Duration = Duration::from_millis(500);

/// One process's way to the database.
pub(super) struct FaultyStore {
    pub(super) database: Arc<Database>,
    /// Whether the process is gone: nothing that it asks is heard or answered any more.
    pub(super) is_dead: Arc<AtomicBool>,
}

impl FaultyStore {
    async fn live(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// The way there; which start of the server it leads to.
    async fn before(&self) -> Result<u64, StoreError> {
        let (delay, fails) = self.database.draw(|rng, rates| {
            let slow = rng.permille(rates.slow);
            (if slow { rng.millis(50, 600) } else { rng.millis(1, 4) }, rng.permille(rates.failed))
        });
        sleep(delay).await;
        self.live().await;
        if self.database.is_down() {
            return Err(StoreError::TimedOut);
        }
        if fails { Err(StoreError::TimedOut) } else { Ok(self.database.starts()) }
    }

    /// The way back.
    async fn after(&self, starts: u64) -> Result<(), StoreError> {
        let (delay, is_lost) = self.database.draw(|rng, rates| (rng.millis(1, 4), rng.permille(rates.lost)));
        sleep(delay).await;
        self.live().await;
        if is_lost || self.database.starts() != starts { Err(StoreError::TimedOut) } else { Ok(()) }
    }

    async fn pass<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let starts = self.before().await?;
        let done = call.await;
        self.after(starts).await?;
        done
    }

    /// An insert: once it was sent, no silence says that nothing is stored.
    async fn write<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, InsertError>> + Send + 'static,
    ) -> Result<T, InsertError> {
        let starts = self.before().await.map_err(InsertError::Failed)?;
        let late = self
            .database
            .draw(|rng, rates| rng.permille(rates.late).then(|| (rng.millis(5, 3_000), rng.millis(1, 60))));
        if let Some((lands, gives_up)) = late {
            let database = Arc::clone(&self.database);
            tokio::spawn(async move {
                sleep(lands).await;
                if database.starts() == starts && !database.is_down() {
                    let _ = call.await;
                }
            });
            sleep(gives_up).await;
            self.live().await;
            return Err(InsertError::Unknown(StoreError::TimedOut));
        }
        let done = call.await;
        self.after(starts).await.map_err(InsertError::Unknown)?;
        done
    }
}

/// Nothing is stored in another history than the one that the numbers are of: the real store asks in its statement.
async fn must_be_of(database: &Database, history: &StoreEpoch) -> Result<(), InsertError> {
    match database.epoch().await {
        Ok(epoch) if epoch == *history => Ok(()),
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
                _ => self.database.sqlite.advance(at_least, how).await,
            }
        })
        .await
    }

    async fn poll_settings(&self, known: i64) -> Result<SettingsPoll, StoreError> {
        self.pass(self.database.sqlite.poll_settings(known)).await
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        let (database, history, links) = (Arc::clone(&self.database), history.clone(), links.to_vec());
        self.write(async move {
            must_be_of(&database, &history).await?;
            database.sqlite.insert(&history, &links).await
        })
        .await
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        same: Option<&Same>,
    ) -> Result<InsertedFull, InsertError> {
        let (database, history, link) = (Arc::clone(&self.database), history.clone(), link.clone());
        let (tags, same) = (tags.to_vec(), same.cloned());
        self.write(async move {
            must_be_of(&database, &history).await?;
            database.sqlite.insert_full(&history, &link, &tags, same.as_ref()).await
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        same: Option<&Same>,
    ) -> Result<InsertedNamed, InsertError> {
        let (database, link) = (Arc::clone(&self.database), link.clone());
        let (tags, same) = (tags.to_vec(), same.cloned());
        self.write(async move {
            let inserted = database.sqlite.insert_named(&link, &tags, same.as_ref()).await?;
            if let InsertedNamed::Stored(id, ..) = inserted {
                let change =
                    if link.mintable.is_some() { Change::Picked(id) } else { Change::Links(vec![id]) };
                database.tell(&change);
            }
            Ok(inserted)
        })
        .await
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        self.pass(async {
            let edited = self.database.sqlite.edit(id, edit, by).await;
            self.database.tell(&Change::Links(vec![id]));
            edited
        })
        .await
    }

    async fn delete(
        &self,
        id: LinkId,
        versions: Option<&[u64]>,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        self.pass(async {
            let deleted = self.database.sqlite.delete(id, versions, by).await;
            self.database.tell(&Change::Links(vec![id]));
            deleted
        })
        .await
    }

    /// As the real store: a replica that lags little enough is asked first, the primary for what it lacks, and without a primary what
    /// the replica lacks is not absent.
    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        let asks = self.database.draw(|rng, rates| rng.permille(rates.copied));
        let replica = self.database.replica().filter(|(_, at)| match source {
            Source::Any { lag } => asks && at.elapsed() <= lag,
            Source::Primary => false,
        });
        let Some((replica, at)) = replica else {
            return self.pass(self.database.sqlite.read(ids, source)).await;
        };
        let mut links = replica.read(ids, source).await?.links;
        let has: HashSet<LinkId> = links.iter().map(|link| link.id).collect();
        let missing: Vec<LinkId> = ids.iter().copied().filter(|id| !has.contains(id)).collect();
        let complete = match self.pass(self.database.sqlite.read(&missing, Source::Primary)).await {
            Ok(found) => {
                links.extend(found.links);
                true
            }
            Err(_) => false,
        };
        Ok(Reading { links, complete, as_of: Some(at) })
    }

    /// In the order of the changes, each a little late; a connection that breaks misses some, and says so.
    async fn tell_changes(&self, changes: mpsc::Sender<Change>) {
        loop {
            let mut told = self.database.listen();
            if changes.send(Change::Listening(Instant::now())).await.is_err() {
                return;
            }
            let mut asked = Instant::now() + ASKED_EVERY;
            loop {
                let change = tokio::select! {
                    biased;
                    change = told.recv() => change.unwrap_or(Change::Away),
                    () = sleep_until(asked) => {
                        asked = Instant::now() + ASKED_EVERY;
                        Change::Heard(Instant::now())
                    }
                };
                let (delay, breaks) =
                    self.database.draw(|rng, rates| (rng.millis(0, 30), rng.permille(rates.deaf)));
                sleep(delay).await;
                self.live().await;
                let breaks = breaks || change == Change::Away;
                let change = if breaks { Change::Away } else { change };
                if changes.send(change).await.is_err() {
                    return;
                }
                if breaks {
                    break;
                }
            }
            drop(told);
            sleep(DEAF_FOR).await;
        }
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
        self.pass(self.database.sqlite.take_over_block(block, leaked)).await
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

    async fn add_domain(&self, authority: &Authority, most: u32) -> Result<Option<DomainId>, StoreError> {
        self.pass(self.database.sqlite.add_domain(authority, most)).await
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

    async fn import(&self, batch: &ImportBatch) -> Result<Option<Vec<Imported>>, StoreError> {
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

    async fn restore(&self, id: LinkId, keyspaces: usize, by: ApiKeyId) -> Result<Restored, StoreError> {
        self.pass(self.database.sqlite.restore(id, keyspaces, by)).await
    }

    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        self.pass(self.database.sqlite.outline(filter, code)).await
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
