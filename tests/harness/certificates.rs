//! Authorities and certificates for servers and clients, and folders of them as Kubernetes mounts
//! them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

/// Numbers the versions of folders.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

/// An authority, which signs certificates.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Certificate.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    /// Returns an error if no key can be generated.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let mut params = params(&[], name)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// Returns the authority's own certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate for DNS names or addresses.
    ///
    /// # Errors
    /// Returns an error if no key can be generated.
    pub fn issue(&self, names: &[&str]) -> anyhow::Result<Pair> {
        self.sign(&params(names, "unnamed")?)
    }

    /// Issues a certificate that ended years ago.
    ///
    /// # Errors
    /// See [`Self::issue`].
    pub fn issue_expired(&self, names: &[&str]) -> anyhow::Result<Pair> {
        let mut params = params(names, "unnamed")?;
        (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1));
        self.sign(&params)
    }

    /// Issues a certificate that ends after so many whole days, at midnight.
    ///
    /// # Errors
    /// See [`Self::issue`].
    pub fn issue_for_days(&self, names: &[&str], days: i64) -> anyhow::Result<Pair> {
        let end = Timestamp::now().to_zoned(TimeZone::UTC).date().checked_add(days.days())?;
        let mut params = params(names, "unnamed")?;
        params.not_after =
            date_time_ymd(end.year().into(), end.month().unsigned_abs(), end.day().unsigned_abs());
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> anyhow::Result<Pair> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// Creates a certificate that no authority has signed.
///
/// # Errors
/// Returns an error if no key can be generated.
pub fn self_signed(names: &[&str]) -> anyhow::Result<Pair> {
    let key = KeyPair::generate()?;
    let certificate = params(names, "unnamed")?.self_signed(&key)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

fn params(names: &[&str], common: &str) -> anyhow::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    Ok(params)
}

/// A folder with `ca.crt`, `tls.crt` and `tls.key`, like the volume of a Secret: the files are
/// links through `..data`, which a change replaces by a link to another folder.
#[derive(Clone, Debug)]
pub struct SecretFolder(PathBuf);

impl SecretFolder {
    /// Creates the folder.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, as does [`Self::replace`].
    pub fn create(path: PathBuf, ca: &str, pair: &Pair) -> anyhow::Result<Self> {
        let folder = Self(path);
        folder.replace(ca, pair)?;
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), folder.0.join(name)).context("link a secret's file")?;
        }
        Ok(folder)
    }

    /// Replaces all files at once.
    ///
    /// # Errors
    /// See [`Self::create`].
    pub fn replace(&self, ca: &str, pair: &Pair) -> anyhow::Result<()> {
        let version = format!("..{}", VERSIONS.fetch_add(1, Ordering::Relaxed));
        let folder = self.0.join(&version);
        fs::create_dir_all(&folder).context("make a secret's folder")?;
        for (name, text) in [("ca.crt", ca), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
            fs::write(folder.join(name), text).context("write a secret's file")?;
        }
        let new = self.0.join("..data_tmp");
        symlink(version, &new).context("link a secret's folder")?;
        fs::rename(new, self.0.join("..data")).context("replace a secret's folder")
    }

    /// Returns the path of a file.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Returns arguments `--PREFIXca FILE --PREFIXcert FILE --PREFIXkey FILE`.
    pub fn args(&self, ca: &str, prefix: &str) -> Vec<String> {
        let [certificate, key] = ["cert", "key"].map(|name| format!("--{prefix}{name}"));
        let files = [self.file("ca.crt"), self.file("tls.crt"), self.file("tls.key")];
        [format!("--{ca}"), certificate, key].into_iter().zip(files).flat_map(<[String; 2]>::from).collect()
    }

    /// Returns the value of a resolver's flag for TLS, with some of `ca`, `cert` and `key`.
    pub fn entries(&self, parts: &[&str]) -> String {
        let files = [("ca", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key")];
        let chosen = files.into_iter().filter(|(part, _)| parts.contains(part));
        let entries: Vec<_> = chosen.map(|(part, file)| format!("{part}={}", self.file(file))).collect();
        entries.join(",")
    }
}
