//! Arguments and results of a store of visits.

use std::{collections::HashMap, ops::Range, time::Duration};

use codes::LinkId;
use links::webhook::NewWebhookEvent;
pub use store::LinkVisits;
pub use visits::Days;
use visits::{
    AddressNetwork, Day, Month, Slot, Subject, SubjectKey, TextHash, VisitId, VisitRow, tally::Counters,
};

/// The identity of a spool: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpoolId(pub u128);

/// A process that stores the visits of its spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// The spool.
    pub spool: SpoolId,
    /// The slot, which is part of each visit's id and of its counters' keys.
    pub slot: Slot,
    /// Grows with each registration of the spool.
    pub incarnation: i64,
    /// The first block that is not stored yet.
    pub position: u64,
}

/// Time after which the slot of a silent producer may be taken. Until then its process may be alive
/// and cut off from the database. A late one registers again, so minutes are enough.
pub const SILENT: Duration = Duration::from_secs(300);

/// Whether a producer may store visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may, from this position on.
    At(u64),
    /// It has no slot: that was taken after a long silence, or given back, or the registration was
    /// lost with a part of the database. Its spool may be registered again.
    Unregistered,
    /// A later process has registered its spool.
    Replaced,
}

/// Visits to store in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The first block of the batch: the position before it.
    pub from: u64,
    /// The first block after the batch: the position after it.
    pub to: u64,
    /// Rows, ordered by link and id, so that each index page is visited once.
    pub rows: Vec<VisitRow>,
    /// Texts that rows refer to, and that this process has not stored yet.
    pub texts: Vec<StoredText>,
    /// Whole IPv6 addresses of rows, which are texts. They come with every batch, since an erasure
    /// may have removed one that this process has stored before.
    pub addresses: Vec<StoredText>,
    /// Counters by subject and day, in the order of their keys.
    pub days: Vec<DayDelta>,
    /// Visits by link, in the order of ids.
    pub links: Vec<LinkVisits>,
    /// The tags that the visits count for, by link: of every link with visits, also of those
    /// without a tag.
    pub tags: HashMap<LinkId, Vec<i64>>,
    /// Events for webhooks.
    pub events: Vec<NewWebhookEvent>,
}

impl Batch {
    /// Returns whether it has visits of a link. `None` stands for the visits that no link
    /// redirected.
    pub(crate) fn has_visits_of(&self, link: Option<LinkId>) -> bool {
        match link {
            Some(link) => self.links.binary_search_by_key(&link, |visits| visits.link).is_ok(),
            None => {
                let orphans = Subject::Orphans(None, None).key().kind;
                self.days.iter().any(|delta| delta.subject.kind == orphans)
            }
        }
    }

    /// Returns whether its visits count for the tags that these links have now.
    pub(crate) fn has_tags(&self, now: &HashMap<LinkId, Vec<i64>>) -> bool {
        let sorted = |tags: Option<&Vec<i64>>| {
            let mut tags = tags.cloned().unwrap_or_default();
            tags.sort_unstable();
            tags
        };
        self.tags.iter().all(|(link, tags)| sorted(Some(tags)) == sorted(now.get(link)))
    }
}

/// The counters that a batch adds for a subject on a day.
#[derive(Clone, Debug)]
pub struct DayDelta {
    /// The subject.
    pub subject: SubjectKey,
    /// The day.
    pub day: Day,
    /// The counters to add.
    pub delta: Counters,
}

/// What a step of a chore has left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// Nothing.
    Nothing,
    /// There may be more, for the next step.
    Something,
    /// It is not known: another process is at it, or has what is left.
    Held,
}

impl From<bool> for Remaining {
    /// Reads whether there may be more.
    fn from(has_more: bool) -> Self {
        if has_more { Self::Something } else { Self::Nothing }
    }
}

/// A reference to a text. Texts are stored by month, so that they can be removed with their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextRef {
    /// The month of the visit.
    pub month: Month,
    /// The hash.
    pub hash: TextHash,
}

/// A text with its reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText {
    /// The reference.
    pub at: TextRef,
    /// The text; not necessarily UTF-8.
    pub text: Vec<u8>,
}

/// Which columns of counters to read, beside the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Counts by quarter hour.
    pub quarters: bool,
    /// Counts by dimension.
    pub dimensions: bool,
    /// The sketch of visitors.
    pub visitors: bool,
    /// The sketch of addresses.
    pub addresses: bool,
}

impl Columns {
    /// All of them.
    pub const ALL: Self = Self { quarters: true, dimensions: true, visitors: true, addresses: true };
}

/// Counters of a subject on one day, or on several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCounters {
    /// The days.
    pub days: Range<i32>,
    /// The counters, without the columns that were not asked for.
    pub counters: Counters,
}

/// A query of rows, the latest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowQuery {
    /// Subject of the rows.
    pub subject: Subject,
    /// Whether visits of bots are left out.
    pub people_only: bool,
    /// The lowest id.
    pub from: VisitId,
    /// The id after the highest one.
    pub before: VisitId,
    /// Rows to skip from the latest on.
    pub skip: u64,
    /// Maximum number of rows.
    pub most: usize,
}

/// Changes that batches have to respect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Grows with each deletion, and with each change of the tags of links.
    pub version: i64,
    /// Deletions since the version that was asked for.
    pub cuts: Vec<Cut>,
    /// Erasures since that version.
    pub erasures: Vec<Erasure>,
}

/// A deletion of visits: those before the id are gone, also if they are still in a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The link; `None` for orphan visits.
    pub link: Option<LinkId>,
    /// Visits with lower ids are deleted.
    pub before: VisitId,
}

/// An erasure of visits by their addresses: those before the id lose their rows, and get none if
/// they are still in a spool. They stay counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The addresses.
    pub network: AddressNetwork,
    /// Visits with lower ids are erased.
    pub before: VisitId,
}

impl Erasure {
    /// Maximum number of erasures that are kept for visits in spools, each as long as rows are.
    pub const MOST: usize = 1_000;
}

/// The number of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureId(pub i64);

/// How far an erasure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// The number of rows that it has deleted.
    pub deleted: u64,
    /// Whether there are no more.
    pub is_done: bool,
}
