//! Keeps the buffers filled, as `supply::Supplier` does.

use std::{rc::Rc, sync::Arc};

use issuer::core::{Answer, Request, Returned};
use numbers::{Block, Generation, Incarnation, Mark, Seq, StoreEpoch};
use supply::{Closed, Entered, EntryId};

use super::{
    Holder, Minting, Returning,
    client::{Next, Refused},
    last_token,
};
use crate::simulation::{
    checks::Note,
    database::{StoreOp, StoreReply},
    summary::Happening,
};

/// How long an exhausted namespace or a refusal rests, and how often used-up blocks are looked for.
const REST: u64 = 400;
const SWEEP: u64 = 250;
/// How long a namespace rests whose last numbers are in other hands.
const SCARCE_REST: u64 = 60;
/// Pause before a store that failed is asked again.
const STORE_PAUSE: u64 = 60;
/// Unused ranges that fit into one call.
const RANGES_MAX: usize = 32;
/// How often a process that stops tries to give back what it has.
const RETURN_TRIES: usize = 10;
/// How often a process that stops looks whether its creates have ended.
const POLL: u64 = 20;

/// How many numbers of a block come back unused or burned.
fn unsettled(closed: &Closed) -> u64 {
    closed.burned + closed.unused.iter().map(|span| span.len()).sum::<u64>()
}

/// An allocation, and the history of the database that it was asked for.
pub(super) struct Allocated {
    pub(super) block: Block,
    pub(super) leaked: Option<Generation>,
    pub(super) history: Arc<StoreEpoch>,
}

/// Works until told to stop; then gives back what is left.
pub(super) async fn supply(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        if holder.must_register() {
            holder.register().await;
        }
        for namespace in 0..holder.setup.namespaces.len() {
            holder.refill(namespace).await;
        }
        holder.return_closed().await;
        if !holder.is_stopping() {
            holder.wait(|state| &mut state.wanted, SWEEP).await;
        }
    }
    while holder.state.borrow().creators > 0 {
        holder.desk.sleep(POLL).await;
    }
    holder.return_all().await;
}

/// Beats, and trusts a ceiling for a tenth less than the holder TTL from before the beat that told
/// it was sent.
pub(super) async fn beat(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        let registered = holder.state.borrow().registered;
        if let Some((incarnation, _)) = registered {
            let request = {
                let state = holder.state.borrow();
                let unsettled = |minting: &Minting| minting.buffer.unsettled() + minting.returning;
                let names = holder.setup.namespaces.iter().map(|(name, _)| name.clone());
                let progress = names.zip(state.mintings.iter().map(unsettled)).collect();
                let (id, last_seq) = (holder.setup.id.clone(), state.entered);
                Request::KeepAlive { holder: id, incarnation, last_seq, progress, mark: Mark(0) }
            };
            holder.one_beat(&Rc::new(request)).await;
        }
        let scarce = holder.state.borrow().scarce;
        holder.desk.sleep(holder.setup.holder_ttl_ms / if scarce { 15 } else { 3 }).await;
    }
}

impl Holder {
    async fn one_beat(&self, request: &Rc<Request>) {
        for _ in 0..3 {
            let sent = self.desk.now();
            match self.one_try(request).await {
                Next::Done(Answer::Alive { ceilings, starving, scarce, .. }) => {
                    self.state.borrow_mut().scarce = scarce;
                    for (index, (name, _)) in self.setup.namespaces.iter().enumerate() {
                        if starving.contains(name) {
                            self.desk.note(Note::Happened(Happening::GaveBack, 1));
                            self.save(index, true);
                        }
                    }
                    let until = self.desk.time_of(sent + self.setup.trust_ms);
                    self.desk.note(Note::Trusts { ceilings, until });
                    return;
                }
                Next::Follow(_) => {}
                Next::Again => self.state.borrow_mut().leader = None,
                Next::Done(_) | Next::Refused(_) | Next::Busy => return,
            }
        }
    }

    fn must_register(&self) -> bool {
        let state = self.state.borrow();
        state.registered.is_none() || state.registers_again
    }

    pub(super) async fn register(&self) {
        let namespaces = {
            let mut state = self.state.borrow_mut();
            state.registers_again = false;
            state.configured.clone()
        };
        let request = Request::Register {
            holder: self.setup.id.clone(),
            instance: self.setup.instance.clone(),
            namespaces,
            reserved: false,
        };
        match self.call(request).await {
            Ok(Answer::Registered { incarnation, last_seq, .. }) => {
                let again = self.state.borrow().incarnation == incarnation;
                let has_missed = again && last_seq > self.state.borrow().registered_seq;
                if has_missed && !self.return_missed(incarnation, last_seq).await {
                    return;
                }
                let mut state = self.state.borrow_mut();
                state.entered = last_seq;
                state.incarnation = incarnation;
                (state.registered, state.registered_seq) = (Some((incarnation, last_seq)), last_seq);
            }
            Ok(_) => {}
            Err(refused) => self.refused(refused).await,
        }
    }

