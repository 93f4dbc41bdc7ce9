//! Command lines, for tests.

use clap::Parser;

use crate::Command;

#[derive(Debug, Parser)]
#[command(name = "resolver")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// Parses the arguments of a command that calls a server.
pub(crate) fn parse(args: &[&str]) -> Result<Command, String> {
    let args = [&["resolver"], args, &["--api-key", "k"]].concat();
    CommandLine::try_parse_from(args).map(|line| line.command).map_err(|error| error.to_string())
}

#[test]
fn setting_and_clearing_the_same_field_is_refused() {
    for (command, set, clear) in [
        ("link edit abc", "--tag a", "--no-tags"),
        ("link edit abc", "--title a", "--no-title"),
        ("link edit abc", "--description a", "--no-description"),
        ("link edit abc", "--valid-since 2026-01-01", "--no-valid-since"),
        ("link edit abc", "--valid-until 2026-01-01", "--no-valid-until"),
        ("link edit abc", "--max-visits 1", "--no-max-visits"),
        ("link edit abc", "--redirect-status 301", "--no-redirect-status"),
        ("link edit abc", "--extra-path fill", "--no-extra-path"),
        ("link edit abc", "--expired-url u", "--no-expired-url"),
        ("link edit abc", "--preview-title a", "--no-preview"),
        ("link edit abc", "--preview-image u", "--no-preview"),
        ("link edit abc", "--password-file -", "--no-password"),
        ("link edit abc", "--crawlable", "--no-crawlable"),
        ("link edit abc", "--forward-query", "--no-forward-query"),
        ("link edit abc", "--enable", "--disable"),
        ("domain edit sho.rt", "--enable", "--disable"),
        ("domain edit sho.rt", "--ignore-case", "--no-ignore-case"),
        ("domain edit sho.rt", "--ignore-trailing", "--no-ignore-trailing"),
        ("domain edit sho.rt", "--cross-origin", "--no-cross-origin"),
        ("domain edit sho.rt", "--crawlable", "--no-crawlable"),
        ("domain edit sho.rt", "--confirm-limited", "--no-confirm-limited"),
        ("domain edit sho.rt", "--expired-url u", "--no-expired-url"),
        ("domain edit sho.rt", "--query-template a=1", "--no-query-template"),
        ("domain edit sho.rt", "--catch-all", "--no-catch-all"),
        ("domain edit sho.rt", "--apple-app-site-association f", "--no-apple-app-site-association"),
        ("domain edit sho.rt", "--asset-links f", "--no-asset-links"),
        ("domain redirects sho.rt", "--base u", "--no-base"),
        ("domain redirects sho.rt", "--regular-404 u", "--no-regular-404"),
        ("domain redirects sho.rt", "--invalid-short-url u", "--no-invalid-short-url"),
    ] {
        let with = |flags: &str| parse(&format!("{command} {flags}").split(' ').collect::<Vec<_>>());
        with(set).unwrap();
        with(clear).unwrap();
        let both = with(&format!("{clear} {set}")).unwrap_err();
        assert!(both.contains("cannot be used with") && both.contains(clear), "{both}");
    }
}

#[test]
fn names_that_other_commands_have_are_read_where_they_mean_the_same() {
    for (alias, name) in [
        ("link show abc", "link get abc"),
        ("link list --with-tag a", "link list --tag a"),
        ("link print --out x --with-tag a", "link print --out x --tag a"),
    ] {
        let parsed = |line: &str| format!("{:?}", parse(&line.split(' ').collect::<Vec<_>>()).unwrap());
        assert_eq!(parsed(alias), parsed(name));
    }
    // There, --tag would replace all tags of the links.
    assert!(parse(&["link", "edit", "abc", "--with-tag", "a"]).is_err());
}

#[test]
fn values_that_cannot_be_are_refused_before_anyone_is_asked() {
    for (args, part) in [
        (&["link", "create"][..], "<LONG_URL>"),
        (&["link", "create", "u", "--redirect-status", "303"], "308"),
        (&["link", "create", "u", "--extra-path", "up"], "append"),
        (&["link", "create", "u", "--strategy", "guess"], "sequence"),
        (&["link", "create", "u", "--max-visits=-1"], "--max-visits"),
        (&["link", "create", "u", "--idempotency-key", ""], "255 visible"),
        (&["link", "create", "u", "--idempotency-key", "a b"], "255 visible"),
        (&["link", "list", "--json", "--ndjson"], "--ndjson"),
        (&["link", "list", "--page", "2", "--ndjson"], "--ndjson"),
        (&["link", "list", "--any-tag"], "--tag"),
        (&["link", "list", "--per-page", "0"], "--per-page"),
        (&["domain", "edit"], "<NAME>"),
        (&["domain", "redirects"], "<NAME>"),
        (&["domain", "edit", "sho.rt", "--name"], "<NEW>"),
        (&["domain", "edit", "sho.rt", "--protocol", "ftp"], "default"),
        (&["domain", "edit", "sho.rt", "--extra-path", "up"], "append"),
        (&["domain", "edit", "sho.rt", "--expired-url", ""], "--expired-url <URL>"),
        (&["domain", "edit", "sho.rt", "--query-template", ""], "--query-template <PARAMETERS>"),
        (&["domain", "redirects", "sho.rt", "--base", ""], "--base <URL>"),
        (&["domain", "redirects", "sho.rt", "--regular-404="], "--regular-404 <URL>"),
        (&["domain", "redirects", "sho.rt", "--invalid-short-url", ""], "--invalid-short-url <URL>"),
        (&["domain", "list", "sho.rt"], "sho.rt"),
        (&["target", "deny"], "<PATTERN>"),
        // A shell expands a star without quotes.
        (&["target", "deny", "Cargo.toml", "README.md"], "README.md"),
        (&["target", "list", "example.com"], "example.com"),
        (&["target", "allow", "example.com", "--json"], "--json"),
        (&["webhook", "create", "https://a.b/"], "--event"),
    ] {
        let error = parse(args).unwrap_err();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
    for pattern in ["*", "*.example.com", "[::1]", "短い.example"] {
        parse(&["target", "deny", pattern]).unwrap();
    }
}
