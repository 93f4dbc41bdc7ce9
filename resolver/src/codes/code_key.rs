//! The secret that orders codes, fixed for the life of a deployment.

use std::{fmt, fs, io, io::Write as _, path::Path};

use hkdf::Hkdf;
use sha2::Sha256;

/// How many bytes the secret has.
const LEN: usize = 32;

/// The secret; never printed.
#[derive(Clone)]
pub struct CodeKey([u8; LEN]);

/// A one-way mark of a key, kept in the database: a resolver with another key is refused.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum CodeKeyError {
    /// The file does not exist.
    #[error("no such file")]
    Missing,
    /// The file could not be read or written.
    #[error(transparent)]
    Io(io::Error),
    /// The file's content is not a key.
    #[error("expected {} hexadecimal characters", 2 * LEN)]
    Malformed,
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

impl CodeKey {
    /// Reads a key file: 64 hexadecimal characters, white space around them allowed.
    ///
    /// # Errors
    /// When there is none, or it is malformed.
    pub fn read(path: &Path) -> Result<Self, CodeKeyError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(text.trim()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CodeKeyError::Missing),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(CodeKeyError::Malformed),
            Err(error) => Err(CodeKeyError::Io(error)),
        }
    }

    /// Draws a key and writes it to a new file that only the owner can read. The file is synced before the key is
    /// used: codes minted under a lost key could not be read back.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, CodeKeyError> {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        let mut bytes = [0; LEN];
        getrandom::fill(&mut bytes).map_err(CodeKeyError::Random)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(CodeKeyError::Io)?;
        }
        let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(CodeKeyError::Io)?;
        let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(CodeKeyError::Io)?;
        // The name of a new file is in its folder.
        let sync = fs::File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        sync.map_err(CodeKeyError::Io)?;
        Ok(Self(bytes))
    }

    fn parse(text: &str) -> Result<Self, CodeKeyError> {
        // `from_str_radix` would take a sign.
        if text.len() != 2 * LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(CodeKeyError::Malformed);
        }
        let mut bytes = [0; LEN];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| CodeKeyError::Malformed)?;
        }
        Ok(Self(bytes))
    }

    /// A key for one purpose; none tells anything of the others or of the secret (RFC 5869).
    pub(super) fn derive(&self, purpose: &str) -> [u8; LEN] {
        let mut derived = [0; LEN];
        let info = format!("shortmint {purpose}");
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(info.as_bytes(), &mut derived)
            .expect("32 bytes are far below HKDF's limit of 255 hashes");
        derived
    }

    /// The mark of this key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let derived = self.derive("code key fingerprint");
        Fingerprint(derived[..16].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeKey({})", self.fingerprint())
    }
}

impl Fingerprint {
    /// Takes a mark as the database keeps it.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The mark as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_and_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("code.key");
        assert!(matches!(CodeKey::read(&path), Err(CodeKeyError::Missing)));
        let key = CodeKey::create(&path).unwrap();
        assert_eq!(CodeKey::read(&path).unwrap().fingerprint(), key.fingerprint());
        assert!(CodeKey::create(&path).is_err());
    }

    #[test]
    fn a_malformed_key_is_refused_and_a_key_is_never_printed() {
        for bad in ["", "00", &"g".repeat(64), &"é".repeat(32), &"+f".repeat(32), &"0".repeat(66)] {
            assert!(matches!(CodeKey::parse(bad), Err(CodeKeyError::Malformed)), "{bad:?}");
        }
        let key = CodeKey::parse(&"ab".repeat(32)).unwrap();
        assert!(!format!("{key:?}").contains("abab"));
        assert_ne!(key.fingerprint(), CodeKey::parse(&"ac".repeat(32)).unwrap().fingerprint());
    }
}
