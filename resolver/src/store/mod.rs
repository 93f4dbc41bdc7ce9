//! Where links live: one seam, two stores.
//!
//! 1. I6: an insert reports a link as stored only after its COMMIT.
//! 2. I4: an outcome that nobody knows ([`InsertError::Unknown`]) is a case of its own. The caller reads before it
//!    decides, and the number is never used for another link.
//! 3. I8: a read either says what is there or fails. A failure is never an absence.
//! 4. Before a number of a block is claimed, the block is in the register; [`Registration::Overlaps`] means that its numbers
//!    must not be used.

pub mod postgres;
mod sql;
pub mod sqlite;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use issuer::{block::Span, names::StoreEpoch};
use jiff::Timestamp;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey, Rotated},
    audit::Entry,
    codes::{Code, Fingerprint, Keyspace, KeyspaceIndex, LinkId, Mint},
    links::{
        Authority, Domain, DomainEdit, DomainId, Draft, Edit, Filter, Link, NewLink, Page, Record, Slug, Tag,
    },
    reservation::{Reservation, ReservationId},
    scope::Scopes,
    targets::TargetRule,
};

/// Links per insert and ids per read: larger batches gain nothing and hold memory.
pub const BATCH_MAX: usize = 1_000;
/// Links of one page of a list.
pub const PER_PAGE_MAX: u64 = 10_000;
/// Reservations in one list.
pub const RESERVATIONS_MAX: usize = 1_000;

/// What became of one link of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is stored, since then.
    Stored(Timestamp),
    /// The id was taken: somebody else's row is there.
    Taken,
}

/// What became of a link that more is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedFull {
    /// It is stored, since then.
    Stored(Timestamp),
    /// The id was taken: somebody else's row is there.
    Taken,
    /// Somebody has picked the code on that domain; nobody's row is under the id.
    CodeTaken,
    /// Nothing was stored: the same was asked for before, and this link was given.
    Same(LinkId),
    /// Nothing was stored: something else was asked for under the same digest.
    OtherWish,
}

/// What became of a link under a hand-picked code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedNamed {
    /// It is stored under this id, since then, in this version: the code of a deleted link goes on from that one's.
    Stored(LinkId, Timestamp, u64),
    /// Somebody has the code.
    Taken,
    /// Nothing was stored: the same was asked for before, and this link was given.
    Same(LinkId),
    /// Nothing was stored: something else was asked for under the same digest.
    OtherWish,
}

/// The wish for a link that was given for the same wish before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Same {
    /// A digest of all that is wished for.
    pub digest: String,
    /// How long the link is given to whoever wishes for the same, counted from the last time.
    pub lifetime: Duration,
    /// Of a call that may be sent again, where the digest is only of its name: a digest of the call. The link is given whatever has become of it.
    pub fingerprint: Option<String>,
}

/// Why an insert did not say what became of its links.
#[derive(Debug, thiserror::Error)]
pub enum InsertError {
    /// Surely nothing was stored.
    #[error("surely not stored")]
    Failed(#[source] StoreError),
    /// It may or may not be stored, now or a moment later.
    #[error("nobody knows whether it is stored")]
    Unknown(#[source] StoreError),
}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It did not answer within its deadline.
    #[error("the database did not answer in time")]
    TimedOut,
    /// No connection was to be had.
    #[error("no connection to the database")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Postgres said no.
    #[error("Postgres")]
    Postgres(#[from] tokio_postgres::Error),
    /// SQLite said no.
    #[error("SQLite")]
    Sqlite(#[from] rusqlite::Error),
    /// A migration failed.
    #[error("migrate the schema")]
    Migration(#[from] Box<refinery::Error>),
    /// The schema is older than this version needs.
    #[error(
        "the database's schema is at version {found}, this version needs {needed}: run `resolver migrate`"
    )]
    SchemaBehind {
        /// The version found; 0 for an empty database.
        found: i64,
        /// The version needed.
        needed: i64,
    },
    /// What is stored is not what this version writes.
    #[error("the database holds something unexpected: {0}")]
    Corrupt(String),
    /// A keyspace is defined otherwise than before, or overlaps an earlier one.
    #[error("{0}")]
    Keyspace(String),
    /// What was to be kept of a block has been taken over.
    #[error("the register has these numbers under another allocation")]
    Overlap,
    /// What is told is not heard: whoever answers LISTEN is no server, but a pooler that shares servers between transactions.
    #[error("notifications of the database do not arrive: expected a connection to the server itself")]
    Deaf,
    /// A copy has taken over, and may lack the last links.
    #[error("the database has failed over")]
    AnotherHistory,
    /// The writer has stopped.
    #[error("the store has stopped")]
    Stopped,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The links that were found.
    pub links: Vec<Link>,
    /// Whether what was not found is absent. A copy that lags behind cannot say so (I8).
    pub complete: bool,
}

/// Who may answer a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A copy that may lag behind, if there is one for this purpose. What it does not have is asked of the primary.
    Any,
    /// The primary, as long as there is one.
    Primary,
}

/// What is heard of links that others changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// From this time on every change is told.
    Listening(Instant),
    /// What was told before this question was sent has been told here as well.
    Heard(Instant),
    /// Nobody else changes anything.
    Alone,
    /// These were changed.
    Links(Vec<LinkId>),
    /// Somebody picked the code that this id stands for.
    Picked(LinkId),
    /// Changes may be missed until the next [`Change::Listening`].
    Away,
}

