//! The outcome of an import, and its summary.

use std::{
    fs::File,
    io::{self, Write as _},
};

use app::import_links::ImportCounts;
use serde_json::json;
use transfer::{LeftOut, Source};

use crate::json_text;

/// The maximum number of reasons that are printed; further ones are only counted.
const TOLD: usize = 20;

/// The counts of an import, and the reasons of refusals.
pub(super) struct Outcome {
    /// The counts of other items than refused ones; zero until the import has ended.
    pub(super) counts: ImportCounts,
    refused: u64,
    reasons: Vec<String>,
    rejects: Option<File>,
}

impl Outcome {
    /// Creates an empty outcome. Reasons are also written to `rejects`.
    pub(super) fn new(rejects: Option<File>) -> Self {
        Self { counts: ImportCounts::default(), refused: 0, reasons: Vec::new(), rejects }
    }

    /// Counts a link that cannot be stored, and records the reason.
    pub(super) fn refuse(&mut self, reason: String) -> io::Result<()> {
        self.refused += 1;
        if let Some(file) = &mut self.rejects {
            writeln!(file, "{reason}")?;
        }
        if self.reasons.len() < TOLD {
            self.reasons.push(reason);
        }
        Ok(())
    }

    /// Returns the warnings for the standard error.
    pub(super) fn warnings(&self, source: Source) -> Vec<String> {
        let ImportCounts { left_out, disabled, .. } = &self.counts;
        let lost = left_out.iter().map(|(what, count)| {
            format!("{count} links {} a property that does not come along from {source}: {what}", lost(what))
        });
        let disabled = (*disabled > 0).then(|| {
            format!(
                "{disabled} links are stored disabled, since they would be open without their protection: set a \
                 password and enable them with `resolver link edit CODE --password-file FILE --enable`"
            )
        });
        lost.chain(disabled).collect()
    }

    /// Formats the summary.
    pub(super) fn told(&self, seconds: f64, as_json: bool) -> String {
        let Self { counts, refused, reasons, .. } = self;
        let ImportCounts { stored, already_there, before, disabled, left_out } = counts;
        let count = u32::try_from(*stored).map_or(f64::from(u32::MAX), f64::from);
        let rate = if seconds > 0.0 { count / seconds } else { 0.0 };
        if as_json {
            let told = json!({
                "stored": stored, "alreadyThere": already_there, "earlierRuns": before, "disabled": disabled,
                "refused": refused, "reasons": reasons, "leftOut": left_out, "seconds": seconds, "perSecond": rate,
            });
            return json_text::pretty(&told);
        }
        let mut text = format!(
            "{stored} links stored in {seconds:.1} s ({rate:.0}/s), {already_there} were there, {before} came with earlier runs, {refused} refused\n"
        );
        if *disabled > 0 {
            text.push_str(&format!(
                "{disabled} of them stored disabled: their protection did not come along\n"
            ));
        }
        for (what, count) in left_out {
            text.push_str(&format!("{count} links {} a property: {what}\n", lost(what)));
        }
        for reason in reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        let untold = refused - reasons.len() as u64;
        if untold > 0 {
            text.push_str(&format!("  … and {untold} more: --rejects FILE keeps them all\n"));
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
    fn warnings_and_summary_agree_on_what_is_lost_and_what_may_be() {
        let mut outcome = Outcome::new(None);
        outcome.counts.left_out = [LeftOut::Limits, LeftOut::Password].map(|left| (left.as_str(), 1)).into();
        let summary = outcome.told(0.0, false);
        let told = [outcome.warnings(Source::Shlink).concat(), summary];
        for text in told {
            assert!(text.contains("1 links may have lost a property"), "{text}");
            assert!(text.contains("1 links lost a property"), "{text}");
        }
    }
}
