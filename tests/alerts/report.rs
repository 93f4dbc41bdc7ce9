//! The report: a table for people, JSON for programs.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::{quiet::Calm, run::Row};

/// A report, and how much of it is not as it should be.
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) bad: usize,
    pub(crate) of: usize,
}

/// Returns the report on the cases.
pub(crate) fn of_rows(rows: &[Row], as_json: bool) -> Report {
    let text = if as_json { json(rows) } else { table(rows) };
    Report { text, bad: rows.iter().filter(|row| !row.is_good()).count(), of: rows.len() }
}

/// Returns the report on what fired during work on purpose.
pub(crate) fn of_calms(calms: &[Calm], as_json: bool) -> Report {
    let text = if as_json { json_of_calms(calms) } else { table_of_calms(calms) };
    Report { text, bad: calms.iter().filter(|calm| !calm.fired.is_empty()).count(), of: calms.len() }
}

/// Returns the rows as a table in Markdown, which a terminal shows as well.
fn table(rows: &[Row]) -> String {
    let mut text =
        "Times are seconds of the run; all times of the rules were divided by the number in the last column.\n\n"
            .to_owned();
    text += "| alert | severity | fault | fires after | clears after | other pages | other alerts | |\n";
    text += "|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        let pages = [row.expected.clone(), row.unexpected.iter().map(|page| format!("**{page}**")).collect()];
        let fired = row.failure.clone().unwrap_or_else(|| seconds(row.fired_after));
        // A string takes whatever is written.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name.alert,
            row.name.severity,
            row.fault,
            fired.replace('\n', " "),
            seconds(row.cleared_after),
            pages.concat().join(", "),
            row.others.join(", "),
            row.factor
        );
    }
    text
}

/// Returns the rows as JSON.
fn json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows.iter().map(row).collect();
    format!("{:#}", json!({ "rows": rows }))
}

/// Returns what fired during work on purpose, as a table.
fn table_of_calms(calms: &[Calm]) -> String {
    let mut text = "| work | watched | alerts that fired |\n|---|---|---|\n".to_owned();
    for Calm { what, watched, fired } in calms {
        let fired = if fired.is_empty() { "none".to_owned() } else { fired.join(", ") };
        let _ = writeln!(text, "| {what} | {} | {fired} |", seconds(Some(*watched)));
    }
    text
}

/// Returns what fired during work on purpose, as JSON.
fn json_of_calms(calms: &[Calm]) -> String {
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
        "factor": row.factor,
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
