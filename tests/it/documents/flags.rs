//! Tables of flags, generated from the definitions of a command.

use std::fmt::Write as _;

use clap::{Arg, Command};

const HEAD: &str = "| flag | environment | default | meaning |\n|---|---|---|---|\n";

/// Splits a document into the parts before, in and after its table of flags.
pub(super) fn table_in(text: &str) -> Option<(&str, &str, &str)> {
    super::table_in(text, HEAD)
}

/// Generates the table of a command's flags.
pub(super) fn table(command: &Command) -> String {
    HEAD.to_owned() + &flags(command).map(row).collect::<String>()
}

/// Generates a section for each heading of a command's help.
pub(super) fn sections(command: &Command) -> String {
    let mut text = String::new();
    let mut last = None;
    for flag in flags(command) {
        let heading = flag.get_help_heading().unwrap_or("Options");
        if last != Some(heading) {
            // Writing to a string does not fail.
            let _ = write!(text, "\n### {heading}\n\n{HEAD}");
            last = Some(heading);
        }
        text.push_str(&row(flag));
    }
    text
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_shown = |flag: &&Arg| !matches!(flag.get_id().as_str(), "help" | "version") && !flag.is_hide_set();
    command.get_arguments().filter(|flag| flag.get_long().is_some()).filter(is_shown)
}

fn row(flag: &Arg) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let takes_value = flag.get_action().takes_values();
    let values = flag.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = if takes_value { values.collect::<Vec<_>>().join(",") } else { String::new() };
    let variable = flag.get_env().map(|name| name.to_string_lossy()).unwrap_or_default();
    let names = flag.get_value_names().filter(|_| takes_value).unwrap_or_default();
    let name = names.iter().fold(flag.get_long().unwrap_or_default().to_owned(), |name, value| {
        if flag.get_possible_values().is_empty() { format!("{name} {value}") } else { name }
    });
    let meaning = meaning(flag).replace('|', "\\|");
    format!("| `--{}` | {} | {} | {meaning} |\n", name.replace('|', "\\|"), code(&variable), code(&default))
}

/// Returns what a flag means. The lines of a list, and possible values, become a list in the cell.
fn meaning(flag: &Arg) -> String {
    let help = flag.get_long_help().or(flag.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = String::new();
    for line in help.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("- ").and_then(|line| line.split_once(": ")) {
            Some((name, meaning)) => {
                let _ = write!(text, "<br>`{name}`: {meaning}");
            }
            None if text.is_empty() => text.push_str(line),
            None => {
                let _ = write!(text, " {line}");
            }
        }
    }
    for value in flag.get_possible_values() {
        if let Some(help) = value.get_help() {
            let _ = write!(text, "<br>`{}`: {help}", value.get_name());
        }
    }
    text
}
