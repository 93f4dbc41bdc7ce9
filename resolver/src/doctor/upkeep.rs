//! Work that goes on behind the answers: webhooks, indexes of links, and the store of visits.

use std::time::Duration;

use cli::args::Database;
use daemon::reasons;
use jiff::{SignedDuration, Timestamp};
use links::webhook::host;
use store::{LinkIndex, Store, StoreError, postgres::ConnectOptions};
use visit_store::{ClickhouseAddress, ClickhouseVisits, PostgresVisits, VisitStore, VisitStoreError};

use super::{Finding, asked, bounded};
use crate::config::Settings;

/// When deliveries that are due are late, as for the alert.
const OVERDUE: Duration = Duration::from_secs(600);
/// An index follows within seconds. After an upgrade it may wait for an hour.
const INDEXED_WITHIN: SignedDuration = SignedDuration::from_hours(2);
/// A day is closed two days later, as for the alert.
const CLOSED_WITHIN: Duration = Duration::from_secs(4 * 24 * 3_600);

pub(super) async fn look(settings: &Settings, store: &dyn Store) -> Vec<Finding> {
    let (mut findings, visits) = tokio::join!(of_links(settings, store), visits(settings));
    findings.extend(visits);
    findings
}

async fn of_links(settings: &Settings, store: &dyn Store) -> Vec<Finding> {
    // Processes for visitors do none of this, and their role may not look at it.
    if !settings.flags.role.serves_api() {
        return Vec::new();
    }
    let (webhooks, indexes) =
        tokio::join!(asked("webhooks", webhooks(store)), asked("indexes", indexes(store)));
    vec![webhooks, indexes]
}

async fn webhooks(store: &dyn Store) -> Result<Finding, StoreError> {
    let (webhooks, backlog) = (store.webhooks().await?, store.webhook_backlog().await?);
    if backlog.overdue > OVERDUE {
        let found = format!("{} deliveries wait, one for {} s", backlog.open, backlog.overdue.as_secs());
        return Ok(Finding::warning("webhooks", found)
            .advise("Receivers learn of events late.", "Look at the deliveries of the webhook.")
            .see("visits.md#shortmintwebhooksoverdue"));
    }
    let disabled = webhooks.iter().filter_map(|webhook| {
        let reason = &webhook.disabled.as_ref()?.reason;
        Some(format!("{} ({}): {reason}", webhook.id, host(&webhook.url)))
    });
    let disabled: Vec<String> = disabled.collect();
    if disabled.is_empty() {
        return Ok(Finding::ok("webhooks", format!("{}, none of them disabled or late", webhooks.len())));
    }
    Ok(Finding::warning("webhooks", format!("disabled: {}", disabled.join("; ")))
        .advise("Their receivers learn of no event.", "Mend the receiver, and enable the webhook again.")
        .see("visits.md#shortmintwebhooksdisabled"))
}

async fn indexes(store: &dyn Store) -> Result<Finding, StoreError> {
    let mut late = Vec::new();
    for (index, name) in [(LinkIndex::LongUrls, "long URLs"), (LinkIndex::Texts, "texts")] {
        let since = store.unindexed_since(index).await?;
        let behind = since.map(|since| Timestamp::now().duration_since(since));
        late.extend(behind.filter(|behind| *behind > INDEXED_WITHIN).map(|behind| (name, behind.as_hours())));
    }
    let late: Vec<String> = late.iter().map(|(name, hours)| format!("that of {name} by {hours} h")).collect();
    if late.is_empty() {
        return Ok(Finding::ok("indexes", "those of long URLs and texts have all links"));
    }
    Ok(Finding::warning("indexes", format!("behind: {}", late.join(", "))).advise(
        "Searches and findIfExists read the links that they lack one by one, and take long.",
        "See that a process with --role all or api runs, and look for `index` in its log.",
    ))
}

/// Asks the store of visits. On SQLite it is a file that only the server opens.
async fn visits(settings: &Settings) -> Vec<Finding> {
    let Database::Postgres(url) = &settings.flags.database.database else { return Vec::new() };
    let counters = match PostgresVisits::with_options(url, &ConnectOptions::default()) {
        Ok(counters) => counters,
        Err(error) => return vec![refused(&error)],
    };
    let Some(address) = &settings.visits.store else {
        return vec![bounded("visits", stored(&counters)).await];
    };
    let visits = ClickhouseVisits::new(address.clone(), counters);
    let (stored, rows) =
        tokio::join!(bounded("visits", stored(&visits)), bounded("ClickHouse", rows(&visits, address)));
    vec![stored, rows]
}

async fn rows(visits: &dyn VisitStore, address: &ClickhouseAddress) -> Finding {
    match visits.ping_rows().await {
        Ok(()) => Finding::ok("ClickHouse", format!("{address} answers")),
        Err(error) => Finding::wrong("ClickHouse", format!("{address} does not answer: {}", reasons(&error)))
            .advise(
                "Visits wait in the spools, and lists and statistics of them fail.",
                "Start it, or correct --visits-store.",
            )
            .see("visits.md#shortmintvisitrowswaiting"),
    }
}

fn refused(error: &VisitStoreError) -> Finding {
    Finding::unknown("visits", format!("their store does not say: {}", reasons(error)))
}

async fn stored(visits: &dyn VisitStore) -> Finding {
    let (open, slots) = match tokio::try_join!(visits.oldest_open(), visits.slots()) {
        Ok(found) => found,
        Err(error) => return refused(&error),
    };
    if let Some((used, all)) = slots.filter(|(used, all)| used * 20 > all * 19) {
        return Finding::warning("visits", format!("{used} of {all} slots for spools are taken"))
            .advise("A process without a slot stores no visits.", "Run fewer processes.")
            .see("visits.md#shortmintvisitslotsexhausted");
    }
    if open > CLOSED_WITHIN {
        let found = format!("the counters of a day {} days ago are still open", open.as_secs() / 86_400);
        return Finding::warning("visits", found)
            .advise(
                "They take more room, and statistics take longer.",
                "See that a process with --role all or api runs.",
            )
            .see("visits.md#shortmintvisitdaysopen");
    }
    Finding::ok("visits", "past days are closed, and there are slots for spools")
}
