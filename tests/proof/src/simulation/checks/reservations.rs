//! G7: a number that a client received as reserved belongs to no one else until its reservation is
//! given up.

use std::collections::{BTreeMap, BTreeSet};

use numbers::Span;

/// The check of reserved numbers.
#[derive(Debug, Default)]
pub(super) struct ReservationCheck {
    pub(super) broken: Option<String>,
    /// The reservation of each namespace and number.
    told: BTreeMap<(usize, u64), u64>,
    given_up: BTreeSet<u64>,
}

impl ReservationCheck {
    /// Records that a client has received the numbers of a reservation.
    pub(super) fn told(&mut self, reservation: u64, namespace: usize, spans: &[Span]) {
        if self.given_up.contains(&reservation) {
            return;
        }
        for number in spans.iter().flat_map(|span| span.start()..span.end()) {
            if let Some(other) = self.told.insert((namespace, number), reservation) {
                let what = format!("G7: number {number} was told for {other} and for {reservation}");
                self.broken.get_or_insert(what);
            }
        }
    }

    /// Records that a client begins to give a reservation up.
    pub(super) fn given_up(&mut self, reservation: u64) {
        self.given_up.insert(reservation);
        self.told.retain(|_, of| *of != reservation);
    }

    /// Checks a link that a holder has acknowledged under a number of its own.
    pub(super) fn minted(&mut self, link: (usize, u64)) {
        if let Some(reservation) = self.told.get(&link) {
            let what = format!("G7: number {link:?} of reservation {reservation} was minted by a holder");
            self.broken.get_or_insert(what);
        }
    }

    /// Returns whether the reservation of a filled number was given up before.
    pub(super) fn filled(&self, reservation: u64) -> bool {
        self.given_up.contains(&reservation)
    }
}
