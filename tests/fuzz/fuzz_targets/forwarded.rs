//! `X-Forwarded-For` behind trusted proxies.
//!
//! The input is lines: the trusted networks with commas between them, the address of the peer, and
//! then the lines of the header.
//!
//! 1. A peer that is no trusted proxy is the client, whatever it sends.
//! 2. The client is never a trusted proxy, unless all addresses behind the last unreadable one are.
//! 3. What stands before the client's address has no effect: a client cannot choose how it is seen.
//! 4. One line with commas and several lines are the same list (RFC 9110, section 5.3), and a
//!    request as hyper has it gives the same client as the raw lines.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use hyper::{Request, header::HeaderValue};
use ipnet::IpNet;
use libfuzzer_sys::fuzz_target;
use web::client_limits::{ClientLimits, Clients, forwarded_for};

/// Maximum number of networks, which are searched one by one.
const NETWORKS_MAX: usize = 16;
/// Beginnings of a header that a client may have written.
const CLAIMS: [&[u8]; 4] = [b"198.51.100.99", b"", b"nonsense", b"\xff, 10.0.0.1"];

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let clients = clients(lines.next().unwrap_or_default());
    let peer = lines.next().and_then(address).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let lines: Vec<&[u8]> = lines.collect();

    let client = clients.client_of(peer, lines.iter().copied());
    if !clients.trusts(peer) {
        assert_eq!(client, peer);
    }
    let named = clients.forwarded_client(peer, lines.iter().copied());
    assert_eq!(client, if clients.trusts(peer) { named } else { peer });
    check_choice(&clients, peer, named, &lines);
    check_spellings(&clients, peer, named, &lines);
    check_request(&clients, peer, named, &lines);
});

fn clients(networks: &[u8]) -> Clients {
    let networks = networks.split(|byte| *byte == b',');
    let parse = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<IpNet>().ok();
    let trusted_proxies = networks.filter_map(parse).take(NETWORKS_MAX).collect();
    let limits = ClientLimits {
        connections: Some(0),
        unknown_codes: 0,
        trusted_proxies,
        country_header: Some("cf-ipcountry".parse().expect("a name of a header")),
    };
    Clients::new(limits, 1)
}

fn address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn check_choice(clients: &Clients, peer: IpAddr, client: IpAddr, lines: &[&[u8]]) {
    let all: Vec<Option<IpAddr>> =
        lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(address).collect();
    // The readable addresses behind the last unreadable one, the nearest first.
    let read: Vec<IpAddr> = all.iter().rev().map_while(|one| *one).map(|one| one.to_canonical()).collect();
    match read.iter().position(|one| !clients.trusts(*one)) {
        Some(place) => assert_eq!(client, read[place]),
        None => assert_eq!(client, read.last().copied().unwrap_or(peer)),
    }
}

fn check_spellings(clients: &Clients, peer: IpAddr, client: IpAddr, lines: &[&[u8]]) {
    if !lines.is_empty() {
        let joined = lines.join(&b", "[..]);
        assert_eq!(clients.forwarded_client(peer, [&*joined].into_iter()), client);
    }
    if lines.is_empty() || clients.trusts(client) {
        return;
    }
    for claim in CLAIMS {
        let longer = [claim, b",", lines[0]].concat();
        let before = [claim].into_iter().chain(lines.iter().copied());
        assert_eq!(clients.forwarded_client(peer, before), client, "{claim:?} in a line of its own");
        let within = [&*longer].into_iter().chain(lines[1..].iter().copied());
        assert_eq!(clients.forwarded_client(peer, within), client, "{claim:?}");
    }
}

fn check_request(clients: &Clients, peer: IpAddr, client: IpAddr, lines: &[&[u8]]) {
    let mut request = Request::new(());
    for line in lines {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        request.headers_mut().append("x-forwarded-for", value);
    }
    assert_eq!(clients.forwarded_client(peer, forwarded_for(&request)), client);
    if let Some(line) = lines.first().and_then(|line| HeaderValue::from_bytes(line).ok()) {
        let headers = request.headers_mut();
        headers.insert("cf-ipcountry", line);
        let country = clients.country(peer, headers);
        assert!(country.is_none() || clients.trusts(peer), "only a proxy names a country");
    }
}
