//! The unprivileged account for servers that refuse to run as root.
//!
//! Tests run as root in many build containers, and Postgres refuses to start as root. So its
//! processes run as another account, which must own the data folder.

use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::Context;
use nix::unistd::{User, geteuid};

/// The account names to try, in order: the one from Debian's package, then one that every Unix has.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user id and group id to run a process as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user id.
    pub uid: u32,
    /// The user's primary group id.
    pub gid: u32,
}

impl Account {
    /// Returns the account to run as; `None` if this process is not root. Then it needs no other
    /// account and has no right to use one.
    ///
    /// # Errors
    /// Returns an error if this process is root and none of the known accounts exists.
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

    /// Changes the owner of a file or folder to this account.
    ///
    /// # Errors
    /// Returns an error if the path does not exist or its owner cannot be changed.
    pub fn own(self, path: &Path) -> anyhow::Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).with_context(|| format!("chown {}", path.display()))
    }
}
