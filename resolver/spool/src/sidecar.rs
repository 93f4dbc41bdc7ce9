//! Small files beside the segments, written whole or not at all.

use std::{fs, io, path::PathBuf};

use crate::{SpoolError, folder::write_whole};

/// Files beside the segments.
#[derive(Clone, Debug)]
pub struct Sidecars {
    pub(crate) folder: PathBuf,
}

impl Sidecars {
    /// Writes a file, in place of an earlier one of this name. It outlasts a loss of power.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), SpoolError> {
        let mut content = crc32c::crc32c(bytes).to_le_bytes().to_vec();
        content.extend_from_slice(bytes);
        write_whole(&self.path(name), &content)
    }

    /// Returns the content of a file, if it exists.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, SpoolError> {
        let path = self.path(name);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SpoolError::Io { path, source }),
        };
        match content.split_first_chunk::<4>() {
            Some((sum, bytes)) if crc32c::crc32c(bytes).to_le_bytes() == *sum => Ok(Some(bytes.to_vec())),
            _ => Err(SpoolError::Sidecar(path)),
        }
    }

    /// Renames a file, so that it is kept and no longer found. Returns its new path.
    pub fn set_aside(&self, name: &str) -> Result<PathBuf, SpoolError> {
        let path = self.path(name);
        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).map_err(|source| SpoolError::Io { path, source })?;
        Ok(aside)
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &str) -> Result<(), SpoolError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(SpoolError::Io { path, source }),
            _ => Ok(()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sidecar"))
    }
}
