//! The report on an import: counts, reasons of refusals, and the summary.

use std::{
    fs::File,
    io::{self, Write as _},
};

use app::import_links::ImportCounts;
use daemon::Exit;
use serde_json::json;
use transfer::{LeftOut, RowError, Source};

use super::verify::Comparison;
use crate::{
    json_text,
    table::{counted_links, printable},
};

/// The maximum number of reasons that are printed; further ones are only counted.
const REASONS_MAX: usize = 20;

/// The counts of an import, and the reasons of refusals.
#[derive(Default)]
pub(super) struct Report {
    /// The counts of other items than refused ones; zero until the import has ended.
    pub(super) counts: ImportCounts,
    /// The comparison with the source, if there was one.
    pub(super) comparison: Option<Comparison>,
    refused: u64,
    /// Whether the file had no links, or its rest cannot be read.
    is_cut_off: bool,
    reasons: Vec<String>,
    /// The number of reasons that are not kept.
    dropped_reasons: u64,
    rejects: Option<File>,
}

impl Report {
    /// Creates an empty report. Reasons are also written to `rejects`.
    pub(super) fn new(rejects: Option<File>) -> Self {
        Self { rejects, ..Self::default() }
    }

    /// Counts a link that cannot be stored, and records the reason.
    pub(super) fn refuse(&mut self, reason: String) -> io::Result<()> {
        self.refused += 1;
        self.record(reason)
    }

    /// Records that the rest of the file cannot be read.
    pub(super) fn cut_off(&mut self, error: &RowError) -> io::Result<()> {
        self.is_cut_off = true;
        self.record(error.to_string())
    }

    /// Records that the file has no links.
    pub(super) fn note_empty(&mut self) {
        self.is_cut_off = true;
        if self.reasons.is_empty() {
            self.reasons.push("the file has no links: is --from right?".to_owned());
        }
    }

    /// Writes a line to the file for refused links.
    pub(super) fn write_reject(&mut self, line: &str) -> io::Result<()> {
        match &mut self.rejects {
            Some(file) => writeln!(file, "{line}"),
            None => Ok(()),
        }
    }

    fn record(&mut self, reason: String) -> io::Result<()> {
        // It may quote what another system has sent: not onto a terminal, nor as further lines.
        let reason = printable(&reason);
        self.write_reject(&reason)?;
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(reason);
        } else {
            self.dropped_reasons += 1;
        }
        Ok(())
    }

    pub(super) fn read(&self) -> u64 {
        let ImportCounts { stored, already_there, before, .. } = &self.counts;
        stored + already_there + before + self.refused
    }

    /// Returns the exit code: whether each item of the file is here, and leads where it does there.
    pub(super) fn exit(&self) -> Exit {
        let is_whole = !self.is_cut_off && self.refused == 0 && self.counts.refused_before == 0;
        if is_whole && self.comparison.as_ref().is_none_or(Comparison::is_clean) {
            Exit::Clean
        } else {
            Exit::Refused
        }
    }

    pub(super) fn warnings(&self, source: Source) -> Vec<String> {
        let ImportCounts { left_out, disabled, .. } = &self.counts;
        let lost = left_out.iter().map(|(what, count)| {
            let (links, lost) = (counted_links(*count), lost(what));
            format!("{links} {lost} a property that does not come along from {source}: {what}")
        });
        let disabled = (*disabled > 0).then(|| {
            format!(
                "{disabled} links are stored disabled, since they would be open without their protection: set a \
                 password and enable them with `resolver link edit CODE --password-file FILE --enable`"
            )
        });
        lost.chain(disabled).collect()
    }

    pub(super) fn summary(&self, seconds: f64, as_json: bool) -> String {
        let Self { counts, comparison, refused, is_cut_off, reasons, dropped_reasons, .. } = self;
        let ImportCounts { stored, already_there, before, refused_before, disabled, left_out } = counts;
        let read = self.read();
        let count = u32::try_from(*stored).map_or(f64::from(u32::MAX), f64::from);
        let rate = if seconds > 0.0 { count / seconds } else { 0.0 };
        if as_json {
            let mut summary = json!({
                "read": read, "stored": stored, "alreadyThere": already_there, "earlierRuns": before,
                "refusedEarlier": refused_before, "refused": refused, "complete": !is_cut_off,
                "reasons": reasons, "reasonsLeftOut": dropped_reasons, "disabled": disabled, "leftOut": left_out,
                "seconds": seconds, "perSecond": rate,
            });
            if let Some(comparison) = comparison {
                summary["comparison"] = comparison.json();
            }
            return json_text::pretty(&summary);
        }
        let mut text = format!(
            "{read} read: {} stored in {seconds:.1} s ({rate:.0}/s), {already_there} were there, {before} \
             came with earlier runs, {refused} refused\n",
            counted_links(*stored)
        );
        if *refused_before > 0 {
            text.push_str(&format!(
                "{refused_before} of the earlier ones were refused then: to try them again, import the file \
                 under another --name. Links with codes of their own are not stored twice.\n"
            ));
        }
        if *is_cut_off {
            text.push_str("The input was not read to its end:\n");
        }
        if *disabled > 0 {
            text.push_str(&format!(
                "{disabled} of them stored disabled: their protection did not come along\n"
            ));
        }
        for (what, count) in left_out {
            text.push_str(&format!("{} {} a property: {what}\n", counted_links(*count), lost(what)));
        }
        for reason in reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        if *dropped_reasons > 0 {
            text.push_str(&format!("  … and {dropped_reasons} more: --rejects FILE keeps them all\n"));
        }
        if let Some(comparison) = comparison {
            text.push_str(&comparison.text());
        }
        text
    }
}

/// Returns the verb for a property that is missing from the input. A table without columns for
/// limits does not show which links had any, so those "may have lost" it.
fn lost(what: &str) -> &'static str {
    if what == LeftOut::Limits.as_str() { "may have lost" } else { "lost" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_that_commands_no_terminal() {
        let mut report = Report::default();
        report.refuse("item 1: \u{1b}[2J\u{9b}1m\u{202e}a\nitem 2: b".to_owned()).unwrap();
        let text = report.summary(0.0, false);
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        assert!(text.ends_with("a item 2: b\n"), "{text:?}");
    }

    #[test]
    fn warnings_and_summary_agree_on_what_is_lost_and_what_may_be() {
        let mut report = Report::default();
        report.counts.left_out = [LeftOut::Limits, LeftOut::Password].map(|left| (left.as_str(), 1)).into();
        for text in [report.warnings(Source::Shlink).concat(), report.summary(0.0, false)] {
            assert!(text.contains("1 link may have lost a property"), "{text}");
            assert!(text.contains("1 link lost a property"), "{text}");
        }
    }
}
