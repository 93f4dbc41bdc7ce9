//! Name resolution with a limit in number.
//!
//! `getaddrinfo` cannot be interrupted. It runs on a thread of its own, which outlives an attempt
//! that has run out of time; at most [`MAX_UNDER_WAY`] of them exist. A blocking thread of the
//! runtime was rejected: the runtime would wait for it when the process ends.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
    thread,
};

use tokio::sync::{Semaphore, oneshot};
use url::Host;

use crate::{outcome::Failure, webhook_url::literal};

/// The number of lookups of a sender that may be under way at once.
pub(crate) const MAX_UNDER_WAY: usize = 64;

fn busy() -> Failure {
    Failure::again("too many lookups of hosts are under way")
}

fn no_address(reason: &str) -> Failure {
    Failure::again(format!("the host has no address: {reason}"))
}

/// Resolves a host. The answer has at least one address. `slots` are of lookups under way.
pub(crate) async fn resolve(
    slots: &Arc<Semaphore>,
    host: &Host<String>,
    port: u16,
) -> Result<Vec<SocketAddr>, Failure> {
    if let Some(address) = literal(host) {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_string();
    let slot = Arc::clone(slots).try_acquire_owned().map_err(|_| busy())?;
    let (answer, answered) = oneshot::channel();
    let lookup = move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
        drop(slot);
        // The attempt may have given up.
        let _ = answer.send(found);
    };
    let spawned = thread::Builder::new().name("webhook-lookup".to_owned()).spawn(lookup);
    spawned.map_err(|_| busy())?;
    match answered.await.map_err(|_| busy())? {
        Ok(found) if found.is_empty() => Err(no_address("found none")),
        Ok(found) => Ok(found),
        Err(error) => Err(no_address(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Host<String> {
        Host::Domain(text.to_owned())
    }

    #[tokio::test]
    async fn a_name_is_resolved_to_addresses_with_the_port() {
        let slots = Arc::new(Semaphore::new(MAX_UNDER_WAY));
        let found = resolve(&slots, &name("localhost"), 81).await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        // Longer than a name in DNS can be, so that no server is asked.
        let refused = resolve(&slots, &name(&"x".repeat(300)), 1).await.unwrap_err();
        assert!(refused.error.starts_with("the host has no address"), "{refused:?}");
    }

    #[tokio::test]
    async fn a_lookup_beyond_the_limit_is_refused_and_a_literal_address_needs_none() {
        let slots = Arc::new(Semaphore::new(MAX_UNDER_WAY));
        let taken = slots.try_acquire_many(u32::try_from(MAX_UNDER_WAY).unwrap()).unwrap();
        assert_eq!(resolve(&slots, &name("localhost"), 1).await, Err(busy()));
        let host = Host::Ipv4([8, 8, 8, 8].into());
        assert_eq!(resolve(&slots, &host, 443).await, Ok(vec![([8, 8, 8, 8], 443).into()]));
        drop(taken);
        assert!(resolve(&slots, &name("localhost"), 1).await.is_ok());
    }
}
