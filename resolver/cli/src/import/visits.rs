//! `resolver import visits`: imports single visits of existing links, from a server with Shlink's
//! API or from a file ([`ingest::import`]).
//!
//! 1. Each link of a server is a source. Its visits are numbered from the oldest, so a later run
//!    imports the visits since. Each file is a source too, identified by the digest of its content.
//! 2. Each item is stored, was taken by an earlier run, or is refused with a reason.

mod file;
mod known_links;
mod live;
mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use daemon::Exit;
use indicatif::ProgressBar;
use ingest::import::{ImportedVisit, VisitImport};
use sha2::{Digest as _, Sha256};
use store::postgres::ConnectOptions;
use tokio::time::Instant;
use transfer::SingleVisit;
use visit_store::{Producer, SpoolId};

use self::{
    known_links::{FoundLink, KnownLinks},
    report::Report,
};
use super::{
    Input,
    source::{SourceArgs, SourceServer},
};
use crate::{
    Error, Output,
    args::{DatabaseArgs, VisitsStoreArgs},
    database::{open_mint, open_visits, ready},
};

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit code: 0 if every visit is here; 65 if this run has refused some, or the file has none or cannot \
                        be read to its end. The right ones are stored nevertheless."
)]
pub struct ImportVisitsArgs {
    /// File to import: answers of Shlink's API for visits, a file of `resolver visits export`, the
    /// table of Dub's events or answers of its API, clicks of Short.io's API, or a table or lines
    /// of JSON with date, shortCode, domain, referer, userAgent, potentialBot and a place.
    #[arg(required_unless_present = "url")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// File with the code key. Defaults to code.key beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub visits_store: VisitsStoreArgs,
}

/// Where the visits come from.
enum Source {
    File(Input),
    Live(SourceServer),
}

/// An import in progress, with a cache of the links here.
struct Session {
    import: VisitImport,
    links: KnownLinks,
    report: Report,
    bar: ProgressBar,
}

pub(super) async fn run(args: &ImportVisitsArgs) -> Result<Output, Error> {
    let server = SourceServer::new(&args.source, transfer::Source::Shlink)?;
    let default_domains = args.source.default_domains(server.as_ref());
    // Before opening the database, so that a mistyped name is reported at once.
    let path = args.file.as_deref().unwrap_or(Path::new(""));
    let source = match server {
        Some(server) => Source::Live(server),
        None => Source::File(Input::file(path, None)?),
    };
    let clickhouse = args.visits_store.of(&args.database.database)?;
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let options = ConnectOptions::default();
    let visits = open_visits(&args.database.database, clickhouse.as_ref(), &store, &options)?;
    visits.migrate().await.map_err(failed)?;
    let polled = store.poll_settings(None).await?;
    let (now, settings) = (polled.now, polled.settings.unwrap_or_default());
    let untracked = settings.domains.iter().filter(|domain| domain.settings.untracked);
    let untracked = untracked.map(|domain| domain.id).collect();
    let import = VisitImport::begin(visits, untracked, now).await.map_err(failed)?;
    let links = KnownLinks::new(store, mint, &settings, &default_domains);
    let begun = Instant::now();
    let mut session = Session { import, links, report: Report::default(), bar: ProgressBar::hidden() };
    match source {
        Source::File(file) => session.import_file(path, file).await?,
        Source::Live(server) => session.import_all(&server).await?,
    }
    session.bar.finish_and_clear();
    let report = session.report;
    Ok(Output { text: report.summary(begun.elapsed().as_secs_f64(), args.json), exit: report.exit() })
}

impl Session {
    /// Stores some visits of a source, and moves its position to `to`.
    async fn store(
        &mut self,
        producer: &mut Producer,
        visits: &[ImportedVisit],
        to: u64,
        name: impl Fn(u64) -> String,
    ) -> Result<(), Error> {
        let taken = self.import.take(producer, visits, to).await.map_err(failed)?;
        self.report.stored += taken.stored;
        self.report.unlisted += taken.unlisted;
        for (place, reason) in taken.refused {
            self.report.refuse(1, &format!("{}: {reason}", name(place)));
        }
        Ok(())
    }
}

/// Returns the error of a store of visits.
fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Failed("store of visits".to_owned(), Exit::Unavailable, error.into())
}

/// Returns the identity of a source: the first half of a digest of its name.
fn source_id(names: &[&str]) -> SpoolId {
    let mut hash = Sha256::new();
    for name in names {
        hash.update(name);
        // Names contain no line break.
        hash.update(b"\n");
    }
    let digest = hash.finalize();
    let (first, _) = digest.split_first_chunk::<16>().expect("a digest has 32 bytes");
    SpoolId(u128::from_be_bytes(*first))
}

fn imported(visit: SingleVisit, (link, domain): FoundLink) -> ImportedVisit {
    let SingleVisit { place, at, referrer, user_agent, location, is_bot, .. } = visit;
    ImportedVisit { place, link, domain, at, user_agent, referrer, location, is_bot }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_source_is_told_by_all_of_its_names_in_their_order() {
        let ids: HashSet<u128> = [&["a", "b"][..], &["b", "a"], &["ab"], &["a", "b", ""]]
            .into_iter()
            .map(|names| source_id(names).0)
            .collect();
        assert_eq!(ids.len(), 4);
        assert_eq!(source_id(&["a", "b"]), source_id(&["a", "b"]));
    }
}
