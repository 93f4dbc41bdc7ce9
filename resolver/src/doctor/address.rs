//! The public URL, and what is in front of this process.

use cli::probe;
use tls::ServerTls;

use super::{Finding, WITHIN, certificate, misconfigured};
use crate::config::Settings;

pub(super) async fn reach(settings: &Settings) -> Vec<Finding> {
    let mut findings = public_url(&settings.public_url).await;
    findings.extend(proxies(settings));
    findings.extend(match settings.flags.public_tls() {
        Ok(tls) => {
            let served = tls.as_ref().and_then(ServerTls::certificate);
            served.map(|served| certificate("certificate", &served))
        }
        Err(error) => Some(misconfigured("certificate", &error)),
    });
    findings
}

/// Asks the public URL from here, which need not be where visitors are.
async fn public_url(url: &str) -> Vec<Finding> {
    let health = match probe(&format!("{url}/rest/health"), WITHIN).await {
        Ok(health) => health,
        Err(reason) => return vec![Finding::unknown("public URL", format!("{url} from here: {reason}"))],
    };
    let said: Option<serde_json::Value> = serde_json::from_str(&health.body).ok();
    let status = said.as_ref().and_then(|health| health["status"].as_str());
    match (health.status, status) {
        (200, Some("pass")) => vec![
            Finding::ok("public URL", format!("{url} answers")),
            // Pages are served on this host only, so the answer to one tells which host arrived.
            host(url, probe(&format!("{url}/manage"), WITHIN).await.map(|page| page.status)),
        ],
        (503, Some("fail")) => vec![
            Finding::wrong("public URL", format!("{url} answers that its database does not"))
                .advise(
                    "Creates fail, and redirects of links that no cache has.",
                    "See the check of the database.",
                )
                .see("database.md#shortmintdatabaseunreachable"),
        ],
        (421, _) => {
            let found = format!("{url} leads to a process with --role redirect, which has no health check");
            vec![Finding::unknown("public URL", found)]
        }
        (status, _) => {
            let found = format!("{url}/rest/health answers {status}, and not as Shortmint does");
            vec![Finding::warning("public URL", found).advise(
                "Short URLs that begin with it may not lead here.",
                "Correct --public-url, or what the proxy in front does with it.",
            )]
        }
    }
}

/// Judges the answer to a request for a page.
fn host(url: &str, page: Result<u16, String>) -> Finding {
    match page {
        Ok(200..=399) => Finding::ok("host", "the host of the public URL arrives"),
        Ok(421) => Finding::wrong("host", format!("requests to {url} arrive with another Host")).advise(
            "The links of other domains are not found, and the pages refuse to be served.",
            "Let the proxy pass the header Host on as it came, or correct --public-url.",
        ),
        Ok(status) => Finding::unknown("host", format!("{url}/manage answers {status}")),
        Err(reason) => Finding::unknown("host", format!("{url}/manage: {reason}")),
    }
}

/// Judges whether the proxy that has to be in front is known; `None` if none has to be.
fn proxies(settings: &Settings) -> Option<Finding> {
    let flags = &settings.flags;
    let is_behind = settings.public_url.starts_with("https:") && flags.tls.is_empty();
    if !flags.trusted_proxies.is_empty() {
        let named: Vec<String> = flags.trusted_proxies.iter().map(ToString::to_string).collect();
        return Some(Finding::ok("proxies", format!("{} may name their clients", named.join(", "))));
    }
    is_behind.then(|| {
        Finding::warning("proxies", "a proxy has to be in front of this https:// URL, and none is trusted")
            .advise(
                "To all limits, the clients of a proxy that is not named are one client.",
                "Name the addresses that it connects from in --trusted-proxies.",
            )
            .see("processes.md#shortmintvisitorsrefused")
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_page_tells_whether_the_host_arrives() {
        for (page, verdict) in [
            (Ok(200), Verdict::Ok),
            (Ok(303), Verdict::Ok),
            (Ok(421), Verdict::Wrong),
            (Ok(403), Verdict::Unknown),
            (Err("refused".to_owned()), Verdict::Unknown),
        ] {
            assert_eq!(host("https://s.test", page.clone()).verdict, verdict, "{page:?}");
        }
    }
}
