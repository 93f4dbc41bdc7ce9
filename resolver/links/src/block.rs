//! Takedown of a link by an operator. Only an operator can lift it.
//!
//! 1. A block is separate from every field that the link's owner may change. No edit or restore by
//!    the owner sets or lifts it, and an import does not lift it. A blocked link cannot be deleted,
//!    because its name would become free for another link with the same target.
//! 2. A deleted link can be blocked as well. If it is restored, it stays blocked. Its slug is
//!    reserved until the block is lifted, unless another link has taken the slug already. Otherwise
//!    the owner could pick the same slug for the same target again.
//! 3. Visitors get 410, whatever `--tell-gone` says, and are never sent to a fallback page. The
//!    owner of the domain controls that page, and the takedown protects visitors from the owner.
//!    The status is not 451, because most takedowns follow no legal demand.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api_key::ApiKeyId;

/// A takedown: operator key, time and reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Reason, in the operator's words; at most [`Block::REASON_BYTES`].
    pub reason: String,
    /// API key that took the link down.
    pub by: ApiKeyId,
    /// Time of the takedown, by the database's clock; stored as milliseconds since 1970.
    #[serde(with = "jiff::fmt::serde::timestamp::millisecond::required")]
    pub at: Timestamp,
}

impl Block {
    /// Maximum length of the reason, in bytes.
    pub const REASON_BYTES: usize = 1_024;

    /// Describes the reasons that a block takes.
    pub fn expected_reason() -> String {
        format!("expected the reason, in 1 to {} bytes without control characters", Self::REASON_BYTES)
    }
}
