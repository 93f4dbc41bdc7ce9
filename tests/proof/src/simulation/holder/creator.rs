//! Creates links, as `app::creator` does.

use std::{rc::Rc, sync::Arc};

use supply::{Claim, Fate};

use super::{Holder, token};
use crate::simulation::{
    checks::Note,
    database::{StoreOp, StoreReply},
    summary::Happening,
};

/// How long a create may take in all.
const DEADLINE: u64 = 1_500;
/// Pause before the row of an insert in doubt is looked for again.
const RESOLVE_PAUSE: u64 = 60;
/// URLs that several creators use.
const SHARED_URLS: u64 = 3;

/// What is stored under the number of an insert in doubt.
enum Row {
    Ours,
    Other,
    Absent,
}

/// Creates one link after another.
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
    /// A URL that nobody else has, or one that everybody has.
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
                    self.state.borrow_mut().mintings[namespace].buffer.give_up(&claim.history);
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

    /// Claims a number, waiting for a refill until the deadline.
    async fn claim(&self, namespace: usize, deadline: u64) -> Option<Claim> {
        loop {
            let (claim, exhausted) = {
                let mut state = self.state.borrow_mut();
                let minting = &mut state.mintings[namespace];
                let claim = minting.buffer.claim();
                minting.unmet |= claim.is_none();
                (claim, minting.exhausted)
            };
            if self.wants_block(namespace) {
                self.signal(|state| &mut state.wanted);
            }
            if claim.is_some() || exhausted || self.desk.now() >= deadline {
                return claim;
            }
            self.wait(|state| &mut state.came, deadline - self.desk.now()).await;
        }
    }

    fn settle(&self, namespace: usize, claim: Claim, fate: Fate) {
        self.state.borrow_mut().mintings[namespace].buffer.settle(claim, fate);
        if fate == Fate::Unused {
            self.signal(|state| &mut state.came);
        }
    }

    /// Looks for the row of an insert in doubt until the store answers: its fate, whether the create ends with it, and whether
    /// it is acknowledged.
    async fn resolve(&self, claim: &Claim, namespace: usize, url: u64, deadline: u64) -> (Fate, bool, bool) {
        self.desk.note(Note::Happened(Happening::InsertUnknown, 1));
        loop {
            match self.look(claim, namespace, url).await {
                Some(Row::Ours) => {
                    self.desk.note(Note::Happened(Happening::UnknownOurs, 1));
                    return (Fate::Used, true, true);
                }
                Some(Row::Other) => {
                    self.desk.note(Note::Happened(Happening::UnknownOther, 1));
                    return (Fate::Used, false, false);
                }
                Some(Row::Absent) => return (Fate::Burned, false, false),
                None if self.desk.now() < deadline => self.desk.sleep(RESOLVE_PAUSE).await,
                None => return (Fate::Burned, true, false),
            }
        }
    }

    /// One look; none when the store does not say. The register is asked after the row was read.
    async fn look(&self, claim: &Claim, namespace: usize, url: u64) -> Option<Row> {
        let number = claim.number;
        let StoreReply::Row(row) = self.desk.store(StoreOp::Read { namespace, number }).await else {
            return None;
        };
        let Some(found) = row else { return Some(Row::Absent) };
        if claim.reclaimed || found != url {
            return Some(Row::Other);
        }
        let token = token(claim.generation, self.setup.start, claim.entry);
        match self.desk.store(StoreOp::Holds { namespace, number, token }).await {
            StoreReply::Holds(true) => Some(Row::Ours),
            StoreReply::Holds(false) => Some(Row::Other),
            _ => None,
        }
    }
}
