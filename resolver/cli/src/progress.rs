//! Progress bars of commands, which show on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar with these counts behind it, such as `{pos}/{len} links`; a spinner if the total
/// is unknown.
pub(super) fn progress_bar(total: Option<u64>, counts: &str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), format!("{{bar:40}} {{percent}}% {counts} {{eta}}")),
        None => (ProgressBar::new_spinner(), format!("{{spinner}} {counts}")),
    };
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
