//! The addresses of this service's own short links.

use url::Host;

use crate::{DomainSettings, Slug, is_of_service, other_names};

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
    /// Returns whether a URL with this host, port and path could be a short link, also by a path
    /// that is not quite its name.
    pub(crate) fn has(&self, host: &Host, port: u16, path: &str) -> bool {
        let is_here = self.host == *host && self.port == port;
        is_here && path.strip_prefix(&*self.path).is_some_and(may_be_link)
    }
}

fn may_be_link(path: &str) -> bool {
    let settings = DomainSettings { ignore_trailing: true, ..DomainSettings::default() };
    let others = || other_names(path, &settings).into_iter();
    let is_name = |path: &str| Slug::of_path(path).is_some();
    is_name(path) || !is_of_service(path) && others().any(|other| is_name(&other.path))
}
