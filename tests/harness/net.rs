//! Loopback addresses and ports that belong to this run of the tests alone.
//!
//! 1. Every process has its own address in 127.64.0.0/10, made from its process id. Two runs at once cannot take
//!    each other's ports, even when both choose the same number.
//! 2. A port is handed out once per process. So the port of a server that was killed is still its own when it
//!    starts again.
//!
//! Outgoing loopback connections have 127.0.0.1 as their source, so their source ports cannot collide with these
//! either. Only Linux answers on all of 127.0.0.0/8 without configuration.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::Context;

/// More tries than this mean that the ports of the address have run out.
const TRIES_MAX: u32 = 10_000;

/// A set of numbers stays valid wherever a panic hits its user, hence the poison is ignored below.
static HANDED_OUT: LazyLock<Mutex<BTreeSet<u16>>> = LazyLock::new(Mutex::default);

/// The loopback address of this process.
pub fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Linux process ids have at most 22 bits: six of them fit here, and the set bit keeps off 127.0.0.0/16.
    Ipv4Addr::new(127, 0x40 | (high & 0x3f), middle, low)
}

/// A port on [`address`] that nobody listens on and that was not handed out before.
///
/// # Errors
/// The address cannot be bound, or has no free port left.
pub fn free_port() -> anyhow::Result<u16> {
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES_MAX {
        let listener = TcpListener::bind((address(), 0)).with_context(|| format!("bind {}", address()))?;
        let port = listener.local_addr().context("read the bound port")?.port();
        if handed_out.insert(port) {
            return Ok(port);
        }
    }
    anyhow::bail!("no free port left on {}", address())
}

/// [`free_port`] together with [`address`].
///
/// # Errors
/// See [`free_port`].
pub fn free_addr() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from((address(), free_port()?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{address, free_port};

    #[test]
    fn the_address_is_loopback_but_not_the_usual_one() {
        assert!(address().is_loopback());
        assert!(address().octets()[1] >= 0x40);
    }

    #[test]
    fn no_port_is_handed_out_twice() {
        let ports: BTreeSet<u16> = (0..200).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 200);
    }
}
