//! The file of the code key.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use codes::{CodeKey, CodeKeyError};

use crate::output::{create_private, sync_folder_of};

/// Reads a key file: 64 hexadecimal characters, optionally with white space around them. Only of a
/// file that does not exist, the error is of the kind `NotFound`.
pub fn read(path: &Path) -> io::Result<CodeKey> {
    match fs::read_to_string(path) {
        Ok(text) => CodeKey::parse(text.trim()).map_err(io::Error::other),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), "no such file"))
        }
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(io::Error::other(CodeKeyError)),
        Err(error) => Err(error),
    }
}

/// Generates a key and writes it to a new file that only the owner can read. The file is synced
/// before the key is used, because codes minted under a lost key could not be read back.
pub fn create(path: &Path) -> io::Result<CodeKey> {
    let key = CodeKey::draw().map_err(|error: getrandom::Error| {
        io::Error::other(format!("no random bytes from the system: {error}"))
    })?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = create_private(path)?;
    writeln!(file, "{}", key.reveal())?;
    file.sync_all()?;
    sync_folder_of(path)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_and_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("code.key");
        assert_eq!(read(&path).err().unwrap().kind(), ErrorKind::NotFound);
        let key = create(&path).unwrap();
        assert_eq!(read(&path).unwrap().fingerprint(), key.fingerprint());
        assert!(create(&path).is_err());
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path).err().unwrap().to_string(), CodeKeyError.to_string());
    }
}
