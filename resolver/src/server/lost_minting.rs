//! What follows when this process may mint no more.

use std::time::Duration;

use cli::wrong_value;
use supply::StopReason;

use crate::config::{Config, Settings};

/// Returns how long the listeners stay open after the process has asked its clients to leave.
pub(super) fn drain_delay(lost: Option<&StopReason>, flags: &Config) -> Duration {
    match lost {
        // Hand-picked codes need no numbers, so a process whose keyspaces are contradicted would
        // continue to accept them.
        Some(StopReason::Keyspaces(_)) => Duration::ZERO,
        Some(StopReason::Superseded(_) | StopReason::AnotherLedger { .. }) | None => flags.drain_delay,
    }
}

pub(super) fn stopped_by(lost: &StopReason, settings: &Settings) -> cli::Error {
    let flags = &settings.flags;
    match lost {
        StopReason::Superseded(reason) => wrong_value(
            "--holder-id",
            &settings.holder,
            format!(
                "another process has started under this name since, so this one stops: \
                 give each process a name of its own ({reason})"
            ),
        ),
        StopReason::AnotherLedger { issuer, database } => wrong_value(
            "--issuer",
            if flags.issuer.is_empty() { "(embedded)".to_owned() } else { flags.issuer.join(",") },
            format!(
                "its ledger is {issuer}, but this database's numbers come from ledger {database}: two ledgers would hand out \
                 the same numbers. Use the issuer that this database has had before, or its own database for this one. \
                 If the former ledger is lost for good, run `resolver migrate --forget-ledger`"
            ),
        ),
        StopReason::Keyspaces(contradiction) => wrong_value(
            "--database",
            &flags.database.database,
            format!(
                "{contradiction}: an older copy of the database has taken over, so this process stops. \
                 Start it again: it adopts its keyspaces, and waits until every resolver knows them"
            ),
        ),
    }
}
