//! Password hashing and attempts at links' passwords, both limited.
//!
//! 1. A hash deliberately takes tens of milliseconds of a core. A few are computed at a time, away
//!    from the listeners' threads, and half of the cores stay free of them. The limit includes
//!    hashes of new passwords.
//! 2. Guessing is slowed down for each link: per client address (IPv6: per /64), and for all
//!    clients together. No client is locked out: an attempt beyond the rate waits until the rate
//!    has recovered, a few attempts at a time, and a correct password gives its attempt back.

use std::{net::IpAddr, sync::Arc, thread::available_parallelism, time::Duration};

use codes::LinkId;
use limits::{
    Account, ExceededShare, Held, Lane, Pool, Rate,
    budgets::{HASHES, LATE, PASSWORDS_PER_MINUTE},
    network,
};
use links::{Invalid, PasswordHash, api_key::ApiKeyId};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

/// Maximum number of concurrent hashes, of new passwords and of attempts.
const AT_ONCE: usize = 2;
/// How long a hash may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of hashes of new passwords, waiting or computed.
const NEW: usize = 8;
/// How long an attempt beyond the rate may wait: a little longer than one takes to recover.
const SLOWED: Duration = Duration::from_secs(8);

/// Hashes passwords, a few at a time, and limits the attempts at each link.
pub struct PasswordGuard {
    turns: Arc<Semaphore>,
    waiting: Arc<Pool>,
    new: Semaphore,
    of_client: Rate,
    of_all: Rate,
    slowed: Lane,
}

impl Default for PasswordGuard {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new((cores / 2).clamp(1, AT_ONCE))),
            waiting: Pool::of_clients(HASHES),
            new: Semaphore::new(NEW),
            of_client: Rate::new(PASSWORDS_PER_MINUTE.0),
            of_all: Rate::new(PASSWORDS_PER_MINUTE.1),
            slowed: Lane { places: Pool::of_clients(LATE), patience: SLOWED },
        }
    }
}

/// The outcome of an attempt to open a link with a password.
pub enum Tried {
    /// The password is correct.
    Opened,
    /// The password is wrong.
    Wrong,
    /// The rate of the client or of the link is spent. Carries the time until a retry may succeed.
    TooMany(Duration),
    /// Too many hashes are waiting already.
    Busy,
}

impl PasswordGuard {
    /// Returns the hash of a new password; `None` if too many hashes are waiting.
    pub async fn hash(&self, by: ApiKeyId, password: String) -> Option<Result<PasswordHash, Invalid>> {
        // Visitors wait in the same queue, and creates must not fill it.
        let _new = self.new.try_acquire().ok()?;
        let waiting = self.waiting.take(Account::Key(by.0), 1).ok()?;
        self.in_turn(waiting, move || PasswordHash::of(&password)).await
    }

    /// Runs a computation that takes long when it is its turn. Returns `None` if its turn does not
    /// come in time.
    async fn in_turn<T: Send + 'static>(
        &self,
        waiting: Held,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await.ok()?.ok()?;
        drop(waiting);
        // The turn ends with the computation, even if the caller goes away earlier.
        let done = spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.ok()
    }

    /// Compares a password with the hash of a link's password, within the rates of the client and
    /// of the link.
    pub async fn open(&self, link: LinkId, client: IpAddr, hash: &PasswordHash, password: String) -> Tried {
        let (client, account) = (network(client), Account::client(client));
        let of_client = || self.of_client.spend((link, client));
        let of_all = || self.of_all.spend(link);
        if let Err(wait) = self.slowed.pass(account, of_client).await {
            return Tried::TooMany(wait);
        }
        if let Err(wait) = self.slowed.pass(account, of_all).await {
            self.of_client.give_back((link, client));
            return Tried::TooMany(wait);
        }
        let hash = hash.clone();
        let tried = match self.waiting.take(account, 1) {
            Ok(waiting) => match self.in_turn(waiting, move || hash.is_of(&password)).await {
                Some(true) => Tried::Opened,
                Some(false) => return Tried::Wrong,
                None => Tried::Busy,
            },
            Err(ExceededShare::Own) => Tried::TooMany(Duration::from_secs(1)),
            Err(ExceededShare::All) => Tried::Busy,
        };
        // The attempt revealed nothing: the password was correct, or was not compared.
        self.of_client.give_back((link, client));
        self.of_all.give_back(link);
        tried
    }
}
