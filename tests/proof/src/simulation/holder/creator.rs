//! A client that creates links, as `app::creator` does.

use std::{rc::Rc, sync::Arc};

use holder::{Claim, Fate, Row, Verdict};

use super::Holder;
use crate::{
    Mutant,
    simulation::{
        checks::Note,
        database::{StoreOp, StoreReply},
        summary::Happening,
    },
};

/// The time limit of a create, in milliseconds.
const DEADLINE: u64 = 1_500;
/// The pause before the row of an insert in doubt is read again, in milliseconds.
const RESOLVE_PAUSE: u64 = 60;
/// The number of URLs that several creators use.
const SHARED_URLS: u64 = 3;

/// Creates one link after another, until the process stops.
pub(super) async fn create_links(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        let think = holder.desk.draw(|rng| rng.between(1, holder.setup.think_max));
        holder.desk.sleep(think).await;
        let namespace = holder.desk.draw(|rng| rng.index(holder.setup.namespaces.len()));
        let url = holder.next_url();
        holder.create(namespace, url).await;
    }
    holder.state.borrow_mut().creators -= 1;
}

impl Holder {
    /// Returns a URL that no other create has, or one that all creators share.
    pub(super) fn next_url(&self) -> u64 {
        if self.desk.draw(|rng| rng.chance(self.setup.shared_urls)) {
            return self.desk.draw(|rng| rng.between(1, SHARED_URLS));
        }
        let mut state = self.state.borrow_mut();
        state.urls += 1;
        (self.setup.start << 32) | (SHARED_URLS + state.urls)
    }

    async fn create(&self, namespace: usize, url: u64) {
        let deadline = self.desk.now() + DEADLINE;
        loop {
            let Some(claim) = self.claim(namespace, deadline).await else { return };
            let number = claim.number;
            let (fate, ends, acknowledged) = match self
                .desk
                .store(StoreOp::Insert { namespace, number, url, history: Arc::clone(&claim.history) })
                .await
            {
                StoreReply::Inserted(true) => (Fate::Used, true, true),
                StoreReply::Inserted(false) => {
                    self.desk.note(Note::Met { reclaimed: claim.reclaimed });
                    (Fate::Used, false, false)
                }
                StoreReply::AnotherHistory => {
                    self.desk.note(Note::Happened(Happening::GaveUp, 1));
                    self.state.borrow_mut().keyspaces[namespace].buffer.give_up(&claim.history);
                    (Fate::Burned, false, false)
                }
                StoreReply::Unknown => self.resolve(&claim, namespace, url, deadline).await,
                _ => (Fate::Unused, true, false),
            };
            if fate == Fate::Burned {
                self.desk.note(Note::Burned { namespace, number });
            }
            self.settle(namespace, claim, fate);
            if acknowledged {
                self.desk.note(Note::Acknowledged { namespace, number, url });
            }
            if ends {
                return;
            }
        }
    }

    /// Claims a number, and waits for a refill until the deadline.
    async fn claim(&self, namespace: usize, deadline: u64) -> Option<Claim> {
        loop {
            let (claim, wants) = {
                let (mut state, now) = (self.state.borrow_mut(), self.core_now());
                let keyspace = &mut state.keyspaces[namespace];
                (keyspace.claim(), keyspace.wants_block(|| now))
            };
            if wants {
                self.signal(|state| &mut state.wanted);
            }
            match claim {
                Ok(None) if self.desk.now() < deadline => {}
                claim => return claim.ok().flatten(),
            }
            self.wait(|state| &mut state.came, deadline - self.desk.now()).await;
        }
    }

    fn settle(&self, namespace: usize, claim: Claim, fate: Fate) {
        self.state.borrow_mut().keyspaces[namespace].buffer.settle(claim, fate);
        if fate == Fate::Unused {
            self.signal(|state| &mut state.came);
        }
    }

    /// Reads the row of an insert in doubt until the store answers or the deadline has passed.
    /// Returns the number's fate, whether the create ends, and whether the link is acknowledged.
    async fn resolve(&self, claim: &Claim, namespace: usize, url: u64, deadline: u64) -> (Fate, bool, bool) {
        self.desk.note(Note::Happened(Happening::InsertUnknown, 1));
        loop {
            let verdict = self.look(claim, namespace, url).await;
            if verdict.is_none() && self.desk.now() < deadline {
                self.desk.sleep(RESOLVE_PAUSE).await;
                continue;
            }
            match verdict {
                Some(Verdict::Ours) => self.desk.note(Note::Happened(Happening::UnknownOurs, 1)),
                Some(Verdict::Another) => self.desk.note(Note::Happened(Happening::UnknownOther, 1)),
                _ => {}
            }
            let ours = verdict == Some(Verdict::Ours);
            let fate = Mutant::fate(self.setup.mutant, Verdict::fate(verdict));
            return (fate, ours || verdict.is_none(), ours);
        }
    }

    /// Reads the row once, and then asks the register. Returns `None` if the store does not answer.
    async fn look(&self, claim: &Claim, namespace: usize, url: u64) -> Option<Verdict> {
        let number = claim.number;
        let StoreReply::Row(found) = self.desk.store(StoreOp::Read { namespace, number }).await else {
            return None;
        };
        let row = match found {
            None => Row::Absent,
            Some(found) if found == url => Row::Same,
            Some(_) => Row::Different,
        };
        match Verdict::of_row(claim, Mutant::row(self.setup.mutant, row), self.setup.rules) {
            Verdict::AskRegister => {
                let token = self.token(claim.generation, claim.entry);
                match self.desk.store(StoreOp::Holds { namespace, number, token }).await {
                    StoreReply::Holds(holds) => Some(Verdict::of_register(holds)),
                    _ => None,
                }
            }
            verdict => Some(verdict),
        }
    }
}
