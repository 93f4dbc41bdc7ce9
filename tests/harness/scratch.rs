//! A private folder per test for data, sockets, keys and logs.
//!
//! 1. The folder is removed when its last handle is dropped. If that happens during a panic it is
//!    kept, and its path is printed.
//! 2. Other accounts may enter and list it, because a server under another account keeps its data
//!    inside.
//!
//! A test that fails by returning `Err` does not panic, and a destructor cannot detect it. Set
//! `SHORTMINT_KEEP_SCRATCH=1` to keep every folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use tempfile::TempDir;

/// The environment variable that, set to any value, keeps every folder.
const KEEP_VARIABLE: &str = "SHORTMINT_KEEP_SCRATCH";

/// A shared handle to one folder. Every process started in it holds a clone, so the folder outlives
/// all of them.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    dir: TempDir,
    names: AtomicU32,
}

impl Scratch {
    /// Creates an empty folder in the system's temp folder.
    ///
    /// # Errors
    /// Returns an error if the temp folder is missing or full.
    pub fn new() -> anyhow::Result<Self> {
        let dir =
            tempfile::Builder::new().prefix("shortmint-it-").tempdir().context("make a scratch folder")?;
        open_to_all(dir.path())?;
        Ok(Self(Arc::new(Folder { dir, names: AtomicU32::new(0) })))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Creates a subfolder, unless it exists, and returns its path.
    ///
    /// # Errors
    /// Returns an error if the subfolder cannot be created.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("make the folder {}", path.display()))?;
        open_to_all(&path)?;
        Ok(path)
    }

    /// Writes a file that only its owner can read, as secrets are kept, and returns its path.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn secret(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))
            .with_context(|| format!("set the mode of {}", path.display()))?;
        Ok(path)
    }

    /// Writes a new file with default permissions and returns its path.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(self.stem(name));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// Returns a file name stem that is unique in this folder, for example `issuer-0.3`.
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

#[expect(clippy::print_stderr, reason = "the reader of a failed test needs the path of the logs")]
fn say_where(path: &Path) {
    eprintln!("scratch folder with data and logs kept: {}", path.display());
}
