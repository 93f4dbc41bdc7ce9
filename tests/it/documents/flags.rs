//! The table of flags, generated from a daemon's `--help`.

use std::fmt::Write as _;

const HEAD: &str = "| flag | environment | default | meaning |\n|---|---|---|---|\n";

/// A flag as a help text describes it.
#[derive(Default)]
struct Flag<'a> {
    name: &'a str,
    variable: &'a str,
    default: &'a str,
    meaning: Vec<&'a str>,
}

/// Splits a document into the parts before, in and after its table of flags.
pub(super) fn table_in(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(HEAD)?;
    let rows = text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = start + rows.map(str::len).sum::<usize>();
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// Generates the table of flags from a help text.
pub(super) fn table(help: &str) -> String {
    let mut table = HEAD.to_owned();
    for Flag { name, variable, default, meaning } in flags(help) {
        let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
        let meaning = sentence(&meaning).replace('|', "\\|");
        let (variable, default) = (code(variable), code(default));
        // Writing to a string does not fail.
        let _ = writeln!(table, "| `{name}` | {variable} | {default} | {meaning} |");
    }
    table
}

/// Joins the lines of a description. Possible values, a line each, become a list in the sentence.
fn sentence(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        match line.strip_prefix("- ").and_then(|line| line.split_once(": ")) {
            Some((value, meaning)) => {
                let separator = if text.ends_with("Values:") { "" } else { ";" };
                let _ = write!(text, "{separator} `{value}`: {}", meaning.trim());
            }
            None if *line == "Possible values:" => text.push_str(". Values:"),
            None if text.is_empty() => text.push_str(line),
            None => {
                let _ = write!(text, " {line}");
            }
        }
    }
    text
}

/// Returns the flags of a help text, without `--help` and `--version`.
fn flags(help: &str) -> Vec<Flag<'_>> {
    let mut flags: Vec<Flag<'_>> = Vec::new();
    for line in help.lines() {
        if let Some(name) = long_flag(line) {
            flags.push(Flag { name, ..Flag::default() });
        } else if let Some(flag) = flags.last_mut() {
            let text = line.trim();
            match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
                Some(note) => note_in(flag, note),
                None if !text.is_empty() => flag.meaning.push(text),
                None => {}
            }
        }
    }
    flags.retain(|flag| !matches!(flag.name, "--help" | "--version"));
    flags
}

/// Reads a note in brackets, such as `env: RESOLVER_LISTEN=` or `default: 302`.
fn note_in<'a>(flag: &mut Flag<'a>, note: &'a str) {
    if let Some(variable) = note.strip_prefix("env: ") {
        flag.variable = variable.split('=').next().unwrap_or(variable);
    } else if let Some(default) = note.strip_prefix("default: ") {
        flag.default = default;
    }
}

/// Returns the long flag that a line of a help text begins to describe.
fn long_flag(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let long = line.split_once(", ").filter(|(short, _)| short.len() == 2).map_or(line, |(_, long)| long);
    let is_name = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    let end = long.find(|one| !is_name(one)).unwrap_or(long.len());
    Some(&long[..end]).filter(|flag| flag.starts_with("--") && flag.len() > 2)
}
