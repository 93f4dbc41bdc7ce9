//! Links with their tags, and partial updates of them.

use codes::LinkId;
use jiff::Timestamp;

use super::{Block, Details, DetailsEdit, DomainId, Draft, Link, LongUrl, Slug, Tag};
use crate::api_key::ApiKeyId;

/// A link with its tags, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The link.
    pub link: Link,
    /// Tags of the link, in alphabetical order.
    pub tags: Vec<Tag>,
}

impl Record {
    /// Returns `true` if this API key created the link and no other key was the last to edit it.
    pub fn is_only_of(&self, key: ApiKeyId) -> bool {
        self.link.created_by == key && self.link.details().edited_by.is_none_or(|editor| editor == key)
    }
}

/// A partial update; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Target URL.
    pub long_url: Option<LongUrl>,
    /// Title; `Some(None)` removes it.
    pub title: Option<Option<String>>,
    /// Whether crawlers may follow the link.
    pub crawlable: Option<bool>,
    /// Whether the query of the visitor's request is merged into the target URL.
    pub forward_query: Option<bool>,
    /// Optional attributes.
    pub details: DetailsEdit,
    /// Reason of a takedown by an operator; `Some(None)` lifts the takedown.
    pub block: Option<Option<String>>,
    /// Tags, replaced as a whole.
    pub tags: Option<Vec<Tag>>,
    /// Another domain or name of the link.
    pub relocation: Option<Relocation>,
    /// Precondition: the link and the versions that the edit applies to.
    pub precondition: Precondition,
}

/// A move of a link to another domain, or to another name on its domain.
///
/// A minted code stays with its number, on whichever domain its link is and whatever its name.
/// Visits that were counted before stay with the former domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The domain to move to.
    pub domain: DomainId,
    /// The link's name there: a slug, or the code of its number.
    pub name: Slug,
    /// The link's name until then, for the audit log.
    pub former: Slug,
    /// The id of the number whose code the name is, if it is a mintable one.
    pub number: Option<LinkId>,
    /// The number of keyspaces against which the caller has looked for that number.
    pub keyspaces: usize,
}

impl Relocation {
    /// Returns whether the link has this name on this domain.
    pub fn is_done(&self, link: &Link) -> bool {
        let has_name = match self.number {
            Some(number) if number == link.id => !link.is_renamed(),
            _ => link.slug() == Some(&self.name),
        };
        has_name && link.domain() == self.domain
    }
}

/// Precondition of a change: which link it applies to, and which versions.
///
/// A code that was given back may belong to another link by the time of the change. Versions
/// prevent one client from overwriting the changes of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// Creation time of the link; `None` applies to any link.
    pub created_at: Option<Timestamp>,
    /// Domain of the link; `None` applies to any. A link that has moved is not the one that its
    /// former address named, and a key of that domain may not change it any more.
    pub domain: Option<DomainId>,
    /// Slug of the link, or that it has none; `None` applies to any. A link that was renamed is not
    /// the one that its former name named.
    pub slug: Option<Option<Slug>>,
    /// Accepted versions; `None` accepts any.
    pub versions: Option<Vec<u64>>,
}

impl Precondition {
    /// Applies to this link, in any version.
    pub fn of(link: &Link) -> Self {
        Self {
            created_at: Some(link.created_at),
            domain: Some(link.domain()),
            slug: Some(link.slug().cloned()),
            versions: None,
        }
    }

    /// Returns `true` if the change applies to this link, whatever its version.
    pub fn is_of(&self, link: &Link) -> bool {
        // Compared in microseconds, the finest resolution of the databases.
        let micros = |at: Timestamp| at.as_microsecond();
        self.created_at.is_none_or(|at| micros(at) == micros(link.created_at))
            && self.domain.is_none_or(|domain| domain == link.domain())
            && self.slug.as_ref().is_none_or(|slug| slug.as_ref() == link.slug())
    }
}

impl Edit {
    /// Returns `true` if the edit leaves the fields of a link as they are, tags apart. A block says
    /// when and by whom, so it always changes something, and so does a password, whose hash is new.
    pub fn leaves(&self, link: &Link, now: Timestamp, by: ApiKeyId) -> bool {
        let mut after = self.apply(link.clone(), now, by);
        let had = link.details().clone();
        let details = after.details.get_or_insert_default();
        (details.version, details.edited_at, details.edited_by) = (had.version, had.edited_at, had.edited_by);
        details.origin.clone_from(&had.origin);
        let is_same = **details == had;
        after.details.clone_from(&link.details);
        is_same && after == *link
    }

    /// Applies the edit and returns the link. Tags are stored apart from it, and the precondition
    /// is not checked here.
    #[must_use]
    pub fn apply(&self, mut link: Link, now: Timestamp, by: ApiKeyId) -> Link {
        let mut details: Details = link.details.take().map_or_else(Details::default, |details| *details);
        set(&mut link.long_url, self.long_url.as_ref());
        set(&mut link.title, self.title.as_ref());
        set(&mut link.crawlable, self.crawlable.as_ref());
        set(&mut link.forward_query, self.forward_query.as_ref());
        self.details.apply_to(&mut details);
        if let Some(reason) = &self.block {
            // Rounded down to milliseconds, the resolution in which it is stored.
            let at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
            details.blocked = reason.clone().map(|reason| Block { reason, by, at });
            if let Some(origin) = &mut details.origin {
                origin.blocked_by = None;
            }
        }
        if let Some(Relocation { domain, name, number, .. }) = &self.relocation {
            details.domain = Some(*domain).filter(|domain| !domain.is_default());
            // The code of the link's number is its name without a slug, and releases that know no
            // moves see a minted link.
            details.slug = Some(name.clone()).filter(|_| *number != Some(link.id));
            details.renamed = details.slug.is_some() && link.id.unpack().is_some();
        }
        (details.edited_at, details.edited_by) = (Some(now), Some(by));
        if let Some(origin) = &mut details.origin {
            origin.edited_by = None;
        }
        details.version += 1;
        link.details = Some(Box::new(details));
        link
    }
}

/// Overwrites `place` if a value is given.
pub(super) fn set<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

impl Draft {
    /// Builds a new link from an edit: fields without a value have their defaults. Returns `None`
    /// if the edit has no long URL. Takedowns, tags and the precondition are not part of a draft.
    pub fn from_edit(edit: Edit, by: ApiKeyId) -> Option<Self> {
        let mut details = Details::default();
        edit.details.apply_to(&mut details);
        Some(Self {
            long_url: edit.long_url?,
            title: edit.title.flatten(),
            crawlable: edit.crawlable.unwrap_or(false),
            forward_query: edit.forward_query.unwrap_or(true),
            created_by: by,
            details: (!details.is_empty()).then(|| Box::new(details)),
        })
    }
}
