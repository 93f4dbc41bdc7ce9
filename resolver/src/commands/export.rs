//! `resolver export`: every link as a line of CSV or JSON, which `resolver import --from csv` reads back.
//!
//! Links come in the order of their ids. Beside the file a small one says how far it is whole and which link was the last in it, so that
//! one that was interrupted goes on with `--resume`. It is not a snapshot: what changes meanwhile is in it as it was when its turn came.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::{keys::ready, open_mint::open_mint};
use crate::{
    Error,
    codes::{LinkId, Mint},
    config::{ExportArgs, ExportFormat},
    links::{Authority, Domain, Record, Tag},
    transfer::{CsvRows, Row, write_ndjson},
};

/// Links of one read.
const PAGE: usize = 2_000;

/// Exports the links; what it came to.
pub(super) async fn run(args: ExportArgs) -> Result<String, Error> {
    let store = ready(&args.database).await?;
    let mint = open_mint(&*store, &args.database, args.code_key_file.as_deref()).await?;
    let domains = store.shared_settings(-1).await?.unwrap_or_default().domains;
    let mut out = Out::open(&args)?;
    let bar = bar(store.link_count().await?);
    let mut place = out.links;
    loop {
        let (records, last) = store.export(out.after, PAGE).await?;
        for record in records {
            place += 1;
            match row(&mint, &domains, record, place) {
                Some(row) => out.write(&row)?,
                None => tracing::warn!(place, "no code leads to this link"),
            }
        }
        let Some(last) = last else { break };
        out.keep(last, place)?;
        bar.set_position(place);
    }
    bar.finish_and_clear();
    out.end()?;
    Ok(args.out.map_or_else(String::new, |path| format!("{place} links written to {}\n", path.display())))
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

fn row(mint: &Mint, domains: &[Domain], record: Record, place: u64) -> Option<Row> {
    let Record { link, tags } = record;
    let minted = || mint.code_of(link.id).map(|code| code.to_string());
    let code = link.slug().map(ToString::to_string).or_else(minted)?;
    let domain = domains.iter().find(|domain| domain.id == link.domain());
    let details = link.details.map(|details| *details).unwrap_or_default();
    Some(Row {
        place,
        code: Some(code),
        domain: domain.and_then(|domain| domain.authority.as_ref()).map(Authority::to_string),
        long_url: link.long_url.as_str().to_owned(),
        title: link.title,
        description: details.description,
        tags: tags.iter().map(Tag::to_string).collect(),
        created_at: Some(link.created_at),
        valid_since: details.valid_since,
        valid_until: details.valid_until,
        max_visits: details.max_visits,
        crawlable: Some(link.crawlable),
        forward_query: Some(link.forward_query),
        visits: None,
        left_out: Vec::new(),
    })
}

/// Where links are written.
struct Out {
    to: To,
    /// The last link that is in it.
    after: Option<LinkId>,
    /// How many are in it.
    links: u64,
    file: Option<(PathBuf, File)>,
}

enum To {
    Csv(Box<CsvRows<BufWriter<Box<dyn Write + Send>>>>),
    Lines(BufWriter<Box<dyn Write + Send>>),
}

impl Out {
    fn open(args: &ExportArgs) -> Result<Self, Error> {
        let Some(path) = &args.out else {
            return Ok(Self {
                to: To::new(args.format, Box::new(io::stdout()), true)?,
                after: None,
                links: 0,
                file: None,
            });
        };
        let progress = beside(path);
        let wrong = |reason: &str| Error::Config {
            flag: "--out",
            value: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let (mut file, after, links) = if args.resume {
            let text = fs::read_to_string(&progress);
            let state: Value =
                text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let (Some(bytes), Some(id)) = (state["bytes"].as_u64(), state["after"].as_i64()) else {
                return Err(wrong("expected a file beside it that says how far it has come"));
            };
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(bytes)?;
            (file, Some(LinkId::from_stored(id)), state["links"].as_u64().unwrap_or_default())
        } else if path.exists() {
            return Err(wrong("there is such a file: expected another name, or --resume"));
        } else {
            (File::create_new(path)?, None, 0)
        };
        file.seek(SeekFrom::End(0))?;
        let to = To::new(args.format, Box::new(file.try_clone()?), after.is_none())?;
        Ok(Self { to, after, links, file: Some((progress, file)) })
    }

    fn write(&mut self, row: &Row) -> Result<(), Error> {
        match &mut self.to {
            To::Csv(rows) => rows.write(row)?,
            To::Lines(to) => write_ndjson(row, to)?,
        }
        Ok(())
    }

    /// Notes that everything up to this link is written, so many links in all.
    fn keep(&mut self, last: LinkId, links: u64) -> Result<(), Error> {
        (self.after, self.links) = (Some(last), links);
        self.to.flush()?;
        if let Some((progress, file)) = &self.file {
            file.sync_data()?;
            let state = json!({ "bytes": file.metadata()?.len(), "after": last.get(), "links": links });
            let new = progress.with_extension("new");
            fs::write(&new, state.to_string())?;
            fs::rename(&new, progress)?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), Error> {
        self.to.flush()?;
        if let Some((progress, _)) = self.file
            && progress.exists()
        {
            fs::remove_file(progress)?;
        }
        Ok(())
    }
}

impl To {
    fn new(format: ExportFormat, to: Box<dyn Write + Send>, is_new: bool) -> Result<Self, Error> {
        let to = BufWriter::new(to);
        Ok(match format {
            ExportFormat::Csv if is_new => Self::Csv(Box::new(CsvRows::new(to)?)),
            ExportFormat::Csv => Self::Csv(Box::new(CsvRows::behind_others(to))),
            ExportFormat::Ndjson => Self::Lines(to),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Csv(rows) => rows.flush(),
            Self::Lines(to) => to.flush(),
        }
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".progress");
    name.into()
}