    /// Asks for an allocation that this process never heard of, and puts it back in line as it is; whether it is known what became of it.
    async fn return_missed(&self, incarnation: Incarnation, seq: Seq) -> bool {
        for namespace in 0..self.setup.namespaces.len() {
            let store = self.store_epoch().await;
            let request = Request::Allocate {
                holder: self.setup.id.clone(),
                incarnation,
                seq,
                namespace: self.setup.namespaces[namespace].0.clone(),
                wanted_len: 1,
                store,
            };
            match self.call(request).await {
                Ok(Answer::Allocated { block, .. }) => {
                    let unused = vec![block.span];
                    let closed = Closed { block, entry: EntryId(0), used: 0, burned: 0, unused };
                    let mut state = self.state.borrow_mut();
                    state.mintings[namespace].returning += unsettled(&closed);
                    let returning = Returning { namespace, closed, released: true, registered_end: None };
                    state.returning.push_back(returning);
                }
                Ok(_) | Err(Refused::NotRegistered) => {}
                Err(refused) => {
                    self.refused(refused).await;
                    return false;
                }
            }
        }
        true
    }

    async fn refill(&self, namespace: usize) {
        if self.desk.now() < self.state.borrow().mintings[namespace].rests_until {
            return;
        }
        while self.wants_block(namespace) && !self.is_stopping() {
            let allocated = self.allocate(namespace).await;
            match allocated {
                None => return,
                Some(Ok(allocated)) => {
                    self.enter(namespace, allocated).await;
                    let mut state = self.state.borrow_mut();
                    state.entered = state.registered_seq;
                }
                Some(Err(Refused::InOtherHands)) => {
                    self.save(namespace, false);
                    self.state.borrow_mut().mintings[namespace].rests_until = self.desk.now() + SCARCE_REST;
                    return;
                }
                Some(Err(Refused::Exhausted)) => {
                    self.exhaust(namespace, self.desk.now() + REST);
                    return;
                }
                Some(Err(refused)) => {
                    self.refused(refused).await;
                    return;
                }
            }
        }
    }

    /// Asks for a block with the next seq; none when not registered.
    pub(super) async fn allocate(&self, namespace: usize) -> Option<Result<Allocated, Refused>> {
        let (incarnation, last) = self.state.borrow().registered?;
        let seq = last.next();
        let store = self.store_epoch().await;
        let request = Request::Allocate {
            holder: self.setup.id.clone(),
            incarnation,
            seq,
            namespace: self.setup.namespaces[namespace].0.clone(),
            wanted_len: self.desk.draw(|rng| rng.between(1, 2 * self.setup.block_max)),
            store: store.clone(),
        };
        match self.call(request).await {
            Ok(Answer::Allocated { block, .. }) if block.namespace != self.setup.namespaces[namespace].0 => {
                self.desk.note(Note::ForeignBlock);
                None
            }
            Ok(Answer::Allocated { block, leaked, store, .. }) => {
                let mut state = self.state.borrow_mut();
                (state.registered, state.registered_seq) = (Some((incarnation, seq)), seq);
                drop(state);
                Some(Ok(Allocated { block, leaked, history: Arc::new(store) }))
            }
            Ok(_) => None,
            Err(refused) => Some(Err(refused)),
        }
    }

    /// Enters the block into the register, then hands it to the creators. A leaked one is taken over, and only what has no
    /// link is handed on.
    pub(super) async fn enter(&self, namespace: usize, allocated: Allocated) {
        let Allocated { block, leaked, history } = allocated;
        let id = {
            let mut state = self.state.borrow_mut();
            state.entries = EntryId(state.entries.0 + 1);
            state.entries
        };
        let entry = self.entry(&block, id);
        let op = match leaked {
            None => StoreOp::Register { namespace, entry },
            Some(leaked) => StoreOp::TakeOver { namespace, entry, leaked: last_token(leaked) },
        };
        let StoreReply::Registered(true) = self.until_it_answers(op).await else {
            self.desk.note(Note::Refused { take_over: leaked.is_some() });
            return self.give_up_overlapping(namespace, block, id).await;
        };
        let left = match leaked {
            None => None,
            Some(_) => {
                let op = StoreOp::Unused { namespace, span: block.span };
                let StoreReply::Unused(left) = self.until_it_answers(op).await else { return };
                if self.store_epoch().await != *history {
                    // What was lost with the old history looks unused in the new one.
                    return self.burn(namespace, block, id, None);
                }
                let count = left.iter().map(|span| span.len()).sum();
                self.desk.note(Note::Happened(Happening::TakeOver, 1));
                self.desk.note(Note::Happened(Happening::ReclaimedGap, count));
                Some(left)
            }
        };
        self.add(namespace, Entered { block, entry: id, history }, left);
    }

