//! A Postgres data folder with an empty database, which is made once and copied for each server.
//!
//! `initdb` takes 0.8 s of a core, and a copy less than a tenth of that (2026-11-29). Each copy is
//! a database system of its own, with an identifier and a write-ahead log that no other has:
//! resolvers tell databases apart by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::account::Account;
use crate::launch::Launch;
use crate::postgres::NAME;
use crate::programs::Program;
use crate::scratch::Scratch;

/// The version of what [`make`] does; another one needs another template.
const FORMAT: u32 = 1;
const MADE_WITHIN: Duration = Duration::from_secs(120);
const CONTROL: &str = "global/pg_control";
const WAL: &str = "pg_wal";

/// The folder that is copied. It stays beside the running test, for later runs.
static TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();

/// Fills a data folder: a superuser and a database, both called [`NAME`].
pub(crate) async fn fill(data: &Path, scratch: &Scratch, account: Option<Account>) -> anyhow::Result<()> {
    let template = TEMPLATE.get_or_try_init(|| find_or_make(scratch, account)).await?;
    let (from, to) = (template.clone(), data.to_owned());
    spawn_blocking(move || {
        copy(&from, &to, account)?;
        identify(&to.join(CONTROL))
    })
    .await
    .context("copy a Postgres data folder")??;
    let reset = Launch::new(scratch, "pg_resetwal", Program::ResetWal.path()?).account(account);
    reset.arg(data).run(MADE_WITHIN).await?.success().context("begin a write-ahead log")?;
    Ok(())
}

async fn find_or_make(scratch: &Scratch, account: Option<Account>) -> anyhow::Result<PathBuf> {
    let version = Launch::new(scratch, "version", Program::Postgres.path()?).arg("--version");
    let version = version.run(MADE_WITHIN).await?.success().context("ask Postgres for its version")?;
    let version = version.stdout.split_whitespace().nth(2).context("postgres --version names none")?;
    let test = std::env::current_exe().context("find the running test")?;
    let template = test.with_file_name(format!("postgres-{version}-{FORMAT}"));
    if template.is_dir() {
        return Ok(template);
    }
    let made = make(scratch, account).await?;
    let complete = test.with_file_name(format!("postgres-{version}-{FORMAT}.{}", std::process::id()));
    copy(&made, &complete, None)?;
    // Later runs trust what has its name, also after a crash of the machine.
    sync(&complete)?;
    if let Err(error) = fs::rename(&complete, &template) {
        // Of several test processes at once, the first one's stays.
        fs::remove_dir_all(&complete).context("remove a second template")?;
        anyhow::ensure!(template.is_dir(), "keep the template {}: {error}", template.display());
    }
    Ok(template)
}

async fn make(scratch: &Scratch, account: Option<Account>) -> anyhow::Result<PathBuf> {
    let data = scratch.folder(&scratch.stem("postgres-template"))?;
    if let Some(account) = account {
        account.own(&data)?;
    }
    let initdb = Launch::new(scratch, "initdb", Program::Initdb.path()?).account(account);
    let initdb = initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    let initdb = initdb.args(["--username", NAME, "--pgdata"]).arg(&data);
    initdb.run(MADE_WITHIN).await?.success().context("make a Postgres data folder")?;
    let statement = scratch.file("create-database.sql", &format!("CREATE DATABASE {NAME}\n"))?;
    let single = Launch::new(scratch, "postgres-single", Program::Postgres.path()?).account(account);
    let single = single.args(["--single", "-D"]).arg(&data).arg("postgres").stdin(statement);
    single.run(MADE_WITHIN).await?.success().context("create the database")?;
    Ok(data)
}

/// Copies a data folder without its write-ahead log.
fn copy(from: &Path, to: &Path, account: Option<Account>) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("make the folder {}", to.display()))?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from).with_context(|| format!("read the folder {}", from.display()))? {
        let entry = entry?;
        let (file, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&file, &copied, account)?;
        } else if from.file_name().is_none_or(|folder| folder != WAL) {
            fs::copy(&file, &copied).with_context(|| format!("copy {}", file.display()))?;
            account.map_or(Ok(()), |account| account.own(&copied))?;
        }
    }
    account.map_or(Ok(()), |account| account.own(to))
}

/// Writes a folder to disk.
fn sync(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    fs::File::open(folder)?.sync_all().with_context(|| format!("write {} to disk", folder.display()))
}

/// Gives a data folder a system identifier of its own: the first eight bytes of the control file,
/// which ends with a checksum of what is before it.
fn identify(control: &Path) -> anyhow::Result<()> {
    let mut content = fs::read(control).context("read pg_control")?;
    let is_checksum =
        |at: &usize| content.get(*at..at + 4) == Some(&crc32c::crc32c(&content[..*at]).to_le_bytes());
    let end = (8..content.len()).step_by(4).find(is_checksum).context("pg_control has no checksum")?;
    getrandom::fill(&mut content[..8])?;
    // Those of `initdb` are positive where SQL shows them as signed.
    content[7] &= 0x7f;
    let checksum = crc32c::crc32c(&content[..end]);
    content[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
    fs::write(control, content).context("write pg_control")
}
