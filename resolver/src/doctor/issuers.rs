//! The issuers: which of them can be reached, who leads, and whether the name of this process is
//! free.

use std::io::ErrorKind;

use daemon::reasons;
use store::Store;
use supply::{IssuerClient, IssuerStatus, Issuers, Refused, Target};
use tls::ClientTls;
use tokio::{task::JoinSet, time::timeout};

use super::{Finding, WITHIN, certificate, misconfigured, unanswered};
use crate::config::Settings;

/// Asks all issuers elsewhere. Returns also the status of the one that leads.
pub(super) async fn reach(settings: &Settings) -> (Vec<Finding>, Option<IssuerStatus>) {
    let flags = &settings.flags;
    if flags.issuer.is_empty() || !flags.role.serves_api() {
        return (Vec::new(), None);
    }
    let tls = match flags.issuer_tls(settings.holder.as_str()) {
        Ok(tls) => tls,
        Err(error) => return (vec![misconfigured("issuer TLS", &error)], None),
    };
    let own = tls.as_ref().and_then(ClientTls::certificate);
    let mut findings: Vec<_> = own.iter().map(|own| certificate("issuer TLS", own)).collect();
    let issuers =
        Issuers { urls: flags.issuer.clone(), tls: tls.clone(), allows_plaintext: flags.database.insecure };
    let client = IssuerClient::new(Target::Remote(issuers));
    let (connected, status) = tokio::join!(connect(&flags.issuer, tls), timeout(WITHIN, client.status()));
    findings.push(connected);
    let led = match status {
        Ok(Ok(status)) => {
            let alive = status.holders.iter().filter(|holder| holder.alive).count();
            let found = format!("{} leads in epoch {}, {alive} holders alive", status.leader, status.epoch);
            findings.push(Finding::ok("leader", found));
            return (findings, Some(status));
        }
        Ok(Err(refused)) => refusal(&refused),
        Err(_) => Finding::wrong("leader", format!("none has answered within {} s", WITHIN.as_secs())),
    };
    let led = led.advise(
        "Creates go on from the numbers in hand, and then fail. A process that starts has none.",
        "Start the issuers and etcd, or correct --issuer and --issuer-tls.",
    );
    findings.push(led.see("issuers.md#shortmintnoleader"));
    (findings, None)
}

fn refusal(refused: &Refused) -> Finding {
    Finding::wrong("leader", format!("it refuses this process: {refused}"))
}

/// Connects to each issuer, because the leader's answer says nothing of the others.
async fn connect(urls: &[String], tls: Option<ClientTls>) -> Finding {
    let mut tasks = JoinSet::new();
    for url in urls {
        let (url, tls) = (url.clone(), tls.clone());
        tasks.spawn(async move {
            let uri = url.parse::<hyper::Uri>().map_err(|error| error.to_string());
            let connected = async {
                let connected = daemon::connect(&uri?, tls.as_ref()).await;
                connected.map(drop).map_err(|error| reasons(&error))
            };
            let late = |_| Err(format!("no connection within {} s", WITHIN.as_secs()));
            timeout(WITHIN, connected).await.unwrap_or_else(late).err().map(|why| format!("{url}: {why}"))
        });
    }
    let mut away: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    away.sort();
    let (all, found) = (urls.len(), away.join("; "));
    let finding = match away.len() {
        0 => return Finding::ok("issuers", format!("all {all} accept connections")),
        count if count == all => Finding::wrong("issuers", format!("none can be reached: {found}")),
        _ => Finding::warning("issuers", format!("{} of {all} can be reached: {found}", all - away.len())),
    };
    finding
        .advise("Without an issuer, numbers for new links run out.", "Start it, or correct its address.")
        .see("numbers.md#shortmintissuerunreachable")
}

/// Looks whether another process uses the name of this one.
pub(super) fn holder(settings: &Settings, status: &IssuerStatus, is_running: bool) -> Finding {
    let name = settings.holder.as_str();
    if !status.holders.iter().any(|holder| holder.id == name && holder.alive) {
        return Finding::ok("holder id", format!("no process takes numbers as {name}"));
    }
    if is_running {
        return Finding::ok("holder id", format!("the process here takes numbers as {name}"));
    }
    Finding::warning("holder id", format!("a process takes numbers as {name}, and none is here"))
        .advise(
            "Of two processes with one name, the earlier one stops when the later one starts.",
            "If it is not the one that you are asking about, give each process its own --holder-id.",
        )
        .see("numbers.md#shortmintrefillsfailing")
}

/// Checks the file of the embedded issuer, which is neither locked nor written; `None` with others.
pub(super) async fn ledger(settings: &Settings, store: &dyn Store) -> Option<Finding> {
    let flags = &settings.flags;
    if !flags.issuer.is_empty() || !flags.role.serves_api() {
        return None;
    }
    let path = flags.database.data_folder().join("ledger.json");
    let shown = path.display();
    let text = std::fs::read(&path);
    let problem = match text.map(|text| serde_json::from_slice::<serde_json::Value>(&text)) {
        Ok(Ok(_)) => return Some(Finding::ok("ledger", format!("{shown} can be read"))),
        Ok(Err(error)) => format!("{shown} is damaged: {error}"),
        Err(error) if error.kind() == ErrorKind::NotFound => match store.fingerprint().await {
            Ok(None) => return Some(Finding::ok("ledger", format!("the first start creates {shown}"))),
            Ok(Some(_)) => format!("there is no {shown}, but the database has been used"),
            Err(error) => return Some(unanswered("ledger", &error)),
        },
        Err(error) => format!("{shown} cannot be read: {error}"),
    };
    let finding = Finding::wrong("ledger", problem).advise(
        "Another ledger hands out the same numbers again, so a process with one does not serve.",
        "Bring the file back from where it was, or from a backup.",
    );
    Some(finding.see("restore.md#a-ledger-that-is-lost-without-a-backup"))
}
