//! The Postgres implementation of [`LinkStore`].
//!
//! Inserts and reads of links have dedicated connections beside the pool. A pool's checkout would
//! add a wait between batches, and each of these connections has one batch in flight at a time
//! anyway. All other calls use the pool.

mod admin;
mod batch;
mod blocks;
mod changes;
mod connect;
mod copy;
mod line;
mod migrations;
mod reads;
mod replica;
mod reservations;
mod transaction;

use std::{
    sync::{Arc, LazyLock, Mutex, atomic::AtomicUsize},
    time::Duration,
};

use async_trait::async_trait;
use batch::{INSERT, INSERT_LANES};
use bb8_postgres::PostgresConnectionManager;
use codes::{Fingerprint, Keyspace, KeyspaceIndex, LinkId};
use connect::{Connections, check_out, configure, pool, reads_anywhere};
use jiff::Timestamp;
use line::Line;
use links::{
    Authority, DomainEdit, DomainId, Edit, Filter, Idempotency, Link, LongUrl, NewLink, Outline, Outlined,
    Precondition, Record, Slug, Tag,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey},
    audit::Entry,
    reservation::{Reservation, ReservationId},
    targets::TargetRule,
};
use numbers::{Mark, Span, StoreEpoch};
use reads::READ;
use replica::{Position, Positions};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_postgres::{Config, NoTls, Row, config::TargetSessionAttrs, error::SqlState};
use transaction::insert;

use super::{
    Advanced, BlockEntry, Change, Comparison, Deleted, DomainEdited, DomainRemoved, Edited, Exported,
    FullLink, ImportBatch, Imported, IndexStep, Indexed, InsertError, Inserted, InsertedFull, InsertedNamed,
    LinkStore, NamedLink, Reading, Registration, Renamed, Restored, SettingsPoll, SettingsVersion, Source,
    StoreError, Sweep, Swept, TagCount, Visible, Witness, sql,
};

/// Polls the settings' version and copy, the time, the log position and the server's start time.
/// The position is the `insert` and not the `flush` position, so that no commit lies behind it.
static POLL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT version, {}, clock_timestamp(), (pg_current_wal_insert_lsn() - '0/0')::bigint, pg_postmaster_start_time()
         FROM settings_version",
        sql::Dialect::Postgres.settings_copy()
    )
});

/// Deadline of one attempt at a statement or transaction, and of a wait for a connection.
const DEADLINE: Duration = Duration::from_secs(3);
/// Connections of the general pool: for all calls but batch inserts, redirects, lists and API key
/// lookups.
const POOL: u32 = 8;
/// Connections for lists: twice as many as one API key may use at a time.
const LISTS: u32 = 4;
/// Connections for API key lookups. Every call of the API needs its key, whatever the load of other
/// calls.
const KEYS: u32 = 4;

/// A store in a Postgres database.
pub struct PostgresStore {
    writers: [Line; INSERT_LANES],
    turn: AtomicUsize,
    reader: Line,
    /// Reads from any server of the URL, also from read-only ones: redirects work while there is no
    /// primary.
    copy_reader: Line,
    /// The same two connections for slugs.
    slug_reader: Line,
    copy_slug_reader: Line,
    /// Polls the time and the settings' version.
    settings_reader: Line,
    /// Positions of the primary's log, one for each answer to the poll.
    positions: Positions,
    /// A replica that takes reads off the primary.
    replica: Option<Line>,
    /// When the server was started by its own clock, as last seen.
    server_start: watch::Sender<Option<Timestamp>>,
    /// The witness file, if the operator keeps one.
    witness: Option<Arc<Witness>>,
    /// Back-off: until this instant the replica is not asked, because its last read failed.
    replica_shunned: Mutex<Option<Instant>>,
    /// Back-off: until this instant the primary is not asked for links, because its last read
    /// failed.
    shunned: Mutex<Option<Instant>>,
    pool: Connections,
    /// A pool of its own for lists: they may take long, and no other call waits for one.
    lists: Connections,
    /// A pool of its own for API key lookups: they wait for nothing but each other.
    keys: Connections,
    config: Config,
}

