//! `resolver import`: imports links from a file of another system, or from its running server
//! ([`app::import_links`]).
//!
//! 1. The name of a file's import is by default the system and the digest of the content. So a
//!    killed import continues where it stopped when it is started again, and a repeated import
//!    stores nothing twice; one that reads the file as that of another system is another import.
//! 2. A link that cannot be stored is reported with its position in the file and the reason. Then,
//!    and if the file has no links or its rest cannot be read, the exit code is 65, also when the
//!    import is repeated.
//! 3. Memory is bounded: rows wait in a few pieces of about [`PIECE_BYTES`] bytes, however large a
//!    link is.
//! 4. An import from a running server is repeated instead: each run reads the list from the
//!    beginning, and skips the links that are here ([`live`]).

mod live;
mod report;
mod source;
mod verify;
mod visits;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    ops::ControlFlow,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use app::import_links::{ImportError, LinkImport, Piece, Unprotected};
use clap::{
    Args, Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _},
};
use indicatif::ProgressBar;
use jiff::{Timestamp, tz::TimeZone};
use links::{Schemes, find_zone};
use sha2::{Digest, Sha256};
use store::{Store, StoreError};
use tokio::{sync::mpsc, task::spawn_blocking, time::Instant};
use transfer::{Row, Source, each_row};

use self::{
    live::LivePages,
    report::Report,
    source::{SourceArgs, SourceServer},
    verify::compare,
};
use crate::{
    Error, Output,
    args::DatabaseArgs,
    client::address,
    database::{open_mint, ready},
    output::{progress_bar, warn},
    wrong_value,
};

/// The maximum number of rows in a piece that waits to be stored, and about how many bytes.
const PIECE: usize = 500;
const PIECE_BYTES: usize = 1024 * 1024;
const PIECES: usize = 2;

#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit code: 0 if every link of the file is here; 65 if links were refused, now or by an earlier run, \
                        or the file has none or cannot be read to its end, or --verify has found differences. The \
                        right ones are stored nevertheless."
)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub what: Option<ImportCommand>,
    /// File to import: an export of the other system, or an answer of its API.
    #[arg(required_unless_present = "url")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// System that the file comes from: shortmint for a file of `resolver export`, shlink, kutt,
    /// yourls, bitly, rebrandly, shortio, dub, or csv for a table with shortCode and longUrl in its
    /// first line.
    #[arg(long, value_name = "SYSTEM", default_value = "shortmint")]
    pub from: Source,
    /// Name of this import. An import with the name of an earlier one continues it. Defaults to
    /// --from and the digest of the file.
    #[arg(long, conflicts_with = "url")]
    pub name: Option<String>,
    /// Address of a running Shortmint on this database. After the import, request each short link
    /// from it and from --url, and list the links that differ or are missing.
    #[arg(long, value_name = "URL", requires = "url")]
    pub verify: Option<String>,
    /// Treatment of links whose password or other protection is not part of the file.
    #[arg(long, default_value = "disable", value_parser = PossibleValuesParser::new([
        PossibleValue::new("disable").help(
            "Store them disabled: their codes are kept, and they do not redirect until they are enabled",
        ),
        PossibleValue::new("refuse").help("Refuse them"),
        PossibleValue::new("open").help("Publish them without their protection"),
    ]).map(|word| match word.as_str() {
        "open" => Unprotected::Open,
        "refuse" => Unprotected::Refuse,
        _ => Unprotected::Disable,
    }))]
    pub unprotected: Unprotected,
    /// Schemes that long URLs and URLs of redirect rules may have, as for the server.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ','
    )]
    pub allowed_schemes: Vec<String>,
    /// Time zone of times without an offset in the file, as for the server. Files of Kutt and
    /// YOURLS are in UTC.
    #[arg(long, env = "RESOLVER_TIME_ZONE", default_value = "UTC", value_name = "NAME")]
    pub time_zone: String,
    /// File for the links that cannot be imported, each with the reason.
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// File with the code key. Defaults to code.key beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// What to import instead of links.
#[derive(Clone, Debug, Subcommand)]
pub enum ImportCommand {
    /// Import single visits of existing links.
    Visits(Box<visits::ImportVisitsArgs>),
}

