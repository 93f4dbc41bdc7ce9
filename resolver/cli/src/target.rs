//! `resolver target list|allow|deny|remove`: manages the hosts that links of a running server may
//! lead to.

use serde_json::{Value, json};
use ureq::http::Method;

use super::{
    client::{Call, Server, segment, wrong},
    json_text,
    table::{Column, layout, printable, text},
};
use crate::{
    Error,
    args::{TargetCommand, TargetListArgs, TargetRuleArgs},
};

/// The path of all rules.
const TARGETS: &str = "targets";

/// Runs a subcommand, and returns its output.
pub(super) async fn run(command: TargetCommand) -> Result<String, Error> {
    match command {
        TargetCommand::List(args) => list(&args).await,
        TargetCommand::Allow(args) => set(&args, true).await,
        TargetCommand::Deny(args) => set(&args, false).await,
        TargetCommand::Remove(args) => remove(&args).await,
    }
}

async fn list(args: &TargetListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let answer = server.ask(Call::read(TARGETS.to_owned(), Vec::new())).await?;
    let rules = answer["targets"]["data"].as_array().ok_or_else(|| server.foreign())?;
    Ok(if args.json { json_text::pretty(&answer) } else { table(rules, args.table.width) })
}

async fn set(args: &TargetRuleArgs, allowed: bool) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let body = json!({ "pattern": args.pattern, "allowed": allowed });
    let call = Call { body: Some(body), ..Call::write(Method::PUT, TARGETS.to_owned(), Vec::new()) };
    let rule = server.ask(call).await?;
    // The pattern as the server stores it, which is the form that the list shows.
    let pattern = rule["pattern"].as_str().filter(|_| rule["allowed"] == allowed);
    let pattern = pattern.ok_or_else(|| server.foreign())?;
    Ok(format!("{}: {}\n", printable(pattern), word(&rule)))
}

async fn remove(args: &TargetRuleArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let path = path_of(&args.pattern)?;
    server.call(Call::write(Method::DELETE, path, Vec::new())).await?;
    Ok(format!("{}: removed\n", printable(&args.pattern)))
}

/// Returns the path of a rule.
fn path_of(pattern: &str) -> Result<String, Error> {
    let expected = "expected a pattern as the list shows it";
    Ok(format!("{TARGETS}/{}", segment(pattern).ok_or_else(|| wrong("PATTERN", pattern, expected))?))
}

/// Formats rules as a table with one line each, none wider than `width` cells.
fn table(rules: &[Value], width: usize) -> String {
    if rules.is_empty() {
        return "no rules: links may lead to any host\n".to_owned();
    }
    let pattern = Column::new("pattern", true, rules.iter().map(|rule| text(&rule["pattern"])));
    let allowed = Column::new("links", true, rules.iter().map(|rule| word(rule).to_owned()));
    layout(vec![pattern, allowed], width)
}

/// Returns the word for a rule's effect on its hosts.
fn word(rule: &Value) -> &'static str {
    match rule["allowed"].as_bool() {
        Some(true) => "allowed",
        Some(false) => "denied",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn a_pattern_is_one_segment_of_the_path() {
        for (pattern, path) in [
            ("example.com", "targets/example.com"),
            ("*", "targets/%2A"),
            ("*.Münch.de", "targets/%2A.M%C3%BCnch.de"),
            ("[::1]", "targets/%5B%3A%3A1%5D"),
            ("a/b?c", "targets/a%2Fb%3Fc"),
        ] {
            assert_eq!(path_of(pattern).unwrap(), path);
        }
        for pattern in ["", ".", ".."] {
            let error = path_of(pattern).unwrap_err();
            assert!(matches!(error, Error::Config { flag: "PATTERN", .. }), "{pattern}: {error}");
        }
    }

    #[test]
    fn rules_are_aligned_and_no_line_is_wider_than_the_terminal() {
        let rules =
            [json!({ "pattern": "*", "allowed": false }), json!({ "pattern": "*.a.b", "allowed": true })];
        assert_eq!(table(&rules, 40), "pattern  links\n*        denied\n*.a.b    allowed\n");
        assert_eq!(table(&[], 40), "no rules: links may lead to any host\n");
        let hard = [
            json!({ "pattern": "a".repeat(255), "allowed": true }),
            json!({ "pattern": "\u{1b}[2J\n短い", "allowed": "no" }),
            json!(null),
        ];
        let shown = table(&hard, 40);
        assert_eq!(shown.lines().count(), 4, "{shown}");
        assert!(shown.lines().all(|line| line.width() <= 40) && !shown.contains('\u{1b}'), "{shown:?}");
        assert!(shown.contains("a…  allowed\n"), "{shown}");
    }
}
