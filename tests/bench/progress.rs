//! Says on standard error what is being measured, to a person only.

use std::io::{IsTerminal as _, Write as _, stderr};

/// Shows `text` in place of what was shown before; nothing when standard error is not a terminal.
pub(crate) fn show(text: &str) {
    if stderr().is_terminal() {
        // A terminal that has gone away is no reason to stop measuring.
        let _ = write!(stderr(), "\r\x1b[K{text}").and_then(|()| stderr().flush());
    }
}

/// Takes the line away before the result is printed.
pub(crate) fn clear() {
    show("");
}

/// Writes a line that stays, also into a file.
pub(crate) fn note(text: &str) {
    let _ = writeln!(stderr(), "note: {text}");
}
