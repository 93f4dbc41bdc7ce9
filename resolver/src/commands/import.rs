//! `resolver import`: links of other systems, with the codes that they have there.
//!
//! 1. An input has a name, by default the digest of its content. How far it has come is stored with the links themselves, so that one that was
//!    killed goes on where it was when it is started again, and one that is started twice stores nothing twice.
//! 2. A link that cannot be kept is told, with its place in the input and the reason, and the next one still comes.
//! 3. A code that leads to the same URL already counts as there; one that leads elsewhere is told and left as it is.
//! 4. A resolver may serve meanwhile: it hears of the links as of those that another resolver makes.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{Read, Write as _},
    path::Path,
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::{sync::mpsc, task::spawn_blocking, time::Instant};

use super::{keys::ready, open_mint::open_mint};
use crate::{
    Error,
    api_key::OPERATOR,
    config::ImportArgs,
    directory::SHOWN,
    links::{Authority, Details, DomainId, Draft, LongUrl, Slug, Tag},
    lookup::TRUSTED,
    store::{ImportBatch, ImportItem, Imported, LinkStore, StoreError},
    transfer::{LeftOut, Row, RowError, rows},
};

/// Links of one transaction.
const BATCH: usize = 500;
/// Rows that wait to be stored.
const WAITING: usize = 2 * BATCH;
/// How often a batch is sent again whose outcome is not known.
const TRIES: usize = 5;
/// Reasons that are printed; more are only counted.
const TOLD: usize = 20;
/// The longest title, in bytes, as for links that are created here.
const TITLE_BYTES: usize = 512;

/// What an import came to.
#[derive(Default)]
struct Outcome {
    stored: u64,
    already_there: u64,
    before: u64,
    refused: u64,
    reasons: Vec<String>,
    left_out: BTreeMap<&'static str, u64>,
}

impl Outcome {
    fn refuse(&mut self, reason: String, rejects: &mut Option<File>) -> Result<(), Error> {
        self.refused += 1;
        if let Some(file) = rejects {
            writeln!(file, "{reason}")?;
        }
        if self.reasons.len() < TOLD {
            self.reasons.push(reason);
        }
        Ok(())
    }
}

/// Imports a file; what it came to.
pub(super) async fn run(args: ImportArgs) -> Result<String, Error> {
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => digest(&args.file)?,
    };
    let begun = Instant::now();
    let mut importer = Importer {
        position: store.import_position(&name).await?,
        store,
        batch: ImportBatch { name, end: 0, items: Vec::new(), mint },
        domains: HashMap::new(),
        places: Vec::new(),
        rejects: args.rejects.as_ref().map(File::create).transpose()?,
        outcome: Outcome::default(),
    };
    for name in &args.default_domain {
        importer.domains.insert(name.to_lowercase(), DomainId::DEFAULT);
    }
    importer.import(&args).await?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(told(&importer.outcome, seconds, args.json))
}

struct Importer {
    store: Arc<dyn LinkStore>,
    /// How far an earlier run has come.
    position: u64,
    batch: ImportBatch,
    /// Places of the batch's items.
    places: Vec<(u64, String)>,
    domains: HashMap<String, DomainId>,
    rejects: Option<File>,
    outcome: Outcome,
}

impl Importer {
    async fn import(&mut self, args: &ImportArgs) -> Result<(), Error> {
        let file = File::open(&args.file)?;
        let bar = progress(file.metadata()?.len());
        let (sender, mut received) = mpsc::channel(WAITING);
        let (source, reader) = (args.from, bar.wrap_read(file));
        // Reading and parsing wait for the disk, and nobody for them.
        let reading = spawn_blocking(move || {
            for row in rows(source, reader) {
                let is_final = row.as_ref().is_err_and(RowError::is_final);
                if sender.blocking_send(row).is_err() || is_final {
                    return;
                }
            }
        });
        let mut place = 0;
        while let Some(row) = received.recv().await {
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
                    place += 1;
                    if place > self.position {
                        self.outcome.refuse(error.to_string(), &mut self.rejects)?;
                    }
                }
            }
            if self.batch.items.len() >= BATCH {
                self.store_batch(place).await?;
            }
        }
        reading.await.map_err(|_| Error::TaskFailed("reader of the import"))?;
        self.store_batch(place).await?;
        bar.finish_and_clear();
        // Until no resolver believes any more that nobody has these codes, or that there are no such domains.
        tokio::time::sleep(SHOWN.max(TRUSTED * 11 / 10)).await;
        Ok(())
    }

    async fn take(&mut self, row: Row) -> Result<(), Error> {
        if row.place <= self.position {
            self.outcome.before += 1;
            return Ok(());
        }
        for left in &row.left_out {
            *self.outcome.left_out.entry(word(*left)).or_default() += 1;
        }
        let place = row.place;
        let code = row.code.clone().unwrap_or_default();
        let domain = match &row.domain {
            Some(name) => match self.domain(name).await? {
                Some(domain) => domain,
                None => {
                    let reason = format!("item {place}: domain {name:?}: expected a host name");
                    return self.outcome.refuse(reason, &mut self.rejects);
                }
            },
            None => DomainId::DEFAULT,
        };
        match item(row, domain) {
            Ok(item) => {
                self.batch.items.push(item);
                self.places.push((place, code));
                Ok(())
            }
            Err(reason) => self.outcome.refuse(format!("item {place}: {reason}"), &mut self.rejects),
        }
    }

    /// The domain of this name, which is added if there is none.
    async fn domain(&mut self, name: &str) -> Result<Option<DomainId>, Error> {
        let name = name.to_lowercase();
        if let Some(id) = self.domains.get(&name) {
            return Ok(Some(*id));
        }
        let Ok(authority) = Authority::parse(&name) else { return Ok(None) };
        let id = self.store.add_domain(&authority).await?;
        self.domains.insert(name, id);
        Ok(Some(id))
    }

    /// Stores what has come together, up to this place of the input.
    async fn store_batch(&mut self, end: u64) -> Result<(), Error> {
        self.batch.end = end;
        if end <= self.position {
            return Ok(());
        }
        let mut tries = 0;
        let imported = loop {
            tries += 1;
            match self.store.import(&self.batch).await {
                // Whatever became of it, to send it again is safe.
                Err(StoreError::TimedOut | StoreError::Unreachable(_) | StoreError::Postgres(_))
                    if tries < TRIES =>
                {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
                answer => break answer?,
            }
        };
        let items = std::mem::take(&mut self.batch.items);
        let places = std::mem::take(&mut self.places);
        // A batch that was stored by a try whose answer was lost is stored.
        let imported = imported.unwrap_or_else(|| vec![Imported::AlreadyThere; items.len()]);
        for (imported, (place, code)) in imported.into_iter().zip(places) {
            match imported {
                Imported::Stored(_) => self.outcome.stored += 1,
                Imported::AlreadyThere => self.outcome.already_there += 1,
                Imported::Taken => {
                    let reason = format!("item {place}: {code:?}: the code leads elsewhere here");
                    self.outcome.refuse(reason, &mut self.rejects)?;
                }
            }
        }
        Ok(())
    }
}

