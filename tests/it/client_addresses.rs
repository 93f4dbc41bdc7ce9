//! The clients behind a trusted proxy, however it spells their addresses: each is a client of its
//! own, to budgets, visits and rules.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{Answer, Resolver, ResolverBuilder, wait};
use reqwest::RequestBuilder;

use crate::visits::get;

/// Clients behind the proxy.
const CLIENTS: usize = 8;
/// Codes without a link that a client may ask for in a minute.
const BUDGET: usize = 5;
/// How many of them each client asks for. Of all clients two may share a counter by chance, and
/// then have one budget.
const ASKED: usize = 2;
/// Requests beyond the budget. On a slow machine it may have regained some by then.
const BEYOND: usize = 3;
const COUNTED_WITHIN: Duration = Duration::from_secs(30);

/// The lines in which a proxy names a client, by the spelling and the client's number.
type Spelling = fn(usize) -> Vec<(&'static str, String)>;

/// Each spelling has clients of its own.
const SPELLINGS: [Spelling; 12] = [
    |client| vec![("x-forwarded-for", format!("203.0.1.{client}"))],
    |client| vec![("x-forwarded-for", format!("203.0.2.{client}:{}", 51_234 + client))],
    |client| vec![("x-forwarded-for", format!("\"203.0.3.{client}:51234\""))],
    |client| vec![("x-forwarded-for", format!("::ffff:203.0.4.{client}"))],
    |client| vec![("x-forwarded-for", format!("2001:db8:5:{client}::1"))],
    |client| vec![("x-forwarded-for", format!("[2001:db8:6:{client}::1]"))],
    |client| vec![("x-forwarded-for", format!("[2001:db8:7:{client}::1]:443"))],
    |client| {
        let claim = ("x-forwarded-for", "198.51.100.1".to_owned());
        vec![claim, ("x-forwarded-for", format!("203.0.8.{client}:1 , 127.0.0.2:80"))]
    },
    |client| vec![("forwarded", format!("for=203.0.9.{client}"))],
    |client| vec![("forwarded", format!("For=\"203.0.10.{client}:4711\";proto=https;by=127.0.0.1"))],
    |client| {
        let nearer = "for=\"[::ffff:127.0.0.2]:_hidden\"";
        vec![("forwarded", format!("for=unknown, FOR=\"[2001:db8:11:{client}::1]:4711\", {nearer}"))]
    },
    |client| {
        let address = format!("203.0.12.{client}");
        vec![("x-forwarded-for", format!("{address}:1")), ("forwarded", format!("for=\"{address}:2\""))]
    },
];

async fn start(args: &[&str]) -> Resolver {
    builder().args(args.iter().copied()).start().await.unwrap()
}

fn builder() -> ResolverBuilder {
    let budget = format!("unknown-codes-per-minute={BUDGET}");
    let limits = ["--trusted-proxies", "127.0.0.0/8", "--limit", &budget];
    Resolver::embedded().unwrap().args(limits)
}

/// Asks for a code without a link as a client, once for each number.
async fn ask(resolver: &Resolver, lines: &[(&'static str, String)], count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for number in 0..count {
        let request = resolver.api.http().get(format!("{}/zz{number:04}", resolver.api.url()));
        statuses.push(Answer::to(with(request, lines)).await.unwrap().status);
    }
    statuses
}

fn with(request: RequestBuilder, lines: &[(&'static str, String)]) -> RequestBuilder {
    lines.iter().fold(request, |request, (name, value)| request.header(*name, value))
}

fn line(name: &'static str, value: &str) -> Vec<(&'static str, String)> {
    vec![(name, value.to_owned())]
}

/// Requires that each client has a budget of its own, and no other one.
async fn have_budgets_of_their_own(resolver: &Resolver, spelling: Spelling) {
    let clients: Vec<_> = (1..=CLIENTS).map(spelling).collect();
    for (lines, statuses) in
        clients.iter().zip(join_all(clients.iter().map(|lines| ask(resolver, lines, ASKED))).await)
    {
        assert_eq!(statuses, [404; ASKED], "{lines:?}");
    }
    let statuses = ask(resolver, &clients[0], BUDGET + BEYOND).await;
    assert!(statuses.contains(&429), "{:?}: {statuses:?}", clients[0]);
    assert_eq!(ask(resolver, &clients[1], 1).await, [404], "{:?} has not spent its own", clients[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_clients_behind_one_proxy_have_separate_budgets_in_each_of_twelve_spellings() {
    let resolver = start(&[]).await;
    join_all(SPELLINGS.map(|spelling| have_budgets_of_their_own(&resolver, spelling))).await;
    assert_eq!(resolver.metric("resolver_clients_unread_total").await.unwrap(), 0.0);
}

/// There a peer over IPv4 has an address of IPv6.
#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_on_all_addresses_trusts_proxies_over_ipv4_and_answers_over_ipv6() {
    let resolver = builder().on_all_addresses().start().await.unwrap();
    have_budgets_of_their_own(&resolver, SPELLINGS[0]).await;
    let link = resolver.api.create("https://example.com/").await.unwrap();
    let url = format!("http://[::1]:{}/{}", resolver.addr().port(), link.code);
    let claim = line("x-forwarded-for", "203.0.113.7");
    let answer = Answer::to(with(resolver.api.http().get(url), &claim)).await.unwrap();
    assert_eq!((answer.status, answer.header("location")), (302, Some("https://example.com/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_header_that_is_named_is_read_and_no_other() {
    let resolver = start(&["--proxy-headers", "address=X-Real-IP"]).await;
    have_budgets_of_their_own(&resolver, |client| {
        let forged = ("x-forwarded-for", "198.51.100.1".to_owned());
        vec![forged, ("x-real-ip", format!("203.0.113.{client}:51234"))]
    })
    .await;
    let all = [line("x-forwarded-for", "198.51.100.1"), line("forwarded", "for=198.51.100.2")].concat();
    assert!(ask(&resolver, &all, BUDGET + BEYOND).await.contains(&429), "the proxy is their client");
    assert!(ask(&resolver, &[], BUDGET).await.contains(&429), "and shares its budget");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_another_budget_by_a_header_that_the_proxy_passes_on() {
    let resolver = start(&[]).await;
    // A proxy that writes the one header passes the other one on as it came.
    for header in ["x-forwarded-for", "forwarded"] {
        let address = |last: usize| match header {
            "forwarded" => ("forwarded", format!("for=198.51.100.{last}")),
            _ => ("x-forwarded-for", format!("198.51.100.{last}")),
        };
        let forging = |number: usize| match header {
            "forwarded" => vec![("x-forwarded-for", "203.0.113.7".to_owned()), address(number)],
            _ => vec![("forwarded", "for=203.0.113.8".to_owned()), address(number)],
        };
        let mut statuses = Vec::new();
        for number in 0..2 * BUDGET + BEYOND {
            statuses.extend(ask(&resolver, &forging(number), 1).await);
        }
        assert!(statuses.contains(&429), "{header}: {statuses:?}");
    }
    assert!(resolver.metric("resolver_clients_unread_total").await.unwrap() >= 20.0);
    for unread in ["unknown", "_hidden", "203.0.113.9:port", "nonsense"] {
        let before = resolver.metric("resolver_clients_unread_total").await.unwrap();
        ask(&resolver, &line("x-forwarded-for", unread), 1).await;
        assert!(resolver.metric("resolver_clients_unread_total").await.unwrap() > before, "{unread}");
    }
}

/// The fast path reads the same headers.
#[tokio::test(flavor = "multi_thread")]
async fn visits_are_of_the_client_that_the_proxy_names() {
    let resolver = start(&["--visits-skip", "from=203.0.113.0/24,from=2001:db8::/32"]).await;
    let link = resolver.api.create("https://example.com/").await.unwrap();
    let skipped = [
        line("x-forwarded-for", "203.0.113.9:51234"),
        line("x-forwarded-for", "[2001:db8::1]:443"),
        line("forwarded", "for=\"[2001:db8::1]:4711\""),
        line("forwarded", "for=203.0.113.9;proto=https, for=127.0.0.1"),
    ];
    let others = [line("x-forwarded-for", "198.51.100.1:1"), line("forwarded", "for=\"198.51.100.2:1\"")];
    // The first request of a link is read by hyper, the others are answered from the cache.
    for lines in skipped.iter().chain(&skipped).chain(&others).chain(&skipped) {
        let request = resolver.api.http().get(format!("{}/{}", resolver.api.url(), link.code));
        assert_eq!(Answer::to(with(request, lines)).await.unwrap().status, 302, "{lines:?}");
    }
    let counted = async || {
        let shown = get(&resolver, resolver.api.key(), &format!("short-urls/{}", link.code)).await;
        shown["visitsSummary"]["total"] == 2
    };
    wait::until(COUNTED_WITHIN, "the visits of others are counted", counted).await.unwrap();
}