impl PostgresStore {
    /// Prepares connections to the database at a URL, and to a replica at `read_url`. None is
    /// opened before it is needed.
    ///
    /// # Errors
    /// Returns an error if a URL is invalid.
    pub async fn new(url: &str, read_url: Option<&str>) -> Result<Self, StoreError> {
        let mut config = configure(url)?;
        // A demoted primary accepts connections too, and refuses every write.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let replica = read_url.map(configure).transpose()?;
        Ok(Self {
            turn: AtomicUsize::new(0),
            writers: std::array::from_fn(|_| Line::writer(config.clone(), &INSERT)),
            reader: Line::reader(config.clone(), READ),
            copy_reader: Line::reader(reads_anywhere(&config), READ),
            slug_reader: Line::reader(config.clone(), sql::FIND_SLUG),
            copy_slug_reader: Line::reader(reads_anywhere(&config), sql::FIND_SLUG),
            settings_reader: Line::reader(config.clone(), POLL.as_str()),
            positions: Positions::default(),
            replica: replica.map(|config| Line::reader(config, READ)),
            server_start: watch::Sender::new(None),
            witness: None,
            replica_shunned: Mutex::new(None),
            shunned: Mutex::new(None),
            pool: pool(&config, POOL),
            lists: pool(&config, LISTS),
            keys: pool(&config, KEYS),
            config,
        })
    }

    /// Adds a witness file, which outlasts the database.
    #[must_use]
    pub fn witnessed_by(self, witness: Arc<Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }

    async fn connection(
        &self,
    ) -> Result<bb8::PooledConnection<'_, PostgresConnectionManager<NoTls>>, StoreError> {
        check_out(&self.pool).await
    }
}

/// Applies [`DEADLINE`] to a call.
async fn within<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::time::timeout(DEADLINE, call).await.unwrap_or(Err(StoreError::TimedOut))
}

