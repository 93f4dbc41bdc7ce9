//! Arguments of `resolver domain`.

use clap::{Args, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use super::client::{ServerArgs, TableArgs};

/// Subcommands of `resolver domain`.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List domains, the default one first.
    ///
    /// The default domain is the one of the server's --public-url. A domain without its own
    /// fallback targets uses those of the server's flags, of --fallback; --json shows
    /// them.
    List(DomainListArgs),
    /// Edit a domain's name, its protocol, or whether its links redirect. Properties without a flag
    /// stay unchanged.
    ///
    /// A change is in effect on every resolver when this command ends. An unknown domain is not
    /// added: create a link on it, or use resolver domain redirects, to add it.
    Edit(DomainEditArgs),
    /// Edit the fallback targets of a domain, for requests that match no link. Targets without a
    /// flag stay unchanged.
    ///
    /// An unknown domain is added. In the path, the query or the fragment of a URL, {DOMAIN} is
    /// replaced by the domain and {ORIGINAL_PATH} by the requested path. For example: resolver
    /// domain redirects go.example --base https://example.com/ --invalid-short-url
    /// 'https://example.com/lost?path={ORIGINAL_PATH}'
    Redirects(DomainRedirectsArgs),
    /// Remove a domain that has no links and that no API key is limited to.
    ///
    /// Links that were deleted on it cannot be restored afterwards. Requests for its host are
    /// answered with the default domain's links from then on.
    Remove(DomainRemoveArgs),
}

/// Arguments of `resolver domain remove`.
#[derive(Clone, Debug, Args)]
pub struct DomainRemoveArgs {
    /// Domain, with its port if it has one.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `resolver domain list`.
#[derive(Clone, Debug, Args)]
pub struct DomainListArgs {
    /// Include domains without links and without settings.
    #[arg(long)]
    pub all: bool,
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

/// Arguments of `resolver domain edit`.
#[derive(Clone, Debug, Args)]
pub struct DomainEditArgs {
    /// Domain, with its port if it has one; DEFAULT for the domain of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// New name of the domain. Its links move with it. The name of the default domain is that of
    /// --public-url.
    #[arg(long = "name", value_name = "NEW")]
    pub new_name: Option<String>,
    /// Let the domain's links redirect again.
    #[arg(long)]
    pub enable: bool,
    /// Stop redirects on the domain. Its links are kept, and those of the default domain do not
    /// replace them.
    #[arg(long, conflicts_with = "enable")]
    pub disable: bool,
    /// Protocol of the domain's short URLs in answers of the API.
    #[arg(long, value_enum)]
    pub protocol: Option<DomainProtocol>,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The protocol of a domain's short URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DomainProtocol {
    /// HTTP.
    Http,
    /// HTTPS.
    Https,
    /// The protocol of the server's --public-url.
    Default,
}

/// Arguments of `resolver domain redirects`.
#[derive(Clone, Debug, Args)]
pub struct DomainRedirectsArgs {
    /// Domain, with its port if it has one; DEFAULT for the domain of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// Fallback target for the domain itself.
    // An empty variable in a script must not remove the target: that is the purpose of the other
    // flag.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub base: Option<String>,
    /// Remove the target, so that the server's --fallback base-url applies.
    #[arg(long, conflicts_with = "base")]
    pub no_base: bool,
    /// Fallback target for paths that cannot be a code.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub regular_404: Option<String>,
    /// Remove the target, so that the server's --fallback regular-404 applies.
    #[arg(long, conflicts_with = "regular_404")]
    pub no_regular_404: bool,
    /// Fallback target for codes without a live link.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub invalid_short_url: Option<String>,
    /// Remove the target, so that the server's --fallback invalid-short-url applies.
    #[arg(long, conflicts_with = "invalid_short_url")]
    pub no_invalid_short_url: bool,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
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
        command: DomainCommand,
    }

    fn parse(args: &[&str]) -> Result<DomainCommand, String> {
        let args = [&["domain"], args, &["--api-key", "secret"]].concat();
        Cli::try_parse_from(args).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn setting_and_clearing_the_same_field_is_refused() {
        for (command, set, clear) in [
            ("edit", &["--enable"][..], "--disable"),
            ("redirects", &["--base", "u"], "--no-base"),
            ("redirects", &["--regular-404", "u"], "--no-regular-404"),
            ("redirects", &["--invalid-short-url", "u"], "--no-invalid-short-url"),
        ] {
            parse(&[&[command, "sho.rt"], set].concat()).unwrap();
            parse(&[command, "sho.rt", clear]).unwrap();
            let both = parse(&[&[command, "sho.rt", clear], set].concat()).unwrap_err();
            assert!(both.contains("cannot be used with") && both.contains(clear), "{both}");
        }
    }

    #[test]
    fn one_redirect_is_set_while_another_is_taken_away() {
        let args = ["redirects", "sho.rt", "--base", "u", "--no-regular-404", "--no-invalid-short-url"];
        let DomainCommand::Redirects(args) = parse(&args).unwrap() else { panic!("{args:?}") };
        assert_eq!((args.base.as_deref(), args.regular_404, args.invalid_short_url), (Some("u"), None, None));
        assert!(!args.no_base && args.no_regular_404 && args.no_invalid_short_url);
    }

    #[test]
    fn values_that_cannot_be_are_refused_before_anyone_is_asked() {
        for (args, part) in [
            (&["edit"][..], "<NAME>"),
            (&["redirects"], "<NAME>"),
            (&["edit", "sho.rt", "--name"], "<NEW>"),
            (&["edit", "sho.rt", "--protocol", "ftp"], "default"),
            (&["redirects", "sho.rt", "--base", ""], "--base <URL>"),
            (&["redirects", "sho.rt", "--regular-404="], "--regular-404 <URL>"),
            (&["redirects", "sho.rt", "--invalid-short-url", ""], "--invalid-short-url <URL>"),
            (&["list", "sho.rt"], "sho.rt"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}
