//! A minimal executor for a holder's tasks, and the slots through which they call and get answers.
//!
//! Tasks are ordinary futures, so that a simulated holder reads like the supplier and the creator
//! that it stands for. Nothing runs by itself: the world delivers one reply, and the tasks that
//! waited for it are polled until they wait again.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use issuer::core::{Answer, Refusal, Request};

use super::{
    checks::Note,
    database::{StoreOp, StoreReply},
    rng::Rng,
};

/// A reply, which ends a wait.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// An issuer has answered.
    Answer(Result<Answer, Refusal>),
    /// The database has answered.
    Store(StoreReply),
    /// A time has passed, or another task has sent a signal.
    Awake,
}

/// A command of a task to the world.
#[derive(Debug)]
pub(super) enum Command {
    /// Send a call to an issuer.
    Call { slot: u64, issuer: usize, request: Rc<Request> },
    /// Call the database.
    Store { slot: u64, op: StoreOp },
    /// Wake the slot after `after` milliseconds.
    Wake { slot: u64, after: u64 },
    /// Report a note to the checkers.
    Note(Note),
}

/// The calls and waits of one process.
#[derive(Debug)]
pub(super) struct Desk(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    now: u64,
    rng: Rng,
    next_slot: u64,
    /// The task that is running.
    current: usize,
    slots: BTreeMap<u64, Slot>,
    ready: VecDeque<usize>,
    outbox: Vec<Command>,
}

#[derive(Debug)]
struct Slot {
    task: usize,
    reply: Option<Reply>,
}

/// A future that resolves when its slot has a reply.
pub(super) struct Wait<'a> {
    desk: &'a Desk,
    slot: u64,
}

impl Future for Wait<'_> {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Reply> {
        let mut inner = self.desk.0.borrow_mut();
        let Some(reply) = inner.slots.get_mut(&self.slot).and_then(|slot| slot.reply.take()) else {
            return Poll::Pending;
        };
        inner.slots.remove(&self.slot);
        Poll::Ready(reply)
    }
}

impl Desk {
    pub(super) fn new(rng: Rng) -> Self {
        Self(RefCell::new(Inner {
            now: 0,
            rng,
            next_slot: 0,
            current: 0,
            slots: BTreeMap::new(),
            ready: VecDeque::new(),
            outbox: Vec::new(),
        }))
    }

    /// Returns the time in milliseconds.
    pub(super) fn now(&self) -> u64 {
        self.0.borrow().now
    }

    /// Draws from the process's own stream.
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.borrow_mut().rng)
    }

    /// Opens a slot for the running task.
    pub(super) fn open(&self) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.next_slot += 1;
        let (slot, task) = (inner.next_slot, inner.current);
        inner.slots.insert(slot, Slot { task, reply: None });
        slot
    }

    /// Waits for the reply to a slot.
    pub(super) fn wait(&self, slot: u64) -> Wait<'_> {
        Wait { desk: self, slot }
    }

    fn put(&self, command: Command) {
        self.0.borrow_mut().outbox.push(command);
    }

    /// Reports a note to the checkers.
    pub(super) fn note(&self, note: Note) {
        self.put(Command::Note(note));
    }

    /// Wakes a slot after some time, unless another reply ends its wait before.
    pub(super) fn wake_after(&self, slot: u64, after: u64) {
        self.put(Command::Wake { slot, after });
    }

    /// Waits for some time.
    pub(super) async fn sleep(&self, after: u64) {
        let slot = self.open();
        self.wake_after(slot, after);
        self.wait(slot).await;
    }

    /// Sends one call. Returns `None` if no answer came within `patience`.
    pub(super) async fn call(
        &self,
        issuer: usize,
        request: &Rc<Request>,
        patience: u64,
    ) -> Option<Result<Answer, Refusal>> {
        let slot = self.open();
        self.put(Command::Call { slot, issuer, request: Rc::clone(request) });
        self.wake_after(slot, patience);
        match self.wait(slot).await {
            Reply::Answer(answer) => Some(answer),
            Reply::Store(_) | Reply::Awake => None,
        }
    }

    /// Calls the database. There always is a reply, if only that the outcome is unknown.
    pub(super) async fn store(&self, op: StoreOp) -> StoreReply {
        let slot = self.open();
        self.put(Command::Store { slot, op });
        match self.wait(slot).await {
            Reply::Store(reply) => reply,
            Reply::Answer(_) | Reply::Awake => StoreReply::Failed,
        }
    }

    /// Ends a wait. A second reply to a slot is dropped.
    pub(super) fn deliver(&self, slot: u64, reply: Reply) {
        let mut inner = self.0.borrow_mut();
        if let Some(waiting) = inner.slots.get_mut(&slot).filter(|slot| slot.reply.is_none()) {
            waiting.reply = Some(reply);
            let task = waiting.task;
            inner.ready.push_back(task);
        }
    }
}

/// The tasks of a process, with their desk.
pub(super) struct Tasks {
    desk: Rc<Desk>,
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Tasks {
    pub(super) fn new(desk: Rc<Desk>) -> Self {
        Self { desk, tasks: Vec::new() }
    }

    /// Adds a task, to be polled by the next [`Tasks::run`].
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.desk.0.borrow_mut().ready.push_back(self.tasks.len());
        self.tasks.push(Some(Box::pin(task)));
    }

    /// Polls the ready tasks until all of them wait. Returns their commands.
    pub(super) fn run(&mut self, now: u64) -> Vec<Command> {
        self.desk.0.borrow_mut().now = now;
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let next = {
                let mut inner = self.desk.0.borrow_mut();
                let next = inner.ready.pop_front();
                inner.current = next.unwrap_or(0);
                next
            };
            let Some(index) = next else { break };
            if let Some(task) = &mut self.tasks[index]
                && task.as_mut().poll(&mut context).is_ready()
            {
                self.tasks[index] = None;
            }
        }
        std::mem::take(&mut self.desk.0.borrow_mut().outbox)
    }
}
