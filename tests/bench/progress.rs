//! Progress messages on standard error, for a terminal only.

use std::io::{IsTerminal as _, Write as _, stderr};

/// Replaces the last progress message with `text`; does nothing if standard error is not a
/// terminal.
pub(crate) fn show(text: &str) {
    if stderr().is_terminal() {
        // A closed terminal is no reason to stop measuring.
        let _ = write!(stderr(), "\r\x1b[K{text}").and_then(|()| stderr().flush());
    }
}

/// Clears the progress message before the report is printed.
pub(crate) fn clear() {
    show("");
}

/// Writes a permanent line, also if standard error is not a terminal.
pub(crate) fn note(text: &str) {
    let _ = writeln!(stderr(), "note: {text}");
}
