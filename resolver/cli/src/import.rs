//! `resolver import`: stores links of other systems under the codes that they have there.
//!
//! 1. An input has a name, by default the digest of its content. Its position is stored in the same
//!    transaction as the links. So an import that was killed continues where it stopped when it is
//!    started again, and a repeated import stores nothing twice.
//! 2. A link that cannot be stored is reported with its position in the input and the reason, and
//!    the import continues.
//! 3. A code that leads to the same URL already counts as present. A code that leads elsewhere is
//!    reported and left unchanged.
//! 4. Resolvers may serve meanwhile: they learn of the links as of those of other resolvers.
//! 5. By default a link whose password or other protection is not part of the input is never
//!    published: it is stored disabled and counted.
//! 6. Memory is bounded: rows wait in a few pieces of about [`PIECE_BYTES`] bytes, however large a
//!    link is.

mod item;
mod outcome;

use std::{
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use app::{domain_cache::SHOWN, import_codes::ImportCodes, lookup::TRUSTED};
use indicatif::{ProgressBar, ProgressStyle};
use links::{Authority, DomainId, Schemes, api_key::OPERATOR};
use sha2::{Digest, Sha256};
use store::{Catalog, ImportBatch, Imported, Settings, StoreError};
use tokio::{sync::mpsc, task::spawn_blocking, time::Instant};
use transfer::{LeftOut, Row, RowError, rows};

use self::{
    item::{Adopted, Adoption},
    outcome::Outcome,
};
use super::{database::ready, error::file_error, open_mint::open_mint, warning::warn};
use crate::{Error, args::ImportArgs};

/// The maximum number of links in one transaction, and about how many bytes.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of rows in a piece that waits to be stored, and about how many bytes.
const PIECE: usize = 250;
const PIECE_BYTES: usize = 1024 * 1024;
/// The maximum number of waiting pieces.
const PIECES: usize = 2;
/// The maximum number of tries for a batch whose outcome is unknown.
const TRIES: usize = 5;

/// Imports a file, and returns a summary.
pub(super) async fn run(args: ImportArgs) -> Result<String, Error> {
    let schemes = Schemes::parse(&args.allowed_schemes).map_err(|error| Error::Config {
        flag: "--allowed-schemes",
        value: args.allowed_schemes.join(","),
        reason: error.to_string(),
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
    let codes = ImportCodes::new(mint);
    let begun = Instant::now();
    let position = store.import_position(&name).await?;
    let keys = store.list_api_keys().await?.into_iter().map(|key| (key.name, key.id)).collect();
    let settings = store.poll_settings(None).await?.settings.unwrap_or_default();
    let disabled = settings.domains.iter().filter(|domain| domain.settings.disabled);
    let mut importer = Importer {
        position,
        disabled: disabled.map(|domain| domain.id).collect(),
        catalog: store.clone(),
        settings: store,
        batch: ImportBatch { name, end: 0, items: Vec::new(), keyspaces: codes.keyspaces() },
        bytes: 0,
        adoption: Adoption { unprotected: args.unprotected, keys, schemes, codes },
        domains: HashMap::new(),
        places: Vec::new(),
        outcome: Outcome::new(rejects(args.rejects.as_deref(), position)?),
    };
    for name in &args.default_domain {
        importer.domains.insert(name.to_lowercase(), DomainId::DEFAULT);
    }
    importer.import(&args, file).await?;
    for warning in importer.outcome.warnings(args.from) {
        warn(&warning);
    }
    Ok(importer.outcome.told(begun.elapsed().as_secs_f64(), args.json))
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

struct Importer {
    catalog: Arc<dyn Catalog>,
    settings: Arc<dyn Settings>,
    /// The position that an earlier run has reached.
    position: u64,
    batch: ImportBatch,
    /// The approximate size of the batch in bytes.
    bytes: usize,
    /// For each item of the batch: its position, its code, and whether it is stored disabled for
    /// lack of protection.
    places: Vec<(u64, String, bool)>,
    adoption: Adoption,
    domains: HashMap<String, DomainId>,
    /// Domains that are disabled here as well.
    disabled: HashSet<DomainId>,
    outcome: Outcome,
}

impl Importer {
    async fn import(&mut self, args: &ImportArgs, file: File) -> Result<(), Error> {
        let length = file.metadata().map_err(|error| file_error("FILE", &args.file, &error))?.len();
        let bar = progress(length);
        let (sender, mut received) = mpsc::channel(PIECES);
        let (source, reader) = (args.from, bar.wrap_read(file));
        // Reading and parsing wait for the disk, so they run on a thread of their own.
        let reading = spawn_blocking(move || send_pieces(rows(source, reader), &sender));
        let mut place = 0;
        while let Some(piece) = received.recv().await {
            for row in piece {
                match row {
                    Ok(row) => {
                        place = row.place;
                        self.take(row).await?;
                    }
                    Err(error) if error.is_final() => {
                        self.store_batch(place).await?;
                        let (flag, value) = ("FILE", args.file.display().to_string());
                        return Err(Error::Config { flag, value, reason: error.to_string() });
                    }
                    Err(error) => {
                        // An error between two items is not an item: it does not advance the
                        // position.
                        place = error.place().unwrap_or(place);
                        if error.place().is_none_or(|place| place > self.position) {
                            self.outcome.refuse(error.to_string())?;
                        }
                    }
                }
                if self.batch.items.len() >= BATCH || self.bytes >= BATCH_BYTES {
                    self.store_batch(place).await?;
                }
            }
        }
        reading.await.map_err(|_| Error::TaskFailed("reader of the import"))?;
        self.store_batch(place).await?;
        bar.finish_and_clear();
        // Waits until every resolver knows the new domains and no longer answers that these codes
        // are absent.
        tokio::time::sleep(SHOWN.max(TRUSTED * 11 / 10)).await;
        Ok(())
    }

    async fn take(&mut self, mut row: Row) -> Result<(), Error> {
        if row.place <= self.position {
            self.outcome.before += 1;
            return Ok(());
        }
        let (place, weight) = (row.place, row.weight());
        let code = row.code.clone().unwrap_or_default();
        let domain = match &row.domain {
            Some(name) => match self.domain(name).await? {
                Some(domain) => domain,
                None => {
                    let reason = format!("item {place}: domain {name:?}: expected a host name");
                    return self.outcome.refuse(reason);
                }
            },
            None => DomainId::DEFAULT,
        };
        if self.disabled.contains(&domain) {
            row.left_out.retain(|left| *left != LeftOut::DisabledDomain);
        }
        self.outcome.note_left_out(&row.left_out);
        match self.adoption.adopt(row, domain) {
            Ok(Adopted { item, is_disabled }) => {
                self.bytes += weight;
                self.batch.items.push(item);
                self.places.push((place, code, is_disabled));
                Ok(())
            }
            Err(reason) => self.outcome.refuse(format!("item {place}: {reason}")),
        }
    }

    /// Returns the domain of this name, and adds it if it does not exist. Returns `None` for an
    /// invalid name.
    async fn domain(&mut self, name: &str) -> Result<Option<DomainId>, Error> {
        let name = name.to_lowercase();
        if let Some(id) = self.domains.get(&name) {
            return Ok(Some(*id));
        }
        let Ok(authority) = Authority::parse(&name) else { return Ok(None) };
        // `--domains-max` limits API keys, not the operator's own command.
        let Some(id) = self.settings.add_domain(&authority, u32::MAX, OPERATOR).await? else {
            return Ok(None);
        };
        self.domains.insert(name, id);
        Ok(Some(id))
    }

    /// Stores the batch, which ends at this position of the input.
    async fn store_batch(&mut self, end: u64) -> Result<(), Error> {
        self.batch.end = end;
        if end <= self.position {
            return Ok(());
        }
        let mut tries = 0;
        let imported = loop {
            tries += 1;
            match self.catalog.import(&self.batch).await {
                // Storing a batch is idempotent, so an unknown outcome is retried.
                Err(StoreError::TimedOut | StoreError::Unreachable(_) | StoreError::Postgres(_))
                    if tries < TRIES =>
                {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
                Err(StoreError::NoFreeCode { item }) => {
                    tries = 0;
                    self.adoption.codes.add_candidates(&mut self.batch.items, item);
                }
                answer => break answer?,
            }
        };
        self.bytes = 0;
        self.batch.items.clear();
        let places = std::mem::take(&mut self.places);
        for (imported, (place, code, is_disabled)) in imported.into_iter().zip(places) {
            match imported {
                Imported::Stored(_) => {
                    self.outcome.stored += 1;
                    self.outcome.disabled += u64::from(is_disabled);
                }
                Imported::AlreadyThere => self.outcome.already_there += 1,
                Imported::Taken => {
                    let reason = format!("item {place}: {code:?}: the code leads elsewhere here");
                    self.outcome.refuse(reason)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads rows and sends them in pieces, until the input ends or the receiver is gone.
fn send_pieces<R: Read>(rows: transfer::Rows<R>, to: &mpsc::Sender<Vec<Result<Row, RowError>>>) {
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
