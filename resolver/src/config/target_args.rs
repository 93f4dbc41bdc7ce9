//! What `resolver target` takes.

use clap::{Args, Subcommand, ValueEnum};

use super::client_args::{ServerArgs, TableArgs};

/// `resolver target …`
#[derive(Debug, Subcommand)]
pub enum TargetCommand {
    /// List the rules.
    List(TargetListArgs),
    /// Let links lead to hosts of a pattern.
    ///
    /// Of the patterns that fit a host, the longest decides. Hosts that none fits are allowed, so this makes an exception of a rule that denies more:
    /// after resolver target deny '*' only what is allowed by a rule is.
    Allow(TargetRuleArgs),
    /// Keep links from leading to hosts of a pattern: new ones, and unless the server runs with
    /// --check-targets creation, those that are there.
    ///
    /// Of the patterns that fit a host, the longest decides: resolver target deny '*.example.com' and resolver target allow docs.example.com
    /// leave one host below that domain to lead to.
    Deny(TargetRuleArgs),
    /// Take a rule away, whatever it says.
    Remove(TargetRuleArgs),
}

/// When the rules about targets are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckTargets {
    /// When a link is made, changed or brought back, and whenever it redirects.
    Always,
    /// Not when it redirects: links that are there lead on.
    Creation,
}

/// `resolver target list`
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

/// `resolver target allow`, `deny` and `remove`
#[derive(Clone, Debug, Args)]
pub struct TargetRuleArgs {
    /// A host such as example.com; '*.example.com' for every host below it, but not itself; '*' for every host. The quotes are for the shell.
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
            // What a shell makes of a star without quotes.
            (&["deny", "Cargo.toml", "README.md"], "README.md"),
            (&["list", "example.com"], "example.com"),
            (&["allow", "example.com", "--json"], "--json"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}
