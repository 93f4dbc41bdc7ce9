//! TLS on the connections between servers.
//!
//! Certificates and keys come from files, and are read again when the files change, so that they
//! can be renewed without a restart. New connections use the new ones; open connections keep what
//! they were opened with. Files that cannot be read or do not belong together change nothing: the
//! last good ones stay in use, and the reason is logged once.
//!
//! The cryptography is ring's, which `ureq` uses already. TLS 1.2 and 1.3 are spoken.

mod certificate;
mod client;
mod files;
mod reload;
mod server;
mod verifier;

pub use certificate::{Certificate, Identity};
pub use client::{ClientStream, ClientTls, Verify};
pub use files::{FileRole, TlsError, TlsFiles};
pub use reload::Reloaded;
pub use server::{ServerTls, identity};
pub use tokio_rustls::server::TlsStream as ServerStream;

/// Returns whether a host is this machine, so that a connection to it needs no TLS.
pub fn is_local_host(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The protocol name of HTTP/2 for ALPN (RFC 7301), which gRPC needs.
pub const HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1 in ALPN.
pub const HTTP1: &[u8] = b"http/1.1";
