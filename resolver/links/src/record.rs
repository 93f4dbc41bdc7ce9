//! A link with all that is told of it, and what may be changed.

use jiff::Timestamp;

use super::{Block, Details, Link, LongUrl, PasswordHash, RedirectStatus, Rule, Tag};
use crate::api_key::ApiKeyId;

/// A link with its tags, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The link.
    pub link: Link,
    /// Its tags, in order.
    pub tags: Vec<Tag>,
}

impl Record {
    /// Whether this key has created the link, and no other has edited it.
    #[must_use]
    pub fn is_only_of(&self, key: ApiKeyId) -> bool {
        let editor = self.link.details.as_ref().and_then(|details| details.edited_by);
        self.link.created_by == key && editor.is_none_or(|editor| editor == key)
    }
}

/// A partial update; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Where it leads.
    pub long_url: Option<LongUrl>,
    /// What a person calls it; none takes the title away.
    pub title: Option<Option<String>>,
    /// Whether robots may follow it.
    pub crawlable: Option<bool>,
    /// Whether the visitor's query goes along.
    pub forward_query: Option<bool>,
    /// Before this it does not redirect.
    pub valid_since: Option<Option<Timestamp>>,
    /// From this time on it does not redirect any more.
    pub valid_until: Option<Option<Timestamp>>,
    /// How often it redirects.
    pub max_visits: Option<Option<u64>>,
    /// What a person says of it.
    pub description: Option<Option<String>>,
    /// Whether it leads nowhere for now.
    pub disabled: Option<bool>,
    /// Why an operator takes it down; none brings it back.
    pub block: Option<Option<String>>,
    /// The status of its redirects.
    pub status: Option<Option<RedirectStatus>>,
    /// The hash of the password that visitors are asked for.
    pub password: Option<Option<PasswordHash>>,
    /// Other places that it leads to, and when.
    pub rules: Option<Vec<Rule>>,
    /// All of its tags.
    pub tags: Option<Vec<Tag>>,
    /// Which link the editor means, and which of its states.
    pub meant: Meant,
}

/// Which link a change means: a code that was given back may be another link's by the time of the
/// change. And which of its versions: what others have changed meanwhile is not overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// When the link was created; none for whichever link it is.
    pub created_at: Option<Timestamp>,
    /// The versions; none for any.
    pub versions: Option<Vec<u64>>,
}

impl Meant {
    /// Any version of this link.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        Self { created_at: Some(link.created_at), versions: None }
    }

    /// Whether it is this link, of whatever version.
    #[must_use]
    pub fn is_of(&self, link: &Link) -> bool {
        // Databases keep microseconds.
        let micros = |at: Timestamp| at.as_microsecond();
        self.created_at.is_none_or(|at| micros(at) == micros(link.created_at))
    }

    /// Whether it is one of the versions, if any are named.
    #[must_use]
    pub fn has_version_of(&self, link: &Link) -> bool {
        let version = link.details.as_ref().map_or(0, |details| details.version);
        self.versions.as_ref().is_none_or(|versions| versions.contains(&version))
    }
}

impl Edit {
    /// The link as it is after the edit.
    #[must_use]
    pub fn apply(&self, mut link: Link, now: Timestamp, by: ApiKeyId) -> Link {
        let mut details: Details = link.details.take().map_or_else(Details::default, |details| *details);
        set(&mut link.long_url, self.long_url.as_ref());
        set(&mut link.title, self.title.as_ref());
        set(&mut link.crawlable, self.crawlable.as_ref());
        set(&mut link.forward_query, self.forward_query.as_ref());
        set(&mut details.valid_since, self.valid_since.as_ref());
        set(&mut details.valid_until, self.valid_until.as_ref());
        set(&mut details.max_visits, self.max_visits.as_ref());
        set(&mut details.description, self.description.as_ref());
        set(&mut details.disabled, self.disabled.as_ref());
        set(&mut details.status, self.status.as_ref());
        set(&mut details.password, self.password.as_ref());
        set(&mut details.rules, self.rules.as_ref());
        if let Some(reason) = &self.block {
            // As finely as it is stored.
            let at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
            details.blocked = reason.clone().map(|reason| Block { reason, by, at });
            if let Some(origin) = &mut details.origin {
                origin.blocked_by = None;
            }
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

/// Puts a value in its place, if there is one.
pub(super) fn set<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}
