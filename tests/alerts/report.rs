//! The report: a table for people, JSON for programs.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::{quiet::Calm, run::Row};

/// Returns the rows as a table in Markdown, which a terminal shows as well.
pub(crate) fn table(rows: &[Row], factor: u32) -> String {
    let mut text =
        format!("Times are seconds of the run; all times of the rules are divided by {factor}.\n\n");
    text += "| alert | severity | fault | fires after | clears after | other pages | other alerts |\n";
    text += "|---|---|---|---|---|---|---|\n";
    for row in rows {
        let pages = [row.expected.clone(), row.unexpected.iter().map(|page| format!("**{page}**")).collect()];
        let fired = row.failure.clone().unwrap_or_else(|| seconds(row.fired_after));
        // A string takes whatever is written.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.name.alert,
            row.name.severity,
            row.fault,
            fired.replace('\n', " "),
            seconds(row.cleared_after),
            pages.concat().join(", "),
            row.others.join(", ")
        );
    }
    let bad = rows.iter().filter(|row| !row.is_good()).count();
    let _ = writeln!(text, "\n{} of {} as they should be.", rows.len() - bad, rows.len());
    text
}

/// Returns the rows as JSON.
pub(crate) fn json(rows: &[Row], factor: u32) -> String {
    let rows: Vec<Value> = rows.iter().map(row).collect();
    format!("{:#}", json!({ "factor": factor, "rows": rows }))
}

/// Returns what fired during work on purpose, as a table.
pub(crate) fn table_of_calms(calms: &[Calm]) -> String {
    let mut text = "| work | watched | alerts that fired |\n|---|---|---|\n".to_owned();
    for Calm { what, watched, fired } in calms {
        let fired = if fired.is_empty() { "none".to_owned() } else { fired.join(", ") };
        let _ = writeln!(text, "| {what} | {} | {fired} |", seconds(Some(*watched)));
    }
    text
}

/// Returns what fired during work on purpose, as JSON.
pub(crate) fn json_of_calms(calms: &[Calm]) -> String {
    let calms = calms.iter().map(
        |calm| json!({ "work": calm.what, "watched_s": calm.watched.as_secs_f64(), "fired": calm.fired }),
    );
    format!("{:#}", json!({ "quiet": calms.collect::<Vec<Value>>() }))
}

fn row(row: &Row) -> Value {
    json!({
        "alert": row.name.alert,
        "severity": row.name.severity,
        "fault": row.fault,
        "fired_after_s": row.fired_after.map(|time| time.as_secs_f64()),
        "cleared_after_s": row.cleared_after.map(|time| time.as_secs_f64()),
        "expected_pages": row.expected,
        "unexpected_pages": row.unexpected,
        "others": row.others,
        "failure": row.failure,
        "is_good": row.is_good(),
    })
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{:.0} s", time.as_secs_f64()))
}
