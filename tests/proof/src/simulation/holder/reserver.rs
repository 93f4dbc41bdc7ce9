//! A client of reservations: it makes, fills and gives them up, as `app::reservation`
//! does for its callers.
//!
//! Any process fills and gives up any reservation, because the whole state of a reservation is in
//! the database.

use std::{rc::Rc, sync::Arc};

use holder::EntryId;
use issuer::core::{Answer, Request, Returned};
use numbers::{Block, HolderId, Incarnation, Instance, Seq, Span};

use super::{Holder, START_BITS, client::Refused, token};
use crate::{
    simulation::{
        checks::Note,
        database::{Reservation, StoreOp, StoreReply},
        summary::Happening,
    },
    stores::Entry,
};

/// The time limit in milliseconds for reserving numbers, and for giving a reservation up.
const DEADLINE: u64 = 2_000;
/// The maximum number of blocks per reservation.
const BLOCKS_MAX: u64 = 8;
/// How often a fill with an unknown outcome is sent, and the pause between two tries in
/// milliseconds.
const FILL_TRIES: usize = 4;
const FILL_PAUSE: u64 = 60;
/// The bits for the reservations of one start.
const PER_START_BITS: u32 = 5;

/// The error of a reservation that was not made.
struct Failed;

/// The outcome of a fill.
enum Fill {
    Stored,
    Conflict,
    /// The fill may be sent again unchanged.
    Again,
}

/// Makes, fills and gives up reservations until the process stops.
pub(super) async fn reserve(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        let think = holder.desk.draw(|rng| rng.between(1, 2 * holder.setup.think_max));
        holder.desk.sleep(think).await;
        match holder.desk.draw(|rng| rng.between(0, 9)) {
            0..=1 => holder.make().await,
            2..=8 => holder.fill_one().await,
            _ => holder.give_one_up().await,
        }
    }
}

fn name(reservation: u64) -> HolderId {
    HolderId::new(format!("r{reservation}")).expect("the name is well-formed")
}

impl Holder {
    /// Draws the next reservation's id. No start and no other reservation has it, also as the owner
    /// of a register entry.
    fn next_reservation(&self) -> Option<u64> {
        let mut state = self.state.borrow_mut();
        state.reservations += 1;
        let fits = state.reservations < 1 << PER_START_BITS;
        let starts = 1 << (START_BITS - 1 - PER_START_BITS);
        (fits && self.setup.start < starts)
            .then_some((1 << (START_BITS - 1)) | (self.setup.start << PER_START_BITS) | state.reservations)
    }

    async fn make(&self) {
        let namespace = self.desk.draw(|rng| rng.index(self.setup.namespaces.len()));
        let count = self.desk.draw(|rng| rng.between(1, 2 * self.setup.block_max));
        let Some(reservation) = self.next_reservation() else { return };
        let deadline = self.desk.now() + DEADLINE;
        let StoreReply::Done = self.desk.store(StoreOp::AddReservation { reservation, namespace }).await
        else {
            return;
        };
        match self.take(reservation, namespace, count, deadline).await {
            Ok(spans) => self.desk.note(Note::Reserved { reservation, namespace, spans }),
            Err(Failed) => {
                self.desk.note(Note::Happened(Happening::ReserveFailed, 1));
                // The reservation's blocks leak, because other clients may have filled some of
                // their numbers.
                self.give_up(reservation, namespace).await;
            }
        }
    }

    /// Allocates blocks until there are enough numbers.
    async fn take(
        &self,
        reservation: u64,
        namespace: usize,
        count: u64,
        deadline: u64,
    ) -> Result<Vec<Span>, Failed> {
        let incarnation = self.register_reservation(reservation, namespace, true, deadline).await?;
        let (mut spans, mut missing) = (Vec::new(), count);
        for seq in 1..=BLOCKS_MAX {
            if missing == 0 {
                break;
            }
            let at = (incarnation, Seq(seq));
            let block = self.allocate_reserved(reservation, namespace, at, missing, deadline).await?;
            let entry =
                Entry { span: block.span, generation: token(block.generation, reservation, EntryId(seq)) };
            let entered = self.enter_reserved(reservation, namespace, (incarnation, entry), block).await?;
            missing -= entered.iter().map(|span| span.len()).sum::<u64>();
            spans.extend(entered);
        }
        if missing == 0 { Ok(spans) } else { Err(Failed) }
    }

    async fn register_reservation(
        &self,
        reservation: u64,
        namespace: usize,
        reserved: bool,
        deadline: u64,
    ) -> Result<Incarnation, Failed> {
        let instance = if reserved { "reserved" } else { "given-up" };
        let request = Request::Register {
            holder: name(reservation),
            instance: Instance::new(instance).expect("both names are valid"),
            namespaces: vec![self.state.borrow().configured[namespace].clone()],
            reserved,
        };
        match self.call_until(request, deadline).await {
            Ok(Answer::Registered { incarnation, .. }) => Ok(incarnation),
            _ => Err(Failed),
        }
    }

