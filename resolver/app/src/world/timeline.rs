//! Where links that were changed led, and since when: as the database had it in the moment of each COMMIT.
//!
//! An editor that is not answered does not know whether its edit was stored. The world does, so nothing has
//! to be forgiven for edits in doubt.

use std::collections::HashMap;

use codes::LinkId;
use tokio::time::Instant;

/// The states of each link that was ever changed, the first one first.
#[derive(Debug, Default)]
pub(super) struct Timeline(HashMap<LinkId, Vec<State>>);

#[derive(Debug)]
struct State {
    since: Instant,
    /// None while it is deleted.
    leads_to: Option<String>,
}

impl Timeline {
    /// Notes where a link leads from now on.
    pub(super) fn note(&mut self, id: LinkId, leads_to: Option<String>) {
        let states = self.0.entry(id).or_default();
        if states.last().is_none_or(|last| last.leads_to != leads_to) {
            states.push(State { since: Instant::now(), leads_to });
        }
    }

    /// Since when a link has led there, as long as it did.
    pub(super) fn since(&self, id: LinkId, leads_to: &str) -> Option<Instant> {
        let state = self.0.get(&id)?.iter().rfind(|state| state.leads_to.as_deref() == Some(leads_to))?;
        Some(state.since)
    }

    /// Whether it is deleted now.
    pub(super) fn is_deleted(&self, id: LinkId) -> bool {
        let last = self.0.get(&id).and_then(|states| states.last());
        last.is_some_and(|state| state.leads_to.is_none())
    }

    /// Whether the link led there at some time from then on until now; none of a link that was never changed.
    pub(super) fn held(&self, id: LinkId, leads_to: Option<&str>, from: Instant) -> Option<bool> {
        let states = self.0.get(&id)?;
        let ends = states.iter().skip(1).map(|next| next.since).chain([Instant::now()]);
        Some(states.iter().zip(ends).any(|(state, end)| state.leads_to.as_deref() == leads_to && end >= from))
    }
}
