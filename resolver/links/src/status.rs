//! HTTP status of redirects.

use serde::{Deserialize, Serialize};

/// A redirect status: 301, 302, 307 or 308.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct RedirectStatus(u16);

/// Error of converting a number that is not a redirect status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 301, 302, 307 or 308")]
pub struct RedirectStatusError;

impl TryFrom<u16> for RedirectStatus {
    type Error = RedirectStatusError;

    fn try_from(status: u16) -> Result<Self, RedirectStatusError> {
        if matches!(status, 301 | 302 | 307 | 308) { Ok(Self(status)) } else { Err(RedirectStatusError) }
    }
}

impl From<RedirectStatus> for u16 {
    fn from(status: RedirectStatus) -> Self {
        status.0
    }
}