    async fn give_up_overlapping(&self, namespace: usize, block: Block, entry: EntryId) {
        let StoreReply::End(end) = self.until_it_answers(StoreOp::RegisteredEnd { namespace }).await else {
            return;
        };
        self.burn(namespace, block, entry, (end > 0).then_some(end));
    }

    /// A block of which nothing is to be used goes back.
    fn burn(&self, namespace: usize, block: Block, entry: EntryId, registered_end: Option<u64>) {
        let burned = block.span.len();
        let closed = Closed { block, entry, used: 0, burned, unused: Vec::new() };
        let mut state = self.state.borrow_mut();
        state.mintings[namespace].returning += unsettled(&closed);
        state.returning.push_back(Returning { namespace, closed, released: true, registered_end });
    }

    pub(super) async fn store_epoch(&self) -> StoreEpoch {
        loop {
            if let StoreReply::Epoch(epoch) = self.until_it_answers(StoreOp::Epoch).await {
                return epoch;
            }
        }
    }

    pub(super) async fn until_it_answers(&self, op: StoreOp) -> StoreReply {
        loop {
            match self.desk.store(op.clone()).await {
                StoreReply::Failed | StoreReply::Unknown => self.desk.sleep(STORE_PAUSE).await,
                reply => return reply,
            }
        }
    }

    async fn return_closed(&self) {
        if self.state.borrow().registered.is_none() {
            return;
        }
        for namespace in 0..self.setup.namespaces.len() {
            let closed = self.state.borrow_mut().mintings[namespace].buffer.take_closed();
            closed.into_iter().for_each(|closed| self.queue(namespace, closed));
        }
        self.sweep_returns().await;
    }

    pub(super) async fn return_all(&self) {
        if self.state.borrow().registered.is_none() {
            return;
        }
        for namespace in 0..self.setup.namespaces.len() {
            let closed = self.state.borrow_mut().mintings[namespace].buffer.take_all();
            closed.into_iter().for_each(|closed| self.queue(namespace, closed));
        }
        // The real one is bounded by time; what is left then is leaked.
        for _ in 0..RETURN_TRIES {
            self.sweep_returns().await;
            if self.state.borrow().returning.is_empty() {
                return;
            }
            self.desk.sleep(SWEEP).await;
        }
    }

    fn queue(&self, namespace: usize, closed: Closed) {
        if closed.unused.len() <= RANGES_MAX {
            let released = closed.unused.is_empty();
            let mut state = self.state.borrow_mut();
            state.mintings[namespace].returning += unsettled(&closed);
            state.returning.push_back(Returning { namespace, closed, released, registered_end: None });
        }
    }

    /// Sends what waits, each once; what fails waits on.
    async fn sweep_returns(&self) {
        let waiting = self.state.borrow().returning.len();
        for _ in 0..waiting {
            let Some(mut returning) = self.state.borrow_mut().returning.pop_front() else { return };
            let went = self.give_back(&mut returning).await;
            let mut state = self.state.borrow_mut();
            if went {
                state.mintings[returning.namespace].returning -= unsettled(&returning.closed);
            } else {
                state.returning.push_back(returning);
            }
        }
    }

    /// Released in the register first; whether it went back.
    async fn give_back(&self, returning: &mut Returning) -> bool {
        let Returning { namespace, closed, released, registered_end } = returning;
        if !*released {
            let entry = self.entry(&closed.block, closed.entry);
            let kept = closed.kept();
            let op = StoreOp::Release { namespace: *namespace, entry, kept };
            match self.desk.store(op).await {
                StoreReply::Released => *released = true,
                StoreReply::Overlap => return true,
                _ => return false,
            }
        }
        let Some((incarnation, _)) = self.state.borrow().registered else { return false };
        let Closed { block, used, burned, unused, .. } = closed.clone();
        let returned = Returned { block, used, burned, unused, registered_end: *registered_end };
        self.desk.note(Note::Returns(returned.check().is_ok()));
        let request = Request::Return { holder: self.setup.id.clone(), incarnation, blocks: vec![returned] };
        let went = self.call(request).await.is_ok();
        if went {
            self.desk.note(Note::Happened(Happening::Returned, 1));
        }
        went
    }

    pub(super) async fn refused(&self, refused: Refused) {
        if let Refused::NotRegistered = refused {
            self.state.borrow_mut().registered = None;
        }
        self.desk.sleep(REST).await;
    }
}
