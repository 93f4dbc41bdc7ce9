//! Password hashing and tries at the passwords of links, both bounded.
//!
//! 1. A hash takes tens of milliseconds of a core on purpose. A few are computed at a time, away from
//!    the listeners' threads, and half of the cores stay free of them. Hashes of new passwords count
//!    among them.
//! 2. Guessing is slowed down for each link: by the client's address (IPv6: its /64), and for all
//!    clients together. Nobody is locked out: a try beyond the rate waits until it has grown, a few of
//!    them at a time, and a correct password gives its try back.

use std::{net::IpAddr, sync::Arc, thread::available_parallelism, time::Duration};

use codes::LinkId;
use daemon::network;
use links::{PasswordError, PasswordHash, api_key::ApiKeyId};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::budgets::{Held, Holder, Lane, Pool, Rate, Spent};

/// Passwords that are hashed at a time at most, new ones and tries.
const AT_ONCE: usize = 2;
/// How long one may wait for its turn, and how many do: of all, of one client or key, and for a hash
/// of a new password.
const PATIENCE: Duration = Duration::from_secs(5);
const WAITING: u64 = 32;
const WAITING_OF_ONE: u64 = 4;
const NEW: usize = 8;
/// How long a try past the budget may wait for it to grow: a little more than one takes to come back.
const SLOWED: Duration = Duration::from_secs(8);
/// Tries of one client at one link, per minute.
const TRIES_OF_CLIENT: u32 = 10;
/// Tries that wait for their rate to grow: of all clients and of one.
const TRIES: (u64, u64) = (64, 8);
/// Tries of all at one link, per minute.
const TRIES_OF_ALL: u32 = 120;

/// Hashes passwords, a few at a time, and limits the tries at each link.
pub struct PasswordGuard {
    turns: Arc<Semaphore>,
    waiting: Arc<Pool>,
    new: Semaphore,
    of_client: Rate,
    of_all: Rate,
    slowed: Lane,
    since: Instant,
}

impl Default for PasswordGuard {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new((cores / 2).clamp(1, AT_ONCE))),
            waiting: Pool::of_clients((WAITING, WAITING_OF_ONE)),
            new: Semaphore::new(NEW),
            of_client: Rate::new(TRIES_OF_CLIENT),
            of_all: Rate::new(TRIES_OF_ALL),
            slowed: Lane::new(Pool::of_clients(TRIES), SLOWED),
            since: Instant::now(),
        }
    }
}

/// The outcome of a try of a password.
pub enum Tried {
    /// The password is right.
    Opened,
    /// It is not.
    Wrong,
    /// The rate of the client or of the link is spent for so long.
    TooMany(Duration),
    /// Too many hashes wait already.
    Busy,
}

impl PasswordGuard {
    /// The hash of a new password; none when too many wait for theirs.
    pub async fn hash(&self, by: ApiKeyId, password: String) -> Option<Result<PasswordHash, PasswordError>> {
        // Visitors wait in the same line, and creates must not fill it.
        let _new = self.new.try_acquire().ok()?;
        let waiting = self.waiting.take(Holder::Key(by), 1).ok()?;
        self.in_turn(waiting, move || PasswordHash::of(&password)).await
    }

    /// Does what takes a core for long when it is its turn; none when that does not come in time.
    async fn in_turn<T: Send + 'static>(
        &self,
        waiting: Held,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await.ok()?.ok()?;
        drop(waiting);
        // The turn ends with the work, not with whoever asked for it.
        let done = spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.ok()
    }

    /// Compares a password with the hash of a link's, within the rates of the client and of the link.
    pub async fn open(&self, link: LinkId, client: IpAddr, hash: &PasswordHash, password: String) -> Tried {
        let (client, holder) = (network(client), Holder::client(client));
        let of_client = || self.of_client.spend((link, client), self.since.elapsed());
        let of_all = || self.of_all.spend(link, self.since.elapsed());
        if let Err(wait) = self.slowed.pass(holder, of_client).await {
            return Tried::TooMany(wait);
        }
        if let Err(wait) = self.slowed.pass(holder, of_all).await {
            self.of_client.give_back((link, client));
            return Tried::TooMany(wait);
        }
        let hash = hash.clone();
        let tried = match self.waiting.take(holder, 1) {
            Ok(waiting) => match self.in_turn(waiting, move || hash.is_of(&password)).await {
                Some(true) => Tried::Opened,
                Some(false) => return Tried::Wrong,
                None => Tried::Busy,
            },
            Err(Spent::Own) => Tried::TooMany(Duration::from_secs(1)),
            Err(Spent::All) => Tried::Busy,
        };
        // Nothing was learned by it.
        self.of_client.give_back((link, client));
        self.of_all.give_back(link);
        tried
    }
}
