//! The databases of `tests/fixtures/places`, for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/places").join(name)
}

pub(crate) fn read(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

/// Replaces a file by renaming another one into its place.
pub(crate) fn put(path: &Path, content: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, content).and_then(|()| fs::rename(&new, path)).unwrap();
}
