//! Items of the code that a document names: `Creator::create`, or `load` behind the file
//! `ledger/etcd.rs`.

/// Returns the items that a text names, each with its file if the text names that just before.
pub(super) fn named_in(text: &str) -> Vec<(Option<&str>, &str)> {
    let mut found = Vec::new();
    let (mut file, mut between) = (None, "");
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 0 {
            between = part;
            continue;
        }
        let in_file = file.filter(|_| matches!(between, ", " | " (" | ",\n" | ",\n   "));
        if part.ends_with(".rs") {
            file = Some(part);
            continue;
        }
        let name = part.trim_end_matches("()");
        if is_item(name) && (in_file.is_some() || name.contains("::")) {
            found.push((in_file, name));
        }
        file = in_file;
    }
    found
}

/// Returns whether a source has all words of an item's path.
pub(super) fn has(source: &str, item: &str) -> bool {
    item.split("::").all(|word| {
        let is_part = |one: char| one.is_alphanumeric() || one == '_';
        source.match_indices(word).any(|(at, _)| {
            let (before, after) =
                (source[..at].chars().next_back(), source[at + word.len()..].chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    })
}

/// Returns whether a text is a path of identifiers of Rust.
fn is_item(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_')
            && word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
    };
    !text.is_empty() && text.split("::").all(is_word)
}
