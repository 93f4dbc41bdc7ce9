//! Registration: adopts the ledger, raises the database's mark, and enters a block whose allocation
//! went unanswered.

use std::sync::Arc;

use numbers::StoreEpoch;

use super::{Arrival, Millis, Note, REST_MS, Session, Stage, Step, StopReason};
use crate::{
    buffer::{Closed, EntryId},
    calls::{Answer, Call, Refused, Registered, Returning, StoreCall},
    keyspace::Keyspaces,
};

impl<K: Keyspaces> Step<'_, K> {
    pub(super) fn register(&mut self) {
        let specs = self.core.specs.iter();
        let namespaces = specs.map(|spec| (spec.namespace.clone(), spec.capacity)).collect();
        self.call(Stage::Registering, Call::Register(namespaces));
    }

    pub(super) fn registered(&mut self, answer: Result<Answer, Refused>) {
        let registered = match answer {
            Ok(Answer::Registered(registered)) => registered,
            Ok(_) => return self.refused("register", Refused::Malformed("a registration"), 0),
            Err(refused) => return self.refused("register", refused, 0),
        };
        match registered.ledger.clone() {
            None => self.raise(registered),
            Some(ledger) => self.ask(Stage::Adopting(registered), StoreCall::AdoptLedger(ledger)),
        }
    }

    /// Compares the issuer's ledger with the one that the database has adopted. If they differ, a
    /// process that starts stops before it mints. A running one continues without new numbers,
    /// because its redirects need none.
    pub(super) fn adopted(&mut self, registered: Registered, database: String) {
        match registered.ledger.clone() {
            Some(issuer) if issuer != database => {
                self.note(Note::AnotherLedger { issuer: issuer.clone(), database: database.clone() });
                if self.core.confirmed {
                    self.rest(Millis(self.now.0 + REST_MS), 0);
                } else {
                    self.lose(StopReason::AnotherLedger { issuer, database });
                }
            }
            _ => {
                self.core.confirmed = true;
                self.raise(registered);
            }
        }
    }

    fn raise(&mut self, registered: Registered) {
        let mark = registered.mark;
        self.ask(Stage::Raising(registered), StoreCall::RaiseMark(mark));
    }

    pub(super) fn raised(&mut self, registered: Registered, raised: bool) {
        if !raised {
            // The database server has restarted since the ledger was asked, so the mark proves
            // nothing.
            return self.idle();
        }
        self.note(Note::Registered(registered.incarnation));
        let is_known = self.core.incarnation == registered.incarnation;
        if is_known && registered.last_seq > self.core.seq {
            return self.look_for_missed(registered, 0);
        }
        self.in_session(&registered);
    }

    /// Asks for a block that the issuer allocated to a late copy of a refused request. The block is
    /// entered like any other. If it were returned unregistered, a leaked block would keep its last
    /// holder's register entry, and could not be taken over in parts.
    fn look_for_missed(&mut self, registered: Registered, keyspace: usize) {
        if keyspace == self.core.specs.len() {
            return self.in_session(&registered);
        }
        self.ask(Stage::Missed(registered, keyspace), StoreCall::Epoch);
    }

    pub(super) fn ask_for_missed(&mut self, registered: Registered, keyspace: usize, store: StoreEpoch) {
        let (incarnation, seq) = (registered.incarnation, registered.last_seq);
        self.call(Stage::Missed(registered, keyspace), Call::Allocate { keyspace, incarnation, seq, store });
    }

    pub(super) fn missed(
        &mut self,
        registered: Registered,
        keyspace: usize,
        answer: Result<Answer, Refused>,
    ) {
        let refused = match answer {
            Ok(Answer::Allocated { block, leaked, store })
                if block.namespace == self.core.specs[keyspace].namespace =>
            {
                self.note(Note::Missed(block.clone()));
                let Some(store) = store else {
                    // An issuer of an earlier release omits the block's history, so it is unknown.
                    let unused = vec![block.span];
                    let closed = Closed { block, entry: EntryId(0), used: 0, burned: 0, unused };
                    self.push(Returning { keyspace, closed, released: true, registered_end: None });
                    return self.in_session(&registered);
                };
                let (entry, history) = (self.next_entry(), Arc::new(store));
                return self.enter(Arrival { keyspace, block, entry, leaked, history }, Some(registered));
            }
            // The block is of another keyspace, or was taken from this holder since.
            Err(Refused::NotRegistered(_)) => return self.look_for_missed(registered, keyspace + 1),
            Ok(_) => Refused::Malformed("a block of the namespace that was asked for"),
            Err(refused) => refused,
        };
        self.refused("ask for a block that was missed", refused, 0);
    }

    pub(super) fn in_session(&mut self, registered: &Registered) {
        let Registered { incarnation, last_seq, holder_ttl_ms, .. } = *registered;
        (self.core.incarnation, self.core.seq, self.core.entered) = (incarnation, last_seq, last_seq);
        self.core.session = Some(Session { incarnation, holder_ttl_ms });
        self.refill(0);
    }
}
