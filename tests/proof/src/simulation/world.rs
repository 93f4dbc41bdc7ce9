//! The simulated world: all machines, and the loop that executes one event after another.
//!
//! A run has three parts. Faults strike until [`Plan::calm_at`]. Then every holder must create
//! again within [`super::plan::RECOVERY_MAX`]. Then all stop, their leftovers are swept, and every
//! number is accounted for.

use std::{collections::BTreeSet, rc::Rc};

use issuer::{
    core::Request,
    ledger::{Snapshot, Txn, TxnOutcome},
};
use numbers::{Epoch, HolderId, Instance, Namespace};

use super::{
    agenda::Agenda,
    checks::{Checks, Note},
    database::{Database, StoreOp},
    desk::{Command, Desk, Reply, Tasks},
    etcd::Etcd,
    faults::Fault,
    holder::{Holder, Setup},
    issuers::Issuer,
    plan::{Plan, Rates, TICK},
    rng::Rng,
    summary::{Happening, Summary},
};
use crate::Mutant;

/// The maximum number of events in a run. A run that reaches it makes no progress.
const EVENTS_MAX: u64 = 300_000;

/// The caller that an answer goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) process: usize,
    pub(super) slot: u64,
}

/// An event of the simulation.
#[derive(Debug)]
pub(super) enum Event {
    Tick { issuer: usize, life: u32 },
    Load { issuer: usize, life: u32, epoch: Epoch },
    Elected { issuer: usize, life: u32, epoch: Epoch, snapshot: Box<Snapshot> },
    Committed { issuer: usize, life: u32, commit: u64, outcome: TxnOutcome },
    StopIssuer { issuer: usize, life: u32 },
    StartIssuer { issuer: usize },
    Txn { issuer: usize, life: u32, commit: u64, history: u32, answers: bool, txn: Box<Txn> },
    Resign { epoch: Epoch },
    Call { issuer: usize, from: Caller, request: Rc<Request> },
    Store { from: Caller, op: StoreOp, answers: bool, history: u32 },
    Reply { to: Caller, reply: Reply },
    StartHolder { holder: usize },
    Raise(usize),
    Configure { holder: usize, updates: bool },
    Fault(Fault),
    Calm,
    Overdue,
    Sweep,
    End,
}

/// A process of a holder.
pub(super) struct Process {
    pub(super) holder: usize,
    pub(super) paused_until: u64,
    pub(super) tasks: Option<Tasks>,
    desk: Rc<Desk>,
    pub(super) body: Rc<Holder>,
}

/// The whole simulated system.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) mutant: Option<Mutant>,
    pub(super) rng: Rng,
    pub(super) agenda: Agenda<Event>,
    pub(super) etcd: Etcd,
    pub(super) database: Database,
    pub(super) issuers: Vec<Issuer>,
    pub(super) processes: Vec<Process>,
    /// The process of each holder that its supervisor knows.
    pub(super) current: Vec<Option<usize>>,
    pub(super) checks: Checks,
    pub(super) summary: Summary,
    pub(super) calm: bool,
    /// Every namespace with the capacity that its operator wants.
    pub(super) namespaces: Vec<(Namespace, u64)>,
    /// The namespaces as each holder is configured with them.
    pub(super) configured: Vec<Vec<(Namespace, u64)>>,
    /// The holders that have recovered since the calm began; `None` while recovery is not required.
    pub(super) recovered: Option<BTreeSet<usize>>,
    pub(super) swept: bool,
}