/// A link under a number, of which more is said than of those in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullLink {
    /// The link.
    pub new: NewLink,
    /// The code of its number: on another domain than the default one, somebody may have picked it.
    pub code: String,
}

/// What every resolver keeps a copy of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSettings {
    /// Grows with each change.
    pub version: i64,
    /// Every domain, the default one too.
    pub domains: Vec<Domain>,
    /// Hosts that links may lead to, or may not.
    pub targets: Vec<TargetRule>,
}

/// What became of a domain's edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainEdited {
    /// The domain as it is now.
    Done(Box<Domain>),
    /// There is no such domain.
    Absent,
    /// Another domain has that name.
    Taken,
}

/// A link under a hand-picked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLink {
    /// The code.
    pub slug: Slug,
    /// The id that it stands for, if it could also have been minted.
    pub mintable: Option<LinkId>,
    /// How many keyspaces this process knows of: with another one the code might be mintable.
    pub keyspaces: usize,
    /// The rest.
    pub draft: Draft,
}

/// A link that comes from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportItem {
    /// The code that it has there; one of a digest of its URL, when absent.
    pub slug: Option<Slug>,
    /// The rest.
    pub draft: Draft,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// When it was made there.
    pub created_at: Option<Timestamp>,
}

/// Links that come from elsewhere together.
#[derive(Clone)]
pub struct ImportBatch {
    /// Which import they are of.
    pub name: String,
    /// The last item that is in the batch, or was refused before it was.
    pub end: u64,
    /// The links.
    pub items: Vec<ImportItem>,
    /// Which codes could have been minted.
    pub mint: Arc<Mint>,
}

/// What became of a link that comes from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is stored under this id.
    Stored(LinkId),
    /// The code leads there already.
    AlreadyThere,
    /// The code leads elsewhere.
    Taken,
}

/// How links are removed that nobody has visited for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Who does it.
    pub holder: String,
    /// How long nobody else does after a step.
    pub held_for: Duration,
    /// How long a link was not visited that is removed.
    pub unvisited_for: Duration,
    /// How long it rests when it is done.
    pub every: Duration,
}

/// What one step of the removal came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Somebody else does it, or nobody for now.
    NotOurs,
    /// Visits were not noted for long enough.
    TooEarly,
    /// Every link was looked at.
    Done,
    /// These were removed, and there are more to be looked at.
    Some(Vec<LinkId>),
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The link as it is now.
    Done(Box<Record>),
    /// There is no such link.
    Absent,
    /// Somebody else has edited it since.
    Superseded,
}

/// What became of a link that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is deleted.
    Done,
    /// There is no such link.
    Absent,
    /// Somebody else has edited it since.
    Superseded,
}

/// What became of a tag's new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// It has it.
    Done,
    /// There is no such tag.
    Absent,
    /// Another tag has that name.
    Taken,
}

/// Links that somebody may know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Those of one domain.
    pub domain: Option<DomainId>,
    /// Those that were created with one key.
    pub created_by: Option<ApiKeyId>,
}

