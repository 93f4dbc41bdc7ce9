//! Budgets of clients without a key, of API keys and of the process: one mechanism for bytes,
//! descriptors, connections, attempts and time. Limits of a single call are defined beside the code
//! that enforces them. `resolver/web/README.md` has a table of all limits.
//!
//! 1. An amount that is *held* and given back (bytes of bodies, calls and lists under way, slots of
//!    a queue) is taken from a [`Pool`]. A pool has three shares: of one key or client, of all
//!    clients without a key together, and of the process. So neither one key nor any number of
//!    clients without one can take all of it.
//! 2. An amount that is *spent* (guesses, unknown codes, calls) grows back evenly: a [`Rate`].
//! 3. A client that has spent a rate which guards a secret is slowed down instead of locked out. A
//!    [`Lane`] lets a few callers wait until the rate has grown, so that the right password or key
//!    passes beside any number of wrong ones.
//! 4. A client that sends a body has to keep up a [`Pace`], because slow sending holds resources
//!    for its duration.
//! 5. Sizes derive from the resources that the system grants this process ([`Resources`]), not from
//!    guesses about machines.
//!
//! Rejected: one semaphore in bytes for all. A tenth of the clients, without any key, would hold
//! all of it.

mod pace;

use std::{sync::Arc, time::Duration};

use daemon::Resources;

use crate::{
    Answer,
    http2_windows::{GRPC, PUBLIC},
};

pub use app::budgets::{BudgetAccount, ExceededShare, Held, Lane, Left, MINUTE, Pool, Rate, Shares};
pub use pace::{Pace, TooSlow};

/// The maximum number of connections to the public listener, if the system grants as many
/// descriptors.
const CONNECTIONS_MAX: usize = 16_384;
/// The maximum number of connections to the links API over gRPC.
const GRPC_CONNECTIONS_MAX: usize = 1_024;
/// The maximum default number of public connections per client.
const PER_CLIENT_MAX: usize = 1_024;
/// The memory of a connection to the public listener at worst: a head and waiting answers, of 16
/// KiB each. Bodies and long answers have budgets of their own.
const CONNECTION_BYTES: u64 = 32 << 10;
/// The same of a connection with TLS: records of 16 KiB in both directions, what its windows let
/// arrive, and for each request that HTTP/2 has at a time the head, and twice 16 KiB of the answer.
const TLS_CONNECTION_BYTES: u64 = (32 << 10) + PUBLIC.bytes() + PUBLIC.streams as u64 * (48 << 10);
/// The memory of a connection over gRPC at worst: what its windows let arrive. Answers that are not
/// read have a budget of their own.
const GRPC_CONNECTION_BYTES: u64 = GRPC.bytes();
/// The divisor for the share of the memory that public connections may take at worst, and that
/// those over gRPC may take as well.
const CONNECTIONS_OF_MEMORY: u64 = 4;
/// The number of descriptors kept for databases, files, the log and the admin listener.
const DESCRIPTORS_KEPT: usize = 256;
/// The divisor for the share of the memory that bodies may take, within bounds.
const BODIES_OF_MEMORY: u64 = 32;
const BODIES_MIN: u64 = 16 << 20;
const BODIES_MAX: u64 = 64 << 20;
/// The longest body of a call, in bytes. A key's share has to admit it.
const LONGEST_BODY: u64 = 4 << 20;
/// The maximum bytes of bodies that one client without a key may hold. Its only bodies are password
/// forms.
const BODIES_OF_CLIENT: u64 = 16 << 10;
/// The maximum numbers of calls under way, of the process and of one key. Each call has a head of
/// up to 16 KiB, and keeps its slot when its client disconnects.
const CALLS: (u64, u64) = (8_192, 4_096);
/// The maximum numbers of bulk calls under way, of the process and of one key.
pub const BULK_CALLS: (u64, u64) = (12, 4);
/// The maximum numbers of long lists under way, of the process and of one key.
const LISTS: (u64, u64) = (16, 4);
/// The length in bytes above which an answer counts until the client has read it.
const LONG_ANSWER: u64 = 16 * 1024;
/// The maximum bytes of long answers that one client without a key may hold. Its only long answers
/// are QR codes.
const ANSWERS_OF_CLIENT: u64 = 512 << 10;
/// The maximum numbers of keys that wait for a lookup after too many wrong ones, of the process and
/// of one client.
const LATE_KEYS: (u64, u64) = (64, 8);

/// The maximum numbers of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections to the public listener.
    pub public: usize,
    /// The default number of public connections of one client.
    pub per_client: u32,
    /// Connections to the links API over gRPC.
    pub grpc: usize,
}

