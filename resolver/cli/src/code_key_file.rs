//! The file of the code key.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use codes::{CodeKey, CodeKeyError};

/// The errors of a code key file.
#[derive(Debug, thiserror::Error)]
pub enum CodeKeyFileError {
    /// The file does not exist.
    #[error("no such file")]
    Missing,
    /// The file could not be read or written.
    #[error(transparent)]
    Io(io::Error),
    /// The file's content is not a key.
    #[error(transparent)]
    Malformed(#[from] CodeKeyError),
    /// The system provided no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(#[from] getrandom::Error),
}

/// Reads a key file: 64 hexadecimal characters, optionally with white space around them.
///
/// # Errors
/// Returns [`CodeKeyFileError`] if the file does not exist, cannot be read, or is malformed.
pub fn read(path: &Path) -> Result<CodeKey, CodeKeyFileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(CodeKey::parse(text.trim())?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CodeKeyFileError::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(CodeKeyError.into()),
        Err(error) => Err(CodeKeyFileError::Io(error)),
    }
}

/// Generates a key and writes it to a new file that only the owner can read. The file is synced
/// before the key is used, because codes minted under a lost key could not be read back.
///
/// # Errors
/// Returns [`CodeKeyFileError`] if the file exists or cannot be written, or the system provides no
/// random bytes.
pub fn create(path: &Path) -> Result<CodeKey, CodeKeyFileError> {
    let key = CodeKey::draw()?;
    write(path, &key).map_err(CodeKeyFileError::Io)?;
    Ok(key)
}

fn write(path: &Path, key: &CodeKey) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", key.reveal())?;
    file.sync_all()?;
    // The folder is synced as well, because it holds the name of the new file.
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_and_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("code.key");
        assert!(matches!(read(&path), Err(CodeKeyFileError::Missing)));
        let key = create(&path).unwrap();
        assert_eq!(read(&path).unwrap().fingerprint(), key.fingerprint());
        assert!(create(&path).is_err());
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read(&path), Err(CodeKeyFileError::Malformed(_))));
    }
}
