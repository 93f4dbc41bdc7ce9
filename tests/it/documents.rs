//! The Markdown documents: their links resolve, the files and items that they name exist, and their
//! tables of flags are those of `--help`.

mod flags;
mod items;
mod metrics;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Launch, Scratch, binaries};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The maximum length of a line outside of tables and code, in characters.
const COLUMNS: usize = 110;
/// The maximum length of the root README in bytes, so that it can be read in a minute.
const README_BYTES: usize = 8_000;
const RUN_WITHIN: Duration = Duration::from_secs(30);

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
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    assert!(readme.len() <= README_BYTES, "README.md has {} bytes", readme.len());
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

/// With this variable set, the tables of flags are written into the documents instead of compared.
const WRITE_VARIABLE: &str = "SHORTMINT_WRITE_DOCUMENTS";

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_flags_are_those_of_help() {
    let daemons = [
        ("resolver/README.md", binaries::resolver().await.unwrap(), [&["serve"][..], &["link", "get"]]),
        ("issuer/README.md", binaries::issuer().await.unwrap(), [&[], &["status"]]),
    ];
    for (document, program, [serving, asking]) in daemons {
        let (help, of_client) = (help(&program, serving).await, help(&program, asking).await);
        let path = Path::new(ROOT).join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, table, after) = flags::table_in(&text).expect("the document has a table of flags");
        let generated = flags::table(&help);
        assert!(generated.lines().count() > 8, "{help}");
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            std::fs::write(&path, format!("{before}{generated}{after}")).unwrap();
        } else {
            assert_eq!(table, generated, "{document}: run this test with {WRITE_VARIABLE}=1");
        }
        for name in text.split('`').filter(|name| is_variable(name)) {
            let is_known = |help: &str| {
                help.contains(&format!("[env: {name}=")) || help.contains(&format!("[env: {name}]"))
            };
            assert!(is_known(&help) || is_known(&of_client), "{document} names {name}");
        }
    }
}

#[test]
fn the_table_of_metrics_is_that_of_their_descriptions() {
    let sources: Vec<String> = tree()
        .iter()
        .filter(|file| file.ends_with(".rs") && (file.contains("/issuer/") || file.contains("/resolver/")))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let path = Path::new(ROOT).join("resolver/README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, table, after) = metrics::table_in(&text).expect("the document has a table of metrics");
    let generated = metrics::table(sources.iter().map(String::as_str));
    assert!(generated.lines().count() > 70, "{generated}");
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&path, format!("{before}{generated}{after}")).unwrap();
    } else {
        assert_eq!(table, generated, "run this test with {WRITE_VARIABLE}=1");
    }
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

async fn help(program: &Path, subcommand: &[&str]) -> String {
    let scratch = Scratch::new().unwrap();
    let help = Launch::new(&scratch, "help", program).args(subcommand).arg("--help");
    help.run(RUN_WITHIN).await.unwrap().success().unwrap().stdout
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