impl ConnectionLimits {
    /// Computes the limits from the descriptors and the memory of this process. Of the descriptors
    /// that are not kept for its own use, the public listener gets three quarters and gRPC one in
    /// eight. A client gets a quarter of the public connections.
    #[must_use]
    pub fn of(resources: &Resources, has_tls: bool) -> Self {
        let bytes = if has_tls { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
        let spare = resources.descriptors - DESCRIPTORS_KEPT.min(resources.descriptors / 2);
        let fitting = |bytes| {
            let fitting = resources.memory / CONNECTIONS_OF_MEMORY / bytes;
            usize::try_from(fitting).unwrap_or(usize::MAX)
        };
        let public = (spare * 3 / 4).min(fitting(bytes)).clamp(1, CONNECTIONS_MAX);
        let per_client = public.div_ceil(4).min(PER_CLIENT_MAX);
        Self {
            public,
            per_client: u32::try_from(per_client).unwrap_or(u32::MAX),
            grpc: (spare / 8).min(fitting(GRPC_CONNECTION_BYTES)).clamp(1, GRPC_CONNECTIONS_MAX),
        }
    }
}

/// The budgets of the process, apart from connections.
pub struct Budgets {
    /// Bytes of request bodies.
    pub bodies: Arc<Pool>,
    /// Bytes of messages over gRPC. An idle stream holds as much as a busy one, so they do not
    /// count as bodies.
    pub messages: Arc<Pool>,
    /// Bytes of long answers.
    answers: Arc<Pool>,
    /// Calls under way, whether or not their clients still wait.
    pub calls: Arc<Pool>,
    /// Bulk calls under way.
    pub bulk_calls: Arc<Pool>,
    /// Lists of links that are longer than one piece, under way.
    pub lists: Arc<Pool>,
}

impl Budgets {
    /// Computes the budgets from the memory of this process.
    #[must_use]
    pub fn of(resources: &Resources) -> Self {
        let bodies = (resources.memory / BODIES_OF_MEMORY).clamp(BODIES_MIN, BODIES_MAX);
        let of_keys = |(all, key)| Pool::new(Shares { all, clients: 0, client: 0, key });
        Self {
            bodies: Pool::new(Shares {
                all: bodies,
                clients: bodies / 8,
                client: BODIES_OF_CLIENT,
                // A growing buffer holds its old bytes beside the new ones for a moment.
                key: (bodies / 4).max(LONGEST_BODY + LONGEST_BODY / 2),
            }),
            messages: of_keys((bodies, bodies / 4)),
            answers: Pool::new(Shares {
                all: 2 * bodies,
                clients: bodies / 4,
                client: ANSWERS_OF_CLIENT,
                key: bodies,
            }),
            calls: of_keys(CALLS),
            bulk_calls: of_keys(BULK_CALLS),
            lists: of_keys(LISTS),
        }
    }

    /// Charges a long answer to a holder until the client has read it.
    ///
    /// # Errors
    /// When too much is held already.
    pub fn keep(&self, holder: BudgetAccount, answer: &mut Answer) -> Result<(), ExceededShare> {
        if let Some(held) = self.room_for(holder, answer.body().len() as u64)? {
            answer.body_mut().hold(held);
        }
        Ok(())
    }

    /// Reserves room for an answer of this length. Returns `None` for a short answer, which needs
    /// no reservation. An answer longer than the holder's whole share reserves the whole share,
    /// because it would otherwise always be refused.
    ///
    /// # Errors
    /// When too much is held already.
    pub fn room_for(&self, holder: BudgetAccount, bytes: u64) -> Result<Option<Held>, ExceededShare> {
        if bytes <= LONG_ANSWER {
            return Ok(None);
        }
        self.answers.take(holder, bytes.min(self.answers.share_of(holder))).map(Some)
    }

    /// Extends a reservation for an answer that turned out to be longer.
    ///
    /// # Errors
    /// When too much is held already.
    pub fn widen(
        &self,
        held: &mut Option<Held>,
        holder: BudgetAccount,
        bytes: u64,
    ) -> Result<(), ExceededShare> {
        match held {
            Some(held) => held.grow_to(bytes.min(held.share())),
            None => self.room_for(holder, bytes).map(|room| *held = room),
        }
    }
}

/// Returns the lane for keys whose client has used too many wrong ones. `patience` is the longest
/// wait.
#[must_use]
pub fn late_keys(patience: Duration) -> Lane {
    Lane::new(Pool::of_clients(LATE_KEYS), patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        for descriptors in [64, 256, 1_024, 4_096, 20_000, 1 << 20] {
            let limits = ConnectionLimits::of(&Resources { descriptors, memory: 1 << 30 }, false);
            let kept = descriptors - limits.public - limits.grpc;
            assert!(kept >= DESCRIPTORS_KEPT.min(descriptors / 2), "{descriptors}: {limits:?}");
            assert!(usize::try_from(limits.per_client).unwrap() <= limits.public.div_ceil(4));
        }
        let limits = ConnectionLimits::of(&Resources { descriptors: 1_024, memory: 1 << 30 }, false);
        assert_eq!((limits.public, limits.per_client, limits.grpc), (576, 144, 96));
    }

    #[test]
    fn connections_fit_into_half_of_the_memory() {
        for memory in [64 << 20, 512 << 20, 2 << 30, 1 << 40] {
            let limits = ConnectionLimits::of(&Resources { descriptors: 1 << 20, memory }, false);
            let held = limits.public as u64 * CONNECTION_BYTES + limits.grpc as u64 * GRPC_CONNECTION_BYTES;
            assert!(held <= memory / 2, "{memory}: {limits:?}");
        }
        let limits = ConnectionLimits::of(&Resources { descriptors: 1 << 20, memory: 512 << 20 }, false);
        assert_eq!((limits.public, limits.grpc), (4_096, 51));
        let limits = ConnectionLimits::of(&Resources { descriptors: 1 << 20, memory: 2 << 30 }, false);
        assert_eq!((limits.public, limits.grpc), (CONNECTIONS_MAX, 204));
        let limits = ConnectionLimits::of(&Resources { descriptors: 1 << 20, memory: 16 << 30 }, false);
        assert_eq!((limits.public, limits.grpc), (CONNECTIONS_MAX, GRPC_CONNECTIONS_MAX));
    }

    #[test]
    fn a_key_can_always_send_the_longest_body() {
        for memory in [1 << 20, 512 << 20, 1 << 40] {
            let budgets = Budgets::of(&Resources { descriptors: 1_024, memory });
            let key = BudgetAccount::Key(links::api_key::ApiKeyId(1));
            assert!(budgets.bodies.take(key, LONGEST_BODY + LONGEST_BODY / 4).is_ok());
        }
    }
}
