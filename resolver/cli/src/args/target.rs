//! Arguments of `resolver target`.

use clap::{Args, Subcommand};

use super::client::{ServerArgs, TableArgs};

/// Subcommands of `resolver target`.
#[derive(Debug, Subcommand)]
pub enum TargetCommand {
    /// List the target rules.
    List(TargetListArgs),
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

/// Arguments of `resolver target list`.
#[derive(Clone, Debug, Args)]
pub struct TargetListArgs {
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The table.
    #[command(flatten)]
    pub table: TableArgs,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `resolver target allow`, `deny` and `remove`.
#[derive(Clone, Debug, Args)]
pub struct TargetRuleArgs {
    /// Host such as example.com; '*.example.com' for every host below it, but not itself; '*' for
    /// every host. Quote the star for the shell.
    pub pattern: String,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        command: TargetCommand,
    }

    fn parse(args: &[&str]) -> Result<TargetCommand, String> {
        let args = [&["target"], args, &["--api-key", "secret"]].concat();
        Cli::try_parse_from(args).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_is_about_one_pattern_of_any_form() {
        for pattern in ["*", "*.example.com", "[::1]", "短い.example"] {
            for command in ["allow", "deny", "remove"] {
                let args = match parse(&[command, pattern]).unwrap() {
                    TargetCommand::Allow(args) if command == "allow" => args,
                    TargetCommand::Deny(args) if command == "deny" => args,
                    TargetCommand::Remove(args) if command == "remove" => args,
                    other => panic!("{command}: {other:?}"),
                };
                assert_eq!(args.pattern, pattern);
            }
        }
        for (args, part) in [
            (&["deny"][..], "<PATTERN>"),
            // A shell expands a star without quotes.
            (&["deny", "Cargo.toml", "README.md"], "README.md"),
            (&["list", "example.com"], "example.com"),
            (&["allow", "example.com", "--json"], "--json"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}