impl World {
    pub(super) fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng, mutant);
        let name = |index| Namespace::new(format!("n{index}")).expect("the name is well-formed");
        let namespaces: Vec<_> =
            plan.capacities.iter().enumerate().map(|(index, capacity)| (name(index), *capacity)).collect();
        let issuers = (0..plan.issuers).map(|_| Issuer::new(plan.limits)).collect();
        let mut world = Self {
            mutant,
            agenda: Agenda::new(),
            etcd: Etcd::default(),
            database: Database::new(namespaces.len()),
            issuers,
            processes: Vec::new(),
            current: vec![None; plan.holders],
            checks: Checks::new(namespaces.iter().map(|(name, _)| name.clone()).collect()),
            summary: Summary::default(),
            calm: false,
            configured: vec![namespaces.clone(); plan.holders],
            namespaces,
            recovered: None,
            swept: false,
            plan,
            rng,
        };
        for issuer in 0..world.issuers.len() {
            let delay = world.rng.between(0, TICK);
            world.agenda.after(delay, Event::Tick { issuer, life: 0 });
        }
        for holder in 0..world.current.len() {
            let delay = world.rng.between(0, 200);
            world.agenda.after(delay, Event::StartHolder { holder });
        }
        world.plan_faults();
        world.plan_raises();
        world.agenda.at(world.plan.calm_at, Event::Calm);
        world
    }

    /// Executes events until the sweep is done. Returns the time and the description of the first
    /// violation.
    pub(super) fn run(&mut self) -> Result<(), (u64, String)> {
        while let Some(event) = self.agenda.next() {
            self.happen(event);
            if let Some(broken) = self.checks.broken() {
                return Err((self.agenda.now(), broken));
            }
            if self.swept {
                break;
            }
            if self.agenda.planned() > EVENTS_MAX {
                return Err((self.agenda.now(), "liveness: the run goes round in a circle".to_owned()));
            }
        }
        self.summary.add(Happening::Event, self.agenda.planned());
        self.summary.add(Happening::Several, u64::from(self.namespaces.len() > 1));
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick { issuer, life } => {
                self.on_issuer(issuer, life, event, |world, _| world.tick(issuer));
            }
            Event::Load { issuer, life, epoch } => {
                self.on_issuer(issuer, life, event, |world, _| world.load(issuer, epoch));
            }
            Event::StopIssuer { issuer, life } => {
                self.on_issuer(issuer, life, event, |world, _| world.crash_issuer(issuer, 300));
            }
            Event::Elected { issuer, life, epoch, .. } => {
                self.on_issuer(issuer, life, event, |world, event| {
                    if let Event::Elected { snapshot, .. } = event {
                        world.elected(issuer, epoch, *snapshot);
                    }
                });
            }
            Event::Committed { issuer, life, commit, .. } => {
                self.on_issuer(issuer, life, event, |world, event| {
                    if let Event::Committed { outcome, .. } = event {
                        world.committed(issuer, commit, outcome);
                    }
                });
            }
            Event::Call { issuer, .. } => {
                let life = self.issuers[issuer].life;
                self.on_issuer(issuer, life, event, |world, event| {
                    if let Event::Call { issuer, from, request } = event {
                        world.call(issuer, from, request);
                    }
                });
            }
            Event::StartIssuer { issuer } => self.start_issuer(issuer),
            Event::Txn { issuer, life, commit, history, answers, txn } => {
                if history == self.etcd.history {
                    self.txn(issuer, life, commit, answers, &txn);
                }
            }
            Event::Resign { epoch } => self.etcd.resign(epoch),
            Event::Store { from, op, answers, history } => self.store(from, &op, answers, history),
            Event::Reply { to, reply } => self.deliver(to, reply),
            Event::StartHolder { holder } => self.start_holder(holder),
            Event::Raise(index) => self.raise(index),
            Event::Configure { holder, updates } => self.configure(holder, updates),
            Event::Fault(fault) => self.strike(fault),
            Event::Calm => self.calm_down(),
            Event::Overdue => self.overdue(),
            Event::Sweep => self.sweep(),
            Event::End => self.checks.fail("liveness: the sweep does not end".to_owned()),
        }
    }

    /// Delivers an event to an issuer: later if it is paused, never if it has died since.
    fn on_issuer(&mut self, index: usize, life: u32, event: Event, then: impl FnOnce(&mut Self, Event)) {
        let issuer = &self.issuers[index];
        if !issuer.up || issuer.life != life {
            return;
        }
        if issuer.paused_until > self.agenda.now() {
            let until = issuer.paused_until;
            self.agenda.at(until, event);
        } else {
            then(self, event);
        }
    }

    fn start_issuer(&mut self, index: usize) {
        self.issuers[index].up = true;
        let life = self.issuers[index].life;
        self.agenda.after(1, Event::Tick { issuer: index, life });
    }

    /// Draws an event with one of the plan's rates; never true once the calm has begun.
    pub(super) fn chance(&mut self, rate: impl Fn(&Rates) -> u64) -> bool {
        !self.calm && self.rng.chance(rate(&self.plan.rates))
    }

    /// Draws the travel time of a message in milliseconds.
    pub(super) fn delay(&mut self) -> u64 {
        self.rng.between(1, 6)
    }

    /// Sends an answer to a holder.
    pub(super) fn reply(&mut self, to: Caller, reply: Reply) {
        if !self.chance(|rates| rates.call_lost) || matches!(reply, Reply::Store(_)) {
            let delay = self.delay();
            self.agenda.after(delay, Event::Reply { to, reply });
        }
    }

    fn send_call(&mut self, from: Caller, issuer: usize, request: Rc<Request>) {
        if self.chance(|rates| rates.call_doubled) {
            let (delay, request) = (self.rng.between(1, 2_000), Rc::clone(&request));
            self.agenda.after(delay, Event::Call { issuer, from, request });
        }
        if !self.chance(|rates| rates.call_lost) {
            let long = self.chance(|rates| rates.call_delayed);
            let delay = if long { self.rng.between(20, 1_500) } else { self.delay() };
            self.agenda.after(delay, Event::Call { issuer, from, request });
        }
    }

    fn deliver(&mut self, to: Caller, reply: Reply) {
        let process = &self.processes[to.process];
        if process.paused_until > self.agenda.now() {
            let until = process.paused_until;
            self.agenda.at(until, Event::Reply { to, reply });
        } else if process.tasks.is_some() {
            process.desk.deliver(to.slot, reply);
            self.run_process(to.process);
        }
    }

    pub(super) fn run_process(&mut self, index: usize) {
        let now = self.agenda.now();
        let Some(tasks) = &mut self.processes[index].tasks else { return };
        for command in tasks.run(now) {
            let caller = |slot| Caller { process: index, slot };
            match command {
                Command::Call { slot, issuer, request } => self.send_call(caller(slot), issuer, request),
                Command::Store { slot, op } => self.ask_store(caller(slot), op),
                Command::Wake { slot, after } => {
                    self.agenda.after(after, Event::Reply { to: caller(slot), reply: Reply::Awake });
                }
                Command::Note(note) => self.note(index, note),
            }
        }
    }

    fn note(&mut self, process: usize, note: Note) {
        let holder = self.processes[process].holder;
        match note {
            Note::Acknowledged { .. } | Note::Exhausted { .. } => self.recover(holder),
            Note::Outdated if self.current.get(holder) == Some(&Some(process)) => self.repair(holder),
            // Blocks that a holder has leaked in its own start can only be taken over by another
            // holder.
            Note::Happened(Happening::InOtherHands, _) if self.plan.holders == 1 => self.recover(holder),
            Note::Superseded if self.current.get(holder) == Some(&Some(process)) => {
                // Two processes of one name are an operator's mistake, and only the supervisor can
                // end one of them.
                self.crash_holder(holder);
            }
            Note::Swept => self.finish(),
            _ => {}
        }
        self.checks.note(note, &self.database, &mut self.summary);
    }

    /// Returns the setup of the next process of a holder.
    pub(super) fn setup(&self, name: &str, namespaces: &[(Namespace, u64)]) -> Setup {
        let start = u64::try_from(self.processes.len()).unwrap_or(u64::MAX) + 1;
        Setup {
            id: HolderId::new(name).expect("the name is well-formed"),
            instance: Instance::new(format!("i{start}")).expect("the name is well-formed"),
            start,
            issuers: self.issuers.len(),
            namespaces: namespaces.to_vec(),
            holder_ttl_ms: self.plan.limits.holder_ttl_ms,
            rules: Mutant::rules(self.mutant),
            mutant: self.mutant,
            block_max: self.plan.limits.block_max,
            creators: self.plan.creators,
            think_max: self.plan.think_max,
            shared_urls: self.plan.shared_urls,
            reserves: self.plan.reserves,
        }
    }

    fn start_holder(&mut self, holder: usize) {
        let stopped = self.calm && self.recovered.is_none();
        if stopped {
            return;
        }
        let setup = self.setup(&format!("h{holder}"), &self.configured[holder]);
        self.current[holder] = Some(self.start_process(holder, setup, Holder::start));
    }

    pub(super) fn start_process(
        &mut self,
        holder: usize,
        setup: Setup,
        start: impl FnOnce(Rc<Desk>, Setup, &mut Tasks) -> Rc<Holder>,
    ) -> usize {
        let desk = Rc::new(Desk::new(self.rng.fork()));
        let mut tasks = Tasks::new(Rc::clone(&desk));
        let body = start(Rc::clone(&desk), setup, &mut tasks);
        self.processes.push(Process { holder, paused_until: 0, tasks: Some(tasks), desk, body });
        let index = self.processes.len() - 1;
        self.run_process(index);
        index
    }

    /// Ends a process. Its messages stay on their way.
    pub(super) fn kill(&mut self, index: usize) {
        self.processes[index].tasks = None;
    }
}
