//! A link as the management pages show it.

use app::find_link::LinkName;
use links::{Link, Record};
use store::VisitTotals;

use super::{chosen::Choice, statistics};
use crate::{Pages, home::shown_time, locale::Locale};

/// A link, its values as texts.
pub(super) struct ShownLink {
    pub(super) short_url: String,
    pub(super) long_url: String,
    pub(super) name: String,
    pub(super) domain: Option<String>,
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) created: String,
    pub(super) visits: u64,
    /// The visits, with separators.
    pub(super) visits_shown: String,
    /// The page of the link.
    pub(super) address: String,
    /// The page of its statistics.
    pub(super) statistics: String,
    pub(super) state: State,
    /// The link among the chosen ones of a form.
    pub(super) choice: Choice,
}

/// Whether a link redirects, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Live,
    NotYet,
    Expired,
    Disabled,
    Blocked,
    Deleted,
}

impl State {
    fn of(pages: &Pages, link: &Link) -> Self {
        let now = pages.api.domain_cache.now();
        match link.details.as_deref() {
            Some(details) if details.deleted_at.is_some() => Self::Deleted,
            Some(details) if details.blocked.is_some() => Self::Blocked,
            Some(details) if details.disabled => Self::Disabled,
            Some(details) if details.valid_until.is_some_and(|until| until <= now) => Self::Expired,
            Some(details) if details.valid_since.is_some_and(|since| since > now) => Self::NotYet,
            _ => Self::Live,
        }
    }

    /// Returns the name for the style sheet.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NotYet => "not-yet",
            Self::Expired => "expired",
            Self::Disabled => "disabled",
            Self::Blocked => "blocked",
            Self::Deleted => "deleted",
        }
    }

    /// Returns the text for people.
    pub(super) fn text(self, t: &Locale) -> String {
        match self {
            Self::Live => t.text("state-live"),
            Self::NotYet => t.text("state-not-yet"),
            Self::Expired => t.text("state-expired"),
            Self::Disabled => t.text("state-disabled"),
            Self::Blocked => t.text("state-blocked"),
            Self::Deleted => t.text("state-deleted"),
        }
    }
}

impl ShownLink {
    /// Shows a link with its visits.
    pub(super) fn new(pages: &Pages, record: &Record, visits: VisitTotals, t: &Locale) -> Self {
        let link = &record.link;
        let name = pages.api.lookup.name_of(link).unwrap_or_default();
        let visits = visits.total;
        let domain = pages.api.domain_cache.shown_name(link.domain());
        Self {
            short_url: pages.short_url(link),
            long_url: link.long_url.as_str().to_owned(),
            choice: Choice(LinkName { code: name.clone(), domain: domain.clone() }),
            title: link.title.clone(),
            tags: record.tags.iter().map(ToString::to_string).collect(),
            created: shown_time(pages, link.created_at),
            visits,
            visits_shown: t.number(&visits),
            address: super::address(pages, link),
            statistics: statistics::address_of(&name, domain.as_deref()),
            state: State::of(pages, link),
            domain,
            name,
        }
    }
}
