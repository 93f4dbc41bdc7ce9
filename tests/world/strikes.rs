//! Faults beyond those of single calls: crashes, outages, elections, and older copies that take
//! over.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use codes::LinkId;
use links::DomainId;
use numbers::Mark;
use tokio::time::sleep;

use super::{
    book::Name,
    clients::Running,
    focus::Focus,
    run::{Failure, World},
};

/// How long a process cannot reach the issuer, in milliseconds: until its blocks go to others,
/// while it still mints from them.
const CUT_OFF_MS: (u64, u64) = (3_500, 7_000);

/// How long a process does not hear of a keyspace that is being added, in milliseconds.
const LATE_MS: (u64, u64) = (1_000, 5_000);

/// A fault that strikes a run.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Crash,
    Cut,
    Election,
    Outage,
    LongOutage,
    KeepCopy,
    FailOver,
    PutBack,
    KeepLedger,
    PutLedgerBack,
    CutOff,
    Rollout,
}

impl World {
    /// Draws a fault: an ordinary one (crash, outage, cut or election), or one of the run's focus.
    fn draw_fault(&mut self) -> Fault {
        // Each of the ordinary faults ends the state on which the checks of changes and replicas
        // depend.
        let ordinary = if self.focus.is_about_changes() { 150 } else { 500 };
        let about: &[Fault] = if self.rng.permille(ordinary) {
            &[Fault::Crash, Fault::Crash, Fault::Cut, Fault::Election, Fault::Outage, Fault::Outage]
        } else {
            match self.focus {
                Focus::Doubts => &[Fault::Crash, Fault::Crash, Fault::CutOff],
                Focus::Domains => &[Fault::Crash],
                Focus::Rollouts => &[Fault::Rollout],
                Focus::Histories | Focus::Copies => {
                    &[Fault::KeepCopy, Fault::FailOver, Fault::PutBack, Fault::PutBack]
                }
                Focus::Ledgers => &[Fault::KeepLedger, Fault::PutLedgerBack],
                Focus::Changes => &[Fault::KeepCopy],
                Focus::Outages => &[Fault::KeepCopy, Fault::LongOutage],
            }
        };
        about[usize::try_from(self.rng.next()).unwrap_or(0) % about.len()]
    }

    pub(super) async fn strike(&mut self) -> Result<(), Failure> {
        let shared = Arc::clone(self.shared());
        let database = &shared.common.database;
        let fault = self.draw_fault();
        tracing::info!(?fault, "strike");
        match fault {
            Fault::Crash => self.crash().await,
            Fault::Cut => shared.common.network.cut(),
            Fault::Election => {
                shared.count(|outcome| outcome.elections += 1);
                shared.common.network.lead(None);
                sleep(self.rng.millis(0, 2_500)).await;
                self.elect().await?;
            }
            Fault::Outage => {
                shared.count(|outcome| outcome.outages += 1);
                let down = self.rng.millis(50, 1_500);
                if self.rng.permille(500) {
                    database.keep_copy();
                }
                database.restart(down);
            }
            Fault::LongOutage => {
                shared.count(|outcome| outcome.long_outages += 1);
                database.restart(self.rng.millis(1_000, 5_000));
            }
            Fault::KeepCopy => database.keep_copy(),
            Fault::FailOver if database.has_copy() => self.fall_back_beside_a_start(true).await,
            Fault::FailOver | Fault::PutBack => {
                // A cold copy is restored only if a higher mark has been reported since. The other
                // case is documented as a limitation.
                let told = database.mark_of_copy().and_then(|mark| u64::try_from(mark).ok()).map(Mark);
                if told.is_some_and(|mark| shared.ledger.mark() > mark) {
                    self.fall_back_beside_a_start(false).await;
                }
            }
            Fault::KeepLedger => shared.ledger.keep_copy(),
            Fault::PutLedgerBack => {
                if !shared.lossy.load(Ordering::Relaxed) {
                    self.put_ledger_back().await?;
                }
            }
            Fault::CutOff => self.cut_off(),
            Fault::Rollout => self.roll_out().await,
        }
        Ok(())
    }

    async fn put_ledger_back(&mut self) -> Result<(), Failure> {
        let shared = Arc::clone(self.shared());
        if shared.ledger.put_back() {
            shared.ledger_lossy.store(true, Ordering::Relaxed);
            shared.count(|outcome| outcome.ledgers_put_back += 1);
            self.elect().await?;
        }
        Ok(())
    }

    fn some_node(&mut self) -> usize {
        usize::try_from(self.rng.next()).unwrap_or(0) % self.nodes.len()
    }

