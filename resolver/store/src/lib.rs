//! The store of links, blocks and API keys: one trait, [`LinkStore`], with two implementations,
//! Postgres and SQLite.
//!
//! 1. I6: an insert reports a link as stored only after its COMMIT.
//! 2. I4: an unknown outcome is a case of its own ([`InsertError::Unknown`]). The caller reads
//!    before it decides, and the number is never used for another link.
//! 3. I8: a read returns the stored state or fails. A failure is never reported as absence.
//! 4. A block is in the register before a number of it is claimed. [`Registration::Overlaps`] means
//!    that none of the block's numbers may be used.

mod error;
mod outcomes;
pub mod postgres;
mod requests;
mod sql;
pub mod sqlite;
mod witness;

use std::time::Duration;

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
use tokio::sync::{mpsc, watch};

pub use error::{InsertError, StoreError};
pub use outcomes::{
    Advanced, Change, Deleted, DomainEdited, DomainRemoved, Edited, Exported, Imported, Indexed, Inserted,
    InsertedFull, InsertedNamed, Reading, Registration, Renamed, Restored, SettingsPoll, SettingsVersion,
    SharedSettings, Swept, TagCount,
};
pub use requests::{
    BlockEntry, Comparison, FullLink, ImportBatch, IndexStep, NamedLink, Source, Sweep, Visible,
};
pub use witness::Witness;

/// Maximum number of links in one insert, and of ids in one read. Larger batches gain nothing and
/// hold memory.
pub const BATCH_MAX: usize = 1_000;

/// Maximum number of links in one read for redirects. Redirect rules take up to a quarter of a
/// megabyte per link, and few links have them. A read of such links only must fit into memory, and
/// end before the primary's deadline.
pub const READ_MAX: usize = 128;
/// Maximum number of links on one page of a list.
pub const PER_PAGE_MAX: u64 = 10_000;
/// Maximum number of reservations in one list.
pub const RESERVATIONS_MAX: usize = 1_000;

