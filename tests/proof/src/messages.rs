//! The messages between the real cores of holder and issuer, converted as `supply` and the issuer's
//! gRPC service do.

use holder::{Answer, Beat, Call, Closed, Registered};
use issuer::core::{self, Request, Returned};
use numbers::{HolderId, Instance, Mark, Namespace};

/// Converts a call of a holder's start. `wanted` returns the namespace of a keyspace, and the
/// length of the block to ask for.
///
/// # Panics
/// Panics if the account of a returned block is wrong.
pub(crate) fn request(
    (holder, instance): (HolderId, Instance),
    call: Call,
    wanted: impl FnOnce(usize) -> (Namespace, u64),
) -> Request {
    match call {
        Call::Register(namespaces) => Request::Register { holder, instance, namespaces, reserved: false },
        Call::Allocate { keyspace, incarnation, seq, store } => {
            let (namespace, wanted_len) = wanted(keyspace);
            Request::Allocate { holder, incarnation, seq, namespace, wanted_len, store }
        }
        Call::Return { incarnation, closed, registered_end } => {
            let Closed { block, used, burned, unused, .. } = closed;
            let returned = Returned { block, used, burned, unused, registered_end };
            assert_eq!(returned.check(), Ok(()), "the holder's account");
            Request::Return { holder, incarnation, blocks: vec![returned] }
        }
    }
}

/// Converts the issuer's answer to such a call.
pub(crate) fn answer(answer: core::Answer, holder_ttl_ms: u64) -> Answer {
    match answer {
        core::Answer::Registered { incarnation, last_seq, .. } => {
            let (ledger, mark) = (None, Mark(0));
            Answer::Registered(Registered { incarnation, last_seq, holder_ttl_ms, ledger, mark })
        }
        core::Answer::Allocated { block, leaked, store, .. } => {
            Answer::Allocated { block, leaked, store: Some(store) }
        }
        core::Answer::Closed { .. } => Answer::Returned,
        other => unreachable!("no answer to a call of a start: {other:?}"),
    }
}

/// Returns the request of a beat.
pub(crate) fn keep_alive(holder: HolderId, beat: Beat) -> Request {
    let Beat { incarnation, last_seq, progress } = beat;
    Request::KeepAlive { holder, incarnation, last_seq, progress, mark: Mark(0) }
}
