//! A private folder per test for data, sockets, keys and logs.
//!
//! 1. It is removed when its last user is dropped, and kept, with its path printed, when that happens in a panic.
//! 2. Another account may enter and list it, because a server that runs under one lives inside.
//!
//! A test that fails by returning `Err` does not panic, and nothing in a destructor can tell: set
//! `SHORTMINT_KEEP_SCRATCH=1` to keep every folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use tempfile::TempDir;

/// Set to anything: no folder is removed.
const KEEP_VARIABLE: &str = "SHORTMINT_KEEP_SCRATCH";

/// A shared handle to one folder: every process started in it holds a clone, so it outlives all of them.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    dir: TempDir,
    names: AtomicU32,
}

impl Scratch {
    /// Makes an empty folder below the system's temp folder.
    ///
    /// # Errors
    /// The temp folder is missing or full.
    pub fn new() -> anyhow::Result<Self> {
        let dir =
            tempfile::Builder::new().prefix("shortmint-it-").tempdir().context("make a scratch folder")?;
        open_to_all(dir.path())?;
        Ok(Self(Arc::new(Folder { dir, names: AtomicU32::new(0) })))
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Makes a folder inside, or finds the one that is there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("make the folder {}", path.display()))?;
        open_to_all(&path)?;
        Ok(path)
    }

    /// Writes a file inside that only its owner can read, as secrets are kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn secret(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))
            .with_context(|| format!("set the mode of {}", path.display()))?;
        Ok(path)
    }

    /// Writes a new file inside that everybody can read.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(self.stem(name));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// A file name stem that no other process in this folder has: `issuer-0.3`, say.
    pub fn stem(&self, name: &str) -> String {
        format!("{name}.{}", self.0.names.fetch_add(1, Ordering::Relaxed))
    }
}

fn open_to_all(path: &Path) -> anyhow::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .with_context(|| format!("set the mode of {}", path.display()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os(KEEP_VARIABLE).is_some() {
            self.dir.disable_cleanup(true);
            say_where(self.dir.path());
        }
    }
}

#[expect(clippy::print_stderr, reason = "the reader of a failed test has to learn where the logs are")]
fn say_where(path: &Path) {
    eprintln!("scratch folder with data and logs kept: {}", path.display());
}
