//! A link as the management pages show it.

use app::find_link::LinkName;
use links::{LinkState, Record};

use crate::context::Context;

pub(super) struct ShownLink {
    pub(super) short_url: String,
    pub(super) long_url: String,
    pub(super) name: LinkName,
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) created: String,
    pub(super) visits: u64,
    /// Whether the link redirects, and if not, why: the name of a class of the style sheet, and
    /// with `state-` that of a text.
    pub(super) state: &'static str,
    pub(super) state_text: String,
}

impl ShownLink {
    pub(super) fn new(context: &Context<'_>, record: &Record, visits: u64) -> Self {
        let (link, pages) = (&record.link, context.pages);
        let state = match link.state(pages.api.domain_cache.now()) {
            // As redirects judge it: by an option, target rules are about new links only.
            LinkState::Live if !pages.api.lookup.allows(&link.long_url) => "denied",
            state => class_of(state),
        };
        Self {
            short_url: pages.short_url(link),
            long_url: link.long_url.as_str().to_owned(),
            name: pages.name_of(link),
            title: link.title.clone(),
            tags: record.tags.iter().map(ToString::to_string).collect(),
            created: pages.shown_time(&link.created_at),
            visits,
            state,
            state_text: context.t.text(&format!("state-{state}")),
        }
    }
}

/// Returns the class of a state in the style sheet, and with `state-` the name of its text.
fn class_of(state: LinkState) -> &'static str {
    match state {
        LinkState::Live => "live",
        LinkState::NotYetValid => "not-yet",
        LinkState::Expired => "expired",
        LinkState::Disabled => "disabled",
        LinkState::Blocked => "blocked",
        LinkState::Deleted => "deleted",
    }
}
