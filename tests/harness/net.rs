//! Loopback addresses and ports that no other test process uses.
//!
//! 1. Every process has its own address in 127.64.0.0/10, derived from its process id. So two
//!    concurrent runs cannot take each other's ports, even if both choose the same number.
//! 2. A port is handed out once per process. So the port of a killed server is still free when the
//!    server starts again.
//! 3. Ports are below those that the kernel chooses, unless it is told otherwise. So it gives
//!    nobody a port that is handed out and whose server has not started yet.
//!
//! Outgoing loopback connections use 127.0.0.1 as their source, so their source ports cannot
//! collide with these either. Only Linux accepts connections on all of 127.0.0.0/8 without
//! configuration.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::Context;

/// The first port that is handed out, and how many there are. Linux chooses from 32,768 on, and
/// browsers connect to all of these (but not to 10,080).
const FIRST: u32 = 11_000;
const COUNT: u32 = 21_000;

/// The ports handed out so far. The set stays valid if its user panics, so poisoning is ignored
/// below.
static HANDED_OUT: LazyLock<Mutex<BTreeSet<u16>>> = LazyLock::new(Mutex::default);

/// Returns the loopback address of this process.
pub fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Linux process ids have at most 22 bits. The upper six fit here, and the set bit avoids
    // 127.0.0.0/16.
    Ipv4Addr::new(127, 0x40 | (high & 0x3f), middle, low)
}

/// Returns a port on [`address`] that is free and was not handed out before.
///
/// # Errors
/// See [`free_port_on`].
pub fn free_port() -> anyhow::Result<u16> {
    free_port_on(address())
}

/// Returns a port that is free on an address and was not handed out before on any.
///
/// # Errors
/// Returns an error if the address cannot be bound or has no free port left.
pub fn free_port_on(address: Ipv4Addr) -> anyhow::Result<u16> {
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes that share an address begin at different places.
    let first = std::process::id().wrapping_mul(997);
    for step in 0..COUNT {
        let port = FIRST + first.wrapping_add(step) % COUNT;
        let port = u16::try_from(port).context("ports have 16 bits")?;
        if handed_out.contains(&port) {
            continue;
        }
        match TcpListener::bind((address, port)) {
            Ok(_) => {
                handed_out.insert(port);
                return Ok(port);
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error).with_context(|| format!("bind {address}:{port}")),
        }
    }
    anyhow::bail!("no free port left on {address}")
}

/// Returns [`address`] with a [`free_port`].
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
        assert!(ports.iter().all(|port| *port < 32_768), "the kernel would give them away: {ports:?}");
    }
}
