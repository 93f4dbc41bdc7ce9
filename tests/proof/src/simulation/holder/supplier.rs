//! Keeps the buffers filled, as `resolver::supply::Supplier` does.

use std::rc::Rc;

use issuer::{
    block::{Block, Span},
    core::{Answer, Request, Returned},
    names::StoreEpoch,
    tokens::Generation,
};
use resolver::supply::Closed;

use super::{
    Holder,
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
/// Pause before a store that failed is asked again.
const STORE_PAUSE: u64 = 60;
/// Unused ranges that fit into one call.
const RANGES_MAX: usize = 32;
/// How often a process that stops looks whether its creates have ended.
const POLL: u64 = 20;

/// Works until told to stop; then gives back what is left.
pub(super) async fn supply(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        if holder.state.borrow().registered.is_none() {
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

/// Beats, and trusts a ceiling for one holder TTL from before the beat that told it was sent.
pub(super) async fn beat(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        let registered = holder.state.borrow().registered;
        if let Some((incarnation, _)) = registered {
            let progress = |(namespace, _): &(_, u64)| (Clone::clone(namespace), 0);
            let progress = holder.setup.namespaces.iter().map(progress).collect();
            let request = Request::KeepAlive { holder: holder.setup.id.clone(), incarnation, progress };
            holder.one_beat(&Rc::new(request)).await;
        }
        holder.desk.sleep(holder.setup.holder_ttl_ms / 3).await;
    }
}

impl Holder {
    async fn one_beat(&self, request: &Rc<Request>) {
        for _ in 0..3 {
            let sent = self.desk.now();
            match self.one_try(request).await {
                Next::Done(Answer::Alive { ceilings, .. }) => {
                    let until = sent + self.setup.holder_ttl_ms;
                    self.desk.note(Note::Trusts { ceilings, until });
                    return;
                }
                Next::Follow(_) => {}
                Next::Again => self.state.borrow_mut().leader = None,
                Next::Done(_) | Next::Refused(_) => return,
            }
        }
    }

    pub(super) async fn register(&self) {
        let request = Request::Register {
            holder: self.setup.id.clone(),
            instance: self.setup.instance.clone(),
            namespaces: self.setup.namespaces.clone(),
            reserved: false,
        };
        match self.call(request).await {
            Ok(Answer::Registered { incarnation, last_seq, .. }) => {
                self.state.borrow_mut().registered = Some((incarnation, last_seq));
            }
            Ok(_) => {}
            Err(refused) => self.refused(refused).await,
        }
    }

    async fn refill(&self, namespace: usize) {
        if self.desk.now() < self.state.borrow().mintings[namespace].rests_until {
            return;
        }
        while self.wants_block(namespace) && !self.is_stopping() {
            let allocated = self.allocate(namespace).await;
            match allocated {
                None => return,
                Some(Ok((block, leaked))) => self.enter(namespace, block, leaked).await,
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
    pub(super) async fn allocate(
        &self,
        namespace: usize,
    ) -> Option<Result<(Block, Option<Generation>), Refused>> {
        let (incarnation, last) = self.state.borrow().registered?;
        let seq = last.next();
        let store = self.store_epoch().await;
        let request = Request::Allocate {
            holder: self.setup.id.clone(),
            incarnation,
            seq,
            namespace: self.setup.namespaces[namespace].0.clone(),
            wanted_len: self.desk.draw(|rng| rng.between(1, 2 * self.setup.block_max)),
            store,
        };
        match self.call(request).await {
            Ok(Answer::Allocated { block, .. }) if block.namespace != self.setup.namespaces[namespace].0 => {
                // A late copy of a call that was refused has used the seq up, for another namespace. Registering again
                // tells which seq is next.
                self.desk.note(Note::Happened(Happening::ForeignBlock, 1));
                Some(Err(Refused::NotRegistered))
            }
            Ok(Answer::Allocated { block, leaked, .. }) => {
                self.state.borrow_mut().registered = Some((incarnation, seq));
                Some(Ok((block, leaked)))
            }
            Ok(_) => None,
            Err(refused) => Some(Err(refused)),
        }
    }

    /// Enters the block into the register, then hands it to the creators. A leaked one is taken over, and only what has no
    /// link is handed on.
    pub(super) async fn enter(&self, namespace: usize, block: Block, leaked: Option<Generation>) {
        let entry = self.entry(&block);
        let op = match leaked {
            None => StoreOp::Register { namespace, entry },
            Some(leaked) => StoreOp::TakeOver { namespace, entry, leaked: last_token(leaked) },
        };
        let StoreReply::Registered(true) = self.until_it_answers(op).await else {
            self.desk.note(Note::Refused { take_over: leaked.is_some() });
            return self.give_up_overlapping(namespace, block).await;
        };
        let left = match leaked {
            None => None,
            Some(_) => {
                let op = StoreOp::Unused { namespace, span: block.span };
                let StoreReply::Unused(left) = self.until_it_answers(op).await else { return };
                let count = left.iter().map(|span| span.len()).sum();
                self.desk.note(Note::Happened(Happening::TakeOver, 1));
                self.desk.note(Note::Happened(Happening::ReclaimedGap, count));
                Some(left)
            }
        };
        // A ledger that was lost counts generations anew, and the buffer would take two blocks for one.
        if !self.state.borrow_mut().generations.insert((namespace, block.generation)) {
            self.desk.note(Note::SameGeneration);
            return;
        }
        self.add(namespace, block, left);
    }

    async fn give_up_overlapping(&self, namespace: usize, block: Block) {
        let StoreReply::End(end) = self.until_it_answers(StoreOp::RegisteredEnd { namespace }).await else {
            return;
        };
        let burned = block.span.len();
        let registered_end = (end > 0).then_some(end);
        self.send_back(Returned { block, used: 0, burned, unused: Vec::new(), registered_end }).await;
    }

    async fn store_epoch(&self) -> StoreEpoch {
        loop {
            if let StoreReply::Epoch(epoch) = self.until_it_answers(StoreOp::Epoch).await {
                return epoch;
            }
        }
    }

    async fn until_it_answers(&self, op: StoreOp) -> StoreReply {
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
            for closed in closed {
                self.return_block(namespace, closed).await;
            }
        }
    }

    pub(super) async fn return_all(&self) {
        if self.state.borrow().registered.is_none() {
            return;
        }
        for namespace in 0..self.setup.namespaces.len() {
            let closed = self.state.borrow_mut().mintings[namespace].buffer.take_all();
            for closed in closed {
                self.return_block(namespace, closed).await;
            }
        }
    }

    /// Released in the register first; if that fails the block stays open with the issuer.
    async fn return_block(&self, namespace: usize, closed: Closed) {
        if closed.unused.len() > RANGES_MAX {
            return;
        }
        if !closed.unused.is_empty() {
            let (entry, kept) = (self.entry(&closed.block), complement(closed.block.span, &closed.unused));
            let released = self.desk.store(StoreOp::Release { namespace, entry, kept }).await;
            if !matches!(released, StoreReply::Released) {
                return;
            }
        }
        let Closed { block, used, burned, unused } = closed;
        self.send_back(Returned { block, used, burned, unused, registered_end: None }).await;
    }

    async fn send_back(&self, returned: Returned) {
        let Some((incarnation, _)) = self.state.borrow().registered else { return };
        self.desk.note(Note::Returns(returned.check().is_ok()));
        let request = Request::Return { holder: self.setup.id.clone(), incarnation, blocks: vec![returned] };
        // A refusal is only logged: the block leaks.
        if self.call(request).await.is_ok() {
            self.desk.note(Note::Happened(Happening::Returned, 1));
        }
    }

    pub(super) async fn refused(&self, refused: Refused) {
        if let Refused::NotRegistered = refused {
            self.state.borrow_mut().registered = None;
        }
        self.desk.sleep(REST).await;
    }
}

/// What lies in the block and in none of the ranges.
fn complement(block: Span, unused: &[Span]) -> Vec<Span> {
    let mut kept = Vec::new();
    let mut from = block.start();
    for span in unused {
        kept.extend(Span::new(from, span.start() - from).ok());
        from = span.end();
    }
    kept.extend(Span::new(from, block.end() - from).ok());
    kept
}
