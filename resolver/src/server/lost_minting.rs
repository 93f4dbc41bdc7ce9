//! What follows when this process may mint no more.

use std::time::Duration;

use supply::StopReason;

use crate::config::Config;

/// Returns how long the listeners stay open after the process has asked its clients to leave.
pub(super) fn drain_delay(lost: Option<&StopReason>, config: &Config) -> Duration {
    match lost {
        // Hand-picked codes need no numbers, so a process whose keyspaces are contradicted would
        // continue to accept them.
        Some(StopReason::Keyspaces(_)) => Duration::ZERO,
        Some(StopReason::Superseded(_) | StopReason::AnotherLedger { .. }) | None => config.drain_delay,
    }
}

/// Returns the error for the reason why this process may mint no more.
pub(super) fn stopped_by(lost: &StopReason, config: &Config, holder: String) -> cli::Error {
    match lost {
        StopReason::Superseded(reason) => cli::Error::Config {
            flag: "--holder-id",
            value: holder,
            reason: format!(
                "another process has started under this name since, so this one stops: \
                 expected a name of its own for each process ({reason})"
            ),
        },
        StopReason::AnotherLedger { issuer, database } => cli::Error::Config {
            flag: "--issuer",
            value: if config.issuer.is_empty() { "(embedded)".to_owned() } else { config.issuer.join(",") },
            reason: format!(
                "its ledger is {issuer}, but this database's numbers come from ledger {database}: two ledgers would hand out \
                 the same numbers. Expected the issuer that this database has had before, or its own database for this one. \
                 If the former ledger is lost for good, run `resolver migrate --forget-ledger`"
            ),
        },
        StopReason::Keyspaces(contradiction) => cli::Error::Config {
            flag: "--database",
            value: config.database.database.to_string(),
            reason: format!(
                "{contradiction}: an older copy of the database has taken over, so this process stops. \
                 Expected another start: it adopts its keyspaces again, and waits until every resolver knows them"
            ),
        },
    }
}
