//! Fields read from certificates: names, serial number and the end of their validity.

use std::{fmt::Write as _, sync::Arc};

use rustls::pki_types::CertificateDer;
use x509_cert::{
    der::{
        Decode as _,
        asn1::{PrintableStringRef, Utf8StringRef},
        oid::db::rfc4519::CN,
    },
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// A certificate in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// End of the validity, in seconds since 1970.
    pub not_after: u64,
    /// Its DNS names (RFC 5280, section 4.2.1.6), or the common name if it has none.
    pub names: Vec<String>,
}

impl Certificate {
    /// Reads a certificate. What cannot be read stays empty: it has been verified, or is our own.
    pub fn read(der: &CertificateDer<'_>) -> Self {
        let Ok(certificate) = x509_cert::Certificate::from_der(der) else { return Self::default() };
        let certificate = certificate.tbs_certificate;
        let mut serial = String::new();
        for byte in certificate.serial_number.as_bytes() {
            // Writing to a string cannot fail.
            let _ = write!(serial, "{byte:02x}");
        }
        let mut names = Vec::new();
        if let Ok(Some((_, SubjectAltName(alternatives)))) = certificate.get::<SubjectAltName>() {
            names.extend(alternatives.iter().filter_map(|name| match name {
                GeneralName::DnsName(name) => Some(name.as_str().to_owned()),
                _ => None,
            }));
        }
        if names.is_empty() {
            let parts = certificate.subject.0.iter().flat_map(|part| part.0.iter());
            let common = parts.filter(|part| part.oid == CN);
            names.extend(common.filter_map(|part| {
                let utf8 = part.value.decode_as::<Utf8StringRef<'_>>().map(|name| name.as_str().to_owned());
                utf8.or_else(|_| {
                    part.value.decode_as::<PrintableStringRef<'_>>().map(|name| name.as_str().to_owned())
                })
                .ok()
            }));
        }
        Self { serial, not_after: certificate.validity.not_after.to_unix_duration().as_secs(), names }
    }
}

/// The names in a client's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(pub Arc<[String]>);

impl Identity {
    /// Returns whether the certificate has one of these names.
    pub fn has_one_of(&self, names: &[String]) -> bool {
        self.0.iter().any(|name| names.contains(name))
    }

    /// Returns whether the client may act as a holder of numbers.
    ///
    /// A certificate is for the holder with its name, and for those whose names continue it after a
    /// dot: pods that share the certificate `resolver` are `resolver.POD`.
    pub fn may_act_as(&self, holder: &str) -> bool {
        self.0.iter().any(|name| {
            let rest = holder.strip_prefix(name.as_str());
            !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SerialNumber, date_time_ymd,
    };

    use super::*;

    fn read(names: &[&str], common: impl Into<DnValue>) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common);
        params.serial_number = Some(SerialNumber::from_slice(&[1, 0xab]));
        params.not_after = date_time_ymd(2030, 1, 1);
        Certificate::read(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der())
    }

    #[test]
    fn a_certificate_is_known_by_its_dns_names_before_its_common_name() {
        let named = read(&["resolver-0", "192.0.2.1", "b.example"], "other");
        assert_eq!(named.names, ["resolver-0", "b.example"]);
        assert_eq!((named.serial.as_str(), named.not_after), ("01ab", 1_893_456_000));
        assert_eq!(read(&[], "resolver-1").names, ["resolver-1"]);
        // As Go writes it, and with it cert-manager.
        let printable = DnValue::PrintableString("resolver-1".try_into().unwrap());
        assert_eq!(read(&[], printable).names, ["resolver-1"]);
    }

    #[test]
    fn a_certificate_is_for_its_holder_and_those_below_it() {
        let identity = Identity(["resolver".to_owned(), String::new()].into());
        for holder in ["resolver", "resolver.7d9f-x2k", "resolver.a.b"] {
            assert!(identity.may_act_as(holder), "{holder}");
        }
        for holder in ["", ".", "resolve", "resolver-0", "resolverx", "Resolver", "a.resolver"] {
            assert!(!identity.may_act_as(holder), "{holder}");
        }
        assert!(!Identity([].into()).may_act_as("resolver"));
    }
}
