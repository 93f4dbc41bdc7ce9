//! `resolver import`: imports links from a file of another system ([`app::import_links`]).
//!
//! 1. The name of an input is by default the digest of its content. So a killed import continues
//!    where it stopped when it is started again, and a repeated import stores nothing twice.
//! 2. A link that cannot be stored is reported with its position in the file and the reason. Then,
//!    and if the file has no links or its rest cannot be read, the exit code is 65, also when the
//!    import is repeated.
//! 3. Memory is bounded: rows wait in a few pieces of about [`PIECE_BYTES`] bytes, however large a
//!    link is.

mod outcome;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use app::import_links::{self, ImportError, ImportLinks, ImportPorts, LinkImport, Piece};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use links::{Schemes, find_zone};
use sha2::{Digest, Sha256};
use tokio::{sync::mpsc, task::spawn_blocking, time::Instant};
use transfer::{Row, RowError, Source, rows};

use self::outcome::Outcome;
use super::{database::ready, error::file_error, open_mint::open_mint, warning::warn};
use crate::{
    Error, Output,
    args::{ImportArgs, Unprotected},
};

/// The maximum number of rows in a piece that waits to be stored, and about how many bytes.
const PIECE: usize = 250;
const PIECE_BYTES: usize = 1024 * 1024;
/// The maximum number of waiting pieces.
const PIECES: usize = 2;

/// Imports a file, and returns a summary.
pub(super) async fn run(args: ImportArgs) -> Result<Output, Error> {
    let schemes = Schemes::parse(&args.allowed_schemes).map_err(|error| Error::Config {
        flag: "--allowed-schemes",
        value: args.allowed_schemes.join(","),
        reason: error.to_string(),
    })?;
    let zone = find_zone(&args.time_zone).ok_or_else(|| Error::Config {
        flag: "--time-zone",
        value: args.time_zone.clone(),
        reason: "this system has no time zone of that name: write UTC or a name such as Europe/Berlin"
            .to_owned(),
    })?;
    // The file is opened before the database, so that a mistyped name is reported at once.
    let unreadable = |error: &io::Error| file_error("FILE", &args.file, error);
    let file = File::open(&args.file).map_err(|error| unreadable(&error))?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => digest(&args.file).map_err(|error| unreadable(&error))?,
    };
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let begun = Instant::now();
    let wish = ImportLinks {
        name,
        default_domains: args.default_domain.clone(),
        unprotected: policy(args.unprotected),
        schemes,
    };
    let ports = ImportPorts { catalog: store.clone(), keys: store.clone(), settings: store };
    let import = LinkImport::begin(ports, mint, wish).await?;
    let mut outcome = Outcome::new(rejects(args.rejects.as_deref(), import.position())?);
    import_file(&args, (file, zone), import, &mut outcome).await?;
    if outcome.read() == 0 && args.from != Source::Shortmint {
        // An own export has a last line that says how many links it has.
        outcome.note_empty();
    }
    for warning in outcome.warnings(args.from) {
        warn(&warning);
    }
    Ok(Output { text: outcome.told(begun.elapsed().as_secs_f64(), args.json), exit: outcome.exit() })
}

fn policy(unprotected: Unprotected) -> import_links::Unprotected {
    match unprotected {
        Unprotected::Disable => import_links::Unprotected::Disable,
        Unprotected::Refuse => import_links::Unprotected::Refuse,
        Unprotected::Open => import_links::Unprotected::Open,
    }
}

/// Opens the file for refused links. A run that continues an earlier one appends to it.
fn rejects(path: Option<&Path>, position: u64) -> Result<Option<File>, Error> {
    let Some(path) = path else { return Ok(None) };
    let (mut options, goes_on) = (OpenOptions::new(), position > 0);
    // Reasons quote properties of links, so only the owner reads the file.
    options.create(true).write(true).append(goes_on).truncate(!goes_on).mode(0o600);
    let opened = options.open(path);
    opened.map(Some).map_err(|error| file_error("--rejects", path, &error))
}

/// Imports the rows of the file, shows the progress, and records the outcome. A file whose rest
/// cannot be read is imported up to there.
async fn import_file(
    args: &ImportArgs,
    (file, zone): (File, TimeZone),
    mut import: LinkImport,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let length = file.metadata().map_err(|error| file_error("FILE", &args.file, &error))?.len();
    let bar = progress(length);
    let (sender, received) = mpsc::channel(PIECES);
    let (source, reader) = (args.from, bar.wrap_read(file));
    // Reading and parsing wait for the disk, so they run on a thread of their own.
    let reading = spawn_blocking(move || send_pieces(rows(source, reader, &zone), &sender));
    let mut refuse = |reason: String| outcome.refuse(reason);
    let taken = import.take_all(received, &mut refuse).await;
    match taken {
        Err(ImportError::Input(error)) => outcome.cut_off(&error)?,
        taken => {
            taken.map_err(import_error)?;
            reading.await.map_err(|_| Error::TaskFailed("reader of the import"))?;
            import.store_taken(&mut refuse).await.map_err(import_error)?;
        }
    }
    bar.finish_and_clear();
    outcome.counts = import.finish().await;
    Ok(())
}

/// Returns the command's error for an error of an import.
fn import_error(error: ImportError) -> Error {
    match error {
        ImportError::Input(error) => Error::Io(io::Error::other(error)),
        ImportError::Record(error) => Error::Io(error),
        ImportError::Store(error) => Error::Store(error),
    }
}

/// Reads rows and sends them in pieces, until the input ends or the receiver is gone.
fn send_pieces<R: Read>(rows: transfer::Rows<R>, to: &mpsc::Sender<Piece>) {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let is_final = row.as_ref().is_err_and(RowError::is_final);
        bytes += row.as_ref().map_or(0, Row::weight);
        piece.push(row);
        if is_final || piece.len() >= PIECE || bytes >= PIECE_BYTES {
            bytes = 0;
            if to.blocking_send(std::mem::take(&mut piece)).is_err() || is_final {
                return;
            }
        }
    }
    // The importer may have stopped.
    let _ = to.blocking_send(piece);
}

/// Returns the SHA-256 digest of a file's content, the default name of an input: the same content
/// continues an import, other content begins one.
fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&buffer[..count]);
    }
}

/// Returns a progress bar, which shows on a terminal only.
fn progress(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {bytes}/{total_bytes} {eta}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
