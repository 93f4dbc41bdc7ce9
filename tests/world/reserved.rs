//! Clients that make reservations, fill them through any process, and give them up.

use std::collections::HashMap;

use app::reservation::Filled;
use codes::Code;
use links::{
    DomainId, Draft, Link, LongUrl,
    reservation::{Reservation, ReservationId},
};

use super::{
    book::{Name, Violation},
    node::Ends,
    rng::Rng,
    shared::{BY, How, Reserved, Shared},
};

/// Maximum number of codes in a reservation, and of links in a fill.
const COUNT_MAX: u64 = 5;

fn default_name(code: &Code) -> Name {
    Name { domain: DomainId::DEFAULT, text: code.to_string() }
}

impl Shared {
    /// Makes a reservation, or fills or gives up an existing one.
    pub(super) async fn use_reservation(&self, ends: &Ends, rng: &mut Rng) {
        let some = self.with_reservations(|all| {
            // The youngest reservation is the one whose keyspace may be unknown.
            let among = if rng.permille(600) { 2 } else { all.len() };
            let back = usize::try_from(rng.next()).unwrap_or(0) % among.max(1);
            all.iter().rev().nth(back).map(|one| one.id.clone())
        });
        match some {
            Some(id) if rng.permille(700) => self.fill(ends, &id, rng).await,
            Some(id) if rng.permille(200) => self.give_up(ends, &id).await,
            _ => self.reserve(ends, rng).await,
        }
    }

    async fn reserve(&self, ends: &Ends, rng: &mut Rng) {
        let mintings = &ends.creator.config.mintings;
        let among = if rng.permille(600) { 1 } else { mintings.len() };
        let minting = &mintings[usize::try_from(rng.next()).unwrap_or(0) % among];
        let made = ends.creator.reserve(BY, minting, rng.between(1, COUNT_MAX)).await;
        let Ok(reservation) = made else { return };
        let Ok(codes) = ends.creator.codes(&reservation).await else { return };
        tracing::info!(id = %reservation.id, ?codes, "reserved");
        self.count(|outcome| outcome.reserved += 1);
        for code in &codes {
            let name = default_name(code);
            if self.is_reserved(&name) || self.book().is_there(&name) {
                self.book().fail(Violation::ReservedTaken { name });
            }
        }
        let reserved = Reserved { id: reservation.id, codes, is_given_up: false, tried: HashMap::new() };
        self.with_reservations(|all| all.push(reserved));
    }

    /// Returns the reservation as the process reads it; `None` if it does not exist or cannot be
    /// read.
    async fn reservation(&self, ends: &Ends, id: &ReservationId) -> Option<Reservation> {
        ends.store.reservation(id).await.ok()?
    }

    async fn fill(&self, ends: &Ends, id: &ReservationId, rng: &mut Rng) {
        let Some(reservation) = self.reservation(ends, id).await else { return };
        if ends.mint.len_of(reservation.keyspace).is_none() {
            self.count(|outcome| outcome.unheard += 1);
        }
        let items = self.items(id, rng);
        let told: Vec<(Code, Draft)> = items.clone();
        let Ok(filled) = ends.creator.fill(&reservation, items).await else { return };
        for ((code, draft), filled) in told.into_iter().zip(filled) {
            self.note_filled(id, &code, draft, filled).await;
        }
    }

    /// Returns links for some of a reservation's codes. A client may have tried to store the same
    /// link before.
    fn items(&self, id: &ReservationId, rng: &mut Rng) -> Vec<(Code, Draft)> {
        let count = rng.between(1, COUNT_MAX);
        let drafts: Vec<Draft> = (0..count).map(|_| self.draft(rng)).collect();
        self.with_reservations(|all| {
            let Some(one) = all.iter_mut().find(|one| one.id == *id && !one.codes.is_empty()) else {
                return Vec::new();
            };
            let mut item = |mut draft: Draft| {
                let code = one.codes[usize::try_from(rng.next()).unwrap_or(0) % one.codes.len()];
                let tried = one.tried.entry(code).or_default();
                if let Some(url) = tried.last().filter(|_| rng.permille(400)) {
                    draft.long_url = LongUrl::from_stored(url.as_str());
                }
                tried.push(draft.long_url.as_str().to_owned());
                (code, draft)
            };
            drafts.into_iter().map(&mut item).collect()
        })
    }

    async fn note_filled(&self, id: &ReservationId, code: &Code, draft: Draft, filled: Filled) {
        let name = default_name(code);
        let url = draft.long_url.as_str().to_owned();
        match filled {
            Filled::Stored => {
                let own = self.book().own(&name);
                // An earlier attempt of the call has stored it.
                if own.is_some_and(|own| own.url == url) {
                    return;
                }
                self.count(|outcome| outcome.filled += 1);
                let Some(link_id) = self.common.mint.read(code) else { return };
                let link = Link::stored(link_id, draft, self.common.database.now());
                self.acknowledge(name.text, &link, How::Reserved).await;
            }
            Filled::NotReserved if self.is_reserved(&name) => {
                self.book().fail(Violation::NotReserved { name });
            }
            Filled::Conflict if self.is_reserved(&name) && self.is_ours_alone(id, code, &url) => {
                self.book().fail(Violation::ReservedTaken { name });
            }
            _ => {}
        }
    }

    /// Returns whether no client has tried to store another URL under a reserved code, or to take
    /// it as a custom slug.
    fn is_ours_alone(&self, id: &ReservationId, code: &Code, url: &str) -> bool {
        let is_picked =
            self.picked.lock().expect("no code panics while it holds this lock").contains(code.as_str());
        let only_this =
            |one: &Reserved| one.tried.get(code).is_some_and(|all| all.iter().all(|one| one == url));
        !is_picked && self.with_reservations(|all| all.iter().any(|one| one.id == *id && only_this(one)))
    }

    async fn give_up(&self, ends: &Ends, id: &ReservationId) {
        let Some(reservation) = self.reservation(ends, id).await else { return };
        self.with_reservations(|all| {
            all.iter_mut().filter(|one| one.id == *id).for_each(|one| one.is_given_up = true);
        });
        if ends.creator.give_up(&reservation).await.is_ok() {
            self.count(|outcome| outcome.given_up += 1);
        }
    }

    /// Checks that a process returns every open reservation's codes when there are no faults.
    /// Returns whether the process could answer.
    pub(super) async fn tell_reserved(&self, ends: &Ends) -> bool {
        let open = self.with_reservations(|all| {
            let open = all.iter().filter(|one| !one.is_given_up);
            open.map(|one| (one.id.clone(), one.codes.clone())).collect::<Vec<_>>()
        });
        for (id, codes) in open {
            let Some(reservation) = self.reservation(ends, &id).await else { return false };
            let Ok(told) = ends.creator.codes(&reservation).await else { return false };
            if let Some(missing) = codes.iter().find(|code| !told.contains(code)) {
                self.book().fail(Violation::NotReserved { name: default_name(missing) });
            }
        }
        true
    }
}
