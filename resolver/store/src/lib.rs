//! Where links live: one seam, two stores.
//!
//! 1. I6: an insert reports a link as stored only after its COMMIT.
//! 2. I4: an outcome that nobody knows ([`InsertError::Unknown`]) is a case of its own. The caller reads before it
//!    decides, and the number is never used for another link.
//! 3. I8: a read either says what is there or fails. A failure is never an absence.
//! 4. Before a number of a block is claimed, the block is in the register; [`Registration::Overlaps`] means that its numbers
//!    must not be used.

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
    Authority, DomainEdit, DomainId, Edit, Filter, Link, LongUrl, Meant, NewLink, Outline, Outlined, Record,
    Slug, Tag,
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
    BlockEntry, Comparison, FullLink, ImportBatch, ImportItem, IndexStep, NamedLink, Same, Source, Sweep,
    Visible,
};
pub use witness::Witness;

/// Links per insert and ids per read: larger batches gain nothing and hold memory.
pub const BATCH_MAX: usize = 1_000;

/// Links of one read by which redirects are answered. Few have rules, which take up to a quarter of a megabyte each: a read of
/// such links only has to fit into memory, and to end before the primary's deadline.
pub const READ_MAX: usize = 128;
/// Links of one page of a list.
pub const PER_PAGE_MAX: u64 = 10_000;
/// Reservations in one list.
pub const RESERVATIONS_MAX: usize = 1_000;