pub(super) async fn run(args: ImportArgs) -> Result<Output, Error> {
    if let Some(ImportCommand::Visits(args)) = &args.what {
        return visits::run(args).await;
    }
    let schemes = Schemes::parse(&args.allowed_schemes)
        .map_err(|error| wrong_value("--allowed-schemes", args.allowed_schemes.join(","), error))?;
    let no_zone = "this system has no time zone of that name: write UTC or a name such as Europe/Berlin";
    let zone =
        find_zone(&args.time_zone).ok_or_else(|| wrong_value("--time-zone", &args.time_zone, no_zone))?;
    let verify = args.verify.as_deref().map(|text| address("--verify", text)).transpose()?;
    let server = SourceServer::new(&args.source, args.from)?;
    // Both are opened before the database, so that a mistyped name is reported at once.
    let input = match (&server, &args.file) {
        (Some(server), _) => Input::server(server.clone(), args.from).await?,
        (None, file) => Input::file(file.as_deref().unwrap_or(Path::new("")), args.name.as_deref())?,
    };
    let default_domains = args.source.default_domains(server.as_ref());
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let begun = Instant::now();
    let name = match (&args.name, &server) {
        (None, None) => default_name(&*store, args.from, input.name.clone()).await?,
        _ => input.name.clone(),
    };
    let beginning = LinkImport::begin(store, mint, name, &default_domains, args.unprotected, schemes);
    let import = beginning.await?;
    let mut report = Report::new(rejects(args.rejects.as_deref(), import.position)?);
    import_input(args.from, (input, zone), import, &mut report).await?;
    let seconds = begun.elapsed().as_secs_f64();
    if report.read() == 0 && args.from != Source::Shortmint && server.is_none() {
        // An own export has a last line that says how many links it has.
        report.note_empty();
    }
    for warning in report.warnings(args.from) {
        warn(&warning);
    }
    if let Some((server, address)) = server.zip(verify) {
        let compared = compare((server, args.from), address, default_domains, &mut report).await?;
        report.comparison = Some(compared);
    }
    Ok(Output { text: report.summary(seconds, args.json), exit: report.exit() })
}

/// An input: its name, its bytes, and the bar that shows how far they are read.
struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    bar: ProgressBar,
}

impl Input {
    fn file(path: &Path, name: Option<&str>) -> Result<Self, Error> {
        let unreadable = |error: io::Error| wrong_value("FILE", path.display(), error);
        let file = File::open(path).map_err(unreadable)?;
        let name = name.map_or_else(|| digest(path), |name| Ok(name.to_owned())).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let bar = progress_bar(Some(length), "{bytes}/{total_bytes}");
        Ok(Self { name, reader: Box::new(bar.wrap_read(file)), bar })
    }

    async fn server(server: SourceServer, from: Source) -> Result<Self, Error> {
        // No run continues another one.
        let name = format!("{from} at {} since {}", server.url, Timestamp::now());
        let pages = LivePages::open(server).await?;
        Ok(Self { name, bar: pages.bar.clone(), reader: Box::new(pages) })
    }
}

/// Returns the default name of a file's import. Former releases named it by the digest alone: an
/// import that they have begun goes on, so that its links without codes are not stored twice.
async fn default_name(store: &dyn Store, from: Source, digest: String) -> Result<String, StoreError> {
    let was_begun = store.import_position(&digest).await?.place > 0;
    Ok(if was_begun { digest } else { format!("{from} {digest}") })
}

/// Opens the file for refused links. A run that continues an earlier one appends to it.
fn rejects(path: Option<&Path>, position: u64) -> Result<Option<File>, Error> {
    let Some(path) = path else { return Ok(None) };
    let (mut options, goes_on) = (OpenOptions::new(), position > 0);
    // Reasons quote properties of links, so only the owner reads the file.
    options.create(true).write(true).append(goes_on).truncate(!goes_on).mode(0o600);
    let opened = options.open(path);
    opened.map(Some).map_err(|error| wrong_value("--rejects", path.display(), error))
}

/// Imports the rows of the input, shows the progress, and records the report. An input whose rest
/// cannot be read is imported up to there.
async fn import_input(
    source: Source,
    (Input { reader, bar, .. }, zone): (Input, TimeZone),
    mut import: LinkImport,
    report: &mut Report,
) -> Result<(), Error> {
    let (sender, received) = mpsc::channel(PIECES);
    // Reading and parsing wait for the disk or the server, so they run on a thread of their own.
    let reading = spawn_blocking(move || send_pieces(source, reader, &zone, &sender));
    let mut refuse = |reason: String| report.refuse(reason);
    let taken = import.take_all(received, &mut refuse).await;
    match taken {
        Err(ImportError::Input(error)) => report.cut_off(&error)?,
        taken => {
            taken.map_err(import_error)?;
            reading.await.map_err(|_| Error::TaskFailed("reader of the import"))?;
            import.store_taken(&mut refuse).await.map_err(import_error)?;
        }
    }
    bar.finish_and_clear();
    report.counts = import.finish().await;
    Ok(())
}

fn import_error(error: ImportError) -> Error {
    match error {
        ImportError::Input(error) => Error::Io(io::Error::other(error)),
        ImportError::Record(error) => Error::Io(error),
        ImportError::Store(error) => Error::Store(error),
    }
}

/// Reads rows and sends them in pieces, until the input ends or the receiver is gone.
fn send_pieces(source: Source, reader: impl Read, zone: &TimeZone, to: &mpsc::Sender<Piece>) {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    each_row(source, reader, zone, |row| {
        bytes += row.as_ref().map_or(0, Row::weight);
        piece.push(row);
        if piece.len() >= PIECE || bytes >= PIECE_BYTES {
            bytes = 0;
            if to.blocking_send(std::mem::take(&mut piece)).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    // The importer may have stopped.
    let _ = to.blocking_send(piece);
}

/// Returns the SHA-256 digest of a file's content, the default name of an input.
fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(codes::hex(&hash.finalize()));
        }
        hash.update(&buffer[..count]);
    }
}
