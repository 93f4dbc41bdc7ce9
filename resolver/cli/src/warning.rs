//! Warnings of commands.

use std::io::{self, Write as _};

/// Prints a warning on the standard error, so that it does not mix with output that a script reads.
pub(super) fn warn(text: &str) {
    // A command goes on if nobody takes its warnings.
    let _ = writeln!(io::stderr(), "resolver: warning: {text}");
}
