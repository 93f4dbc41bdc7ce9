//! The PEM files (RFC 7468) that certificates and keys come from.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Maximum size of a file, in bytes. The bundle of all public authorities has a quarter of it.
const FILE_MAX: u64 = 1 << 20;

/// Paths of the files of one side of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that the other side's certificate must come from.
    pub ca: Option<PathBuf>,
    /// Own certificate, followed by those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate.
    pub key: Option<PathBuf>,
}

/// Purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Certificates of authorities.
    Ca,
    /// Own certificate.
    Certificate,
    /// Private key of the certificate.
    Key,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct TlsError {
    /// Purpose of the file.
    pub role: FileRole,
    /// Path of the file.
    pub path: PathBuf,
    /// Why it was refused.
    pub reason: String,
}

impl TlsError {
    /// Returns the flag of the file, of those for authorities, certificate and key.
    pub fn flag(&self, [ca, certificate, key]: [&'static str; 3]) -> &'static str {
        match self.role {
            FileRole::Ca => ca,
            FileRole::Certificate => certificate,
            FileRole::Key => key,
        }
    }
}

/// A certificate chain and the private key of its first certificate.
pub(crate) type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

#[derive(Default, PartialEq, Eq)]
pub(crate) struct Contents {
    ca: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

impl TlsFiles {
    pub(crate) fn read(&self) -> Result<Contents, TlsError> {
        let read = |role, path: &Option<PathBuf>| match path {
            None => Ok(None),
            Some(path) => contents(path).map(Some).map_err(|error| wrong(role, path, error)),
        };
        Ok(Contents {
            ca: read(FileRole::Ca, &self.ca)?,
            certificate: read(FileRole::Certificate, &self.certificate)?,
            key: read(FileRole::Key, &self.key)?,
        })
    }

    /// Returns the authorities of a file, if there is one.
    pub(crate) fn roots(&self, contents: &Contents) -> Result<Option<RootCertStore>, TlsError> {
        let (Some(path), Some(bytes)) = (&self.ca, &contents.ca) else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(FileRole::Ca, path, bytes)? {
            roots.add(certificate).map_err(|error| wrong(FileRole::Ca, path, error))?;
        }
        Ok(Some(roots))
    }

    /// Returns the own certificate and its key, if there are files for both.
    pub(crate) fn pair(&self, contents: &Contents) -> Result<Option<Pair>, TlsError> {
        let (Some(path), Some(bytes)) = (&self.certificate, &contents.certificate) else { return Ok(None) };
        let (Some(key_path), Some(key)) = (&self.key, &contents.key) else { return Ok(None) };
        let chain = certificates(FileRole::Certificate, path, bytes)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| wrong(FileRole::Key, key_path, "expected a private key in PEM"))?;
        Ok(Some((chain, key)))
    }

    /// Returns the error for authorities that rustls does not take.
    pub(crate) fn wrong_ca(&self, error: &impl std::fmt::Display) -> TlsError {
        wrong(FileRole::Ca, self.ca.as_deref().unwrap_or(Path::new("")), error)
    }

    /// Returns the error for a certificate and a key that rustls does not take.
    pub(crate) fn unfit(&self, error: &rustls::Error) -> TlsError {
        let (role, path, reason) = match error {
            rustls::Error::InconsistentKeys(_) => {
                (FileRole::Key, &self.key, "the key does not belong to the certificate".to_owned())
            }
            _ => (FileRole::Certificate, &self.certificate, error.to_string()),
        };
        wrong(role, path.as_deref().unwrap_or(Path::new("")), reason)
    }
}

fn certificates(role: FileRole, path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(|_| wrong(role, path, "a certificate in it is not valid PEM"))?;
    if found.is_empty() {
        return Err(wrong(role, path, "expected a certificate in PEM"));
    }
    Ok(found)
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    let mut bytes = Vec::new();
    let length = File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if length as u64 > FILE_MAX {
        return Err(io::Error::other("expected at most 1 MiB"));
    }
    Ok(bytes)
}

fn wrong(role: FileRole, path: &Path, reason: impl std::fmt::Display) -> TlsError {
    TlsError { role, path: path.to_owned(), reason: reason.to_string() }
}
