//! `resolver doctor`: looks for what is wrong with a deployment, from the place of one process.
//!
//! 1. Nothing is started, created, locked or written. A SQLite file and the files beside it are
//!    only read, whether or not a server has them open.
//! 2. Each check has a time limit, and those that do not need each other run side by side. Checks
//!    of what is stored run once the database has answered with a current schema.
//! 3. What cannot be found out from here is unknown, and is not wrong.

mod address;
mod database;
mod disk;
mod finding;
mod issuers;
mod numbers;
mod process;
mod upkeep;

use std::time::Duration;

use cli::{Output, json_text};
use daemon::{Exit, reasons};
use finding::{Finding, Verdict};
use jiff::Timestamp;
use store::StoreError;
use tls::Certificate;
use tokio::time::timeout;

use crate::{
    Error,
    config::{InspectArgs, Settings},
};

/// The time limit of a check.
const WITHIN: Duration = Duration::from_secs(3);
const DAY: u64 = 24 * 3_600;
/// A certificate that ends within this time should have been renewed.
const RENEWED_BEFORE: u64 = 14 * DAY;

/// Runs all checks, and returns their findings as text or as JSON. Without a valid configuration
/// there is nothing else to look at.
pub(crate) async fn run(args: &InspectArgs) -> Output {
    let findings = match args.config.settings() {
        Ok(settings) => examine(&settings).await,
        Err(error) => vec![misconfigured("configuration", &error)],
    };
    let is_wrong = findings.iter().any(|finding| finding.verdict == Verdict::Wrong);
    let text = match args.json {
        true => json_text::pretty(&finding::to_json(&findings)),
        false => finding::to_text(&findings),
    };
    Output { text, exit: if is_wrong { Exit::Unavailable } else { Exit::Clean } }
}

async fn examine(settings: &Settings) -> Vec<Finding> {
    let configured = Finding::ok("configuration", "flags and environment are valid");
    let ((database, store), (issuers, status), (process, is_running), address) = tokio::join!(
        database::reach(settings),
        issuers::reach(settings),
        process::look(settings),
        address::reach(settings),
    );
    let mut findings = vec![configured];
    findings.extend(database);
    match store {
        Some(store) => {
            let (numbers, upkeep) =
                tokio::join!(numbers::look(settings, &*store), upkeep::look(settings, &*store));
            findings.extend(numbers.into_iter().chain(upkeep));
        }
        None => findings.push(Finding::unknown(
            "stored data",
            "not looked at: there is no database with a current schema that answers",
        )),
    }
    findings.extend(issuers);
    findings.extend(status.map(|status| issuers::holder(settings, &status, is_running)));
    findings.extend(disk::look(settings));
    findings.extend(process);
    findings.extend(address);
    findings
}

/// Ends a check that takes too long.
async fn bounded(check: &'static str, work: impl Future<Output = Finding>) -> Finding {
    let late = |_| Finding::unknown(check, format!("no answer within {} s", WITHIN.as_secs()));
    timeout(WITHIN, work).await.unwrap_or_else(late)
}

/// Ends a question to the database that takes too long, or that it refuses.
async fn asked(check: &'static str, question: impl Future<Output = Result<Finding, StoreError>>) -> Finding {
    bounded(check, async { question.await.unwrap_or_else(|error| unanswered(check, &error)) }).await
}

fn misconfigured(check: &'static str, error: &Error) -> Finding {
    Finding::wrong(check, reasons(error)).advise(
        "`resolver serve` refuses to start with it.",
        "Correct the flag or its variable; `resolver config check` shows all of them.",
    )
}

/// Returns what to say where the database has refused a question.
fn unanswered(check: &'static str, error: &StoreError) -> Finding {
    Finding::unknown(check, format!("the database does not say: {}", reasons(error)))
}

/// Judges how long a certificate is valid yet.
fn certificate(check: &'static str, certificate: &Certificate) -> Finding {
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
    let (left, names) = (certificate.not_after.saturating_sub(now), certificate.names.join(", "));
    let verdict = match left {
        0 => Verdict::Wrong,
        _ if left < RENEWED_BEFORE => Verdict::Warning,
        _ => return Finding::ok(check, format!("valid for {} more days: {names}", left / DAY)),
    };
    let found = match verdict {
        Verdict::Wrong => format!("expired: {names}"),
        _ => format!("ends in {} days: {names}", left / DAY),
    };
    Finding::new(verdict, check, found)
        .advise("New connections fail once it has expired.", "Renew the file, which is read again by itself.")
        .see("processes.md#shortmintcertificateexpiring")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_judged_by_the_days_that_are_left() {
        let now = u64::try_from(Timestamp::now().as_second()).unwrap();
        for (not_after, verdict) in
            [(now - 1, Verdict::Wrong), (now + 2 * DAY, Verdict::Warning), (now + 15 * DAY, Verdict::Ok)]
        {
            let read = Certificate { not_after, ..Certificate::default() };
            assert_eq!(certificate("certificate", &read).verdict, verdict, "{not_after}");
        }
    }
}
