//! The output of an export, and its progress file.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use codes::LinkId;
use serde::{Deserialize, Serialize};
use transfer::{Row, write_csv, write_csv_head, write_end, write_header, write_ndjson};

use super::{ExportArgs, ExportFormat};
use crate::{
    Error,
    output::{create_private, out_file, warn},
    wrong_value,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tally {
    pub(super) links: u64,
    /// The number of deleted links, which a table leaves out.
    deleted: u64,
    /// The number of links that no code leads to, for lack of a keyspace or of the right code key.
    pub(super) without_code: u64,
    /// For each property that the format does not carry, the number of links that have it.
    left_out: BTreeMap<String, u64>,
}

impl Tally {
    /// Warns of what the export lacks.
    pub(super) fn warn(&self, is_table: bool) {
        let Self { deleted, without_code, left_out, .. } = self;
        for (what, count) in left_out {
            let form = if is_table { "a table does" } else { "an export does" };
            warn(&format!("{count} links have a property that {form} not carry: {what}"));
        }
        if is_table && !left_out.is_empty() {
            warn(
                "only --format ndjson carries everything; an import disables links whose password is missing",
            );
        }
        if *deleted > 0 {
            warn(&format!(
                "{deleted} deleted links are left out of the table: their codes may be given to others elsewhere"
            ));
        }
        if *without_code > 0 {
            warn(&format!(
                "{without_code} links are left out, because no code leads to them: is --code-key-file that of the server?"
            ));
        }
    }
}

/// The content of a progress file: where an unfinished export continues.
#[derive(Serialize, Deserialize)]
struct Progress {
    bytes: u64,
    after: i64,
    #[serde(flatten)]
    tally: Tally,
}

/// The output of an export: a file or the standard output.
pub(super) struct Out {
    to: BufWriter<Box<dyn Write + Send>>,
    format: ExportFormat,
    pub(super) after: Option<LinkId>,
    pub(super) tally: Tally,
    /// The file, and the path of its progress file.
    file: Option<(File, PathBuf)>,
}

impl Out {
    pub(super) fn open(args: &ExportArgs) -> Result<Self, Error> {
        let begin = |to: Box<dyn Write + Send>, is_new: bool| {
            let mut to = BufWriter::new(to);
            match args.format {
                _ if !is_new => {}
                ExportFormat::Csv => write_csv_head(&mut to)?,
                ExportFormat::Ndjson => write_header(&mut to)?,
            }
            Ok::<_, io::Error>(to)
        };
        let Some(path) = out_file(args.out.as_ref()) else {
            if args.resume {
                return Err(wrong_value("--out", "-", "--resume needs a file, and not the standard output"));
            }
            let to = begin(Box::new(io::stdout()), true)?;
            return Ok(Self { to, format: args.format, after: None, tally: Tally::default(), file: None });
        };
        let progress = path.with_added_extension("progress");
        let (mut file, after, tally) = if args.resume { resume(path, &progress)? } else { create(path)? };
        let failed = |error: io::Error| wrong_value("--out", path.display(), error);
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let copy = file.try_clone().map_err(failed)?;
        let to = begin(Box::new(copy), after.is_none()).map_err(failed)?;
        Ok(Self { to, format: args.format, after, tally, file: Some((file, progress)) })
    }

    pub(super) fn write(&mut self, row: &Row) -> io::Result<()> {
        let is_table = self.format == ExportFormat::Csv;
        if is_table && row.deleted_at.is_some() {
            self.tally.deleted += 1;
            return Ok(());
        }
        let left_out = if is_table { row.left_out_of_table() } else { row.left_out.clone() };
        for left in left_out {
            *self.tally.left_out.entry(left.as_str().to_owned()).or_default() += 1;
        }
        self.tally.links += 1;
        match self.format {
            ExportFormat::Csv => write_csv(row, &mut self.to),
            ExportFormat::Ndjson => write_ndjson(row, &mut self.to),
        }
    }

    /// Records that all links up to this one are written.
    pub(super) fn keep(&mut self, last: LinkId) -> io::Result<()> {
        self.after = Some(last);
        self.to.flush()?;
        let Some((file, progress)) = &self.file else { return Ok(()) };
        file.sync_data()?;
        let state = Progress { bytes: file.metadata()?.len(), after: last.get(), tally: self.tally.clone() };
        let new = progress.with_extension("new");
        fs::write(&new, serde_json::to_vec(&state)?)?;
        fs::rename(&new, progress)
    }

    pub(super) fn end(mut self) -> io::Result<Tally> {
        if self.format == ExportFormat::Ndjson {
            write_end(self.tally.links, &mut self.to)?;
        }
        self.to.flush()?;
        if let Some((file, progress)) = &self.file {
            file.sync_all()?;
            if progress.exists() {
                fs::remove_file(progress)?;
            }
        }
        Ok(self.tally)
    }
}

type Opened = (File, Option<LinkId>, Tally);

fn create(path: &Path) -> Result<Opened, Error> {
    // It contains hashes of passwords.
    match create_private(path) {
        Ok(file) => Ok((file, None, Tally::default())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let reason = "there is such a file already: name another one, or continue it with --resume";
            Err(wrong_value("--out", path.display(), reason))
        }
        Err(error) => Err(wrong_value("--out", path.display(), error)),
    }
}

fn resume(path: &Path, progress: &Path) -> Result<Opened, Error> {
    let state = fs::read(progress).ok().and_then(|text| serde_json::from_slice::<Progress>(&text).ok());
    let Some(Progress { bytes, after, tally }) = state else {
        let reason = "cannot resume: its progress file is missing. Export to a new file";
        return Err(wrong_value("--out", path.display(), reason));
    };
    let failed = |error: io::Error| wrong_value("--out", path.display(), error);
    let file = File::options().write(true).open(path).map_err(failed)?;
    file.set_len(bytes).map_err(failed)?;
    Ok((file, Some(LinkId::from_stored(after)), tally))
}
