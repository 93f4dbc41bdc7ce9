//! What a store answers: what became of a write, what a read found, and what is heard of others' changes.

use codes::{Keyspace, KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{Domain, Link, Record, Tag, targets::TargetRule};
use numbers::Mark;
use tokio::time::Instant;

/// How a database's mark compares with what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// It is not below; the mark now.
    To(Mark),
    /// It was below: the database was put back from an older copy, and a new history begins with this mark.
    Began(Mark),
    /// The server has restarted, so the known mark may be stale: ask the ledger again. Nothing was
    /// changed.
    Restarted,
}

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
    /// Another link has the code on that domain; no row is under the id.
    CodeTaken,
    /// Nothing was stored: the domain was removed.
    NoDomain,
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
    /// Nothing was stored: the domain was removed.
    NoDomain,
    /// Nothing was stored: the same was asked for before, and this link was given.
    Same(LinkId),
    /// Nothing was stored: something else was asked for under the same digest.
    OtherWish,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The links that were found.
    pub links: Vec<Link>,
    /// Whether what was not found is absent. A copy that lags behind cannot say so (I8).
    pub complete: bool,
    /// The instant that all of it is at least as new as, when a replica said some of it; none for the beginning of the read.
    pub as_of: Option<Instant>,
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

/// The answer to a resolver's regular question for other settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsPoll {
    /// The database's clock when it answered.
    pub now: Timestamp,
    /// The settings, if they are not of the version that the resolver has.
    pub settings: Option<SharedSettings>,
}

/// A state of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsVersion {
    /// Grows with each change. An older copy of the database that was put back counts on from a
    /// lower number, and reaches the same numbers again with other settings.
    pub number: i64,
    /// The copy of the database in which the number was counted: the start of its server, the
    /// identity of its table, and its history.
    pub copy: String,
}

impl SettingsVersion {
    /// Whether this is the state that a resolver has read already.
    #[must_use]
    pub fn is(&self, known: &Self) -> bool {
        self == known
    }
}

/// What every resolver keeps a copy of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSettings {
    /// Its version.
    pub version: SettingsVersion,
    /// Every domain, the default one too.
    pub domains: Vec<Domain>,
    /// Hosts that links may lead to, or may not.
    pub targets: Vec<TargetRule>,
    /// Every keyspace that was ever adopted.
    pub keyspaces: Vec<(KeyspaceIndex, Keyspace)>,
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

/// What became of a domain that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainRemoved {
    /// It is removed.
    Done,
    /// There is no such domain, or it is the default one.
    Absent,
    /// Links are on it that are not deleted, or that are blocked.
    HasLinks,
    /// A key is limited to it.
    HasKeys,
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

/// A link with everything that an export tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The link, deleted or not, with its tags.
    pub record: Record,
    /// How many of its uses are spent.
    pub uses: u64,
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

/// What one step of the index of long URLs came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// Somebody else does it.
    NotOurs,
    /// All links are in the index that can be.
    Done,
    /// So many were noted, and there may be more.
    Some(usize),
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
    /// An operator took it down, and it keeps its name until that is lifted.
    Blocked,
}

/// What became of a deleted link that was to be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The link as it is now.
    Done(Box<Record>),
    /// It is not deleted, there is none, or its domain was removed.
    Absent,
    /// Somebody has picked its slug since.
    Taken,
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

/// A tag and how many links have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag.
    pub tag: Tag,
    /// Links that are not deleted.
    pub links: u64,
}

/// What the register said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The block is registered, by this call or by an earlier copy of it.
    Registered,
    /// Some of its numbers are registered to another allocation.
    Overlaps,
}
