//! The last holder: it takes up what the others left and gives it back, so that every number can be
//! accounted for. Some reservations stay open.

use std::{collections::BTreeSet, rc::Rc};

use super::{Holder, client::Refused};
use crate::simulation::{
    checks::Note,
    database::{StoreOp, StoreReply},
    summary::Happening,
};

/// How many of a thousand open reservations are given up at the end.
const GIVEN_UP: u64 = 700;
/// How often a reservation that could not be given up is tried again.
const TRIES: usize = 8;
/// How often a namespace is looked at in vain: an allocation burns only some blocks of another
/// history of the database, and then goes on to other numbers.
const LOOKS: usize = 24;
/// Pause between two looks at numbers in other hands.
const REST: u64 = 20;
/// What reservations leaked has rested by then.
const RESTED: u64 = 2_500;

/// Asks for blocks until there is none that was leaked, and returns each at once.
pub(super) async fn sweep(holder: Rc<Holder>) {
    holder.give_up_reservations().await;
    for namespace in 0..holder.setup.namespaces.len() {
        let (mut seen, mut looks) = (BTreeSet::new(), 0);
        while looks < LOOKS {
            if holder.state.borrow().registered.is_none() {
                holder.register().await;
            }
            match holder.allocate(namespace).await {
                Some(Ok(allocated)) => {
                    let leaked = allocated.leaked;
                    // What comes back of a leaked block goes out as leaked for ever: once around is enough.
                    let again = !seen.insert(allocated.block.span.start());
                    holder.enter(namespace, allocated).await;
                    holder.return_all().await;
                    looks += usize::from(leaked.is_none() || again);
                }
                // Leaked blocks come before everything else, so there is none when nothing is to be had.
                Some(Err(Refused::Exhausted | Refused::Other)) => break,
                Some(Err(Refused::InOtherHands)) => {
                    looks += 1;
                    holder.desk.sleep(REST).await;
                }
                Some(Err(refused)) => holder.refused(refused).await,
                None => {}
            }
        }
    }
    holder.desk.note(Note::Swept);
}

impl Holder {
    /// Gives up what somebody began to give up, and most of the rest.
    async fn give_up_reservations(&self) {
        let StoreReply::Reservations(all) = self.until_it_answers(StoreOp::Reservations).await else {
            return;
        };
        if all.is_empty() {
            return;
        }
        for reservation in &all {
            if reservation.closed || self.desk.draw(|rng| rng.chance(GIVEN_UP)) {
                for _ in 0..TRIES {
                    if self.give_up(reservation.id, reservation.namespace).await {
                        break;
                    }
                }
            } else {
                self.desk.note(Note::Happened(Happening::ReservedKept, 1));
            }
        }
        self.desk.sleep(RESTED).await;
    }
}
