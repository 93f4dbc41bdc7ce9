//! Name resolution: once in each attempt, with a limit in time and in number.
//!
//! 1. A name is resolved once, every address of the answer is checked, and only addresses of that
//!    answer are connected to. A name that is rebound to another address gains nothing by it.
//! 2. `getaddrinfo` cannot be interrupted. It runs on a thread of its own, which outlives an
//!    attempt that has run out of time; at most [`MAX_UNDER_WAY`] of them exist.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use ureq::{
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};
use url::Host;

use crate::{
    policy::{Policy, RefusedAddress},
    webhook_url::literal,
};

/// The number of lookups that may be under way at once.
const MAX_UNDER_WAY: usize = 64;
/// The number of checked addresses of a host that are tried. `ureq` takes at most 16.
const MAX_TRIED: usize = 8;

/// The system's answer to a lookup.
type Answer = io::Result<Vec<SocketAddr>>;

/// Why a host has no address to connect to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// The system's answer has no address.
    #[error("the host has no address: {0}")]
    NoAddress(String),
    /// One of the addresses may not be reached.
    #[error(transparent)]
    Refused(RefusedAddress),
    /// No answer in time.
    #[error("the host was not looked up in time")]
    Late,
    /// [`MAX_UNDER_WAY`] lookups have not ended.
    #[error("{MAX_UNDER_WAY} lookups are under way already")]
    Busy,
}

/// The lookups of a sender that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookups(Arc<AtomicUsize>);

/// One lookup under way.
struct Slot(Arc<AtomicUsize>);

impl Lookups {
    /// Resolves a host within a time limit. The answer has at least one address.
    fn resolve(
        &self,
        host: &Host<String>,
        port: u16,
        limit: Duration,
    ) -> Result<Vec<SocketAddr>, LookupError> {
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let name = host.to_string();
        let slot = self.take().ok_or(LookupError::Busy)?;
        let (answer, answered) = mpsc::sync_channel(1);
        let lookup = move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
            drop(slot);
            // The attempt may have given up.
            answer.send(found).ok()
        };
        let spawned = thread::Builder::new().name("webhook-lookup".to_owned()).spawn(lookup);
        spawned.map_err(|_| LookupError::Busy)?;
        addresses(&answered, limit)
    }

    fn take(&self) -> Option<Slot> {
        let one_more = |count: usize| (count < MAX_UNDER_WAY).then_some(count + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Slot(Arc::clone(&self.0)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn addresses(answered: &Receiver<Answer>, limit: Duration) -> Result<Vec<SocketAddr>, LookupError> {
    match answered.recv_timeout(limit).map_err(|_| LookupError::Late)? {
        Ok(found) if found.is_empty() => Err(LookupError::NoAddress("found none".to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err(LookupError::NoAddress(error.to_string())),
    }
}

/// The resolver of one attempt. It knows the host from the validated URL and ignores the client's.
#[derive(Debug)]
pub(crate) struct CheckedHost {
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
    pub(crate) policy: Arc<Policy>,
    pub(crate) lookups: Lookups,
}

impl CheckedHost {
    fn checked(&self, limit: Duration) -> Result<Vec<SocketAddr>, LookupError> {
        let found = self.lookups.resolve(&self.host, self.port, limit)?;
        self.policy.check_all(&found).map_err(LookupError::Refused)?;
        Ok(found)
    }
}

impl Resolver for CheckedHost {
    fn resolve(&self, _: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.checked(*timeout.after).map_err(|error| ureq::Error::Other(Box::new(error)))?;
        let mut tried = self.empty();
        found.into_iter().take(MAX_TRIED).for_each(|address| tried.push(address));
        Ok(tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn name(text: &str) -> Host<String> {
        Host::Domain(text.to_owned())
    }

    #[test]
    fn a_name_is_resolved_to_addresses_with_the_port() {
        let lookups = Lookups::default();
        let found = lookups.resolve(&name("localhost"), 81, LIMIT).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        assert_eq!(lookups.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_literal_address_needs_no_lookup() {
        let lookups = Lookups(Arc::new(AtomicUsize::new(MAX_UNDER_WAY)));
        let host = Host::Ipv4([8, 8, 8, 8].into());
        assert_eq!(lookups.resolve(&host, 443, LIMIT), Ok(vec![([8, 8, 8, 8], 443).into()]));
    }

    #[test]
    fn a_lookup_beyond_the_limit_is_refused() {
        let lookups = Lookups(Arc::new(AtomicUsize::new(MAX_UNDER_WAY - 1)));
        let slot = lookups.take().unwrap();
        assert_eq!(lookups.resolve(&name("localhost"), 1, LIMIT), Err(LookupError::Busy));
        drop(slot);
        assert!(lookups.resolve(&name("localhost"), 1, LIMIT).is_ok());
    }

    #[test]
    fn a_name_without_an_address_is_told_apart() {
        // Longer than a name in DNS can be, so that no server is asked.
        let found = Lookups::default().resolve(&name(&"x".repeat(300)), 1, LIMIT);
        assert!(matches!(found, Err(LookupError::NoAddress(_))), "{found:?}");
        let (answer, answered) = mpsc::sync_channel(1);
        answer.send(Ok(Vec::new())).unwrap();
        assert!(matches!(addresses(&answered, LIMIT), Err(LookupError::NoAddress(_))));
    }

    #[test]
    fn a_lookup_without_an_answer_in_time_is_late() {
        let (_answer, answered) = mpsc::sync_channel(1);
        assert_eq!(addresses(&answered, Duration::from_millis(1)), Err(LookupError::Late));
    }
}