/// A store of links, blocks and keys. No method waits longer than the store's deadline.
#[async_trait]
pub trait LinkStore: Send + Sync + 'static {
    /// Brings the schema up to date.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Fails unless the store answers and its schema is recent enough.
    async fn check(&self) -> Result<(), StoreError>;

    /// The mark of the code key, when one was adopted.
    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError>;

    /// Adopts the mark if there is none yet; the one that counts from now on.
    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError>;

    /// Adopts the ledger that numbers come from if there is none yet; the one that counts from now on.
    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError>;

    /// Forgets the adopted ledger: the next one is adopted. For an operator whose ledger is lost.
    async fn forget_ledger(&self) -> Result<(), StoreError>;

    /// Adds keyspaces that are new; all that ever were, with their indexes. Fails when one was defined otherwise before.
    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError>;

    /// Registers a block. Sending it again is safe.
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError>;

    /// Takes over a leaked block from the generation it was leaked under, or from an earlier one, if its last holder died before
    /// it registered. If another has taken it since, the block overlaps; so it does if an open reservation has some of it, whatever
    /// its generation. Sending it again is safe.
    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError>;

    /// The first number past all that are registered in a keyspace; 0 when none is.
    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError>;

    /// Whether the register says that the number of this id belongs to this very allocation.
    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError>;

    /// The numbers of a range under which no link is stored: ascending, disjoint and apart.
    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError>;

    /// Which history of the database this is. It changes when a copy takes over that may lack the last links.
    async fn epoch(&self) -> Result<StoreEpoch, StoreError>;

    /// Compares the mark with `at_least` and with the witness file, then raises it if asked. A lower
    /// mark means an older copy: a new history begins, and the numbers that the witness knows are
    /// withheld.
    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError>;

    /// Begins a new history on an operator's request, and withholds the next `skip` numbers of
    /// each keyspace.
    async fn begin_history(&self, skip: u64) -> Result<Mark, StoreError>;

    /// When the database's server was started, as far as it was seen; none for a store without one.
    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>>;

    /// Takes numbers out of the register: nobody used them, and another holder may get them. Sending it again is safe.
    /// `kept` is what stays of the block.
    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError>;

    /// Whether other processes use the same links.
    fn is_shared(&self) -> bool;

    /// How many inserts at a time the store gains by.
    fn insert_lanes(&self) -> usize;

    /// Stores links, at most [`BATCH_MAX`]; the outcome of each, in their order. A taken id does not fail its neighbours. In another
    /// history of the database than this one nothing is stored: [`StoreError::AnotherHistory`].
    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError>;

    /// Stores a link under a claimed number, with its tags, unless there is the `same` already. In another history of the database than this one nothing is stored.
    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        same: Option<&Same>,
    ) -> Result<InsertedFull, InsertError>;

    /// Stores a link under a hand-picked code, unless there is the `same` already.
    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        same: Option<&Same>,
    ) -> Result<InsertedNamed, InsertError>;

    /// Takes uses of links that may be followed only so often, at most as many as wanted of each; how many, in their order. The ids ascend.
    async fn use_links(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError>;

    /// Whether a link was followed as often as it may be.
    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError>;

    /// The link of a slug: on the default domain of one that could not have been minted, on others of any code.
    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError>;

    /// The database's time; and the settings that every resolver has a copy of, unless they are of
    /// the known version.
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError>;

    /// The domain of this name, which is added if there is none; none when there are `most` beside
    /// the default one already.
    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError>;

    /// Removes a domain, unless a link or a key depends on it. Its number is never given again.
    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError>;

    /// The domains, beside the default one, that have links; those of one key only, if one is
    /// named.
    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError>;

    /// Changes a domain.
    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError>;

    /// Adds a rule about targets, or changes what it says.
    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError>;

    /// Takes a rule about targets away; whether there was one.
    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError>;

    /// Stores a batch of an import, and how far it has come, both or neither; none when it was stored before. Sending it again is safe.
    async fn import(&self, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError>;

    /// How far an import has come: the last item that is stored or was refused; 0 for one that has not begun.
    async fn import_position(&self, name: &str) -> Result<u64, StoreError>;

    /// Links after this id, in the order of their ids, deleted ones included. At most so many, and
    /// fewer if they are long.
    async fn export(&self, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>, StoreError>;

    /// About how many links there are, with the deleted ones; none when the database has not counted them yet.
    async fn link_count(&self) -> Result<Option<u64>, StoreError>;

    /// Notes that links were visited; the ids ascend. Sending it again is safe.
    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError>;

    /// One step of the removal of links that nobody has visited for long.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError>;

    /// One step of the index of long URLs.
    async fn index_long_urls(&self, step: &IndexStep) -> Result<Indexed, StoreError>;

    /// Links that lead to a long URL and that somebody may know of, in the order of their ids, at most so many; without the deleted ones.
    async fn links_of_url(&self, url: &LongUrl, of: &Visible, most: usize)
    -> Result<Vec<Record>, StoreError>;

    /// Ids of hand-picked codes that could have been minted, after one of them, ascending, at most so many.
    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError>;

    /// Changes a link.
    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError>;

    /// Puts everything into the database's main file, where there is one: whoever copies it has all.
    /// The process is about to end.
    async fn close(&self) {}

    /// Deletes a link. Its row stays (I7).
    async fn delete(&self, id: LinkId, meant: &Meant, by: ApiKeyId) -> Result<Deleted, StoreError>;

    /// The link that was deleted last under a name: a slug, or a code whose number `code` stands for.
    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
    ) -> Result<Option<Link>, StoreError>;

    /// Brings a deleted link back. Its slug must be no code of the keyspaces, of which the caller knows so many.
    async fn restore(
        &self,
        id: LinkId,
        meant: &Meant,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError>;

    /// One page of links. `code` is the id that the searched text stands for as a code.
    async fn outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, StoreError>;

    /// Outlines these links again, in the order of the ids. They may have grown since their page
    /// was outlined.
    async fn weigh(&self, ids: &[LinkId]) -> Result<Vec<Outlined>, StoreError>;

    /// Links with their tags, in the order of their ids; those that are not there are left out.
    async fn records(&self, ids: &[LinkId]) -> Result<Vec<Record>, StoreError>;

    /// The tags of a link, in order.
    async fn tags_of(&self, id: LinkId) -> Result<Vec<Tag>, StoreError>;

    /// Tags that have this text in them, in order, at most so many; and how many of these links have them. Those that none of them has are left
    /// out, unless it is all links.
    async fn tags(
        &self,
        search: Option<&str>,
        most: usize,
        of: &Visible,
    ) -> Result<Vec<TagCount>, StoreError>;

    /// Gives a tag another name.
    async fn rename_tag(&self, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed, StoreError>;

    /// Takes tags away from every link.
    async fn delete_tags(&self, tags: &[Tag], by: ApiKeyId) -> Result<(), StoreError>;

    /// The links among the ids, at most [`BATCH_MAX`], in any order.
    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError>;

    /// Tells of changes for as long as somebody listens.
    async fn tell_changes(&self, changes: mpsc::Sender<Change>);

    /// Notes that a reservation is being made; when, by the store's clock.
    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError>;

    /// A reservation with its numbers.
    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError>;

    /// The latest reservations, of one key or of all, at most [`RESERVATIONS_MAX`].
    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError>;

    /// How many codes the open reservations of a key have, filled or not.
    async fn reserved(&self, of: ApiKeyId) -> Result<u64, StoreError>;

    /// Notes that a reservation is given up. Sending it again is safe.
    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError>;

    /// Adds a key; none when the name is taken.
    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError>;

    /// Adds a key if there has never been one; whether it did.
    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError>;

    /// The key with this hash, unless it was revoked or has expired.
    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError>;

    /// The names of these keys, of those that there are; in any order.
    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError>;

    /// Every key, in the order of creation.
    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Notes that keys are in use; the ids ascend. Sending it again is safe.
    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError>;

    /// Gives a key another secret, and the old one is good for so long; whether there is such a key that was not revoked.
    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration) -> Result<bool, StoreError>;

    /// The latest entries of the log before one of them, at most so many.
    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError>;

    /// Revokes a key; whether there was one of that name that was not revoked yet.
    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError>;
}
