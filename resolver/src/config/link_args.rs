//! What `resolver link` takes: which link is meant, and what is to be said of it.

use std::path::PathBuf;

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};

use super::client_args::{ServerArgs, TableArgs};

/// `resolver link …`
#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Make a link and print its short URL.
    Create(Box<LinkCreateArgs>),
    /// Show a link.
    Get(LinkGetArgs),
    /// List links.
    List(Box<LinkListArgs>),
    /// Change a link: what is not named stays as it is.
    Edit(Box<LinkEditArgs>),
    /// Delete a link. A minted code is never given again; a slug may be picked again.
    Delete(LinkDeleteArgs),
    /// Bring back the link that was deleted last under a code or slug.
    Restore(LinkGetArgs),
    /// Take a link down: it leads nowhere until resolver link unblock, whatever its owner does. The
    /// key is an admin's, without limits.
    Block(LinkBlockArgs),
    /// Bring a link back that was taken down.
    Unblock(LinkGetArgs),
}

/// `resolver link block`
#[derive(Clone, Debug, Args)]
pub struct LinkBlockArgs {
    /// Which.
    #[command(flatten)]
    pub name: LinkName,
    /// Why; the link's owner is shown it.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What may be said of a link when it is made and when it is changed.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkSetters {
    /// A tag; may be given more than once. An edit replaces all tags that the link has.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// What to call it.
    #[arg(long)]
    pub title: Option<String>,
    /// What there is to know about it.
    #[arg(long)]
    pub description: Option<String>,
    /// From when on it redirects: 2026-11-22T10:00:00+00:00, or a date, which means its beginning in UTC.
    #[arg(long, value_name = "TIME")]
    pub valid_since: Option<String>,
    /// Until when it redirects, likewise.
    #[arg(long, value_name = "TIME")]
    pub valid_until: Option<String>,
    /// How often it may be followed.
    #[arg(long, value_name = "COUNT")]
    pub max_visits: Option<u64>,
    /// The status of its redirects, instead of the server's.
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(["301", "302", "307", "308"]).try_map(|text| text.parse::<u16>()))]
    pub redirect_status: Option<u16>,
    /// Let search engines list it.
    #[arg(long)]
    pub crawlable: bool,
    /// Do not hand on the query of the short URL.
    #[arg(long)]
    pub no_forward_query: bool,
    /// The file whose first line visitors have to give as a password; - for the standard input.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// `resolver link create`
#[derive(Clone, Debug, Args)]
pub struct LinkCreateArgs {
    /// Where it leads.
    pub long_url: String,
    /// The code, instead of one that the server mints; several segments are parted by slashes.
    #[arg(long)]
    pub slug: Option<String>,
    /// The domain that it is on; the server's own, when absent.
    #[arg(long)]
    pub domain: Option<String>,
    /// What is said of it.
    #[command(flatten)]
    pub setters: LinkSetters,
    /// Characters of the code.
    #[arg(long, value_name = "COUNT")]
    pub length: Option<u64>,
    /// The keyspace that the code is of.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// How the code comes about.
    #[arg(long, value_enum)]
    pub strategy: Option<CodeStrategy>,
    /// Take the link that was made for the same wish before, if there is one.
    #[arg(long)]
    pub find_if_exists: bool,
    /// A name for this call, 1 to 255 visible ASCII characters: sent again it makes no other link, so a call that fails is tried again.
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    pub idempotency_key: Option<String>,
    /// Print the whole answer as JSON instead of the short URL.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// How a code comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodeStrategy {
    /// From the next number.
    Sequence,
    /// From a digest of the long URL.
    Hash,
}

/// Which link is meant.
#[derive(Clone, Debug, Args)]
pub struct LinkName {
    /// Its code, without the domain; several segments are parted by slashes.
    pub code: String,
    /// The domain that it is on; the server's own, when absent.
    #[arg(long)]
    pub domain: Option<String>,
}