/// A row as a link; or why it cannot be one.
fn item(row: Row, domain: DomainId) -> Result<ImportItem, String> {
    let wrong =
        |field: &str, value: &str, error: &dyn std::fmt::Display| format!("{field} {value:?}: {error}");
    let slug = match &row.code {
        None => None,
        Some(code) => {
            let slug = Slug::parse(code).map_err(|error| wrong("code", code, &error))?;
            if slug.as_str() != code {
                return Err(format!("code {code:?}: expected a code that can be kept as it is"));
            }
            Some(slug)
        }
    };
    let long_url =
        LongUrl::parse(&row.long_url, &[]).map_err(|error| wrong("long URL", &row.long_url, &error))?;
    let mut tags: Vec<Tag> = Vec::new();
    for text in &row.tags {
        let tag = Tag::parse(text).map_err(|error| wrong("tag", text, &error))?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    let details = Details {
        domain: Some(domain).filter(|domain| !domain.is_default()),
        description: row.description,
        valid_since: row.valid_since,
        valid_until: row.valid_until,
        max_visits: row.max_visits,
        ..Details::default()
    };
    let title = row.title.map(|title| cut(title, TITLE_BYTES));
    let draft = Draft {
        long_url,
        title,
        crawlable: row.crawlable.unwrap_or(false),
        forward_query: row.forward_query.unwrap_or(true),
        created_by: OPERATOR,
        details: (!details.is_empty()).then(|| Box::new(details)),
    };
    Ok(ImportItem { slug, draft, tags, created_at: row.created_at })
}

fn cut(mut text: String, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}

fn word(left: LeftOut) -> &'static str {
    match left {
        LeftOut::Password => "passwords",
        LeftOut::RedirectRules => "redirect rules",
    }
}

/// The content's digest: the same file goes on where it was, and another one begins.
fn digest(path: &Path) -> Result<String, Error> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&buffer[..count]);
    }
}

/// A bar on a terminal, and nothing elsewhere.
pub(super) fn progress(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {bytes}/{total_bytes} {eta}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn told(outcome: &Outcome, seconds: f64, as_json: bool) -> String {
    let Outcome { stored, already_there, before, refused, reasons, left_out } = outcome;
    let count = u32::try_from(*stored).map_or(f64::from(u32::MAX), f64::from);
    let rate = if seconds > 0.0 { count / seconds } else { 0.0 };
    if as_json {
        let told = json!({
            "stored": stored, "alreadyThere": already_there, "earlierRuns": before, "refused": refused,
            "reasons": reasons, "leftOut": left_out, "seconds": seconds, "perSecond": rate,
        });
        return format!("{told:#}\n");
    }
    let mut text = format!(
        "{stored} links stored in {seconds:.1} s ({rate:.0}/s), {already_there} were there, {before} came with earlier runs, {refused} refused\n"
    );
    for (what, count) in left_out {
        text.push_str(&format!("{count} links had {what}, which do not come along\n"));
    }
    for reason in reasons {
        text.push_str(&format!("  {reason}\n"));
    }
    if *refused > reasons.len() as u64 {
        text.push_str(&format!(
            "  … and {} more: --rejects FILE keeps them all\n",
            refused - reasons.len() as u64
        ));
    }
    text
}
