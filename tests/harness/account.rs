//! The unprivileged account for servers that refuse to run as root.
//!
//! Tests run as root in many build containers, and Postgres declines to start there for good reasons. So its
//! processes change to another account, which then must own its data folder.

use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::Context;
use nix::unistd::{User, geteuid};

/// The accounts tried, in order: the one Debian's package creates, then the one that every Unix has.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// A user and group id to run a process as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user id.
    pub uid: u32,
    /// The user's primary group id.
    pub gid: u32,
}

impl Account {
    /// The account to change to, or `None` when this process is not root and so has no need (and no right) to.
    ///
    /// # Errors
    /// Root on a machine that has none of the known accounts.
    pub fn unprivileged() -> anyhow::Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        for name in CANDIDATES {
            let user = User::from_name(name).with_context(|| format!("look up the account {name}"))?;
            if let Some(user) = user {
                return Ok(Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
            }
        }
        anyhow::bail!("Postgres refuses to run as root, and none of the accounts {CANDIDATES:?} exists")
    }

    /// Gives a file or folder to this account.
    ///
    /// # Errors
    /// The path is missing, or its owner may not be changed.
    pub fn own(self, path: &Path) -> anyhow::Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).with_context(|| format!("chown {}", path.display()))
    }
}