    /// Kills a process and starts its successor. Sometimes the successor starts earlier and gets
    /// the process's blocks at once, while the process still mints unaware of it.
    async fn crash(&mut self) {
        let shared = Arc::clone(self.shared());
        let index = self.some_node();
        shared.count(|outcome| outcome.crashes += 1);
        if self.rng.permille(500) {
            let successor = self.nodes[index].again(&shared, &mut self.rng).await;
            let elder = std::mem::replace(&mut self.nodes[index], successor);
            sleep(self.rng.millis(100, 2_000)).await;
            elder.kill();
        } else {
            self.nodes[index].kill();
            sleep(self.rng.millis(1, 3_000)).await;
            self.nodes[index] = self.nodes[index].again(&shared, &mut self.rng).await;
        }
    }

    /// Restarts processes that have ended by themselves. After the ledger was restored, an elder
    /// process may register again, and its successor is told to end. A supervisor would restart it.
    pub(super) async fn start_lost(&mut self) {
        let shared = Arc::clone(self.shared());
        for running in self.nodes.iter_mut().filter(|running| running.node.is_lost()) {
            running.kill();
            *running = running.again(&shared, &mut self.rng).await;
        }
    }

    /// Starts a process with a configuration that has one more keyspace, usually as the default
    /// one. The others continue without it.
    async fn roll_out(&mut self) {
        let shared = Arc::clone(self.shared());
        if self.keyspaces < shared.common.keyspaces.len() {
            self.keyspaces += 1;
            shared.count(|outcome| outcome.rolled_out += 1);
        }
        let default = if self.rng.permille(800) { self.keyspaces - 1 } else { 0 };
        let (index, setup) = (self.some_node(), self.setup(default));
        if self.rng.permille(500) {
            let late = self.some_node();
            self.nodes[late].node.hang(self.rng.millis(LATE_MS.0, LATE_MS.1));
        }
        self.nodes[index].kill();
        let holder = self.nodes[index].node.holder.clone();
        self.nodes[index] = Running::start(&shared, &holder, setup, &mut self.rng).await;
    }

    /// Cuts one process off from the issuer for a while, but not the others.
    fn cut_off(&mut self) {
        let shared = Arc::clone(self.shared());
        shared.count(|outcome| outcome.isolated += 1);
        let index = self.some_node();
        self.nodes[index].node.cut_off(self.rng.millis(CUT_OFF_MS.0, CUT_OFF_MS.1));
        shared.common.network.cut();
    }

    /// Lets an older copy of the database take over while a process is absent or starts. A starting
    /// process takes over a block whose links are then lost, or has taken it over just before.
    async fn fall_back_beside_a_start(&mut self, as_standby: bool) {
        let shared = Arc::clone(self.shared());
        let index = self.some_node();
        // The elder process may still run, and store links under numbers that its successor has
        // read as unused.
        let is_succeeded = self.rng.permille(400);
        let is_under_way = is_succeeded || self.rng.permille(600);
        if !is_succeeded {
            self.nodes[index].kill();
        }
        let mut elder = None;
        if is_under_way {
            let successor = self.nodes[index].again(&shared, &mut self.rng).await;
            elder = Some(std::mem::replace(&mut self.nodes[index], successor));
            sleep(self.rng.millis(5, 300)).await;
        }
        self.fall_back(as_standby);
        if !is_under_way {
            self.nodes[index] = self.nodes[index].again(&shared, &mut self.rng).await;
        }
        if let Some(elder) = elder {
            elder.kill();
        }
    }

    /// Lets an older copy of the database take over.
    fn fall_back(&mut self, as_standby: bool) {
        let shared = Arc::clone(self.shared());
        // If the ledger was restored as well, no record is left of what was allocated: see
        // `supply::history`.
        if shared.ledger_lossy.load(Ordering::Relaxed) {
            return;
        }
        shared.lossy.store(true, Ordering::Relaxed);
        let database = &shared.common.database;
        database.restart(self.rng.millis(200, 1_500));
        let code_of = |id| shared.common.mint.code_of(LinkId::from_stored(id)).map(|code| code.to_string());
        let name_of = |(id, slug, domain): (i64, Option<String>, i64)| {
            let text = slug.or_else(|| code_of(id))?;
            Some(Name { domain: DomainId::from_stored(domain), text })
        };
        let names: HashSet<Name> = database.put_back(as_standby).into_iter().filter_map(name_of).collect();
        let lost = shared.book().lose(names);
        shared.count(|outcome| {
            outcome.lost += lost;
            *(if as_standby { &mut outcome.fail_overs } else { &mut outcome.put_back }) += 1;
        });
    }
}
