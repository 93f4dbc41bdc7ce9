//! HTTP status of redirects.

use serde::{Deserialize, Serialize};

use super::Invalid;

/// A redirect status: 301, 302, 307 or 308.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct RedirectStatus(u16);

impl TryFrom<u16> for RedirectStatus {
    type Error = Invalid;

    fn try_from(status: u16) -> Result<Self, Invalid> {
        let is_known = matches!(status, 301 | 302 | 307 | 308);
        if is_known { Ok(Self(status)) } else { Err(Invalid::because("expected 301, 302, 307 or 308")) }
    }
}

impl From<RedirectStatus> for u16 {
    fn from(status: RedirectStatus) -> Self {
        status.0
    }
}
