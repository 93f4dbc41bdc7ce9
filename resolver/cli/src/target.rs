//! `resolver target list|allow|deny|remove`: manages the hosts that links of a running server may
//! lead to.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::{
    Error,
    args::{ServerArgs, TableArgs},
    client::{Call, Server, segment, wrong},
    table::{List, printable, text},
};

const TARGETS: &str = "targets";

#[derive(Debug, Subcommand)]
pub enum TargetCommand {
    /// List the target rules.
    List(TableArgs),
    /// Let links lead to hosts that match a pattern.
    ///
    /// Of the patterns that match a host, the longest decides, and a host without a matching
    /// pattern is allowed. So this rule is an exception from one that denies more: after resolver
    /// target deny '*' links may lead only to hosts that a rule allows.
    Allow(TargetRuleArgs),
    /// Keep links from leading to hosts that match a pattern: new links and existing ones.
    ///
    /// Of the patterns that match a host, the longest decides: after resolver target deny
    /// '*.example.com' and resolver target allow docs.example.com, only that one host below
    /// example.com is allowed.
    Deny(TargetRuleArgs),
    /// Remove a rule, whether it allows or denies.
    Remove(TargetRuleArgs),
}

/// Arguments of `resolver target allow`, `deny` and `remove`.
#[derive(Clone, Debug, Args)]
pub struct TargetRuleArgs {
    /// Host such as example.com; '*.example.com' for every host below it, but not itself; '*' for
    /// every host. Quote the star for the shell.
    pub pattern: String,
    #[command(flatten)]
    pub server: ServerArgs,
}

const LIST: List = List {
    at: "/targets/data",
    empty: "no rules: links may lead to any host",
    fields: &[
        ("pattern", true, |rule| text(&rule["pattern"])),
        ("links", true, |rule| word(rule).to_owned()),
    ],
    below: |_| String::new(),
};

pub(super) async fn run(command: TargetCommand) -> Result<String, Error> {
    match command {
        TargetCommand::List(args) => {
            Server::list(&args, Call::read(TARGETS.to_owned(), Vec::new()), &LIST).await
        }
        TargetCommand::Allow(args) => set(&args, true).await,
        TargetCommand::Deny(args) => set(&args, false).await,
        TargetCommand::Remove(args) => {
            let call = Call::write(Method::DELETE, path_of(&args.pattern)?, Vec::new());
            Server::new(&args.server)?.call(call).await?;
            Ok(format!("{}: removed\n", printable(&args.pattern)))
        }
    }
}

async fn set(args: &TargetRuleArgs, allowed: bool) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let body = json!({ "pattern": args.pattern, "allowed": allowed });
    let rule = server.ask(Call::send(Method::PUT, TARGETS.to_owned(), body)).await?;
    // The pattern as the server stores it, which is the form that the list shows.
    let pattern = rule["pattern"].as_str().filter(|_| rule["allowed"] == allowed);
    let pattern = pattern.ok_or_else(|| server.foreign())?;
    Ok(format!("{}: {}\n", printable(pattern), word(&rule)))
}

fn path_of(pattern: &str) -> Result<String, Error> {
    let expected = "expected a pattern as the list shows it";
    Ok(format!("{TARGETS}/{}", segment(pattern).ok_or_else(|| wrong("PATTERN", pattern, expected))?))
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
    use super::*;

    #[test]
    fn a_rule_is_shown_with_its_effect() {
        let table = |rules: Value| LIST.format(&json!({ "targets": { "data": rules } }), 40);
        let rules = json!([{ "pattern": "*", "allowed": false }, { "pattern": "*.a.b", "allowed": true }]);
        assert_eq!(table(rules), "pattern  links\n*        denied\n*.a.b    allowed\n");
        assert_eq!(table(json!([])), "no rules: links may lead to any host\n");
        let odd = json!([{ "pattern": "a", "allowed": "no" }]);
        assert_eq!(table(odd), "pattern\na\n");
    }
}