#[async_trait]
impl LinkStore for PostgresStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        migrations::run(&self.config).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        within(async { migrations::check(&*self.connection().await?).await }).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        within(async { admin::fingerprint(&*self.connection().await?).await }).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        within(async { admin::adopt_fingerprint(&*self.connection().await?, mine).await }).await
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        within(async { admin::adopt_ledger(&*self.connection().await?, mine).await }).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        within(async { admin::forget_ledger(&*self.connection().await?).await }).await
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        within(async { admin::adopt_keyspaces(&mut *self.connection().await?, mine).await }).await
    }

    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        let registered =
            within(async { blocks::register(&mut *self.connection().await?, block).await }).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(registered)
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        let taken =
            within(async { blocks::take_over(&mut *self.connection().await?, block, leaked).await }).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(taken)
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        let end =
            within(async { blocks::registered_end(&*self.connection().await?, keyspace).await }).await?;
        Witness::note_registered(self.witness.as_ref(), keyspace, end).await;
        Ok(end)
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        within(async { blocks::holds(&*self.connection().await?, id, generation, instance).await }).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        let mut gaps = sql::Gaps::new(keyspace, span);
        while !within(async { blocks::scan(&*self.connection().await?, &mut gaps).await }).await? {}
        Ok(gaps.finish())
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        within(async { admin::epoch(&*self.connection().await?).await }).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        let at_least = at_least.max(Witness::mark_of(self.witness.as_ref()));
        let registered = &Witness::registered_of(self.witness.as_ref());
        let (advanced, history) =
            self.run(async |sql| sql::advance(sql, at_least, how, registered).await).await?;
        Witness::note_advanced(self.witness.as_ref(), advanced, history);
        Ok(advanced)
    }

    async fn begin_history(&self, skip: u64) -> Result<Mark, StoreError> {
        self.run(async |sql| sql::begin_history(sql, skip).await).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.server_start.subscribe())
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        within(async { blocks::release(&mut *self.connection().await?, block, kept).await }).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn insert_lanes(&self) -> usize {
        INSERT_LANES
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        self.insert_batch(history, links).await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        self.read_links(ids, source).await
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let mut connection = self.connection().await.map_err(InsertError::Failed)?;
        insert(&mut connection, async |sql| {
            sql.must_be_of(history).await?;
            sql::insert_full(sql, link, tags, idempotency).await
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let mut connection = self.connection().await.map_err(InsertError::Failed)?;
        insert(&mut connection, async |sql| sql::insert_named(sql, link, tags, idempotency).await).await
    }

    async fn use_links(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
        self.run(async |sql| sql::use_links(sql, wanted).await).await
    }

    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::is_spent(sql, id).await).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        self.read_slug(domain, slug).await
    }

    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        // Every resolver polls four times a second, and the version rarely changes.
        let sent = Instant::now();
        let rows = self.settings_reader.read(DEADLINE, &[]).await?;
        let row =
            rows.first().ok_or_else(|| StoreError::Corrupt("table settings_version is empty".to_owned()))?;
        let version = SettingsVersion { number: row.try_get(0)?, copy: row.try_get(1)? };
        let start = timestamp(row, 4)?;
        self.positions.note(sent, Position { start, at: row.try_get(3)? });
        let started = Some(start);
        self.server_start.send_if_modified(|seen| std::mem::replace(seen, started) != started);
        let settings = match known.is_some_and(|known| version.is(known)) {
            true => None,
            false => self.run(async |sql| sql::shared_settings(sql, known).await).await?,
        };
        Ok(SettingsPoll { now: timestamp(row, 2)?, settings })
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        self.run(async |sql| sql::add_domain(sql, authority, most, by).await).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.run(async |sql| sql::remove_domain(sql, id, by).await).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::domains_with_links(sql, of).await).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        self.run(async |sql| sql::edit_domain(sql, id, edit, by).await).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        self.run(async |sql| sql::set_target(sql, rule, by).await).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::remove_target(sql, pattern, by).await).await
    }

    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
        self.run_long(async |sql| sql::import(sql, batch).await).await
    }

    async fn import_position(&self, name: &str) -> Result<u64, StoreError> {
        self.run(async |sql| sql::import_position(sql, name).await).await
    }

    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError> {
        let (after, most) = sql::page_of_ids(after, most);
        self.run_on(&self.lists, async |sql| sql::export(sql, after, most).await).await
    }

    async fn link_count(&self) -> Result<Option<u64>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::link_count(sql).await).await
    }

    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError> {
        self.run(async |sql| sql::note_seen(sql, seen).await).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        self.run_long(async |sql| sql::sweep(sql, sweep).await).await
    }

    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError> {
        self.run_long(async |sql| sql::index_long_urls(sql, step).await).await
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

    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError> {
        let (after, most) = sql::page_of_ids(after, most);
        self.run(async |sql| sql::unminted_slugs(sql, after, most).await).await
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        self.run(async |sql| sql::edit(sql, id, edit, by).await).await
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        self.run(async |sql| sql::delete(sql, id, precondition, by).await).await
    }

    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
    ) -> Result<Option<Link>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::find_deleted(sql, domain, name, code).await).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError> {
        self.run(async |sql| sql::restore(sql, id, precondition, keyspaces, by).await).await
    }

    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError> {
        self.run_on(&self.lists, async |sql| sql::outline(sql, filter, code).await).await
    }

    async fn weigh(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::weigh(sql, ids).await).await
    }

    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::records(sql, ids).await).await
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

    async fn tell_changes(&self, changes: mpsc::Sender<Change>) {
        changes::tell(&self.config, &changes).await;
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        within(async { reservations::add(&*self.connection().await?, id, keyspace, key).await }).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        within(async { reservations::find(&*self.connection().await?, id).await }).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        within(async { reservations::list(&*self.connection().await?, of).await }).await
    }

    async fn reserved(&self, of: ApiKeyId) -> Result<u64, StoreError> {
        within(async { reservations::reserved(&*self.connection().await?, of).await }).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        within(async { reservations::close(&*self.connection().await?, id).await }).await
    }

    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError> {
        self.run(async |sql| sql::add_api_key(sql, key).await).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        within(async { admin::add_first_api_key(&mut *self.connection().await?, name, hash).await }).await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        let find = async || self.run_on(&self.keys, async |sql| sql::find_api_key(sql, hash).await).await;
        match find().await {
            // The connection may lead to a server that has restarted since.
            Err(StoreError::Postgres(_)) => find().await,
            answer => answer,
        }
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::key_names(sql, ids).await).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.run(async |sql| sql::list_api_keys(sql).await).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        self.run(async |sql| sql::note_keys_used(sql, ids).await).await
    }

    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError> {
        self.run(async |sql| sql::revoke_api_key(sql, name).await).await
    }

    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration) -> Result<bool, StoreError> {
        let keep = sql::milliseconds(keep);
        self.run(async |sql| sql::rotate_api_key(sql, name, hash, keep).await).await
    }

    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::audit(sql, before, most).await).await
    }
}

fn optional_timestamp(row: &Row, column: usize) -> Result<Option<Timestamp>, StoreError> {
    let time: Option<std::time::SystemTime> = row.try_get(column)?;
    time.map(|time| {
        Timestamp::try_from(time).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
    })
    .transpose()
}

fn timestamp(row: &Row, column: usize) -> Result<Timestamp, StoreError> {
    let time: std::time::SystemTime = row.try_get(column)?;
    Timestamp::try_from(time).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
}