/// A tag and how many links have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag.
    pub tag: Tag,
    /// Links that are not deleted.
    pub links: u64,
}

/// A block to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Whose numbers they are.
    pub keyspace: KeyspaceIndex,
    /// Which.
    pub span: Span,
    /// The fencing token of the allocation.
    pub generation: u64,
    /// Who holds it.
    pub holder: String,
    /// Which start of the holder.
    pub incarnation: u64,
    /// A name that no other entry has, not even one of the same start: a ledger that was lost counts incarnations and generations
    /// anew, and allocates the same numbers again.
    pub instance: String,
}

/// What the register said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The block is registered, by this call or by an earlier copy of it.
    Registered,
    /// Some of its numbers are registered to another allocation.
    Overlaps,
}

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

    /// Adds keyspaces that are new; all that ever were, with their indexes. Fails when one was defined otherwise before.
    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError>;

    /// Registers a block. Sending it again is safe.
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError>;

    /// Takes over a leaked block from the generation it was leaked under, or from an earlier one, if its last holder died before
    /// it registered. If somebody has taken it since, the block overlaps. Sending it again is safe.
    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError>;

    /// The first number past all that are registered in a keyspace; 0 when none is.
    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError>;

    /// Whether the register says that the number of this id belongs to this very allocation.
    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError>;

    /// The numbers of a range under which no link is stored: ascending, disjoint and apart.
    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError>;

    /// Which history of the database this is. It changes when a copy takes over that may lack the last links.
    async fn epoch(&self) -> Result<StoreEpoch, StoreError>;

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

    /// The link of a slug: on the default domain of one that could not have been minted, on others of any code.
    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError>;

    /// What every resolver keeps a copy of, if it is not of this version.
    async fn shared_settings(&self, known: i64) -> Result<Option<SharedSettings>, StoreError>;

    /// The domain of this name, which is added if there is none.
    async fn add_domain(&self, authority: &Authority) -> Result<DomainId, StoreError>;

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
    async fn import(&self, batch: &ImportBatch) -> Result<Option<Vec<Imported>>, StoreError>;

    /// How far an import has come: the last item that is stored or was refused; 0 for one that has not begun.
    async fn import_position(&self, name: &str) -> Result<u64, StoreError>;

    /// Links after one of them, in the order of their ids, without the deleted ones; and the id of the last row among so many.
    async fn export(
        &self,
        after: Option<LinkId>,
        most: usize,
    ) -> Result<(Vec<Record>, Option<LinkId>), StoreError>;

    /// Notes that links were visited; the ids ascend. Sending it again is safe.
    async fn note_seen(&self, seen: &[(LinkId, Timestamp)]) -> Result<(), StoreError>;

    /// One step of the removal of links that nobody has visited for long.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError>;

    /// Ids of hand-picked codes that could have been minted, after one of them, ascending, at most so many.
    async fn picked(&self, after: Option<LinkId>, most: usize) -> Result<Vec<LinkId>, StoreError>;

    /// Changes a link.
    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError>;

    /// Deletes a link, of one of these versions only if there are any. Its row stays (I7).
    async fn delete(&self, id: LinkId, versions: Option<&[u64]>, by: ApiKeyId)
    -> Result<Deleted, StoreError>;

    /// One page of links. `code` is the id that the searched text stands for as a code.
    async fn list(&self, filter: &Filter, code: Option<LinkId>) -> Result<Page, StoreError>;

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

    /// Notes that a reservation is given up. Sending it again is safe.
    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError>;

    /// Adds a key; none when the name is taken.
    async fn add_api_key(&self, key: &NewKey) -> Result<Option<ApiKeyId>, StoreError>;

    /// Adds a key if there has never been one; whether it did.
    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError>;

    /// The key with this hash, unless it was revoked or has expired.
    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError>;

    /// Every key, in the order of creation.
    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Gives a key another secret; the old one is good for so long.
    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration)
    -> Result<Rotated, StoreError>;

    /// The latest entries of the log before one of them, at most so many.
    async fn audit(&self, before: Option<i64>, most: usize) -> Result<Vec<Entry>, StoreError>;

    /// Revokes a key; whether there was one of that name that was not revoked yet.
    async fn revoke_api_key(&self, name: &str) -> Result<bool, StoreError>;
}

