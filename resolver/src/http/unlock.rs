//! `POST /{code}` with the password of a link, from the form that [`pages::ask_password`] shows. No script is needed.
//!
//! 1. A hash takes tens of milliseconds of a core on purpose: few are computed at a time, away from the listeners' threads, and more are refused.
//!    Those of new passwords count among them. Half of the cores stay free of them.
//! 2. Somebody who guesses is slowed down, for each link: by their address (IPv6: their /64), and all together. Nobody is locked out: a try past
//!    the budget waits until it has grown, a few of them at a time, so that the right password gets through beside any number of wrong ones.
//!    It gives its try back.

use std::{net::IpAddr, sync::Arc, thread::available_parallelism, time::Duration};

use codes::LinkId;
use daemon::network;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Request, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use links::{PasswordError, PasswordHash, api_key::ApiKeyId};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, timeout},
};
use url::form_urlencoded;

use super::{
    Answer, App, Desk, Visitor, answer,
    budgets::{Held, Holder, Lane, Pool, Rate, Spent, tries},
    hold_back, pages,
    pulse::from_client,
    redirect::{find, host, lead},
    stray::{gone, too_much, unavailable},
};

/// The form's body: a password of 256 bytes, each escaped.
const BODY_BYTES: usize = 1_024;
const BODY_TIME: Duration = Duration::from_secs(10);
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
/// Tries of all at one link, per minute.
const TRIES_OF_ALL: u32 = 120;

/// Hashes passwords, and knows who tries how many.
pub(crate) struct Locks {
    turns: Arc<Semaphore>,
    waiting: Arc<Pool>,
    new: Semaphore,
    of_client: Rate,
    of_all: Rate,
    slowed: Lane,
    since: Instant,
}

impl Default for Locks {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new((cores / 2).clamp(1, AT_ONCE))),
            waiting: Pool::of_clients((WAITING, WAITING_OF_ONE)),
            new: Semaphore::new(NEW),
            of_client: Rate::new(TRIES_OF_CLIENT),
            of_all: Rate::new(TRIES_OF_ALL),
            slowed: tries(SLOWED),
            since: Instant::now(),
        }
    }
}

/// What became of a try.
enum Tried {
    Opened,
    Wrong,
    TooMany(Duration),
    Busy,
}

impl Locks {
    /// The hash of a new password; none when too many wait for theirs.
    pub(super) async fn hash(
        &self,
        by: ApiKeyId,
        password: String,
    ) -> Option<Result<PasswordHash, PasswordError>> {
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

    async fn open(&self, link: LinkId, client: IpAddr, hash: &PasswordHash, password: String) -> Tried {
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

/// Leads a visitor on who knows the password.
pub(super) async fn unlock(desk: &Desk, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let app = &desk.app;
    let (parts, body) = request.into_parts();
    let _held = match app.budgets.bodies.take(Holder::client(visitor.client), BODY_BYTES as u64) {
        Ok(held) => held,
        Err(spent) => return too_much(app, spent),
    };
    let Some(password) = password(body).await else {
        return answer(StatusCode::BAD_REQUEST, pages::TEXT, "expected a form with the field password\n");
    };
    let request = Request::from_parts(parts, ());
    let found = match find(app, visitor.client, request.uri().path(), host(&request)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let now = app.directory.now();
    if !found.link.is_live(now) {
        return gone(app, &found.place, &found.wanted, request.uri().path());
    }
    if let Some(hash) = found.link.password() {
        match open(app, found.link.id, visitor.client, hash, password).await {
            Tried::Opened => {}
            Tried::Wrong => return pages::ask_password(true),
            Tried::TooMany(wait) => return hold_back(pages::too_many_tries(wait)),
            Tried::Busy => return unavailable(app),
        }
    }
    let mut answer = lead(desk, visitor, &request, now, &found).await;
    if answer.status().is_redirection() {
        // The page behind is to be asked for with GET, whatever the link's own status.
        *answer.status_mut() = StatusCode::SEE_OTHER;
    }
    answer
}

/// On the daemon's own runtime: a listener's thread has no others to hash on.
async fn open(app: &Arc<App>, link: LinkId, client: IpAddr, hash: &PasswordHash, password: String) -> Tried {
    let (shared, hash) = (Arc::clone(app), hash.clone());
    let task = app.runtime.spawn(async move { shared.locks.open(link, client, &hash, password).await });
    task.await.unwrap_or(Tried::Busy)
}

/// Whether a request is the form's.
pub(super) fn is_form(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    request.uri().path().len() > 1 && kind.starts_with(b"application/x-www-form-urlencoded")
}

async fn password(body: Incoming) -> Option<String> {
    let collected =
        timeout(BODY_TIME, from_client(Limited::new(body, BODY_BYTES).collect())).await.ok()?.ok()?;
    let bytes: Bytes = collected.to_bytes();
    let mut pairs = form_urlencoded::parse(&bytes);
    pairs.find(|(name, _)| name == "password").map(|(_, value)| value.into_owned())
}
