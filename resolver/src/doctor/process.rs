//! The process that serves with these flags, if it runs here: whether it is ready, and what its
//! metrics page counts of mishaps since its start.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use cli::probe;

use super::{Finding, WITHIN};
use crate::config::Settings;

/// Counters that stay at 0 where all is well, with what they count and the section about them.
const MISHAPS: [(&str, &str, &str); 6] = [
    ("resolver_visits_dropped_total", "visits dropped", "visits.md#shortmintvisitsdropped"),
    ("resolver_visit_spool_errors_total", "errors of the spool", "visits.md#shortmintvisitspoolfaulty"),
    (
        "resolver_webhook_deliveries_dropped_total",
        "deliveries to webhooks dropped",
        "visits.md#shortmintwebhookdeliveriesdropped",
    ),
    (
        "resolver_blocks_overlapping_total",
        "blocks of numbers that overlapped",
        "numbers.md#shortmintblocksoverlapping",
    ),
    ("resolver_connections_refused_total", "connections refused", "processes.md#shortmintconnectionsrefused"),
    (
        "resolver_clients_unread_total",
        "requests of trusted proxies without a client that can be read",
        "processes.md#shortmintvisitorsrefused",
    ),
];

/// Asks the admin listener. Returns also whether a process runs here.
pub(super) async fn look(settings: &Settings) -> (Vec<Finding>, bool) {
    let address = reachable(settings.flags.admin_listen);
    let (ready, metrics) = (format!("http://{address}/readyz"), format!("http://{address}/metrics"));
    let (ready, metrics) = tokio::join!(probe(&ready, WITHIN), probe(&metrics, WITHIN));
    let finding = match ready.map(|answer| answer.status) {
        Err(reason) => {
            let found = format!("none answers at {address}, the --admin-listen: {reason}");
            return (vec![Finding::unknown("process", found)], false);
        }
        Ok(200) => Finding::ok("process", format!("the one at {address} is ready")),
        Ok(503) => Finding::warning("process", format!("the one at {address} is not ready"))
            .advise("It starts, ends, or waits for a server.", "Read its log.")
            .see("processes.md#shortmintpodsmissing"),
        Ok(status) => {
            let found = format!("another server answers {status} at {address}, the --admin-listen");
            return (vec![Finding::unknown("process", found)], false);
        }
    };
    let mut findings = vec![finding];
    if let Ok(page) = metrics {
        findings.extend(MISHAPS.iter().filter_map(|(name, what, runbook)| {
            let count = total(&page.body, name);
            let found = format!("{count} {what} since the start");
            (count > 0.0).then(|| Finding::warning("process", found).see(runbook))
        }));
    }
    (findings, true)
}

/// Returns the address of a listener for a client on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

/// Adds up a counter over its labels.
fn total(page: &str, name: &str) -> f64 {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let is_whole = rest.starts_with('{') || rest.starts_with(' ');
        rest.rsplit_once(' ').filter(|_| is_whole)?.1.parse::<f64>().ok()
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_added_up_over_its_labels() {
        let page = "# TYPE lost counter\nlost{why=\"a b\"} 2\nlost{why=\"c\"} 3\nlost_more 7\nother 1\n";
        assert_eq!([total(page, "lost"), total(page, "lost_more"), total(page, "none")], [5.0, 7.0, 0.0]);
    }

    #[test]
    fn a_listener_at_all_addresses_is_reached_at_the_loopback() {
        for (listen, reached) in
            [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("10.0.0.1:3", "10.0.0.1:3")]
        {
            assert_eq!(reachable(listen.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
