//! What a check has found, and how it is shown.

use cli::table::printable;
use serde_json::{Value, json};

/// Where the runbooks are, which a finding names a page of.
const RUNBOOKS: &str = "k8s/runbooks/";
/// Width of the columns of verdicts and of checks.
const WIDTHS: (usize, usize) = (9, 14);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warning,
    Wrong,
    /// It could not be found out from here.
    Unknown,
}

impl Verdict {
    const ALL: [Self; 4] = [Self::Wrong, Self::Warning, Self::Unknown, Self::Ok];

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
            Self::Unknown => "unknown",
        }
    }
}

/// What a check has found, why it matters, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    check: &'static str,
    pub(super) verdict: Verdict,
    found: String,
    why: &'static str,
    todo: &'static str,
    runbook: Option<&'static str>,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict, found: found.into(), why: "", todo: "", runbook: None }
    }

    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, check, found)
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, check, found)
    }

    pub(super) fn wrong(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Wrong, check, found)
    }

    pub(super) fn unknown(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, check, found)
    }

    /// Adds why it matters and what to do.
    pub(super) fn advise(self, why: &'static str, todo: &'static str) -> Self {
        Self { why, todo, ..self }
    }

    /// Adds the page of the runbooks about it, with the section.
    pub(super) fn see(self, runbook: &'static str) -> Self {
        Self { runbook: Some(runbook), ..self }
    }

    fn to_json(&self) -> Value {
        let given = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        json!({
            "check": self.check,
            "verdict": self.verdict.name(),
            "found": self.found,
            "why": given(self.why),
            "do": given(self.todo),
            "runbook": self.runbook.map(|page| format!("{RUNBOOKS}{page}")),
        })
    }

    fn lines(&self) -> String {
        let (verdict, check) = WIDTHS;
        let mut lines =
            format!("{:<verdict$}{:<check$}{}\n", self.verdict.name(), self.check, printable(&self.found));
        let runbook = self.runbook.map(|page| format!("{RUNBOOKS}{page}")).unwrap_or_default();
        for (name, text) in [("why", self.why), ("do", self.todo), ("see", runbook.as_str())] {
            if !text.is_empty() {
                lines.push_str(&format!("{:indent$}{name}: {text}\n", "", indent = verdict + check));
            }
        }
        lines
    }
}

/// Formats findings as text, with a line of their counts below.
pub(super) fn to_text(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let counts = Verdict::ALL.map(|verdict| format!("{} {}", count(verdict), verdict.name()));
    let lines: String = findings.iter().map(Finding::lines).collect();
    format!("{lines}\n{}\n", counts.join(", "))
}

pub(super) fn to_json(findings: &[Finding]) -> Value {
    json!({ "checks": findings.iter().map(Finding::to_json).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_to_do_below_what_was_found() {
        let behind = Finding::wrong("schema", "at version 3\u{1b}[31m").advise("It is old.", "Run it.");
        let findings = [Finding::ok("clock", "the same"), behind.see("upgrade.md")];
        let indent = " ".repeat(23);
        let expected = format!(
            "ok       clock         the same\n\
             wrong    schema        at version 3\u{FFFD}[31m\n\
             {indent}why: It is old.\n{indent}do: Run it.\n{indent}see: k8s/runbooks/upgrade.md\n\n\
             1 wrong, 0 warning, 0 unknown, 1 ok\n"
        );
        assert_eq!(to_text(&findings), expected);
        let json = to_json(&findings);
        assert_eq!(json["checks"][0]["do"], Value::Null);
        assert_eq!(json["checks"][1]["runbook"], "k8s/runbooks/upgrade.md");
    }
}
