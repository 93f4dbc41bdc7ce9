//! Conversion of refusals to gRPC statuses; the only place for it.

use tonic::{Code, Status, metadata::MetadataValue};

use crate::core::Refusal;

/// Metadata key for the URL of the leader.
pub const LEADER_KEY: &str = "shortmint-leader";
const EPOCH_KEY: &str = "shortmint-epoch";
/// Metadata key of a refusal because every number of the namespace is used, burned or reserved.
pub const EXHAUSTED_KEY: &str = "shortmint-exhausted";
/// Metadata key of a refusal because the remaining numbers are in other hands, and may come back.
pub const IN_OTHER_HANDS_KEY: &str = "shortmint-in-other-hands";
/// Metadata key of a refusal after which the same call may succeed a little later.
pub const BUSY_KEY: &str = "shortmint-busy";

/// Returns the status of a refusal. Only UNAVAILABLE means "unknown, send it again".
pub(super) fn status_of(refusal: &Refusal) -> Status {
    let code = match refusal {
        Refusal::NotLeader(_)
        | Refusal::UnknownHolder(_)
        | Refusal::UnknownNamespace(_)
        | Refusal::CapacityShrunk { .. } => Code::FailedPrecondition,
        Refusal::Unknown => Code::Unavailable,
        Refusal::Superseded { .. } => Code::PermissionDenied,
        Refusal::Seq { .. } => Code::OutOfRange,
        Refusal::Overloaded
        | Refusal::CeilingReached { .. }
        | Refusal::Exhausted { .. }
        | Refusal::InOtherHands { .. }
        | Refusal::TooMany(_) => Code::ResourceExhausted,
    };
    let mut status = Status::new(code, refusal.to_string());
    let key = match refusal {
        Refusal::NotLeader(leader) => {
            // Present even if the leader is unknown, to be told from other failed preconditions.
            let url = leader.as_ref().map_or("", |leader| leader.url.as_str());
            if let Ok(value) = MetadataValue::try_from(url) {
                status.metadata_mut().insert(LEADER_KEY, value);
            }
            if let Some(leader) = leader {
                status.metadata_mut().insert(EPOCH_KEY, leader.epoch.0.into());
            }
            return status;
        }
        Refusal::Overloaded | Refusal::CeilingReached { .. } => BUSY_KEY,
        Refusal::Exhausted { .. } => EXHAUSTED_KEY,
        Refusal::InOtherHands { .. } => IN_OTHER_HANDS_KEY,
        _ => return status,
    };
    status.metadata_mut().insert(key, MetadataValue::from_static("true"));
    status
}
