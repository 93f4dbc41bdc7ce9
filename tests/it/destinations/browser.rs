//! Generated targets and long URLs, as Chromium reads them (`tests/browser/targets.mjs`).
//!
//! 1. Whenever Chromium would go to a host that a rule denies, the target is refused when it is
//!    stored, and a redirect to a stored one is refused too. Ordinary targets are neither.
//! 2. A `Location` is a URI reference of RFC 3986 by a parser that is not ours, and Chromium reads
//!    it as the same address as the long URL itself.
//!
//! `SHORTMINT_TARGETS` and `SHORTMINT_TARGETS_SEED` set their number and the seed. Some are also
//! followed on a running resolver.

use std::{env, fmt::Write as _, fs, time::Duration};

use harness::{Api, Launch, Scratch};
use links::{
    Base, LongUrl, Schemes, check_fallback_target, fill_placeholders, forward_query, location,
    location_with_query,
    targets::{Gate, TargetRule, Targets},
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::generator::{DENIED, DENIED_ADDRESS, OWN, long_url, rng, target, visitors_query};
use crate::{
    k8s::in_venv,
    pages::run_script,
    rest_calls::{Alone, done},
};

/// The default number of targets and of long URLs.
const TARGETS: u64 = 4_000;
/// One in this many is followed on a running resolver, but at most [`FOLLOWED_MAX`].
const FOLLOWED: u64 = 40;
const FOLLOWED_MAX: u64 = 500;
const RUN_WITHIN: Duration = Duration::from_secs(300);
/// The domain that Chromium finds at the resolver.
const SITE: &str = OWN;
/// Fails for the first line that is no URI reference.
const VALIDATOR: &str = "
import sys
from rfc3986_validator import validate_rfc3986
for line in open(sys.argv[1], encoding='utf-8'):
    assert validate_rfc3986(line.removesuffix('\\n'), rule='URI_reference'), line
";

/// Results of `targets.mjs`.
#[derive(Deserialize)]
struct Results {
    addresses: Vec<Option<Address>>,
    fallbacks: Vec<Fallback>,
    links: Vec<(Opened, Opened)>,
}

#[derive(Deserialize)]
struct Address {
    href: String,
    host: String,
}

#[derive(Deserialize)]
struct Fallback {
    status: u16,
    host: Option<String>,
}

#[derive(Deserialize)]
struct Opened {
    at: Option<String>,
    asked: Option<(String, String)>,
}

fn count_and_seed() -> (u64, u64) {
    let number = |name: &str, default| env::var(name).map_or(default, |text| text.parse().unwrap());
    (number("SHORTMINT_TARGETS", TARGETS), number("SHORTMINT_TARGETS_SEED", 1))
}

async fn in_chromium(scratch: &Scratch, api: &Api, mut cases: Value) -> Results {
    cases["domain"] = json!(SITE);
    let folder = scratch.folder("cases").unwrap();
    fs::write(folder.join("cases.json"), cases.to_string()).unwrap();
    let printed = run_script(scratch, "targets.mjs", api, &[folder.to_str().unwrap()]).await;
    assert!(printed.contains("all are read"), "{printed}");
    serde_json::from_slice(&fs::read(folder.join("results.json")).unwrap()).unwrap()
}

/// The rules, as a resolver applies them.
fn rules() -> (Targets, Gate) {
    let deny = |pattern: &str| TargetRule::parse(pattern, false).unwrap();
    let rules = [deny(DENIED), deny(&format!("*.{DENIED}")), deny(DENIED_ADDRESS)];
    let gate = Gate::default();
    gate.replace(Targets::new(&rules));
    (Targets::new(&rules), gate)
}

/// Returns `true` if Chromium loads a page from a denied host at this address.
fn is_denied(Address { href, host }: &Address) -> bool {
    let loads = ["http:", "https:", "ws:", "wss:", "ftp:"].iter().any(|scheme| href.starts_with(scheme));
    let host = host.trim_end_matches('.');
    let is_address = host == DENIED_ADDRESS || host == "[::ffff:7f06:606]";
    loads && (host == DENIED || host.ends_with(&format!(".{DENIED}")) || is_address)
}

/// Returns `true` if an address has another one inside that a browser may open.
fn is_nested(Address { href, .. }: &Address) -> bool {
    ["view-source:", "blob:", "javascript:", "data:", "file:"].iter().any(|scheme| href.starts_with(scheme))
}

/// Escapes what RFC 3986 does not allow, so that addresses compare that differ in this only.
fn escaped(href: &str) -> String {
    let mut text = String::new();
    let fragment = href.find('#');
    for (at, character) in href.char_indices() {
        let digits = href.get(at + 1..at + 3).unwrap_or_default();
        let escapes = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_plain = character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?".contains(character);
        if is_plain || fragment == Some(at) || character == '%' && escapes {
            text.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                write!(text, "%{byte:02X}").unwrap();
            }
        }
    }
    text
}

