//! The report on an import of visits.

use daemon::Exit;
use serde_json::json;

use crate::{
    json_text,
    table::{cut, printable},
};

/// The maximum number of reasons that are printed; further ones are only counted.
const REASONS_MAX: usize = 20;
/// The maximum width of a reason, in cells. It may quote another server.
const REASON_CELLS: usize = 300;

#[derive(Default)]
pub(super) struct Report {
    /// Visits that this run has stored.
    pub(super) stored: u64,
    /// Stored visits that are counted but not listed: single visits of their days are not kept.
    pub(super) unlisted: u64,
    /// Visits that earlier runs have stored or refused.
    pub(super) before: u64,
    refused: u64,
    /// Why the input was not read to its end.
    pub(super) cut_off: Option<String>,
    reasons: Vec<String>,
    dropped_reasons: u64,
}

impl Report {
    /// Counts visits that cannot be stored, for one reason.
    pub(super) fn refuse(&mut self, visits: u64, reason: &str) {
        // Another server tells how many visits a link has.
        self.refused = self.refused.saturating_add(visits);
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(cut(&printable(reason), REASON_CELLS));
        } else {
            self.dropped_reasons += 1;
        }
    }

    /// Returns the first reason for which a visit cannot be stored.
    pub(super) fn first_reason(&self) -> Option<&str> {
        self.reasons.first().map(String::as_str)
    }

    fn read(&self) -> u64 {
        self.stored.saturating_add(self.before).saturating_add(self.refused)
    }

    /// Returns the exit code: whether each visit that this run has read is here.
    pub(super) fn exit(&self) -> Exit {
        let is_whole = self.refused == 0 && self.cut_off.is_none();
        if is_whole { Exit::Clean } else { Exit::Refused }
    }

    pub(super) fn summary(&self, seconds: f64, as_json: bool) -> String {
        let Self { stored, unlisted, before, refused, cut_off, reasons, dropped_reasons } = self;
        let read = self.read();
        if as_json {
            let summary = json!({
                "read": read, "stored": stored, "countedOnly": unlisted, "earlierRuns": before, "refused": refused,
                "complete": cut_off.is_none(), "cutOff": cut_off, "reasons": reasons,
                "reasonsLeftOut": dropped_reasons, "seconds": seconds,
            });
            return json_text::pretty(&summary);
        }
        let mut text = format!(
            "{read} read: {stored} visits stored in {seconds:.1} s, {before} came with earlier runs, {refused} refused\n"
        );
        if *unlisted > 0 {
            text.push_str(&format!(
                "{unlisted} of them count and are not listed: single visits of their days or domains are not kept\n"
            ));
        }
        if let Some(reason) = cut_off {
            let reason = cut(&printable(reason), REASON_CELLS);
            text.push_str(&format!("The input was not read to its end: {reason}\n"));
        }
        for reason in reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        if *dropped_reasons > 0 {
            text.push_str(&format!("  … and {dropped_reasons} more reasons\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_stored_was_there_or_is_refused() {
        let mut report = Report { stored: 3, unlisted: 1, before: 2, ..Report::default() };
        assert_eq!(report.exit(), Exit::Clean);
        (0..25).for_each(|place| report.refuse(2, &format!("item {place}: too late")));
        assert_eq!((report.read(), report.exit()), (55, Exit::Refused));
        let text = report.summary(1.0, false);
        assert!(
            text.starts_with("55 read: 3 visits stored in 1.0 s, 2 came with earlier runs, 50 refused\n")
        );
        assert!(text.contains("1 of them count") && text.contains("item 19: too late"), "{text}");
        assert!(text.ends_with("  … and 5 more reasons\n"), "{text}");
    }

    #[test]
    fn what_another_server_sends_commands_no_terminal_and_overflows_no_count() {
        let sent = "a\u{1b}]0;b\u{7}\u{9b}31m\u{202e}\n".to_owned() + &"x".repeat(10_000);
        let mut report = Report { stored: 3, cut_off: Some(sent.clone()), ..Report::default() };
        (0..2).for_each(|_| report.refuse(u64::MAX, &sent));
        assert_eq!(report.read(), u64::MAX);
        let text = report.summary(1.0, false);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{text:?}");
        assert!(text.lines().count() == 4 && text.len() < 2_000, "{text:?}");
    }
}
