//! `X-Forwarded-For` and `Forwarded` behind trusted proxies.
//!
//! The input is lines: the trusted networks with commas between them, the address of the peer, and
//! then the lines of the header.
//!
//! 1. A peer that is no trusted proxy is the client, whatever it sends.
//! 2. What stands before the client's address has no effect: a client cannot choose how it is seen.
//! 3. One line of `X-Forwarded-For` with commas and several lines are the same list (RFC 9110,
//!    section 5.3), and a request as hyper has it gives the same client as the raw lines.
//! 4. Of two headers that name different clients, neither is believed.
#![no_main]

use std::{
    iter::empty,
    net::{IpAddr, Ipv4Addr},
};

use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use libfuzzer_sys::fuzz_target;
use metrics::Counter;
use web::client_limits::{ClientLimits, Clients};

/// Maximum number of networks, which are searched one by one.
const NETWORKS_MAX: usize = 16;
/// Beginnings of a header that a client may have written.
const CLAIMS: [&[u8]; 6] =
    [b"198.51.100.99", b"", b"nonsense", b"\xff, 10.0.0.1", b"for=198.51.100.99;by=\"", b"for=\"\\"];

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let clients = clients(lines.next().unwrap_or_default());
    let peer = lines.next().and_then(address).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let lines: Vec<&[u8]> = lines.collect();

    for header in ["x-forwarded-for", "forwarded"] {
        let client = named(&clients, peer, header, &lines);
        check_choice(&clients, peer, header, client, &lines);
        check_request(&clients, peer, header, client, &lines);
    }
    let listed = named(&clients, peer, "x-forwarded-for", &lines);
    if !lines.is_empty() {
        let joined = lines.join(&b", "[..]);
        assert_eq!(named(&clients, peer, "x-forwarded-for", &[&joined]), listed);
    }
    check_agreement(&clients, peer, listed, &lines);
});

/// Returns the client that the lines of a header name, if the peer is believed.
fn named(clients: &Clients, peer: IpAddr, header: &str, lines: &[&[u8]]) -> IpAddr {
    let lines = lines.iter().copied();
    match header {
        "forwarded" => clients.behind(peer, empty(), lines),
        _ => clients.behind(peer, lines, empty()),
    }
}

fn clients(networks: &[u8]) -> Clients {
    let networks = networks.split(|byte| *byte == b',');
    let parse = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<IpNet>().ok();
    let trusted_proxies = networks.filter_map(parse).take(NETWORKS_MAX).collect();
    let limits = ClientLimits {
        connections: Some(0),
        unknown_codes: 0,
        trusted_proxies,
        client_header: None,
        country_header: Some("cf-ipcountry".parse().expect("a name of a header")),
    };
    Clients::new(limits, Counter::noop())
}

fn address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn check_choice(clients: &Clients, peer: IpAddr, header: &str, client: IpAddr, lines: &[&[u8]]) {
    if lines.is_empty() || clients.trusts(client) {
        return;
    }
    for claim in CLAIMS {
        let longer = [claim, b",", lines[0]].concat();
        let before: Vec<&[u8]> = [claim].into_iter().chain(lines.iter().copied()).collect();
        assert_eq!(named(clients, peer, header, &before), client, "{claim:?} in a line of its own");
        let within: Vec<&[u8]> = [&*longer].into_iter().chain(lines[1..].iter().copied()).collect();
        assert_eq!(named(clients, peer, header, &within), client, "{claim:?}");
    }
}

fn check_request(clients: &Clients, peer: IpAddr, header: &'static str, client: IpAddr, lines: &[&[u8]]) {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append(HeaderName::from_static(header), value);
    }
    let expected = if clients.trusts(peer) { client } else { peer };
    assert_eq!(clients.client_of(peer, &headers), expected);
    if let Some(line) = lines.first().and_then(|line| HeaderValue::from_bytes(line).ok()) {
        headers.insert("cf-ipcountry", line);
        let country = clients.country(peer, &headers);
        assert!(country.is_none() || clients.trusts(peer), "only a proxy names a country");
    }
}

fn check_agreement(clients: &Clients, peer: IpAddr, listed: IpAddr, lines: &[&[u8]]) {
    let other = IpAddr::from([198, 51, 100, 98]);
    if !clients.trusts(peer) || clients.trusts(other) || clients.trusts(listed) || listed == other {
        return;
    }
    let forwarded = [&b"for=198.51.100.98"[..]];
    let client = clients.behind(peer, lines.iter().copied(), forwarded.into_iter());
    assert_eq!(client, peer);
}