/// Verdict of our code on a target.
struct Verdict {
    is_stored: bool,
    is_redirected: bool,
    is_link: bool,
}

/// Returns the verdict on each target, and the three addresses that a browser reads, each with its
/// base: the target, the target with its placeholders filled, and that as a location.
fn judge(generated: &[(String, bool)]) -> (Vec<Verdict>, Vec<(String, String)>) {
    let (targets, gate) = rules();
    let (mut judged, mut addresses) = (Vec::new(), Vec::new());
    for (number, (target, _)) in generated.iter().enumerate() {
        let base = format!("http{}://{OWN}/none", if number % 2 == 0 { "" } else { "s" });
        let trimmed = target.trim();
        let is_stored =
            check_fallback_target(trimmed).is_ok() && targets.allow(trimmed, Base::new(OWN).as_ref());
        let filled = fill_placeholders(target, OWN, "/none%2F%2e");
        let is_redirected = filled.as_ref().is_some_and(|filled| gate.allows_from(OWN, &location(filled)));
        let is_link = gate.allows(&LongUrl::from_stored(target.as_str()));
        judged.push(Verdict { is_stored, is_redirected, is_link });
        addresses.push((base.clone(), target.clone()));
        addresses.push((base.clone(), filled.clone().unwrap_or_default()));
        addresses.push((base, filled.as_deref().map(location).unwrap_or_default()));
    }
    (judged, addresses)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_leads_chromium_to_a_denied_host_is_refused() {
    let (count, seed) = count_and_seed();
    let generated: Vec<(String, bool)> = (0..count).map(|number| target(&mut rng(seed, number))).collect();
    let (judged, addresses) = judge(&generated);
    let followed = generated.iter().step_by(usize::try_from(FOLLOWED.max(count / FOLLOWED_MAX)).unwrap());
    // Only a server without TLS answers here.
    let followed: Vec<String> = followed.map(|(target, _)| target.replace("https:", "http:")).collect();

    let alone = Alone::start(&[]).await;
    for pattern in [DENIED, &format!("*.{DENIED}"), DENIED_ADDRESS] {
        let deny = json!({ "pattern": pattern, "allowed": false });
        done(alone.api(), Method::PUT, "targets", Some(deny)).await;
    }
    let scratch = Scratch::new().unwrap();
    let cases = json!({ "addresses": addresses, "fallbacks": followed, "links": [] });
    let results = in_chromium(&scratch, alone.api(), cases).await;

    let (mut denied, mut nested, mut unread, mut ordinary) = (0, 0, 0, 0);
    for (((target, is_ordinary), Verdict { is_stored, is_redirected, is_link }), read) in
        generated.iter().zip(judged).zip(results.addresses.chunks(3))
    {
        let [own, filled, to] = read else { panic!("three addresses of each target") };
        if *is_ordinary {
            ordinary += 1;
            assert!(is_stored && is_redirected, "{target:?} is an ordinary target");
            let is_there = filled.as_ref().is_some_and(|address| !is_denied(address));
            assert!(is_there, "Chromium reads {target:?}");
        }
        let leads = |read: &Option<Address>, of: fn(&Address) -> bool| read.as_ref().is_some_and(of);
        if leads(filled, is_denied) || leads(to, is_denied) {
            assert!(!is_stored && !is_redirected, "{target:?} leads to a denied host as a fallback target");
        }
        if leads(own, is_denied) {
            denied += 1;
            assert!(!is_stored && !is_link, "{target:?} leads to a denied host");
        }
        if leads(own, is_nested) {
            nested += 1;
            assert!(!is_stored && !is_link, "{target:?} may lead anywhere");
        }
        unread += u64::from(own.is_none());
        // Of those that can be stored at all.
        let is_known = check_fallback_target(target.trim()).is_ok()
            || LongUrl::parse(target, &[], &Schemes::default()).is_ok();
        let [filled, to] = [filled, to].map(|read| read.as_ref().map(|address| escaped(&address.href)));
        assert!(
            filled.is_none() || filled == to || !is_known,
            "{target:?} as a location: {filled:?} and {to:?}"
        );
    }
    let mut led = 0;
    for (target, Fallback { status, host }) in followed.iter().zip(&results.fallbacks) {
        let host = host.as_deref().unwrap_or_default();
        led += u64::from(!host.is_empty());
        let name = host.split(':').next().unwrap_or_default().trim_end_matches('.');
        let is_denied = name == DENIED || name.ends_with(&format!(".{DENIED}")) || name == DENIED_ADDRESS;
        assert!(!is_denied, "{target:?}, stored with {status}, has led to {host}");
    }
    println!(
        "seed {seed}: {count} targets, {ordinary} ordinary; Chromium goes to a denied host by {denied}, to nested \
         addresses by {nested}, cannot read {unread}; {} followed, {led} of them to another host",
        followed.len()
    );
    assert!(
        denied > count / 10 && nested > 0 && ordinary > count / 10 && led > 0,
        "the generator has all kinds"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_location_is_a_uri_and_leads_chromium_where_the_long_url_does() {
    let (count, seed) = count_and_seed();
    let alone = Alone::start(&[]).await;
    let base = format!("http://{SITE}/none");
    let (mut addresses, mut locations, mut links, mut refused) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for number in 0..count {
        let rng = &mut rng(seed ^ 0x4C6F_6361, number);
        let (long_url, query) = (long_url(rng), visitors_query(rng));
        if LongUrl::parse(&long_url, &[], &Schemes::default()).is_err() {
            refused += 1;
            continue;
        }
        let merged = forward_query(&long_url, &query).unwrap_or_else(|| long_url.clone());
        let to = location_with_query(&long_url, &query).unwrap_or_else(|| location(&long_url));
        if number.is_multiple_of(FOLLOWED.max(count / FOLLOWED_MAX)) && long_url.starts_with("http://") {
            let wish = json!({ "longUrl": long_url });
            let code = alone.api().create_with(&wish).await.unwrap().code;
            links.push((format!("http://{SITE}/{code}"), long_url.clone()));
        }
        for address in [long_url.clone(), location(&long_url), merged, to.clone()] {
            addresses.push((&base, address));
        }
        locations.push(location(&long_url));
        locations.push(to);
    }
    let scratch = Scratch::new().unwrap();
    let (script, list) = (scratch.path().join("validate.py"), scratch.path().join("locations"));
    fs::write(&script, VALIDATOR).unwrap();
    fs::write(&list, locations.join("\n")).unwrap();
    let python = Launch::new(&scratch, "validator", in_venv("python")).arg(&script).arg(&list);
    python.run(RUN_WITHIN).await.unwrap().success().unwrap();

    let cases = json!({ "addresses": addresses, "fallbacks": [], "links": links });
    let results = in_chromium(&scratch, alone.api(), cases).await;
    let mut read = 0;
    for (sent, read_as) in addresses.chunks(4).zip(results.addresses.chunks(4)) {
        let [own, to, merged, forwarded] = read_as else { panic!("four addresses of each long URL") };
        let href = |address: &Option<Address>| address.as_ref().map(|address| escaped(&address.href));
        read += u64::from(own.is_some());
        assert!(own.is_none() || href(own) == href(to), "{sent:?}: {:?} and {:?}", href(own), href(to));
        assert!(merged.is_none() || href(merged) == href(forwarded), "{sent:?}");
    }
    for (link, (led, opened)) in links.iter().zip(&results.links) {
        let end = |opened: &Opened| {
            let asked = opened.asked.as_ref().map(|(host, path)| (host.clone(), escaped(path)));
            (opened.at.as_deref().map(escaped), asked)
        };
        assert_eq!(end(led), end(opened), "{link:?}");
    }
    println!(
        "seed {seed}: {count} long URLs, {refused} refused; {} locations are URI references; Chromium reads {read} long \
         URLs as their locations; {} links followed",
        locations.len(),
        links.len()
    );
    assert!(read > count / 2 && !links.is_empty(), "the generator has all kinds");
}