    async fn allocate_reserved(
        &self,
        reservation: u64,
        namespace: usize,
        (incarnation, seq): (Incarnation, Seq),
        wanted_len: u64,
        deadline: u64,
    ) -> Result<Block, Failed> {
        let StoreReply::Epoch(store) = self.desk.store(StoreOp::Epoch).await else { return Err(Failed) };
        let name_of_namespace = self.setup.namespaces[namespace].0.clone();
        let request = Request::Allocate {
            holder: name(reservation),
            incarnation,
            seq,
            namespace: name_of_namespace.clone(),
            wanted_len,
            store,
        };
        match self.call_until(request, deadline).await {
            Ok(Answer::Allocated { block, leaked: None, .. })
                if block.namespace == name_of_namespace && block.span.len() <= wanted_len =>
            {
                Ok(block)
            }
            _ => Err(Failed),
        }
    }

    /// Enters a block into the register, and returns its free numbers.
    async fn enter_reserved(
        &self,
        reservation: u64,
        namespace: usize,
        (incarnation, entry): (Incarnation, Entry),
        block: Block,
    ) -> Result<Vec<Span>, Failed> {
        match self.desk.store(StoreOp::Register { namespace, entry }).await {
            StoreReply::Registered(true) => {}
            StoreReply::Registered(false) => {
                self.desk.note(Note::Refused { take_over: false });
                self.return_overlapping(reservation, namespace, incarnation, block).await?;
                return Ok(Vec::new());
            }
            _ => return Err(Failed),
        }
        let StoreReply::Unused(free) = self.desk.store(StoreOp::Unused { namespace, span: entry.span }).await
        else {
            return Err(Failed);
        };
        if free != [entry.span] {
            let op = StoreOp::Release { namespace, entry, kept: free.clone() };
            let StoreReply::Released = self.desk.store(op).await else { return Err(Failed) };
        }
        Ok(free)
    }

    async fn return_overlapping(
        &self,
        reservation: u64,
        namespace: usize,
        incarnation: Incarnation,
        block: Block,
    ) -> Result<(), Failed> {
        let StoreReply::End(end) = self.desk.store(StoreOp::RegisteredEnd { namespace }).await else {
            return Err(Failed);
        };
        let (burned, registered_end) = (block.span.len(), (end > 0).then_some(end));
        let returned = Returned { block, used: 0, burned, unused: Vec::new(), registered_end };
        self.return_reserved(reservation, incarnation, returned).await
    }

    async fn return_reserved(
        &self,
        reservation: u64,
        incarnation: Incarnation,
        returned: Returned,
    ) -> Result<(), Failed> {
        let request = Request::Return { holder: name(reservation), incarnation, blocks: vec![returned] };
        let deadline = self.desk.now() + DEADLINE;
        self.call_until(request, deadline).await.map(|_| ()).map_err(|_: Refused| Failed)
    }

    /// Gives a reservation up, and returns whether that is complete. It may be repeated.
    pub(super) async fn give_up(&self, reservation: u64, namespace: usize) -> bool {
        self.desk.note(Note::GivingUp { reservation });
        let StoreReply::Done = self.desk.store(StoreOp::CloseReservation { reservation }).await else {
            return false;
        };
        let deadline = self.desk.now() + DEADLINE;
        let done = self.register_reservation(reservation, namespace, false, deadline).await.is_ok();
        self.desk.note(Note::Happened(Happening::GivenUp, u64::from(done)));
        done
    }

    async fn pick(&self) -> Option<Reservation> {
        let StoreReply::Reservations(all) = self.desk.store(StoreOp::Reservations).await else { return None };
        (!all.is_empty()).then(|| self.desk.draw(|rng| all[rng.index(all.len())].clone()))
    }

    async fn give_one_up(&self) {
        if let Some(reservation) = self.pick().await {
            self.give_up(reservation.id, reservation.namespace).await;
        }
    }

    /// Stores a link under a number of any open reservation, also of one that is still being made.
    async fn fill_one(&self) {
        let Some(Reservation { id, namespace, closed: false, spans }) = self.pick().await else { return };
        if spans.is_empty() {
            return;
        }
        let span = self.desk.draw(|rng| spans[rng.index(spans.len())]);
        let number = self.desk.draw(|rng| rng.between(span.start(), span.end() - 1));
        let url = self.next_url();
        for _ in 0..FILL_TRIES {
            match self.fill(namespace, number, url).await {
                Fill::Stored => {
                    return self.desk.note(Note::Filled { reservation: id, namespace, number, url });
                }
                Fill::Conflict => {
                    return self.desk.note(Note::Happened(Happening::FillConflict, 1));
                }
                Fill::Again => self.desk.sleep(FILL_PAUSE).await,
            }
        }
    }

    /// Sends a fill once. If the row exists already it is read, because an earlier copy of the call
    /// may have stored it.
    async fn fill(&self, namespace: usize, number: u64, url: u64) -> Fill {
        let StoreReply::Epoch(history) = self.desk.store(StoreOp::Epoch).await else { return Fill::Again };
        let insert = StoreOp::Insert { namespace, number, url, history: Arc::new(history) };
        let absent = match self.desk.store(insert).await {
            StoreReply::Inserted(true) => return Fill::Stored,
            StoreReply::Inserted(false) => Fill::Conflict,
            StoreReply::Unknown => {
                self.desk.note(Note::Happened(Happening::FillUnknown, 1));
                Fill::Again
            }
            _ => return Fill::Again,
        };
        match self.desk.store(StoreOp::Read { namespace, number }).await {
            StoreReply::Row(Some(found)) if found == url => Fill::Stored,
            StoreReply::Row(Some(_)) => Fill::Conflict,
            StoreReply::Row(None) => absent,
            _ => Fill::Again,
        }
    }
}
