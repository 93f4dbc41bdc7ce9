//! The addresses of this service's own short links.

use url::Host;

use crate::Slug;

/// An address below which the short links of the default domain are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The path before the names of links, without a slash at its end; empty at the root.
    pub path: String,
}

impl OwnAddress {
    /// Returns whether a URL with this host, port and path could be a short link.
    pub(crate) fn has(&self, host: &Host, port: u16, path: &str) -> bool {
        self.host == *host
            && self.port == port
            && path.strip_prefix(&*self.path).and_then(Slug::of_path).is_some()
    }
}
