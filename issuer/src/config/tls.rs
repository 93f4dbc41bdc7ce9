//! Flags for TLS: of the own listener, and of the connections to etcd and to issuers.

use std::path::PathBuf;

use clap::Args;
use daemon::is_local;
use tls::{ClientTls, HTTP2, ServerTls, TlsError, TlsFiles, Verify};

use super::Config;
use crate::Error;

/// Flags for TLS of the server.
#[derive(Clone, Debug, Default, Args)]
pub struct TlsArgs {
    /// Serve gRPC with TLS, with the certificates in this PEM file: first the issuer's own. The
    /// file is read again when it changes, as are all files of certificates and keys.
    #[arg(long, env = "ISSUER_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in PEM.
    #[arg(long, env = "ISSUER_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate of these authorities. It may act only as the holder
    /// that it names: as `resolver` or `resolver.POD` with the DNS name `resolver`.
    #[arg(long, env = "ISSUER_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Names of the certificates that may take numbers; with others, clients may only read the
    /// status. Defaults to all: then the authorities should certify resolvers only.
    #[arg(
        long,
        env = "ISSUER_TLS_CLIENT_NAMES",
        value_name = "NAME[,NAME…]",
        value_delimiter = ',',
        requires = "tls_client_ca"
    )]
    pub tls_client_names: Vec<String>,
    /// Authorities of etcd's certificates, for addresses that begin with https://. Defaults to
    /// those that the system trusts.
    #[arg(long, env = "ISSUER_ETCD_CA", value_name = "FILE")]
    pub etcd_ca: Option<PathBuf>,
    /// Certificate to show to etcd, in PEM.
    #[arg(long, env = "ISSUER_ETCD_CERT", value_name = "FILE", requires = "etcd_key")]
    pub etcd_cert: Option<PathBuf>,
    /// Private key of --etcd-cert, in PEM.
    #[arg(long, env = "ISSUER_ETCD_KEY", value_name = "FILE", requires = "etcd_cert")]
    pub etcd_key: Option<PathBuf>,
    /// Allow connections beyond this machine without TLS: to etcd, and from clients that need no
    /// certificate. Any client that can reach the issuer can then take numbers.
    #[arg(long, env = "ISSUER_INSECURE", value_parser = clap::builder::BoolishValueParser::new())]
    pub insecure: bool,
}

/// Flags for TLS of `issuer status`.
#[derive(Clone, Debug, Default, Args)]
pub struct StatusTlsArgs {
    /// Authorities of the issuers' certificates, for addresses that begin with https://. Defaults
    /// to those that the system trusts.
    #[arg(long, env = "ISSUER_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate to show to issuers, in PEM.
    #[arg(long, env = "ISSUER_CERT", value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, in PEM.
    #[arg(long, env = "ISSUER_KEY", value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl TlsArgs {
    /// Checks that nothing leaves this machine in plaintext, unless that is allowed.
    pub(super) fn check(&self, config: &Config) -> Result<(), Error> {
        let advertised = config.advertise();
        if self.tls_cert.is_some() != advertised.starts_with("https://") && config.advertise.is_some() {
            let expected = if self.tls_cert.is_some() { "https:// because of --tls-cert" } else { "http://" };
            let reason = format!("expected an address that starts with {expected}");
            return Err(Error::config("--advertise", advertised, reason));
        }
        if self.insecure {
            return Ok(());
        }
        if !config.listen.ip().is_loopback() && self.tls_client_ca.is_none() {
            let reason =
                "beyond this machine expected --tls-cert, --tls-key and --tls-client-ca, or --insecure";
            return Err(Error::config("--listen", config.listen, reason));
        }
        match config.etcd.iter().find(|url| !url.starts_with("https://") && !is_local(url)) {
            Some(url) => {
                Err(Error::config("--etcd", url, "beyond this machine expected https://, or --insecure"))
            }
            None => Ok(()),
        }
    }

    /// Reads the files of the listener, if it has TLS.
    pub fn listener(&self) -> Result<Option<ServerTls>, Error> {
        if self.tls_cert.is_none() {
            return Ok(None);
        }
        let files = TlsFiles {
            ca: self.tls_client_ca.clone(),
            certificate: self.tls_cert.clone(),
            key: self.tls_key.clone(),
        };
        let flags = ["--tls-client-ca", "--tls-cert", "--tls-key"];
        ServerTls::new(files, &[HTTP2]).map(Some).map_err(|error| of_file(flags, error))
    }

    /// Reads the files for connections to etcd.
    pub fn etcd(&self, members: &[String]) -> Result<Option<ClientTls>, Error> {
        let files = TlsFiles {
            ca: self.etcd_ca.clone(),
            certificate: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
        };
        client(members, files, ["--etcd-ca", "--etcd-cert", "--etcd-key"])
    }
}

impl StatusTlsArgs {
    /// Reads the files for connections to issuers.
    pub fn client(&self, issuers: &[String]) -> Result<Option<ClientTls>, Error> {
        let files = TlsFiles { ca: self.ca.clone(), certificate: self.cert.clone(), key: self.key.clone() };
        client(issuers, files, ["--ca", "--cert", "--key"])
    }
}

/// Reads the files for connections to servers, if one of them has TLS.
fn client(urls: &[String], files: TlsFiles, flags: [&'static str; 3]) -> Result<Option<ClientTls>, Error> {
    if !urls.iter().any(|url| url.starts_with("https://")) {
        return Ok(None);
    }
    ClientTls::new(files, Verify::Full).map(Some).map_err(|error| of_file(flags, error))
}

fn of_file(flags: [&'static str; 3], error: TlsError) -> Error {
    Error::config(error.flag(flags), error.path.display(), error.reason)
}
