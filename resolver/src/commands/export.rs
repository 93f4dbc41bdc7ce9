//! `resolver export`: every link as a line of JSON, which `resolver import` reads back as it was, or of CSV for spreadsheets.
//!
//! 1. Links come in the order of their ids. Beside the file a small one says how far it is whole and which link was the last in it, so that
//!    one that was interrupted goes on with `--resume`. It is not a snapshot: a link is in it as it was when its turn came.
//! 2. Only JSON carries a password (as its hash), rules and deleted links. A table says of each link what it lacks, and the import stores a
//!    link disabled whose password is missing; the summary counts both.
//! 3. The file has hashes of passwords in it: only its owner may read it.

mod out;
mod row;

use indicatif::{ProgressBar, ProgressStyle};

use self::{out::Out, row::Rows};
use super::{open_mint::open_mint, ready, warn};
use crate::{
    Error,
    config::{ExportArgs, ExportFormat},
};

/// Links of one read. Each may have much said of it.
const PAGE: usize = 500;

/// Exports the links; what it came to.
pub(super) async fn run(args: ExportArgs) -> Result<String, Error> {
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let rows = Rows::new(mint, &*store).await?;
    let mut out = Out::open(&args)?;
    let bar = bar(store.link_count().await?);
    let mut looked_at = out.tally.links;
    loop {
        let page = store.export(out.after, PAGE).await?;
        let Some(last) = page.last().map(|exported| exported.record.link.id) else { break };
        for exported in page {
            looked_at += 1;
            match rows.row(exported) {
                Some(row) => out.write(&row)?,
                None => tracing::warn!(looked_at, "no code leads to this link"),
            }
        }
        out.keep(last)?;
        bar.set_position(looked_at);
    }
    bar.finish_and_clear();
    let tally = out.end()?;
    for warning in tally.warnings(args.format == ExportFormat::Csv) {
        warn(&warning);
    }
    let links = tally.links;
    Ok(args.out.map_or_else(String::new, |path| format!("{links} links written to {}\n", path.display())))
}

/// A bar on a terminal, and nothing elsewhere; without an end, when the database does not know how many links there are.
fn bar(links: Option<u64>) -> ProgressBar {
    let Some(links) = links else {
        let style = ProgressStyle::with_template("{spinner} {pos} links");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        return ProgressBar::new_spinner().with_style(style);
    };
    let style = ProgressStyle::with_template("{bar:40} {percent}% {pos}/{len} links {eta}");
    ProgressBar::new(links).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
