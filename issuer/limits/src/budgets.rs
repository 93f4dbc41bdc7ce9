//! The budgets: what a client without a key, an API key and the process may hold or spend.
//!
//! | budget | a client | a key | the process |
//! |---|---|---|---|
//! | connections | a quarter | as a client | by descriptors and memory |
//! | TLS handshakes | 1,200 a minute | as a client | over gRPC 12,000 a minute |
//! | bytes of bodies; the same of gRPC messages | 16 KiB; none | a quarter | by memory |
//! | bytes of answers that are not read | 512 KiB | half | twice the bytes of bodies |
//! | calls in progress | none | 4,096 | 8,192 |
//! | bulk calls; whole lists and packs | none | 4 | 12; 16 |
//! | health and reflection; checks | 32; 128 | as a client | 512; 4,096 |
//! | statements of the database | | half of the connections | the connections |
//! | streams of live visits | 10 | an eighth | a quarter of the connections |
//! | calls | by a flag | by a flag, or its own | |
//! | unknown codes | by a flag | as a client | |
//! | wrong keys | 120 a minute, 8 wait | | 64 wait |
//! | wrong passwords of a link | 10 a minute, 8 wait | as a client | 120 a minute, 64 wait |
//! | QR codes | 240 a minute, 8 wait | as a client | 32 wait |
//! | links without a key | 30 a minute | | |
//!
//! 1. What is *held* and given back is a [`Pool`]. It has three shares: of one key or client, of
//!    all clients without a key together, and of the process. So neither one key nor any number of
//!    clients without one can take all of it.
//! 2. What is *spent* grows back evenly: a [`Rate`](crate::Rate).
//! 3. A client that has spent a rate which guards a secret is slowed down instead of locked out
//!    ([`Lane`](crate::Lane)), so that the right password or key passes beside any number of wrong
//!    ones.
//! 4. A client that sends a body has to keep up a [`Pace`](crate::Pace), because slow sending holds
//!    resources for its duration.
//! 5. Sizes derive from the resources that the system grants this process ([`Resources`]), not from
//!    guesses about machines. Limits of a single call stand beside the code that enforces them.
//!
//! Rejected: one semaphore in bytes for all. A tenth of the clients, without any key, would hold
//! all of it.

use std::sync::Arc;

use crate::{
    Account, ExceededShare, Held, Pool, Resources, Shares,
    http2_windows::{GRPC, PUBLIC},
};

/// The maximum number of public connections, if the system grants as many descriptors.
const CONNECTIONS_MAX: usize = 16_384;
const GRPC_CONNECTIONS_MAX: usize = 1_024;
const ISSUER_CONNECTIONS_MAX: usize = 4_096;
/// The maximum number of connections to the admin listener; a probe and a scraper need a handful.
pub const ADMIN_CONNECTIONS: usize = 32;
const PER_CLIENT_MAX: usize = 1_024;
/// The memory of a connection to the public listener at worst: a head and waiting answers, of 16
/// KiB each. Bodies and long answers have budgets of their own.
const CONNECTION_BYTES: u64 = 32 << 10;
/// The same of a connection with TLS: records of 16 KiB in both directions, what its windows let
/// arrive, and for each request that HTTP/2 has at a time the head, and twice 16 KiB of the answer.
const TLS_CONNECTION_BYTES: u64 = (32 << 10) + PUBLIC.bytes() + PUBLIC.streams as u64 * (48 << 10);
/// The same over gRPC: what its windows let arrive. Unread answers have their own budget.
const GRPC_CONNECTION_BYTES: u64 = GRPC.bytes();
/// The divisor for the share of the memory for public connections, and for those over gRPC.
const CONNECTIONS_OF_MEMORY: u64 = 4;
/// The number of descriptors kept for databases, files, the log and the admin listener.
const DESCRIPTORS_KEPT: usize = 256;
/// The divisor for the share of the memory that bodies may take, within bounds.
const BODIES_OF_MEMORY: u64 = 32;
const BODIES_MIN: u64 = 16 << 20;
const BODIES_MAX: u64 = 64 << 20;
/// The longest body of a call, in bytes. A key's share has to admit it.
const LONGEST_BODY: u64 = 4 << 20;
/// The maximum bytes of bodies of one client without a key: they are password forms.
const BODIES_OF_CLIENT: u64 = 16 << 10;
/// The maximum numbers of calls in progress, of the process and of one key. Each call has a head of
/// up to 16 KiB, and keeps its place when its client disconnects.
const CALLS: (u64, u64) = (8_192, 4_096);
/// The maximum numbers of bulk calls in progress, of the process and of one key.
pub const BULK_CALLS: (u64, u64) = (12, 4);
const LISTS: (u64, u64) = (16, 4);
/// The length in bytes above which an answer counts until the client has read it.
const LONG_ANSWER: u64 = 16 * 1024;
/// The maximum bytes of long answers of one client without a key: they are QR codes.
const ANSWERS_OF_CLIENT: u64 = 512 << 10;
/// The maximum numbers of gRPC calls in progress that need no key, except checks of health, of the
/// process and of one client. A client that watches for health does so for each of its connections.
pub(crate) const QUESTIONS: (u64, u64) = (512, 32);
/// The same of checks of health. As a rule these are calls whose message has not arrived.
pub(crate) const CHECKS: (u64, u64) = (4_096, 128);
/// The maximum numbers of requests that wait for a rate which guards a secret: all, one client.
pub const LATE: (u64, u64) = (64, 8);
/// The maximum numbers of QR codes that are drawn or wait for it.
pub const QR_CODES: (u64, u64) = (32, 8);
/// The maximum numbers of hashes of passwords that wait for their turn.
pub const HASHES: (u64, u64) = (32, 4);
/// The maximum numbers of streams of live visits, of the process and of one client.
pub const LIVE_STREAMS: (u64, u64) = (1_000, 10);

