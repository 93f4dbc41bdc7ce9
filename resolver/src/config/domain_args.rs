//! What `resolver domain` takes.

use clap::{Args, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use super::client_args::{ServerArgs, TableArgs};

/// `resolver domain …`
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List domains, the default one first.
    ///
    /// The default domain is the one that the server's --public-url names. Where a domain says nothing of redirects, the server's own flags hold,
    /// such as --base-url-redirect; they are in the answer that --json prints.
    List(DomainListArgs),
    /// Change a domain's name, its protocol, or whether its links redirect: what is not named stays as it is.
    ///
    /// A change holds on every resolver when this command ends. A domain that is not known is not added: a link that is made on it adds it, and so does
    /// resolver domain redirects.
    Edit(DomainEditArgs),
    /// Change where visitors of a domain go that no link leads on: what is not named stays as it is.
    ///
    /// A domain that is not known is added. In the path, the query or the fragment of a URL,
    /// {DOMAIN} stands for the domain and {ORIGINAL_PATH} for what was asked for. For example:
    /// resolver domain redirects go.example --base https://example.com/ --invalid-short-url 'https://example.com/lost?path={ORIGINAL_PATH}'
    Redirects(DomainRedirectsArgs),
    /// Remove a domain that has no links, and that no key is limited to.
    ///
    /// Links that were deleted on it before cannot be brought back. Visitors of that host are led
    /// by the default domain's links from then on, if they still come here.
    Remove(DomainRemoveArgs),
}

/// `resolver domain remove`
#[derive(Clone, Debug, Args)]
pub struct DomainRemoveArgs {
    /// Which, with its port if it has one.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `resolver domain list`
#[derive(Clone, Debug, Args)]
pub struct DomainListArgs {
    /// List domains too that have no links and of which nothing is said.
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

/// `resolver domain edit`
#[derive(Clone, Debug, Args)]
pub struct DomainEditArgs {
    /// Which, with its port if it has one; DEFAULT for that of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// What it is called from now on; its links follow. The default domain's name is --public-url's.
    #[arg(long = "name", value_name = "NEW")]
    pub new_name: Option<String>,
    /// Let its links redirect again.
    #[arg(long)]
    pub enable: bool,
    /// Let its links redirect no more; they stay, and the default domain's do not stand in for them.
    #[arg(long, conflicts_with = "enable")]
    pub disable: bool,
    /// What its short links begin with, as the API shows them.
    #[arg(long, value_enum)]
    pub protocol: Option<DomainProtocol>,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What short links of a domain begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DomainProtocol {
    /// With http.
    Http,
    /// With https.
    Https,
    /// As the server's --public-url does.
    Default,
}

/// `resolver domain redirects`
#[derive(Clone, Debug, Args)]
pub struct DomainRedirectsArgs {
    /// Which, with its port if it has one; DEFAULT for that of the server's --public-url.
    #[arg(value_name = "NAME")]
    pub domain: String,
    /// Where visitors of the domain itself go.
    // An empty variable of a script must not take away what is there; that is what the other flag is for.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub base: Option<String>,
    /// Say nothing of them: the server's --base-url-redirect holds.
    #[arg(long, conflicts_with = "base")]
    pub no_base: bool,
    /// Where visitors go who ask for what no code could be.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub regular_404: Option<String>,
    /// Say nothing of them: the server's --regular-404-redirect holds.
    #[arg(long, conflicts_with = "regular_404")]
    pub no_regular_404: bool,
    /// Where visitors go whose code leads nowhere.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub invalid_short_url: Option<String>,
    /// Say nothing of them: the server's --invalid-short-url-redirect holds.
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
