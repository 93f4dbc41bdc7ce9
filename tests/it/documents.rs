//! The Markdown documents: their links resolve, the files and items that they name exist, and what
//! is generated in them is what the code says.

mod flags;
mod items;
mod metrics;
mod reference;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use harness::ROOT;

use clap::{Arg, Command, CommandFactory as _};

/// The maximum length of a line outside of tables and code, in characters.
const COLUMNS: usize = 110;
/// The maximum length of the root README in bytes, so that it can be read in a minute.
const README_BYTES: usize = 8_000;
/// The maximum length of the resolver's guide, which leaves what is looked up to the reference.
const GUIDE_BYTES: usize = 12_000;

#[test]
fn links_between_documents_lead_to_files_and_headings_that_exist() {
    let mut followed = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            assert!(target.exists(), "{} links to {link}", document.display());
            if !anchor.is_empty() {
                let anchors = anchors(&std::fs::read_to_string(&target).unwrap());
                assert!(anchors.contains(anchor), "{} links to {link}", document.display());
            }
            followed += 1;
        }
    }
    assert!(followed > 10, "links are found");
}

#[test]
fn files_and_folders_that_documents_name_exist() {
    let tree = tree();
    let mut named = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for name in text.split('`').skip(1).step_by(2).filter(|name| is_path(name)) {
            let end = format!("/{}", name.trim_end_matches('/'));
            let is_there = match name.ends_with('/') {
                true => tree.iter().any(|file| file.contains(&format!("{end}/"))),
                false => tree.iter().any(|file| file.ends_with(&end)),
            };
            assert!(is_there, "{} names {name}", document.display());
            named += 1;
        }
    }
    assert!(named > 50, "names are found");
}

#[test]
fn documents_fit_on_a_screen() {
    for (document, most) in [("README.md", README_BYTES), ("resolver/README.md", GUIDE_BYTES)] {
        let length = std::fs::metadata(Path::new(ROOT).join(document)).unwrap().len();
        assert!(length <= u64::try_from(most).unwrap(), "{document} has {length} bytes");
    }
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            let is_free = is_code || line.starts_with('|');
            assert!(is_free || line.chars().count() <= COLUMNS, "{}:{}", document.display(), number + 1);
        }
    }
}

/// With this variable set, what is generated is written into the documents instead of compared.
const WRITE_VARIABLE: &str = "SHORTMINT_WRITE_DOCUMENTS";

/// Compares a generated document with its file, or writes it.
fn compare(document: &str, generated: &str) {
    let path = Path::new(ROOT).join(document);
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == generated, "{document} is out of date: run this test with {WRITE_VARIABLE}=1");
}

#[test]
fn the_reference_of_the_resolver_is_what_its_code_says() {
    let sources: Vec<String> = tree()
        .iter()
        .filter(|file| file.ends_with(".rs") && (file.contains("/issuer/") || file.contains("/resolver/")))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    compare("resolver/REFERENCE.md", &reference::text(&resolver(), &sources));
}

#[test]
fn the_table_of_the_issuers_flags_is_what_its_code_says() {
    let document = "issuer/README.md";
    let text = std::fs::read_to_string(Path::new(ROOT).join(document)).unwrap();
    let (before, _, after) = flags::table_in(&text).expect("the document has a table of flags");
    compare(document, &format!("{before}{}{after}", flags::table(&issuer())));
}

#[test]
fn the_resolver_has_few_flags_and_each_has_a_heading_and_a_variable() {
    let command = resolver();
    let serve = command.find_subcommand("serve").unwrap();
    let flags: Vec<&Arg> =
        serve.get_arguments().filter(|flag| !matches!(flag.get_id().as_str(), "help" | "version")).collect();
    assert!(flags.len() <= 46, "{} flags", flags.len());
    for flag in flags.iter().filter(|flag| !flag.is_hide_set()) {
        let long = flag.get_long().unwrap();
        assert!(flag.get_help_heading().is_some(), "--{long}");
        let variable = format!("RESOLVER_{}", long.to_ascii_uppercase().replace('-', "_"));
        assert_eq!(flag.get_env().unwrap().to_str(), Some(&*variable));
    }
}

#[test]
fn variables_that_documents_name_exist() {
    let mut known = BTreeSet::new();
    for command in [resolver(), issuer()] {
        add_variables(&command, &mut known);
    }
    // Compose has variables of its own there.
    for document in documents().into_iter().filter(|document| !document.ends_with("k8s/images/README.md")) {
        let text = std::fs::read_to_string(&document).unwrap();
        for name in text.split('`').filter(|name| is_variable(name)) {
            assert!(known.contains(name), "{} names {name}", document.display());
        }
    }
}

fn resolver() -> Command {
    let mut command = ::resolver::config::Cli::command();
    command.build();
    command
}

fn issuer() -> Command {
    let mut command = ::issuer::config::Cli::command();
    command.build();
    command
}

fn add_variables(command: &Command, to: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|flag| flag.get_env()?.to_str());
    to.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|command| add_variables(command, to));
}

/// Splits a document into the parts before, in and after the table with this head.
fn table_in<'a>(text: &'a str, head: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let start = text.find(head)?;
    let rows = text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = start + rows.map(str::len).sum::<usize>();
    Some((&text[..start], &text[start..end], &text[end..]))
}

#[test]
fn items_that_documents_name_exist() {
    let tree = tree();
    let sources: Vec<(&String, String)> = tree
        .iter()
        .filter(|file| file.ends_with(".rs"))
        .map(|file| (file, std::fs::read_to_string(file).unwrap()))
        .collect();
    let mut named = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for (file, item) in items::named_in(&text) {
            let is_there = sources.iter().any(|(path, source)| {
                file.is_none_or(|file| path.ends_with(&format!("/{file}"))) && items::has(source, item)
            });
            assert!(is_there, "{} names {item} in {file:?}", document.display());
            named += 1;
        }
    }
    assert!(named > 20, "items are found: {named}");
}

fn is_variable(name: &str) -> bool {
    let daemons = ["RESOLVER_", "ISSUER_"];
    daemons.iter().any(|daemon| name.starts_with(daemon))
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// Returns whether a name is a path of a file or folder: `create.rs`, `store/src/sql/`, but not
/// `/metrics` or `a/b`.
fn is_path(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let is_file = [".rs", ".md", ".proto", ".sql"].iter().any(|end| name.ends_with(end)) && name.len() > 4;
    let is_folder = name.ends_with('/') && !name.starts_with('/') && !name.starts_with('.');
    name.bytes().all(plain) && (is_file || is_folder)
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// Returns the anchors of the headings as repository hosts derive them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"));
    headings
        .map(|title| title.chars().filter(|one| one.is_alphanumeric() || matches!(one, '-' | '_')).collect())
        .collect()
}

fn documents() -> Vec<PathBuf> {
    let tree = tree();
    let found: Vec<_> = tree.iter().filter(|file| file.ends_with(".md")).map(PathBuf::from).collect();
    assert!(found.len() >= 9, "{found:?}");
    found
}

/// Returns the full path of every file of the project.
fn tree() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(ROOT)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !matches!(name.as_str(), ".git" | "target" | "node_modules") {
                folders.push(path);
            } else if path.is_file() {
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files
}
