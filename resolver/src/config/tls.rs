//! TLS of the public listener and of the connections to issuers, and the check that nothing leaves
//! this machine in plaintext.

use cli::{Error, wrong_value};
use daemon::is_local;
use tls::{ClientTls, HTTP1, HTTP2, Identity, ServerTls, TlsFiles, Verify};

use super::{Config, entries::Entries};

impl Config {
    pub(crate) fn public_tls(&self) -> Result<Option<ServerTls>, Error> {
        let files = files("--tls", &["cert", "key"], &self.tls)?;
        if files.certificate.is_none() {
            return Ok(None);
        }
        // HTTP/1.1 is for clients that want it, or know no ALPN.
        let tls = ServerTls::new(files, &[HTTP2, HTTP1]);
        tls.map(Some).map_err(|error| wrong_value("--tls", error.path.display(), error.reason))
    }

    /// Checks the addresses of issuers, and that neither they nor a database are reached in
    /// plaintext beyond this machine unless that is allowed.
    pub(super) fn check_connections(&self) -> Result<(), Error> {
        files("--tls", &["cert", "key"], &self.tls)?;
        self.issuer_files()?;
        for url in &self.issuer {
            let is_https = url.starts_with("https://");
            if !(is_https || url.starts_with("http://")) || url.parse::<hyper::Uri>().is_err() {
                let reason = "use an address such as https://issuer-0.issuer:7070";
                return Err(wrong_value("--issuer", url, reason));
            }
            if !is_https && !is_local(url) && !self.database.insecure {
                return Err(wrong_value("--issuer", url, "beyond this machine use https://, or --insecure"));
            }
        }
        self.database.check_plaintext(self.read_database.as_ref())
    }

    pub(crate) fn issuer_tls(&self, holder: &str) -> Result<Option<ClientTls>, Error> {
        if !self.issuer.iter().any(|url| url.starts_with("https://")) {
            return Ok(None);
        }
        let tls = ClientTls::new(self.issuer_files()?, Verify::Full)
            .map_err(|error| wrong_value("--issuer-tls", error.path.display(), error.reason))?;
        match tls.certificate().map(|certificate| Identity(certificate.names.into())) {
            Some(identity) if !identity.may_act_as(holder) => {
                let reason = format!("the certificate of --issuer-tls is for {identity}");
                Err(wrong_value("--holder-id", holder, reason))
            }
            _ => Ok(Some(tls)),
        }
    }

    fn issuer_files(&self) -> Result<TlsFiles, Error> {
        files("--issuer-tls", &["ca", "cert", "key"], &self.issuer_tls)
    }
}

/// Reads the paths of one peer's files.
fn files(flag: &'static str, names: &[&str], texts: &[String]) -> Result<TlsFiles, Error> {
    let given = Entries::of(flag, names, texts)?;
    let file = |name| Ok::<_, Error>(given.text(name)?.map(Into::into));
    let files = TlsFiles { ca: file("ca")?, certificate: file("cert")?, key: file("key")? };
    if files.certificate.is_some() == files.key.is_some() {
        return Ok(files);
    }
    Err(wrong_value(flag, texts.join(","), "cert and key belong together: name both"))
}
