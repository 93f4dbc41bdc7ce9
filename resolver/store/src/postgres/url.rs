//! Parameters of a Postgres URL that the driver does not know.
//!
//! They mean what they mean to libpq (PostgreSQL documentation, "Parameter Key Words"), with three
//! differences: there are no files in a home folder, so the authorities are those of the system
//! unless `sslrootcert` names a file; other users may read a password file, because volumes of
//! Kubernetes are mounted so; and without `sslmode`, a server on this machine is not asked for TLS,
//! which would cost each connection a round trip.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tls::{TlsFiles, Verify};

use crate::{Result, StoreError};

/// A URL, split into what the driver knows and what it does not.
pub(super) struct Url {
    /// The URL for the driver.
    pub(super) for_driver: String,
    /// `sslrootcert`, `sslcert` and `sslkey`.
    pub(super) files: TlsFiles,
    /// The verification of the server's certificate that `sslmode` requires.
    pub(super) verify: Verify,
    /// Whether `sslmode` is given, or implied by a file of authorities.
    pub(super) has_mode: bool,
    /// `passfile`.
    pub(super) passfile: Option<PathBuf>,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (base, parameters) = split(text);
        let mut url = Self {
            for_driver: base.to_owned(),
            files: TlsFiles::default(),
            verify: Verify::Nothing,
            has_mode: false,
            passfile: None,
        };
        let (mut mode, mut separator) = (String::new(), '?');
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            let file = (!value.is_empty()).then(|| PathBuf::from(&value));
            match name {
                "sslrootcert" => url.files.ca = file,
                "sslcert" => url.files.certificate = file,
                "sslkey" => url.files.key = file,
                "passfile" => url.passfile = file,
                "sslmode" => mode = value,
                _ => {
                    url.for_driver.push(separator);
                    url.for_driver.push_str(parameter);
                    separator = '&';
                }
            }
        }
        if url.files.certificate.is_some() != url.files.key.is_some() {
            return Err(StoreError::Address("expected sslcert and sslkey together".to_owned()));
        }
        url.verify = url.verified_by(&mode)?;
        let mode = match mode.as_str() {
            "verify-full" | "verify-ca" => "require",
            "" if url.files.ca.is_some() => "require",
            mode => mode,
        };
        url.has_mode = !mode.is_empty();
        if url.has_mode {
            url.for_driver.push(separator);
            url.for_driver.push_str("sslmode=");
            url.for_driver.push_str(mode);
        }
        Ok(url)
    }

    /// Returns what a mode requires of the server's certificate.
    fn verified_by(&mut self, mode: &str) -> Result<Verify> {
        if self.files.ca.as_ref().is_some_and(|path| path.as_os_str() == "system") {
            self.files.ca = None;
            return match mode {
                "" | "verify-full" => Ok(Verify::Full),
                _ => Err(StoreError::Address(
                    "expected sslmode=verify-full with sslrootcert=system".to_owned(),
                )),
            };
        }
        match mode {
            "verify-full" => Ok(Verify::Full),
            "verify-ca" if self.files.ca.is_none() => Err(StoreError::Address(
                "expected sslrootcert=FILE with sslmode=verify-ca: any public authority would do".to_owned(),
            )),
            "verify-ca" => Ok(Verify::Authority),
            "" | "require" if self.files.ca.is_some() => Ok(Verify::Authority),
            "" | "require" | "prefer" | "disable" => Ok(Verify::Nothing),
            other => Err(StoreError::Address(format!(
                "sslmode {other:?}: expected disable, prefer, require, verify-ca or verify-full"
            ))),
        }
    }
}

/// Splits a URL before its parameters, where the driver does: after the user and the password.
fn split(text: &str) -> (&str, &str) {
    let after_login = text.find('@').map_or(0, |at| at + 1);
    match text[after_login..].find('?') {
        Some(mark) => (&text[..after_login + mark], &text[after_login + mark + 1..]),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_mean_what_they_mean_to_libpq() {
        let (any, ca) = (Verify::Nothing, Some("/a b"));
        for (given, for_driver, verify, file) in [
            ("h/d", "h/d", any, None),
            ("h/d?sslmode=prefer", "h/d?sslmode=prefer", any, None),
            ("h/d?sslmode=require", "h/d?sslmode=require", any, None),
            ("h/d?sslmode=verify-ca&sslrootcert=/a%20b", "h/d?sslmode=require", Verify::Authority, ca),
            ("h/d?a=1&sslmode=verify-full&b=2", "h/d?a=1&b=2&sslmode=require", Verify::Full, None),
            ("h/d?sslmode=require&sslrootcert=%2Fa%20b", "h/d?sslmode=require", Verify::Authority, ca),
            ("h/d?sslrootcert=/a%20b", "h/d?sslmode=require", Verify::Authority, ca),
            ("h/d?sslmode=verify-full&sslrootcert=system", "h/d?sslmode=require", Verify::Full, None),
            ("u:p?x@h/d?sslmode=disable", "u:p?x@h/d?sslmode=disable", any, None),
        ] {
            let url = Url::parse(&format!("postgres://{given}")).unwrap();
            assert_eq!(url.for_driver, format!("postgres://{for_driver}"), "{given}");
            assert_eq!((url.verify, url.files.ca), (verify, file.map(PathBuf::from)), "{given}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_that_says_what_was_expected() {
        for (parameters, part) in [
            ("sslmode=allow", "verify-full"),
            ("sslcert=/a", "sslkey"),
            ("sslmode=verify-ca", "sslrootcert"),
            ("sslmode=require&sslrootcert=system", "verify-full"),
        ] {
            let error = Url::parse(&format!("postgres://h/d?{parameters}")).err().unwrap().to_string();
            assert!(error.contains(part), "{parameters}: {error}");
        }
    }
}
