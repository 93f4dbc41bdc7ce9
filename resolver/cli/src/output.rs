//! What a command ends with, and where its output goes.

use std::path::{Path, PathBuf};

use daemon::Exit;

/// The output of a command that has done its work, and the exit code of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The text for the standard output.
    pub text: String,
    /// [`Exit::Clean`], or [`Exit::Refused`] if a part of the work was refused.
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
