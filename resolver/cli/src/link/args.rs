//! Arguments of `resolver link`.

use clap::{Args, Subcommand, builder::PossibleValue};

use super::{
    bulk::{BulkArgs, EditManyArgs},
    fields::{LinkEdits, LinkSetters},
    print::LinkPrintArgs,
    schedule::ScheduleCommand,
};
use crate::args::{ServerArgs, ShowArgs, TableArgs};

const EXAMPLES: &str = "\
Examples:
  resolver link edit-many --with-tag spring --remove-tag spring --add-tag archive
  resolver link edit-many --search old.example --since 2026-01-01 --valid-until 2027-01-01 --yes
  resolver link edit-many --codes codes.txt --domain go.example --disable --yes

--with-tag chooses links by a tag; --add-tag and --remove-tag change one, and --tag replaces all tags.";

#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Create a link and print its short URL.
    Create(Box<LinkCreateArgs>),
    /// Show a link.
    #[command(alias = "show")]
    Get(LinkGetArgs),
    /// List links.
    List(Box<LinkListArgs>),
    /// Write a pack of QR codes for print: sheets of labels, or an archive of images.
    Print(Box<LinkPrintArgs>),
    /// Edit a link. Fields without a flag stay unchanged.
    Edit(Box<LinkEditArgs>),
    /// Manage scheduled edits of a link.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Edit many links, selected by criteria or by a list of codes.
    ///
    /// Without --yes, only print what would be changed. The command can be repeated: links that
    /// already have the requested values are not changed.
    #[command(after_help = EXAMPLES)]
    EditMany(Box<EditManyArgs>),
    /// Delete many links, selected by criteria or by a list of codes.
    ///
    /// Without --yes, only print what would be deleted.
    DeleteMany(Box<BulkArgs>),
    /// Show the changes of a link, the latest first.
    History {
        #[command(flatten)]
        name: LinkName,
        /// Show only entries before the one with this number.
        #[arg(long, value_name = "ID")]
        before: Option<i64>,
        #[command(flatten)]
        table: TableArgs,
    },
    /// Undo an edit of a link: every field that it changed gets its former value.
    Undo {
        #[command(flatten)]
        link: LinkGetArgs,
        /// Number of the edit's entry in resolver link history. Defaults to the last edit.
        #[arg(long, value_name = "ID")]
        entry: Option<i64>,
    },
    /// Delete a link. A minted code is never assigned again; a custom slug can be used again.
    Delete {
        #[command(flatten)]
        name: LinkName,
        /// Delete the link only if it still has this version, as shown with it.
        #[arg(long, value_name = "NUMBER")]
        if_version: Option<u64>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Restore the most recently deleted link with this code or slug.
    Restore(LinkGetArgs),
    /// Take a link down: it does not redirect until resolver link unblock, whatever its owner does.
    /// Requires an admin's key without limits.
    Block {
        #[command(flatten)]
        link: LinkGetArgs,
        /// Reason for the takedown. The link's owner can see it.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lift the takedown of a link. Requires an admin's key without limits.
    Unblock(LinkGetArgs),
    /// Explain what a visitor gets for a short URL, step by step, without a visit.
    ///
    /// Use it to find out why a link does not work. Each line is a step of the decision, with its
    /// outcome and what it is about; the last line is the answer.
    Explain(Box<LinkExplainArgs>),
}

#[derive(Clone, Debug, Args)]
pub struct LinkCreateArgs {
    /// URL that the link redirects to. With --extra-path fill it is a template, such as
    /// https://tracker.example/{1}.
    pub long_url: String,
    /// Custom slug, instead of a minted code. Slashes separate several segments.
    #[arg(long)]
    pub slug: Option<String>,
    /// Domain of the link. Defaults to the server's default domain.
    #[arg(long)]
    pub domain: Option<String>,
    #[command(flatten)]
    pub setters: LinkSetters,
    /// Length of the code, in characters.
    #[arg(long, value_name = "COUNT")]
    pub length: Option<u64>,
    /// Keyspace of the code.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Method of choosing the code.
    #[arg(long, value_parser = [
        PossibleValue::new("sequence").help("Mint it from the next number"),
        PossibleValue::new("hash").help("Derive it from a digest of the long URL"),
    ])]
    pub strategy: Option<String>,
    /// Return an existing link for the long URL that matches the given fields, if there is one.
    #[arg(long)]
    pub find_if_exists: bool,
    /// Your own ID of the link. If the same API key has created a link with this ID, edit that link
    /// instead.
    #[arg(long, value_name = "ID", conflicts_with_all = ["find_if_exists", "password_file"])]
    pub external_id: Option<String>,
    /// Take the title from the page at the URL, soon after the link was created.
    #[arg(long, conflicts_with = "title")]
    pub fetch_title: bool,
    /// Idempotency key of this call, 1 to 255 visible ASCII characters. A repeated call with the
    /// same key creates no other link, so a failed call is retried.
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// The link to act on.
#[derive(Clone, Debug, Args)]
pub struct LinkName {
    /// Code or custom slug of the link, without the domain. Slashes separate several segments.
    pub code: String,
    /// Domain of the link. Defaults to the server's default domain.
    #[arg(long)]
    pub domain: Option<String>,
}