/// Storage of links, blocks and API keys.
///
/// On Postgres every attempt at a statement or transaction has a deadline of at most 3 seconds, or
/// of 60 seconds for imports, sweeps and steps of the long URL index. [`migrate`](Self::migrate)
/// and [`tell_changes`](Self::tell_changes) have none. On SQLite a call waits for its turn on the
/// store's thread, and up to 3 seconds for a lock of another process.
///
/// # Errors
/// Methods return [`StoreError`] if the database cannot be reached, does not answer in time or
/// refuses the statement. Inserts return [`InsertError`], which says whether the links may be
/// stored all the same.
#[async_trait]
pub trait LinkStore: Send + Sync + 'static {
    /// Applies all pending migrations.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Checks that the store answers and that its schema is recent enough.
    ///
    /// # Errors
    /// Returns [`StoreError::SchemaBehind`] if a migration is missing.
    async fn check(&self) -> Result<(), StoreError>;

    /// Returns the fingerprint of the adopted code key, or `None` if no key was adopted yet.
    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError>;

    /// Adopts the code key's fingerprint if none is stored, and returns the stored one.
    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError>;

    /// Adopts the ledger that numbers come from if none is stored, and returns the stored one.
    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError>;

    /// Clears the adopted ledger, so that the next one is adopted. For operators whose ledger is
    /// lost.
    async fn forget_ledger(&self) -> Result<(), StoreError>;

    /// Adds new keyspaces and returns all keyspaces ever adopted, with their indexes.
    ///
    /// # Errors
    /// Returns [`StoreError::Keyspace`] if a keyspace was defined otherwise before, overlaps
    /// another one, or contains the code of an existing custom slug.
    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError>;

    /// Registers a block. Idempotent.
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError>;

    /// Takes over a leaked block and registers it under its new generation. Idempotent.
    ///
    /// `leaked` is the generation that the block was leaked under. Register entries of that
    /// generation or an earlier one are replaced: the last holder may have died before it
    /// registered the block. The result is [`Registration::Overlaps`] if another holder has taken
    /// over the block since, or if an open reservation owns some of its numbers, whatever their
    /// generation.
    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError>;

    /// Returns the first number past all registered ones of a keyspace, or 0 if none is registered.
    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError>;

    /// Returns whether the register assigns the id's number to this allocation: same generation and
    /// instance.
    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError>;

    /// Returns the numbers of a span under which no link is stored, as ascending, disjoint and
    /// non-adjacent spans.
    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError>;

    /// Returns the database's current history. It changes when a copy takes over that may lack the
    /// last links.
    async fn epoch(&self) -> Result<StoreEpoch, StoreError>;

    /// Compares the database's mark with `at_least` and with the witness file, then raises it if
    /// requested.
    ///
    /// A lower mark means that the database is an older copy. A new history begins, and the numbers
    /// that the witness knows to be registered are withheld.
    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError>;

    /// Begins a new history on an operator's request, and withholds the next `skip` numbers of each
    /// keyspace.
    async fn begin_history(&self, skip: u64) -> Result<Mark, StoreError>;

    /// Watches the start time of the database server, as last seen. Returns `None` for a store
    /// without a server.
    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>>;

    /// Removes a block's numbers from the register, except those of `kept`. Idempotent.
    ///
    /// The removed numbers were not used, and may be allocated to another holder.
    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError>;

    /// Returns whether other processes use the same database.
    fn is_shared(&self) -> bool;

    /// Returns how many concurrent inserts the store benefits from.
    fn insert_lanes(&self) -> usize;

    /// Inserts at most [`BATCH_MAX`] links, and returns the outcome of each in the order of
    /// `links`. A taken id does not fail the other links.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] within the error if the database's history is not
    /// `history`. Nothing is stored then.
    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError>;

    /// Inserts a link with its tags under a claimed number, unless `idempotency` matches an earlier one.
    ///
    /// # Errors
    /// Returns [`StoreError::AnotherHistory`] within the error if the database's history is not
    /// `history`. Nothing is stored then.
    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError>;

    /// Inserts a link under a custom slug, unless `idempotency` matches an earlier one.
    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError>;

    /// Takes visits from the budgets of visit-limited links, at most as many as wanted of each.
    /// Returns how many were granted, in the order of `wanted`. The ids must ascend.
    async fn use_links(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError>;

    /// Returns whether a link's visit limit is exhausted.
    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError>;

    /// Returns the id of the link that a slug leads to. On the default domain only slugs that
    /// cannot be minted are stored; on other domains, all codes.
    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError>;

    /// Returns the database's time, and the shared settings unless their version is `known`.
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError>;

    /// Returns the id of the domain with this name, and adds the domain if it does not exist.
    /// Returns `None` if it would have to be added and there are `most` domains beside the default
    /// one.
    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError>;

    /// Removes a domain, unless a link or an API key depends on it. Its number is never reused.
    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError>;

    /// Returns the domains with links, without the default one. With `of`, only links of that API
    /// key count.
    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError>;

    /// Edits a domain.
    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError>;

    /// Adds a target rule, or changes an existing one.
    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError>;

    /// Removes a target rule, and returns whether it existed.
    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError>;

    /// Stores a batch of an import together with the import's position, in one transaction.
    /// Idempotent: for a batch that was stored before, it returns the present state of the items.
    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError>;

    /// Returns the position of an import: the last item that was stored or refused. It is 0 for an
    /// import that has not begun.
    async fn import_position(&self, name: &str) -> Result<u64, StoreError>;

    /// Returns links with an id above `after`, in the order of their ids, deleted links included.
    /// Returns at most `most` links, and fewer if they are long.
    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError>;

    /// Returns the estimated number of links, deleted ones included. Returns `None` if the database
    /// has no estimate yet.
    async fn link_count(&self) -> Result<Option<u64>, StoreError>;

    /// Records the last visits of links. The ids must ascend. Idempotent.
    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError>;

    /// Runs one step of the removal of unvisited links.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError>;

    /// Runs one step of the index of long URLs.
    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError>;

    /// Returns at most `most` links that lead to a long URL and are visible under `of`, in the
    /// order of their ids. Deleted links are left out.
    async fn links_of_url(&self, url: &LongUrl, of: &Visible, most: usize)
    -> Result<Vec<Record>, StoreError>;

    /// Returns at most `most` ids of custom slugs that are also mintable codes, above `after`,
    /// ascending.
    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError>;

    /// Edits a link.
    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError>;

    /// Checkpoints the write-ahead log into the main database file, so that a copy of that file is
    /// complete. Called when the process is about to end; a store without such a file does nothing.
    async fn close(&self) {}

    /// Deletes a link. Its row stays (I7).
    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError>;

    /// Returns the most recently deleted link with this name: a slug, or a minted code whose id is
    /// `code`.
    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
    ) -> Result<Option<Link>, StoreError>;

    /// Restores a deleted link. Its slug must not be a code of any keyspace. The caller has checked
    /// that against `keyspaces` of them, the number of keyspaces that it knows.
    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError>;

    /// Returns one page of a list of links as outlines. `code` is the id of the searched text, if
    /// that is a code.
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError>;

    /// Returns current outlines of these links, in the order of `ids`. A link may have grown since
    /// its page was outlined.
    async fn weigh(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError>;

    /// Returns links with their tags, in the order of `ids`. Links that do not exist are left out.
    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError>;

    /// Returns the tags of a link, sorted.
    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>, StoreError>;

    /// Returns at most `most` tags that contain the searched text, sorted, each with the number of
    /// visible links that have it. Tags without such a link are left out, unless all links are
    /// visible.
    async fn tags(
        &self,
        search: Option<&str>,
        most: usize,
        of: &Visible,
    ) -> Result<Vec<TagCount>, StoreError>;

    /// Renames a tag.
    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError>;

    /// Removes tags from every link, and deletes them.
    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError>;

    /// Returns the links with these ids, at most [`BATCH_MAX`], in any order.
    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError>;

    /// Sends changes made by other processes to `changes`, until its receiver is dropped. A store
    /// that is not shared sends [`Change::Alone`] and returns.
    async fn tell_changes(&self, changes: mpsc::Sender<Change>);

    /// Records a reservation before its numbers are allocated. Returns its creation time by the
    /// database's clock.
    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError>;

    /// Returns a reservation with its numbers, or `None` if it does not exist.
    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError>;

    /// Returns the latest reservations of one API key or of all keys, at most [`RESERVATIONS_MAX`].
    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError>;

    /// Returns how many codes the open reservations of an API key hold, filled or not.
    async fn reserved(&self, of: ApiKeyId) -> Result<u64, StoreError>;

    /// Closes a reservation. Idempotent.
    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError>;

    /// Adds an API key. Returns `None` if the name is taken.
    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError>;

    /// Adds an API key if there has never been one, and returns whether it was added.
    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError>;

    /// Returns the grant of the API key with this hash. A revoked or expired key has none.
    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError>;

    /// Returns the names of those of these API keys that exist, in any order.
    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError>;

    /// Returns all API keys in the order of their creation.
    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Records that API keys are in use. The ids must ascend. Idempotent.
    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError>;

    /// Replaces the secret of an API key. The old secret stays valid for `keep`. Returns whether
    /// the key exists and is not revoked.
    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration) -> Result<bool, StoreError>;

    /// Returns the latest entries of the audit log, at most `most`, only those before entry
    /// `before` if given.
    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError>;

    /// Revokes an API key. Returns whether a key of that name existed that was not revoked yet.
    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError>;
}
