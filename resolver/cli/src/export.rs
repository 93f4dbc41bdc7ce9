//! `resolver export`: writes all links as lines of JSON, which `resolver import` restores exactly,
//! or as CSV for spreadsheets.
//!
//! 1. Links are written in the order of their ids. A small progress file beside the output records
//!    how many bytes of it are complete and which link was the last, so that `--resume` continues
//!    an interrupted export. An export is not a snapshot: each link is written as it was when its
//!    turn came.
//! 2. Only JSON carries passwords (as hashes), rules and deleted links. A CSV table lists for each
//!    link the properties that it lacks, and an import disables links whose password is missing.
//!    The summary counts both.
//! 3. A link that no code leads to is left out, counted, and shows in the exit code.
//! 4. The file contains hashes of passwords, so only its owner may read it.

mod out;
mod row;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use daemon::Exit;
use serde_json::json;

use self::{out::Out, row::Rows};
use crate::{
    Error, Output,
    args::DatabaseArgs,
    database::{open_mint, ready},
    json_text,
    output::{out_error, out_file, progress_bar},
    table::counted_links,
};

/// The number of links of one read; each may be large.
const PAGE: usize = 500;

#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit code: 0 if every link is in the export; 65 if links had to be left out.")]
pub struct ExportArgs {
    /// Format of the export. Only ndjson carries everything: passwords as their hashes, rules and
    /// deleted links.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: ExportFormat,
    /// File to write. Defaults to the standard output, as does -.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Continue an unfinished file.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print the summary of a written file as JSON instead of text.
    #[arg(long, requires = "out")]
    pub json: bool,
    /// File with the code key. Defaults to code.key beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// The formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A table for spreadsheets, with the names of its columns in the first line.
    Csv,
    /// One JSON object per line, between a header and an end line: the format that
    /// `resolver import` reads.
    Ndjson,
}

/// Exports all links, and returns a summary.
pub(super) async fn run(args: ExportArgs) -> Result<Output, Error> {
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let rows = Rows::new(mint, &*store).await?;
    let file = out_file(args.out.as_ref());
    let failed = |error| out_error(file, error);
    let mut out = Out::open(&args)?;
    let bar = progress_bar(store.link_count().await?, "{pos} links");
    let mut looked_at = out.tally.links;
    loop {
        let page = store.export(out.after, PAGE).await?;
        let Some(last) = page.last().map(|exported| exported.record.link.id) else { break };
        for exported in page {
            looked_at += 1;
            // It is no link, but kept for the names of others.
            if exported.record.link.details().given_up {
                continue;
            }
            match rows.row(exported) {
                Some(row) => out.write(&row).map_err(failed)?,
                None => out.tally.without_code += 1,
            }
        }
        out.keep(last).map_err(failed)?;
        bar.set_position(looked_at);
    }
    bar.finish_and_clear();
    let tally = out.end().map_err(failed)?;
    tally.warn(args.format == ExportFormat::Csv);
    let text = match file {
        None => String::new(),
        Some(_) if args.json => json_text::pretty(&json!(tally)),
        Some(path) => format!("{} written to {}\n", counted_links(tally.links), path.display()),
    };
    let exit = if tally.without_code == 0 { Exit::Clean } else { Exit::Refused };
    Ok(Output { text, exit })
}