/// Arguments of `resolver link get`, `restore` and `unblock`.
#[derive(Clone, Debug, Args)]
pub struct LinkGetArgs {
    #[command(flatten)]
    pub name: LinkName,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// An example of a visitor.
#[derive(Clone, Debug, Args)]
pub struct LinkExplainArgs {
    /// Short URL with its query, or its path on the server's default domain.
    pub url: String,
    /// User agent of the visitor. Defaults to none.
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Languages of the visitor, as in the header Accept-Language. Defaults to none.
    #[arg(long, value_name = "TEXT")]
    pub accept_language: Option<String>,
    /// IP address of the visitor. Defaults to that of this machine.
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<String>,
    /// Country of the visitor, such as DE. Defaults to that of the address.
    #[arg(long, value_name = "CODE")]
    pub country: Option<String>,
    /// Time of the visit: 2026-11-22T10:00:00+00:00, or a date. Defaults to now.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    #[command(flatten)]
    pub table: TableArgs,
}

#[derive(Clone, Debug, Args)]
pub struct LinkListArgs {
    /// Search for links whose long URL, title, tag, slug or domain contains this text, ignoring
    /// case, or whose minted code is this text.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// List only links with this tag; can be repeated to require several tags.
    #[arg(long, alias = "with-tag", value_name = "TAG")]
    pub tag: Vec<String>,
    /// Require only one of the tags.
    #[arg(long, requires = "tag")]
    pub any_tag: bool,
    /// List only links on this domain. Defaults to all domains.
    #[arg(long)]
    pub domain: Option<String>,
    /// List only deleted links.
    #[arg(long)]
    pub deleted: bool,
    /// Order of the list: dateCreated, shortCode, longUrl, title, visits, nonBotVisits or
    /// lastVisit, followed by -ASC or -DESC.
    #[arg(long, value_name = "FIELD-ASC")]
    pub order: Option<String>,
    /// Number of the page, from 1.
    #[arg(long, value_name = "NUMBER")]
    pub page: Option<u64>,
    /// Number of links per page; with --ndjson, per call.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub per_page: Option<u64>,
    /// List only links created at this time or later: 2026-11-22T10:00:00+00:00, or a date. Without
    /// an offset or a zone such as [Europe/Berlin] it is in the server's time zone.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// List only links created at this time or earlier, in the same form.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print the links of all pages as lines of JSON, the oldest first unless --order is given.
    #[arg(long, conflicts_with_all = ["json", "page"])]
    pub ndjson: bool,
    #[command(flatten)]
    pub table: TableArgs,
}

#[derive(Clone, Debug, Args)]
pub struct LinkEditArgs {
    #[command(flatten)]
    pub name: LinkName,
    /// New name of the link. Its former one leads nowhere from then on.
    #[arg(long)]
    pub slug: Option<String>,
    #[command(flatten)]
    pub edits: LinkEdits,
    /// Edit the link only if it still has this version, as shown with it.
    #[arg(long, value_name = "NUMBER")]
    pub if_version: Option<u64>,
    #[command(flatten)]
    pub show: ShowArgs,
}

fn idempotency_key(text: &str) -> Result<String, &'static str> {
    let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text.to_owned()) } else { Err("expected 1 to 255 visible ASCII characters") }
}
