//! The output of a command: its result, its file, and what it prints meanwhile.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use daemon::Exit;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{Error, wrong_value};

/// The output of a command that has done its work, and the exit code of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The text for the standard output.
    pub text: String,
    /// [`Exit::Clean`], or [`Exit::Refused`] if a part of the work was refused, or
    /// [`Exit::Unavailable`] if the output tells what is wrong.
    pub exit: Exit,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self { text, exit: Exit::Clean }
    }
}

/// Returns the file that an `--out` names; `None` for the standard output, which `-` stands for as
/// well.
pub(crate) fn out_file(out: Option<&PathBuf>) -> Option<&Path> {
    out.map(PathBuf::as_path).filter(|path| *path != Path::new("-"))
}

/// Creates a file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Syncs the folder of a file, because it holds the file's name.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the error for an output that cannot be written: a file, or the standard output.
pub(crate) fn out_error(file: Option<&Path>, error: io::Error) -> Error {
    match file {
        Some(path) => wrong_value("--out", path.display(), error),
        None => error.into(),
    }
}

/// Returns a progress bar with these counts behind it, such as `{pos}/{len} links`; a spinner if
/// the total is unknown. It shows on a terminal only.
pub(crate) fn progress_bar(total: Option<u64>, counts: &str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), format!("{{bar:40}} {{percent}}% {counts} {{eta}}")),
        None => (ProgressBar::new_spinner(), format!("{{spinner}} {counts}")),
    };
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Prints a warning on the standard error, so that it does not mix with output that a script reads.
pub(crate) fn warn(text: &str) {
    // A command goes on if nobody takes its warnings.
    let _ = writeln!(io::stderr(), "resolver: warning: {text}");
}
