//! Warnings of commands.

/// Prints a warning on the standard error, so that it does not mix with output that a script reads.
#[expect(clippy::print_stderr, reason = "warnings go to the standard error")]
pub(super) fn warn(text: &str) {
    eprintln!("resolver: warning: {text}");
}
