//! Where each changed link led, and since when, as the database had it at the moment of each
//! COMMIT.
//!
//! A client without an answer does not know whether its edit was stored. The simulation does, so
//! the check needs no exception for edits in doubt.

use std::collections::HashMap;

use codes::LinkId;
use tokio::time::Instant;

/// The successive states of each link that was ever changed.
#[derive(Debug, Default)]
pub(super) struct Timeline(HashMap<LinkId, Vec<State>>);

#[derive(Debug)]
struct State {
    since: Instant,
    /// The long URL; `None` while the link is deleted or has another address.
    leads_to: Option<String>,
}

impl Timeline {
    /// Records where a link leads from now on.
    pub(super) fn note(&mut self, id: LinkId, leads_to: Option<String>) {
        let states = self.0.entry(id).or_default();
        if states.last().is_none_or(|last| last.leads_to != leads_to) {
            states.push(State { since: Instant::now(), leads_to });
        }
    }

    /// Returns when a link last began to lead to this URL; `None` if it never did.
    pub(super) fn since(&self, id: LinkId, leads_to: &str) -> Option<Instant> {
        let state = self.0.get(&id)?.iter().rfind(|state| state.leads_to.as_deref() == Some(leads_to))?;
        Some(state.since)
    }

    /// Returns when the first state began in which a link led to this URL at or after `from`.
    pub(super) fn first_since(&self, id: LinkId, leads_to: Option<&str>, from: Instant) -> Option<Instant> {
        let states = self.0.get(&id)?;
        let ends = states.iter().skip(1).map(|next| next.since).chain([Instant::now()]);
        let mut held = states
            .iter()
            .zip(ends)
            .filter(|(state, end)| state.leads_to.as_deref() == leads_to && *end >= from);
        held.next().map(|(state, _)| state.since)
    }

    /// Returns whether a link is deleted or has another address now.
    pub(super) fn is_gone(&self, id: LinkId) -> bool {
        let last = self.0.get(&id).and_then(|states| states.last());
        last.is_some_and(|state| state.leads_to.is_none())
    }

    /// Returns whether a link led to this URL at any time between `from` and now; `None` if it was
    /// never changed.
    pub(super) fn held(&self, id: LinkId, leads_to: Option<&str>, from: Instant) -> Option<bool> {
        let states = self.0.get(&id)?;
        let ends = states.iter().skip(1).map(|next| next.since).chain([Instant::now()]);
        Some(states.iter().zip(ends).any(|(state, end)| state.leads_to.as_deref() == leads_to && end >= from))
    }
}
