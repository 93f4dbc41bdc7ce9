//! The last holder: it takes over the blocks that the others left and returns them, so that every
//! number can be accounted for. Some reservations stay open.

use std::{collections::BTreeSet, rc::Rc};

use holder::{Answer, Effect, Event, KeyspaceNumbers, Refused};

use super::Holder;
use crate::simulation::{
    checks::Note,
    database::{StoreOp, StoreReply},
    summary::Happening,
};

/// How many open reservations in a thousand are given up at the end.
const GIVEN_UP: u64 = 700;
/// How often giving up a reservation is tried.
const TRIES: usize = 8;
/// How many allocations of a namespace may bring no new leaked block. An allocation burns only some
/// blocks of another history of the database, and then continues with other numbers.
const LOOKS: usize = 24;
/// The wait in milliseconds after which the blocks of given-up reservations can be taken over.
const RESTED: u64 = 2_500;

/// The progress of the sweep of a namespace.
#[derive(Default)]
struct Sweep {
    /// The start numbers of the blocks seen so far.
    seen: BTreeSet<u64>,
    looks: usize,
}

impl Sweep {
    fn note(&mut self, answer: &Result<Answer, Refused>) {
        match answer {
            Ok(Answer::Allocated { block, leaked, .. }) => {
                // Numbers returned from a leaked block are allocated as leaked again, so seeing a
                // block once is enough.
                let again = !self.seen.insert(block.span.start());
                self.looks += usize::from(leaked.is_none() || again);
            }
            Err(Refused::InOtherHands) => self.looks += 1,
            // Leaked blocks are allocated before all others, so none is left if no number can be
            // allocated.
            Err(Refused::Exhausted | Refused::Other(_)) => self.looks = LOOKS,
            _ => {}
        }
    }
}

/// Asks for blocks until none was leaked, and returns each at once.
pub(super) async fn sweep(holder: Rc<Holder>) {
    holder.give_up_reservations().await;
    for namespace in 0..holder.setup.namespaces.len() {
        let mut sweep = Sweep::default();
        while sweep.looks < LOOKS {
            holder.empty(namespace);
            holder.look_around(&mut sweep, namespace).await;
        }
    }
    holder.end(Event::Woken).await;
    holder.desk.note(Note::Swept);
}

impl Holder {
    /// Returns the numbers in hand and asks for more, as after a create that found none.
    fn empty(&self, namespace: usize) {
        let now = self.core_now();
        let keyspace: &mut KeyspaceNumbers = &mut self.state.borrow_mut().keyspaces[namespace];
        keyspace.relinquish(now);
        assert!(!matches!(keyspace.claim(), Ok(Some(_))), "nothing is in hand");
    }

    /// Steps the core until it waits.
    async fn look_around(&self, sweep: &mut Sweep, namespace: usize) {
        let mut event = Event::Woken;
        loop {
            event = match self.step(event).await {
                Some(Effect::Wait { until, .. }) => {
                    self.rest(until, false).await;
                    return;
                }
                Some(effect) => {
                    let asked = match &effect {
                        Effect::Call(holder::Call::Allocate { keyspace, .. }) => Some(*keyspace),
                        _ => None,
                    };
                    let event = self.perform(effect).await;
                    if let (Event::Answered(answer), true) = (&event, asked == Some(namespace)) {
                        sweep.note(answer);
                    }
                    event
                }
                None => return,
            };
        }
    }

    /// Gives up the reservations that a process began to give up, and most of the others.
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
