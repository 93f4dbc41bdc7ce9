//! The operator's exceptions from public addresses and TLS.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use crate::{address::special_range, webhook_url::Refused};

/// Receivers that webhooks may reach besides public addresses over TLS. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Networks of receivers that are not on the public Internet, such as an intranet's.
    pub allowed_networks: Vec<IpNet>,
    /// Whether URLs may be of the scheme http. Events are then readable on the way.
    pub allow_http: bool,
}

impl Policy {
    /// Checks that each address of a host is public or in an allowed network. One refused address
    /// refuses the host, because a name that mixes public and private addresses is an attack or a
    /// mistake.
    pub(crate) fn check(&self, addresses: &[SocketAddr]) -> Result<(), Refused> {
        let range = |address: &SocketAddr| Some((address.ip(), self.refused_range(address)?));
        let refused: Vec<(IpAddr, &str)> = addresses.iter().filter_map(range).collect();
        let Some((address, range)) = refused.first() else { return Ok(()) };
        let hint = match addresses.len() - refused.len() {
            0 => ": the operator can allow its network with --webhooks network=CIDR".to_owned(),
            permitted => format!(
                ", while {permitted} other addresses of the host are permitted: such a mix is an attack or a \
                 mistake in the host's DNS records"
            ),
        };
        Err(Refused(format!("{address} is not a public address ({range}){hint}")))
    }

    /// Returns the purpose of the range of an address that webhooks may not reach.
    fn refused_range(&self, address: &SocketAddr) -> Option<&'static str> {
        // A zone id selects an interface of this machine.
        if matches!(address, SocketAddr::V6(zoned) if zoned.scope_id() != 0) {
            return Some("of one network interface");
        }
        // Allowed networks are written in IPv4, and a system may map what it resolves to IPv6.
        let (address, canonical) = (address.ip(), address.ip().to_canonical());
        let is_allowed = |network: &IpNet| network.contains(&address) || network.contains(&canonical);
        special_range(address).filter(|_| !self.allowed_networks.iter().any(is_allowed))
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
            assert_eq!(policy.check(&sockets(&[address])).is_ok(), is_permitted, "{address}");
        }
    }

    #[test]
    fn one_refused_address_refuses_the_host_and_the_mix_is_named() {
        let policy = Policy::default();
        assert_eq!(policy.check(&sockets(&["8.8.8.8", "2606:4700::1111"])), Ok(()));
        for (addresses, reason) in [
            (&["8.8.8.8", "127.0.0.1", "10.0.0.1"][..], "(loopback), while 1 other addresses"),
            (&["127.0.0.1"], "(loopback): the operator can allow"),
        ] {
            let refused = policy.check(&sockets(addresses)).unwrap_err();
            let expected = format!("127.0.0.1 is not a public address {reason}");
            assert!(refused.0.starts_with(&expected), "{refused}");
        }
    }

    #[test]
    fn an_address_with_a_zone_is_refused_even_in_an_allowed_network() {
        let policy = allowing("fe80::/10");
        let address = "fe80::1".parse().unwrap();
        let without: SocketAddr = SocketAddrV6::new(address, 443, 0, 0).into();
        let with: SocketAddr = SocketAddrV6::new(address, 443, 0, 2).into();
        assert_eq!(policy.check(&[without]), Ok(()));
        let refused = policy.check(&[with]).unwrap_err();
        assert!(refused.0.starts_with("fe80::1 is not"), "{refused}");
    }
}
