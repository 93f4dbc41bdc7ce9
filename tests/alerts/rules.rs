//! The shipped rules with all times shortened by one factor.
//!
//! 1. `for`, the intervals of groups, the windows of ranges and subqueries, offsets, and the
//!    seconds between two samples that a sum is multiplied by.
//! 2. Thresholds of ages, which the platform measures in seconds of the real clock, but not below
//!    [`AGE_MIN`]: its own intervals stay as they are. Others stay: a certificate ends, and numbers
//!    last, as long as they do.
//! 3. Scrapes and evaluations come every second, so with a factor of 12 a rule sees as many samples
//!    as it does with an interval of 12 s.
//!
//! A clock that runs fast was rejected: the daemons, Postgres and etcd would have to share it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use harness::Scratch;

/// The rules as the chart ships them.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/chart/files/rules.yaml");
/// Parts of expressions that compare a number of seconds that passed.
const AGES: [&str; 5] =
    ["oldest_waiting_seconds", "overdue_seconds", "silent_seconds", "success_age_seconds", "time() - "];
/// An age that is normal: servers are asked every ten seconds.
const AGE_MIN: f64 = 25.0;
/// Part of comparisons with a certificate's end; they have `time()` too, but on the other side.
const LEFT: &str = "- time()";
/// Characters before and behind a duration.
const DELIMITERS: [char; 7] = ['[', ']', ':', '"', ' ', ')', '\n'];
/// Seconds between two samples of the objectives.
const SAMPLES: &str = " * 60 ";

/// An alert as a table names it. Some have two rules, one for each severity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) alert: String,
    pub(crate) severity: String,
}

/// Returns the alerts of the shipped rules, to compare them with the cases.
///
/// # Errors
/// Returns an error if the file cannot be read.
#[cfg(test)]
pub(crate) fn alerts() -> anyhow::Result<Vec<Name>> {
    let text = shipped()?;
    let mut alerts = Vec::new();
    for rule in rules(&text) {
        if let (Some(alert), Some(severity)) = (value(rule, "alert"), value(rule, "severity")) {
            alerts.push(Name { alert, severity });
        }
    }
    Ok(alerts)
}

/// Writes the rules with all times divided by the factor, and returns the file.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub(crate) fn shortened(scratch: &Scratch, factor: u32) -> anyhow::Result<PathBuf> {
    let text = shipped()?;
    let shortened: String = rules(&text).map(|rule| shorten(rule, factor)).collect();
    scratch.file("rules.yaml", &shortened)
}

fn shipped() -> anyhow::Result<String> {
    std::fs::read_to_string(Path::new(SHIPPED)).with_context(|| format!("read {SHIPPED}"))
}

/// Splits a file before each rule and each group; the pieces are the whole text.
fn rules(text: &str) -> impl Iterator<Item = &str> {
    // A line of an expression may begin with a minus as well.
    let begins = |line: &str| {
        ["- name: ", "- alert: ", "- record: "].iter().any(|key| line.trim_start().starts_with(key))
    };
    let mut starts: Vec<usize> = Vec::from([0]);
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        if begins(line) {
            starts.push(place);
        }
        place += line.len();
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &text[start..end])
}

/// Returns the value of a key that is alone on its line.
#[cfg(test)]
fn value(rule: &str, key: &str) -> Option<String> {
    let line = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        Some(line.strip_prefix(key)?.strip_prefix(": ")?.trim_matches('"').to_owned())
    };
    rule.lines().find_map(line)
}

fn shorten(rule: &str, factor: u32) -> String {
    let (expression, texts) = rule.split_at(rule.find("annotations:").unwrap_or(rule.len()));
    let is_of_age = AGES.iter().any(|age| expression.contains(age)) && !expression.contains(LEFT);
    let mut shortened = String::new();
    for line in expression.split_inclusive('\n') {
        let line = durations(line, factor);
        let line = line.replace(SAMPLES, &format!(" * {} ", 60.0 / f64::from(factor)));
        shortened += &if is_of_age { thresholds(&line, factor) } else { line };
    }
    shortened + texts
}

/// Divides each duration of a line: the ones in brackets, after a key, and after `offset`.
fn durations(line: &str, factor: u32) -> String {
    let mut shortened = String::new();
    for piece in line.split_inclusive(DELIMITERS) {
        let (word, rest) = piece.split_at(piece.trim_end_matches(DELIMITERS).len());
        let is_after_time = shortened.ends_with(['[', ':'])
            || shortened.trim_start().starts_with("for: ")
            || shortened.trim_start().starts_with("interval: ")
            || shortened.ends_with("offset ");
        match seconds(word).filter(|_| is_after_time) {
            Some(seconds) => shortened += &format!("{}ms", seconds * 1_000 / u64::from(factor)),
            None => shortened += word,
        }
        shortened += rest;
    }
    shortened
}

/// Returns the seconds of a duration of one unit, such as `15m`.
fn seconds(word: &str) -> Option<u64> {
    let unit = match word.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    Some(word[..word.len() - 1].parse::<u64>().ok()? * unit)
}

/// Divides the number that each comparison ends with.
fn thresholds(line: &str, factor: u32) -> String {
    let Some((left, right)) = line.split_once("> ") else { return line.to_owned() };
    let digits = right.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(right.len());
    match right[..digits].parse::<f64>() {
        Ok(number) => {
            let shortened = (number / f64::from(factor)).max(AGE_MIN.min(number));
            format!("{left}> {shortened}{}", thresholds(&right[digits..], factor))
        }
        Err(_) => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{alerts, shorten};

    const RULE: &str = "      - alert: \"Some\"
        expr: >-
          max by (job, namespace) (increase(issuer_leader_changes_total[30m] offset 1h)) > 5
          and sum_over_time(bad:rate5m{slo=\"a\"}[6h:30s]) * 60 > 10
        for: \"1m\"
        labels:
          severity: \"warning\"
        annotations:
          summary: \"In [5m]\"
";

    #[test]
    fn every_time_of_a_rule_is_shortened_and_nothing_else() {
        let shortened = shorten(RULE, 12);
        let expected = RULE.replace("[30m] offset 1h", "[150000ms] offset 300000ms");
        let expected = expected.replace("[6h:30s]) * 60", "[1800000ms:2500ms]) * 5");
        assert_eq!(shortened, expected.replace("for: \"1m\"", "for: \"5000ms\""));
        let group = "  - name: \"g\"\n    interval: \"60s\"\n";
        assert_eq!(shorten(group, 12), group.replace("60s", "5000ms"));
    }

    #[test]
    fn thresholds_of_ages_are_shortened_and_those_of_certificates_are_not() {
        for age in ["max by (job) (x_oldest_waiting_seconds) > ", "time() - x_timestamp_seconds > "] {
            assert_eq!(shorten(&format!("{age}300\n"), 12), format!("{age}25\n"));
        }
        let certificate = "x_expiry_timestamp_seconds - time() > 1209600\n";
        assert_eq!(shorten(certificate, 12), certificate);
    }

    #[test]
    fn the_shipped_alerts_are_found() {
        let alerts = alerts().unwrap();
        assert!(alerts.len() > 20, "{alerts:?}");
        assert!(alerts.iter().all(|name| ["critical", "warning"].contains(&&*name.severity)), "{alerts:?}");
    }
}
