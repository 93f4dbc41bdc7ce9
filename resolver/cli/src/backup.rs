//! `resolver backup`: copies the files of an embedded resolver while it runs.
//!
//! 1. The order keeps codes safe. Links come before the ledger, so the ledger knows every block
//!    that the links' database has registered. Visits and links are of the same moment
//!    (`store::sqlite::Snapshot`).
//! 2. The copy of the links is marked, so that the first start on it mints no code that was
//!    published after the backup.
//! 3. The target appears whole or not at all: files are synced in a folder beside it, which is
//!    renamed.
//! 4. The witness and the spool stay out. Restored, the one would hide that a database is older,
//!    and the other would store visits twice.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use daemon::Exit;
use jiff::Timestamp;
use serde_json::json;
use store::sqlite::Snapshot;

use crate::{
    Error,
    args::{Database, DatabaseArgs},
    output::{create_private, progress_bar, sync_folder_of},
    wrong_value,
};

#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// Folder to create. To restore, put its files in place of the folder of the SQLite file, and
    /// start the resolver.
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// File with the code key. Defaults to code.key beside the SQLite file.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

pub(super) async fn run(args: BackupArgs) -> Result<String, Error> {
    let wrong = |reason| wrong_value("--database", &args.database.database, reason);
    let Database::Sqlite(links) = &args.database.database else {
        return Err(wrong(
            "expected a SQLite file: back up Postgres with pg_basebackup and its log, and etcd with etcdctl \
             (k8s/runbooks/backup.md)",
        ));
    };
    if !links.exists() {
        return Err(wrong("there is no such file"));
    }
    let code_key = args.database.code_key(args.code_key_file.as_deref());
    let others = [args.database.data_folder().join("ledger.json"), code_key];
    let (links, target) = (links.clone(), args.target);
    let target_name = target.display().to_string();
    let made = tokio::task::spawn_blocking(move || make(&links, &others, &target));
    let (made_at, files) = made.await.map_err(|_| Error::TaskFailed("backup"))??;
    if args.json {
        let files: Vec<_> =
            files.iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        let backup = json!({ "target": target_name, "madeAt": made_at.to_string(), "files": files });
        return Ok(format!("{backup:#}\n"));
    }
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    Ok(format!("{target_name}: {}, {bytes} bytes in all\n", names.join(", ")))
}

/// The names of files, with their lengths in bytes.
type Files = Vec<(String, u64)>;

fn make(links: &Path, others: &[PathBuf], target: &Path) -> Result<(Timestamp, Files), Error> {
    let wrong = |reason: &str| wrong_value("TARGET", target.display(), reason);
    let name = target.file_name().ok_or_else(|| wrong("expected the path of a new folder"))?;
    if target.exists() {
        return Err(wrong("it exists already: name a new folder"));
    }
    let unfinished = target.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
    DirBuilder::new().mode(0o700).create(&unfinished).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => wrong(&format!(
            "another backup to it is under way, or was cut short: remove {}",
            unfinished.display()
        )),
        _ => wrong(&error.to_string()),
    })?;
    let made_at = Timestamp::now();
    let made = fill(links, others, &unfinished, made_at).and_then(|files| {
        fs::rename(&unfinished, target)?;
        sync_folder_of(target)?;
        Ok(files)
    });
    match made {
        Ok(files) => Ok((made_at, files)),
        Err(source) => {
            // The unfinished backup is of no use; the error that counts is the first.
            let _ = fs::remove_dir_all(&unfinished);
            let what = format!("backup to {}: nothing was kept", target.display());
            Err(Error::Failed(what, Exit::Internal, source))
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn fill(links: &Path, others: &[PathBuf], folder: &Path, made_at: Timestamp) -> Result<Files, Failure> {
    let mut files = Vec::new();
    let visits = links.with_file_name("visits.db");
    // Without visits there is no such file.
    let (of_links, of_visits) = Snapshot::of(links, Some(visits.as_path()).filter(|path| path.exists()))?;
    let of_visits = of_visits.map(|snapshot| (snapshot, visits.as_path(), None));
    for (snapshot, path, made_at) in of_visits.into_iter().chain([(of_links, links, Some(made_at))]) {
        let to = beside(folder, path)?;
        let bar = progress_bar(Some(0), "{msg}").with_message(path.display().to_string());
        snapshot.copy(&to, made_at, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })?;
        bar.finish();
        files.push(synced(&to)?);
    }
    for path in others {
        // With issuers elsewhere there is no ledger file.
        if path.exists() {
            let to = beside(folder, path)?;
            let mut file = create_private(&to)?;
            file.write_all(&fs::read(path)?)?;
            files.push(synced(&to)?);
        }
    }
    File::open(folder)?.sync_all()?;
    Ok(files)
}

fn beside(folder: &Path, source: &Path) -> Result<PathBuf, Failure> {
    let name = source.file_name().ok_or_else(|| format!("{}: expected a file", source.display()))?;
    Ok(folder.join(name))
}

/// Syncs a file, and returns its name and length.
fn synced(path: &Path) -> io::Result<(String, u64)> {
    let file = File::open(path)?;
    file.sync_all()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, file.metadata()?.len()))
}
