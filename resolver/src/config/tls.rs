//! Flags for TLS of the public listener and of the connections to issuers, and the check that
//! nothing leaves this machine in plaintext.

use std::path::PathBuf;

use clap::Args;
use cli::Error;
use daemon::is_local;
use tls::{ClientTls, Identity, Protocols, ServerTls, TlsFiles, Verify};

use super::{Config, settings::wrong};

/// Flags for TLS of the connections to issuers.
#[derive(Clone, Debug, Default, Args)]
pub struct IssuerTlsArgs {
    /// Authorities of the issuers' certificates, for addresses that begin with https://, in a PEM
    /// file. Defaults to those that the system trusts. The file is read again when it changes, as
    /// are those of the certificate and its key.
    #[arg(long, env = "RESOLVER_ISSUER_CA", value_name = "FILE")]
    pub issuer_ca: Option<PathBuf>,
    /// Certificate to show to issuers, in PEM. With the DNS name `resolver` it is for the holder
    /// ids `resolver` and `resolver.NAME`, for any NAME.
    #[arg(long, env = "RESOLVER_ISSUER_CERT", value_name = "FILE", requires = "issuer_key")]
    pub issuer_cert: Option<PathBuf>,
    /// Private key of --issuer-cert, in PEM.
    #[arg(long, env = "RESOLVER_ISSUER_KEY", value_name = "FILE", requires = "issuer_cert")]
    pub issuer_key: Option<PathBuf>,
}

/// Flags for TLS of the public listener.
#[derive(Clone, Debug, Default, Args)]
pub struct PublicTlsArgs {
    /// Serve the public listener with TLS, over HTTP/2 and HTTP/1.1, with the certificates in this
    /// PEM file: first its own. The file is read again when it changes. Usually a proxy in front
    /// does this.
    #[arg(long, env = "RESOLVER_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in PEM.
    #[arg(long, env = "RESOLVER_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

impl Config {
    /// Reads the files for TLS of the public listener, if it has TLS.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if a file cannot be used.
    pub(crate) fn public_tls(&self) -> Result<Option<ServerTls>, Error> {
        let PublicTlsArgs { tls_cert, tls_key } = self.tls.clone();
        if tls_cert.is_none() {
            return Ok(None);
        }
        let files = TlsFiles { ca: None, certificate: tls_cert, key: tls_key };
        ServerTls::new(files, Protocols::Both).map(Some).map_err(|error| {
            let flag = error.flag(["--tls-cert", "--tls-cert", "--tls-key"]);
            wrong(flag, error.path.display(), error.reason)
        })
    }

    /// Checks the addresses of issuers, and that none is reached in plaintext beyond this machine
    /// unless that is allowed.
    pub(super) fn check_issuers(&self) -> Result<(), Error> {
        for url in &self.issuer {
            let is_https = url.starts_with("https://");
            if !(is_https || url.starts_with("http://")) || url.parse::<hyper::Uri>().is_err() {
                let expected = "expected an address such as https://issuer-0.issuer:7070";
                return Err(wrong("--issuer", url, expected));
            }
            if !is_https && !is_local(url) && !self.database.insecure {
                return Err(wrong("--issuer", url, "beyond this machine expected https://, or --insecure"));
            }
        }
        self.database.check_plaintext(self.read_database.as_ref())?;
        Ok(())
    }

    /// Reads the files for connections to issuers, if one of them has TLS.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if a file cannot be used, or if the certificate is not for
    /// this process's holder id.
    pub(crate) fn issuer_tls(&self, holder: &str) -> Result<Option<ClientTls>, Error> {
        if !self.issuer.iter().any(|url| url.starts_with("https://")) {
            return Ok(None);
        }
        let IssuerTlsArgs { issuer_ca, issuer_cert, issuer_key } = self.issuer_tls.clone();
        let files = TlsFiles { ca: issuer_ca, certificate: issuer_cert, key: issuer_key };
        let tls = ClientTls::new(files, Verify::Full).map_err(|error| {
            let flag = error.flag(["--issuer-ca", "--issuer-cert", "--issuer-key"]);
            wrong(flag, error.path.display(), error.reason)
        })?;
        match tls.certificate().map(|certificate| Identity::new(certificate.names)) {
            Some(identity) if !identity.may_act_as(holder) => {
                let reason = format!("the certificate of --issuer-cert is for {identity}");
                Err(wrong("--holder-id", holder, reason))
            }
            _ => Ok(Some(tls)),
        }
    }
}
