//! A link as the management pages show it.

use app::find_link::LinkName;
use links::{LinkState, Record};
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
    pub(super) state: ShownState,
    /// The link among the chosen ones of a form.
    pub(super) choice: Choice,
}

/// The state of a link, with its names on the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownState(LinkState);

impl ShownState {
    /// Returns the name for the style sheet.
    pub(super) fn name(self) -> &'static str {
        match self.0 {
            LinkState::Live => "live",
            LinkState::NotYetValid => "not-yet",
            LinkState::Expired => "expired",
            LinkState::Disabled => "disabled",
            LinkState::Blocked => "blocked",
            LinkState::Deleted => "deleted",
        }
    }

    /// Returns the text for people.
    pub(super) fn text(self, t: &Locale) -> String {
        match self.0 {
            LinkState::Live => t.text("state-live"),
            LinkState::NotYetValid => t.text("state-not-yet"),
            LinkState::Expired => t.text("state-expired"),
            LinkState::Disabled => t.text("state-disabled"),
            LinkState::Blocked => t.text("state-blocked"),
            LinkState::Deleted => t.text("state-deleted"),
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
            state: ShownState(link.state(pages.api.domain_cache.now())),
            domain,
            name,
        }
    }
}
