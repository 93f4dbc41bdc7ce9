//! The identity of a spool: its store remembers how far it has read, under this number.

use std::{fs, io, path::Path};

use crate::{SpoolError, folder::write_whole};

/// Bytes of the file: the number and its checksum.
const BYTES: usize = 16 + 4;

/// Reads the identity, or draws it for a new spool.
pub(crate) fn read_or_create(folder: &Path) -> Result<u128, SpoolError> {
    let path = folder.join("identity");
    match fs::read(&path) {
        Ok(bytes) => read(&bytes).ok_or(SpoolError::Identity(path)),
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

fn read(bytes: &[u8]) -> Option<u128> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let (number, sum) = bytes.split_first_chunk::<16>()?;
    (crc32c::crc32c(number).to_le_bytes() == *sum).then(|| u128::from_le_bytes(*number))
}
