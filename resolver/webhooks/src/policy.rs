//! What the operator allows beyond public addresses and TLS.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use ipnet::IpNet;

use crate::address::special_range;

/// What webhooks may reach besides public addresses over TLS. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Networks of receivers that are not on the public Internet, such as an intranet's.
    pub allowed_networks: Vec<IpNet>,
    /// Whether URLs may be of the scheme http. Events are then readable on the way.
    pub allow_http: bool,
}

/// An address that webhooks may not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RefusedAddress {
    /// The first such address.
    pub address: IpAddr,
    /// The purpose of its range.
    pub range: &'static str,
    /// The number of addresses of the same host that webhooks may reach.
    pub permitted: usize,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a public address ({})", self.address, self.range)?;
        match self.permitted {
            0 => write!(f, ": the operator can allow its network with --webhooks network=CIDR"),
            permitted => write!(
                f,
                ", while {permitted} other addresses of the host are permitted: such a mix is an attack or a \
                 mistake in the host's DNS records"
            ),
        }
    }
}

impl Policy {
    /// Checks one address.
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        // Allowed networks are written in IPv4, and a system may map what it resolves to IPv6.
        let canonical = address.to_canonical();
        let is_allowed = |network: &IpNet| network.contains(&address) || network.contains(&canonical);
        match special_range(address) {
            Some(range) if !self.allowed_networks.iter().any(is_allowed) => {
                Err(RefusedAddress { address, range, permitted: 0 })
            }
            _ => Ok(()),
        }
    }

    /// Checks every address of a host. One refused address refuses the host, because a name that
    /// mixes public and private addresses is an attack or a mistake.
    pub(crate) fn check_all(&self, addresses: &[SocketAddr]) -> Result<(), RefusedAddress> {
        let (permitted, refused): (Vec<_>, Vec<_>) =
            addresses.iter().map(|address| self.check_socket(address)).partition(Result::is_ok);
        match refused.into_iter().find_map(Result::err) {
            Some(refused) => Err(RefusedAddress { permitted: permitted.len(), ..refused }),
            None => Ok(()),
        }
    }

    fn check_socket(&self, address: &SocketAddr) -> Result<(), RefusedAddress> {
        match address {
            // A zone id selects an interface of this machine.
            SocketAddr::V6(zoned) if zoned.scope_id() != 0 => {
                Err(RefusedAddress { address: address.ip(), range: "of one network interface", permitted: 0 })
            }
            _ => self.check(address.ip()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;

    use super::*;

    fn allowing(network: &str) -> Policy {
        Policy { allowed_networks: vec![network.parse().unwrap()], allow_http: false }
    }

    fn sockets(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 443)).collect()
    }

    #[test]
    fn an_allowed_network_permits_its_addresses_and_no_others() {
        let policy = allowing("10.1.0.0/16");
        for (address, is_permitted) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("10.2.0.0", false), ("64:ff9b::10.1.2.3", false)]
        {
            assert_eq!(policy.check(address.parse().unwrap()).is_ok(), is_permitted, "{address}");
        }
    }

    #[test]
    fn one_refused_address_refuses_the_host_and_the_mix_is_named() {
        let policy = Policy::default();
        assert_eq!(policy.check_all(&sockets(&["8.8.8.8", "2606:4700::1111"])), Ok(()));
        let refused = policy.check_all(&sockets(&["8.8.8.8", "127.0.0.1", "10.0.0.1"])).unwrap_err();
        let address = "127.0.0.1".parse().unwrap();
        assert_eq!(refused, RefusedAddress { address, range: "loopback", permitted: 1 });
        assert!(refused.to_string().contains("attack or a mistake"), "{refused}");
        let refused = policy.check_all(&sockets(&["127.0.0.1"])).unwrap_err();
        assert!(!refused.to_string().contains("attack"), "{refused}");
    }

    #[test]
    fn an_address_with_a_zone_is_refused_even_in_an_allowed_network() {
        let policy = allowing("fe80::/10");
        let address = "fe80::1".parse().unwrap();
        let without: SocketAddr = SocketAddrV6::new(address, 443, 0, 0).into();
        let with: SocketAddr = SocketAddrV6::new(address, 443, 0, 2).into();
        assert_eq!(policy.check_all(&[without]), Ok(()));
        assert_eq!(policy.check_all(&[with]).unwrap_err().address, IpAddr::V6(address));
    }
}