/// The number that an id at or past the end of a keyspace's registered ids stands for.
fn number_of_end(keyspace: KeyspaceIndex, end: Option<i64>) -> u64 {
    let offset = end.map_or(0, |end| end - LinkId::new(keyspace, 0).get());
    u64::try_from(offset).unwrap_or(0)
}

/// Scopes as they are stored.
fn scopes_of(text: &str) -> Result<Scopes, StoreError> {
    text.parse().map_err(|error| StoreError::Corrupt(format!("table api_key: {error}")))
}

/// The ids of a whole keyspace: first, and the one after the last.
fn ids_of(keyspace: KeyspaceIndex) -> (i64, i64) {
    let all = Span::new(0, Span::LIMIT).expect("the limit itself is within the limit");
    LinkId::range(keyspace, all)
}

/// Ids per page of a scan.
const SCAN_PAGE: usize = 10_000;

/// Collects the gaps between stored ids, page by page. Shared by both stores.
struct Gaps {
    /// The first id not looked at yet.
    next: i64,
    end: i64,
    first: i64,
    start: u64,
    spans: Vec<Span>,
}

impl Gaps {
    fn new(keyspace: KeyspaceIndex, span: Span) -> Self {
        let (first, end) = LinkId::range(keyspace, span);
        Self { next: first, end, first, start: span.start(), spans: Vec::new() }
    }

    /// Takes the next stored ids, ascending; whether that was all of them.
    fn page(&mut self, ids: &[i64]) -> bool {
        for id in ids {
            self.gap_until(*id);
            self.next = id + 1;
        }
        ids.len() < SCAN_PAGE
    }

    fn gap_until(&mut self, id: i64) {
        let offset = u64::try_from(self.next - self.first).unwrap_or(0);
        let len = u64::try_from(id - self.next).unwrap_or(0);
        self.spans.extend(Span::new(self.start + offset, len).ok());
    }

    fn finish(mut self) -> Vec<Span> {
        self.gap_until(self.end);
        self.spans
    }
}

/// Fails when a new keyspace has a code that somebody has picked: it would be minted, and until then be taken for one that nobody has.
/// Shared by both stores.
fn check_slugs(slugs: &[String], new: &[(KeyspaceIndex, Keyspace)]) -> Result<(), StoreError> {
    for (_, keyspace) in new {
        let picked = |slug: &&String| Code::parse(slug).is_ok_and(|code| keyspace.contains(&code));
        let some: Vec<&str> = slugs.iter().filter(picked).take(5).map(String::as_str).collect();
        if !some.is_empty() {
            return Err(StoreError::Keyspace(format!(
                "keyspace {keyspace} has codes that links were given by hand, such as {}: expected other codes, or these links to be deleted first",
                some.join(", ")
            )));
        }
    }
    Ok(())
}

/// Splits what came from the database into known keyspaces and those to add, and gives the new ones their indexes.
/// Shared by both stores, so that they agree on what may change: nothing that would give a code another meaning.
fn plan_keyspaces(
    stored: Vec<(i64, String)>,
    mine: &[Keyspace],
) -> Result<(Vec<(KeyspaceIndex, Keyspace)>, usize), StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(format!("table keyspace: {error}"));
    let mut known = Vec::new();
    for (index, definition) in stored {
        let index = KeyspaceIndex::new(index).map_err(|error| corrupt(&error))?;
        known.push((index, Keyspace::parse(&definition).map_err(|error| corrupt(&error))?));
    }
    let before = known.len();
    for keyspace in mine {
        if known.iter().any(|(_, other)| other == keyspace) {
            continue;
        }
        if let Some((_, other)) = known.iter().find(|(_, other)| other.overlaps(keyspace)) {
            return Err(StoreError::Keyspace(format!(
                "keyspace {keyspace} shares its name or codes with {other}, which this database has had before: \
                 expected the same definition, or another name and other codes"
            )));
        }
        let highest = known.iter().map(|(index, _)| index.get()).max().unwrap_or(0);
        let index = KeyspaceIndex::new(i64::from(highest) + 1).map_err(|error| corrupt(&error))?;
        known.push((index, keyspace.clone()));
    }
    Ok((known, before))
}
