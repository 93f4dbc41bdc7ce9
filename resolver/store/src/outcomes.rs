//! Results of store calls: outcomes of writes, results of reads, and changes made by other
//! processes.

use std::collections::HashMap;

use codes::{Keyspace, KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    Domain, DomainId, Link, Outlined, Record, Slug, Tag, targets::TargetRule, webhook::Subscription,
};
use numbers::Mark;
use tokio::time::Instant;

use crate::{Result, StoreError};

/// The result of comparing the database's mark with the highest known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// The mark was not below the known one. Carries the current mark.
    To(Mark),
    /// The mark was lower: the database was restored from an older copy. A new history begins with
    /// the mark carried here.
    Began(Mark),
    /// The server has restarted, so the known mark may be stale: ask the ledger again. Nothing was
    /// changed.
    Restarted,
}

/// The outcome of one link of a batch insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The link is stored. Carries its creation time.
    Stored(Timestamp),
    /// The id is taken by another link.
    Taken,
}

/// The outcome of an insert under a custom slug, or with tags or deduplication under a minted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedLink {
    /// The link is stored. Carries its id, creation time and version, which continues those of the
    /// deleted links that had the slug.
    Stored(LinkId, Timestamp, u64),
    /// The id or the slug is taken by another link.
    Taken,
    /// Another link has the minted code on that domain. No row is stored under the id.
    CodeTaken,
    /// Nothing was stored: the domain was removed.
    NoDomain,
    /// Nothing was stored: an earlier create with the same idempotency key or content made this
    /// link.
    Existing(LinkId),
    /// Nothing was stored: the idempotency key was used before with another request.
    KeyReused,
}

/// The result of a read of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The links that the primary has shown. They are at least as recent as the beginning of the
    /// read.
    pub links: Vec<Link>,
    /// The links that another server has shown, and the instant that they are at least as recent
    /// as.
    pub copied: Option<(Vec<Link>, Instant)>,
    /// Whether ids without a link are known to be absent. A copy that lags behind cannot prove
    /// absence (I8).
    pub complete: bool,
}

/// The result of a lookup of slugs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedIds {
    /// The ids of those that are there.
    pub ids: HashMap<(DomainId, Slug), LinkId>,
    /// Whether the others are known to be absent, as in [`Reading::complete`].
    pub complete: bool,
}

impl Reading {
    /// Returns the links, whichever server has shown them.
    pub fn into_links(self) -> Vec<Link> {
        let copied = self.copied.into_iter().flat_map(|(links, _)| links);
        self.links.into_iter().chain(copied).collect()
    }
}

/// A change of links made by another process, or a change of the listener's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The listener is connected: every change from this instant on is reported.
    Listening(Instant),
    /// All changes committed before the probe that was sent at this instant have been reported.
    Heard(Instant),
    /// These links were changed.
    Links(Vec<LinkId>),
    /// The listener is disconnected. Changes may be missed until the next [`Change::Listening`].
    Away,
}

/// The answer to a resolver's periodic poll of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsPoll {
    /// The database's clock at the time of the answer.
    pub now: Timestamp,
    /// The settings, unless the resolver has this version already.
    pub settings: Option<SharedSettings>,
}

/// A version of the shared settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsVersion {
    /// The version number; it grows with each change. A database that was restored from an older
    /// copy continues from a lower number, and reaches the same numbers again with other settings.
    pub number: i64,
    /// The copy of the database in which the number was counted.
    pub copy: String,
}

/// Settings that every resolver keeps a copy of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSettings {
    /// The version of these settings.
    pub version: SettingsVersion,
    /// All domains, including the default one.
    pub domains: Vec<Domain>,
    /// Rules for the hosts that links may lead to.
    pub targets: Vec<TargetRule>,
    /// All keyspaces ever adopted, with their indexes.
    pub keyspaces: Vec<(KeyspaceIndex, Keyspace)>,
    /// Subscriptions of the enabled webhooks.
    pub webhooks: Vec<Subscription>,
}

/// The version of a schema: the number of its newest migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The version found; 0 for an empty database.
    pub found: i64,
    /// The version that this build needs.
    pub needed: i64,
}

impl Schema {
    /// Checks that the schema is recent enough.
    ///
    /// # Errors
    /// Returns `StoreError::SchemaBehind` if a migration is missing.
    pub fn check(self) -> Result<()> {
        let Self { found, needed } = self;
        if found < needed { Err(StoreError::SchemaBehind { found, needed }) } else { Ok(()) }
    }
}

/// The outcome of an edit of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainEdited {
    /// The domain after the edit.
    Done(Box<Domain>),
    /// The domain does not exist.
    Absent,
    /// Another domain has the new name.
    Taken,
}

/// The outcome of the removal of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainRemoved {
    /// The domain is removed.
    Done,
    /// The domain does not exist, or is the default one.
    Absent,
    /// The domain has links that are not deleted, or that are blocked.
    HasLinks,
    /// An API key is limited to the domain.
    HasKeys,
}

/// The outcome of one item of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The link is stored under this id.
    Stored(LinkId),
    /// The code leads to the item's target already, or the same deleted link is stored already.
    AlreadyThere,
    /// The code leads to another target, or no code is free.
    Taken,
}

/// A link with all fields of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The link, deleted or not, with its tags.
    pub record: Record,
    /// How many visits of its limit are used up.
    pub uses: u64,
    /// How often it was visited, imported visits included.
    pub visits: u64,
}

/// An index of links that creates do not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkIndex {
    /// Which links lead to a URL.
    LongUrls,
    /// The texts that searches look through. On SQLite there is none: a search reads all links.
    Texts,
}

/// A step of a walk through links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Links that meet the conditions, in the order of their ids.
    pub entries: Vec<Outlined>,
    /// The id after which the walk goes on; `None` at its end.
    pub next: Option<LinkId>,
}

/// The outcome of one step of an index of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// Another process holds the lease.
    NotOurs,
    /// All links that can be indexed yet are in it.
    Done,
    /// This many links were indexed, and there may be more.
    Some(usize),
}

/// The outcome of a tag's renaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// The tag has its new name.
    Done,
    /// The tag does not exist.
    Absent,
    /// Another tag has the new name.
    Taken,
}

/// A tag with the number of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag.
    pub tag: Tag,
    /// Number of links that have the tag and are not deleted.
    pub links: u64,
}

/// A link whose tags have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagChange {
    /// The number of the change.
    pub number: i64,
    /// The link.
    pub link: LinkId,
    /// The numbers of the tags that it has now.
    pub tags: Vec<i64>,
}

/// How often a link, or the links of a tag, were visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitTotals {
    /// Number of visits.
    pub total: u64,
    /// Number of visits by bots.
    pub bots: u64,
    /// Time of the last visit.
    pub last: Option<Timestamp>,
}

impl VisitTotals {
    /// Returns the number of visits that no bot made.
    pub fn non_bots(&self) -> u64 {
        self.total.saturating_sub(self.bots)
    }
}

/// The register's answer to a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The block is registered, by this call or by an earlier attempt of it.
    Registered,
    /// Some of the block's numbers are registered for another allocation.
    Overlaps,
}