/// The number of wrong keys that one client may try in a minute without waiting.
pub const WRONG_KEYS_PER_MINUTE: u32 = 120;
/// The attempts of one client at one link's password in a minute, and those of all clients.
pub const PASSWORDS_PER_MINUTE: (u32, u32) = (10, 120);
/// The number of QR codes that one client may request in a minute.
pub const QR_CODES_PER_MINUTE: u32 = 240;
/// The number of links that one client may create in a minute without a key.
pub const CREATES_PER_MINUTE: u32 = 30;

/// The maximum numbers of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections to the public listener.
    pub public: usize,
    /// The default number of public connections of one client.
    pub per_client: usize,
    /// Connections to the links API over gRPC.
    pub grpc: usize,
}

impl ConnectionLimits {
    /// Computes the limits from the descriptors and the memory of this process. Of the descriptors
    /// that are not kept for its own use, the public listener gets three quarters and gRPC one in
    /// eight. A client gets a quarter of the public connections.
    pub fn of(resources: &Resources, has_tls: bool) -> Self {
        let bytes = if has_tls { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
        let spare = spare_descriptors(resources);
        let fitting = |bytes| {
            let fitting = resources.memory / CONNECTIONS_OF_MEMORY / bytes;
            usize::try_from(fitting).unwrap_or(usize::MAX)
        };
        let public = (spare * 3 / 4).min(fitting(bytes)).clamp(1, CONNECTIONS_MAX);
        Self {
            public,
            per_client: public.div_ceil(4).min(PER_CLIENT_MAX),
            grpc: (spare / 8).min(fitting(GRPC_CONNECTION_BYTES)).clamp(1, GRPC_CONNECTIONS_MAX),
        }
    }
}

/// Returns the maximum number of connections to an issuer.
pub fn issuer_connections(resources: &Resources) -> usize {
    spare_descriptors(resources).clamp(1, ISSUER_CONNECTIONS_MAX)
}

fn spare_descriptors(resources: &Resources) -> usize {
    resources.descriptors - DESCRIPTORS_KEPT.min(resources.descriptors / 2)
}

/// The amounts that calls hold.
pub struct Budgets {
    /// Bytes of request bodies.
    pub bodies: Arc<Pool>,
    /// Bytes of messages over gRPC. An idle stream holds as much as a busy one, so they do not
    /// count as bodies.
    pub messages: Arc<Pool>,
    /// Bytes of long answers.
    answers: Arc<Pool>,
    /// Calls in progress, whether or not their clients still wait.
    pub calls: Arc<Pool>,
    /// Bulk calls in progress.
    pub bulk_calls: Arc<Pool>,
    /// Lists of links that are longer than one piece and packs of QR codes, in progress.
    pub lists: Arc<Pool>,
}

impl Budgets {
    /// Computes the budgets from the memory of this process.
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

    /// Reserves room for an answer of this length until its client has read it, or extends what is
    /// held for it. A short answer needs none. One that is longer than the account's share reserves
    /// the share: it would otherwise always be refused.
    pub fn widen(&self, held: &mut Option<Held>, account: Account, bytes: u64) -> Result<(), ExceededShare> {
        let most = bytes.min(self.answers.shares.own(account));
        match held {
            Some(held) => held.grow_to(most)?,
            None if bytes <= LONG_ANSWER => {}
            None => *held = Some(self.answers.take(account, most)?),
        }
        Ok(())
    }
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
            assert!(limits.per_client <= limits.public.div_ceil(4));
        }
        let limits = ConnectionLimits::of(&Resources { descriptors: 1_024, memory: 1 << 30 }, false);
        assert_eq!((limits.public, limits.per_client, limits.grpc), (576, 144, 96));
    }

    #[test]
    fn connections_fit_into_half_of_the_memory() {
        for (memory, public, grpc) in [
            (64 << 20, 512, 6),
            (512 << 20, 4_096, 51),
            (2 << 30, CONNECTIONS_MAX, 204),
            (16 << 30, CONNECTIONS_MAX, GRPC_CONNECTIONS_MAX),
            (1 << 40, CONNECTIONS_MAX, GRPC_CONNECTIONS_MAX),
        ] {
            let limits = ConnectionLimits::of(&Resources { descriptors: 1 << 20, memory }, false);
            assert_eq!((limits.public, limits.grpc), (public, grpc));
            let held = limits.public as u64 * CONNECTION_BYTES + limits.grpc as u64 * GRPC_CONNECTION_BYTES;
            assert!(held <= memory / 2, "{memory}: {limits:?}");
        }
    }

    #[test]
    fn a_key_can_always_send_the_longest_body() {
        for memory in [1 << 20, 512 << 20, 1 << 40] {
            let budgets = Budgets::of(&Resources { descriptors: 1_024, memory });
            assert!(budgets.bodies.take(Account::Key(1), LONGEST_BODY + LONGEST_BODY / 4).is_ok());
        }
    }
}
