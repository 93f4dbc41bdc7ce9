//! The folder of a spool, its identity, and the names of its files.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crate::SpoolError;

const SEGMENT: &str = ".segment";

/// Creates the folder, readable by its owner only, and locks it for this process.
pub(crate) fn claim(folder: &Path) -> Result<File, SpoolError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(SpoolError::at(folder))?;
    let path = folder.join("lock");
    let file =
        private().create(true).truncate(false).write(true).open(&path).map_err(SpoolError::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SpoolError::Locked(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(SpoolError::Io { path, source }),
    }
}

/// Returns the identity of the spool, under which its store remembers how far it has read. Draws it
/// for a new spool.
pub(crate) fn identity(folder: &Path) -> Result<u128, SpoolError> {
    let path = folder.join("identity");
    match fs::read(&path) {
        Ok(bytes) => match bytes.split_first_chunk::<16>() {
            Some((number, sum)) if crc32c::crc32c(number).to_le_bytes() == *sum => {
                Ok(u128::from_le_bytes(*number))
            }
            _ => Err(SpoolError::Identity(path)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut drawn = [0; 16];
            getrandom::fill(&mut drawn).map_err(SpoolError::Random)?;
            let mut bytes = drawn.to_vec();
            bytes.extend(crc32c::crc32c(&drawn).to_le_bytes());
            write_whole(&path, &bytes)?;
            Ok(u128::from_le_bytes(drawn))
        }
        Err(source) => Err(SpoolError::Io { path, source }),
    }
}

/// Returns options for files that only their owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Returns the path of the segment that begins with a block.
pub(crate) fn segment_path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{:016x}{SEGMENT}", first))
}

pub(crate) fn create_segment(folder: &Path, first: u64) -> Result<(), SpoolError> {
    let path = segment_path(folder, first);
    let create = || {
        private().create(true).truncate(true).write(true).open(&path)?.sync_all()?;
        sync_folder(folder)
    };
    create().map_err(SpoolError::at(&path))
}

/// Returns the first blocks of all segments, ascending.
pub(crate) fn segments(folder: &Path) -> Result<Vec<u64>, SpoolError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(SpoolError::at(folder))? {
        let name = entry.map_err(SpoolError::at(folder))?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SEGMENT)) else { continue };
        // `from_str_radix` would take a sign.
        let is_number = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        found.extend(u64::from_str_radix(name, 16).ok().filter(|_| is_number));
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the bytes of all segments in a folder, which is not claimed for that.
pub fn bytes_in(folder: &Path) -> Result<u64, SpoolError> {
    let mut bytes = 0;
    for first in segments(folder)? {
        match fs::metadata(segment_path(folder, first)) {
            Ok(file) => bytes += file.len(),
            // Its reader has removed it since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SpoolError::at(folder)(error)),
        }
    }
    Ok(bytes)
}

/// Writes a file whole or not at all: under another name first, which then replaces it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SpoolError> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = private().create(true).truncate(true).write(true).open(&new)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_folder(path.parent().unwrap_or(path))
    };
    write().map_err(SpoolError::at(path))
}

/// Makes the names in a folder outlast a loss of power.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