/// `resolver link get`, `restore` and `unblock`
#[derive(Clone, Debug, Args)]
pub struct LinkGetArgs {
    /// Which.
    #[command(flatten)]
    pub name: LinkName,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `resolver link list`
#[derive(Clone, Debug, Args)]
pub struct LinkListArgs {
    /// A text that the long URL, the title, a tag, the slug or the domain has in it, whatever its case; or a whole minted code.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// A tag that links have; may be given more than once, and then it takes all of them.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// One of the tags is enough.
    #[arg(long, requires = "tag")]
    pub any_tag: bool,
    /// The domain that links are on; all of them, when absent.
    #[arg(long)]
    pub domain: Option<String>,
    /// The links that were deleted, and no others.
    #[arg(long)]
    pub deleted: bool,
    /// By dateCreated, shortCode, longUrl, title, visits or nonBotVisits, with -ASC or -DESC behind it.
    #[arg(long, value_name = "FIELD-ASC")]
    pub order: Option<String>,
    /// Which page, from 1.
    #[arg(long, value_name = "NUMBER", conflicts_with = "ndjson")]
    pub page: Option<u64>,
    /// Links of a page; with --ndjson, of each call.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub per_page: Option<u64>,
    /// Created then or later: 2026-11-22T10:00:00+00:00, or a date, which means its beginning in UTC.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Created then or earlier, likewise.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print the page as JSON instead of a table.
    #[arg(long, conflicts_with = "ndjson")]
    pub json: bool,
    /// Print the links of all pages, each as a line of JSON; the oldest first, unless --order says otherwise.
    #[arg(long)]
    pub ndjson: bool,
    /// The table.
    #[command(flatten)]
    pub table: TableArgs,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `resolver link edit`
#[derive(Clone, Debug, Args)]
pub struct LinkEditArgs {
    /// Which.
    #[command(flatten)]
    pub name: LinkName,
    /// Where it leads from now on.
    #[arg(long, value_name = "URL")]
    pub long_url: Option<String>,
    /// What is said of it from now on.
    #[command(flatten)]
    pub setters: LinkSetters,
    /// What is taken away or turned.
    #[command(flatten)]
    pub clears: LinkClears,
    /// Only if this is still its version, as shown with it.
    #[arg(long, value_name = "NUMBER")]
    pub if_version: Option<u64>,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What only an edit can do: take away what was said of a link, or turn a switch back.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkClears {
    /// Without tags.
    #[arg(long, conflicts_with = "tag")]
    pub no_tags: bool,
    /// Without a title.
    #[arg(long, conflicts_with = "title")]
    pub no_title: bool,
    /// Without a description.
    #[arg(long, conflicts_with = "description")]
    pub no_description: bool,
    /// Valid from its beginning on.
    #[arg(long, conflicts_with = "valid_since")]
    pub no_valid_since: bool,
    /// Valid without an end.
    #[arg(long, conflicts_with = "valid_until")]
    pub no_valid_until: bool,
    /// To be followed as often as anyone likes.
    #[arg(long, conflicts_with = "max_visits")]
    pub no_max_visits: bool,
    /// With the server's status.
    #[arg(long, conflicts_with = "redirect_status")]
    pub no_redirect_status: bool,
    /// Without a password.
    #[arg(long, conflicts_with = "password_file")]
    pub no_password: bool,
    /// Keep search engines from listing it.
    #[arg(long, conflicts_with = "crawlable")]
    pub no_crawlable: bool,
    /// Hand on the query of the short URL.
    #[arg(long, conflicts_with = "no_forward_query")]
    pub forward_query: bool,
    /// Let it redirect again.
    #[arg(long)]
    pub enable: bool,
    /// Let it redirect no more.
    #[arg(long, conflicts_with = "enable")]
    pub disable: bool,
}

/// `resolver link delete`
#[derive(Clone, Debug, Args)]
pub struct LinkDeleteArgs {
    /// Which.
    #[command(flatten)]
    pub name: LinkName,
    /// Only if this is still its version, as shown with it.
    #[arg(long, value_name = "NUMBER")]
    pub if_version: Option<u64>,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

fn idempotency_key(text: &str) -> Result<String, &'static str> {
    let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text.to_owned()) } else { Err("expected 1 to 255 visible ASCII characters") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        command: LinkCommand,
    }

    fn parse(args: &[&str]) -> Result<LinkCommand, String> {
        let args = [&["link"], args, &["--api-key", "secret"]].concat();
        Cli::try_parse_from(args).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn setting_and_clearing_the_same_field_is_refused() {
        for (set, clear) in [
            (&["--tag", "a"][..], "--no-tags"),
            (&["--title", "a"], "--no-title"),
            (&["--description", "a"], "--no-description"),
            (&["--valid-since", "2026-01-01"], "--no-valid-since"),
            (&["--valid-until", "2026-01-01"], "--no-valid-until"),
            (&["--max-visits", "1"], "--no-max-visits"),
            (&["--redirect-status", "301"], "--no-redirect-status"),
            (&["--password-file", "-"], "--no-password"),
            (&["--crawlable"], "--no-crawlable"),
            (&["--forward-query"], "--no-forward-query"),
            (&["--enable"], "--disable"),
        ] {
            parse(&[&["edit", "abc"], set].concat()).unwrap();
            parse(&["edit", "abc", clear]).unwrap();
            let both = parse(&[&["edit", "abc", clear], set].concat()).unwrap_err();
            assert!(both.contains("cannot be used with") && both.contains(clear), "{both}");
        }
    }

    #[test]
    fn values_that_cannot_be_are_refused_before_anyone_is_asked() {
        for (args, part) in [
            (&["create"][..], "<LONG_URL>"),
            (&["create", "u", "--redirect-status", "303"], "308"),
            (&["create", "u", "--strategy", "guess"], "sequence"),
            (&["create", "u", "--max-visits=-1"], "--max-visits"),
            (&["create", "u", "--idempotency-key", ""], "255 visible"),
            (&["create", "u", "--idempotency-key", "a b"], "255 visible"),
            (&["list", "--json", "--ndjson"], "--ndjson"),
            (&["list", "--page", "2", "--ndjson"], "--ndjson"),
            (&["list", "--any-tag"], "--tag"),
            (&["list", "--per-page", "0"], "--per-page"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}
