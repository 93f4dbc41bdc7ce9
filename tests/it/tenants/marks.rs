//! Marks, which tell whose a text is.

use std::collections::BTreeSet;

/// Beginning of every mark, made of letters that a host, a tag and a header can have.
pub(super) const MARK: &str = "zqmk";
/// Characters of what was found that a failure shows.
const SHOWN: usize = 160;

/// Returns where a text has one of these secrets, unless the caller has sent it.
pub(super) fn leak(text: &str, secrets: &BTreeSet<String>, sent: &BTreeSet<String>) -> Option<String> {
    let mut text = text.to_owned();
    // The longest first, because one may be a part of another.
    let mut sent: Vec<&String> = sent.iter().filter(|text| !text.is_empty()).collect();
    sent.sort_by_key(|text| std::cmp::Reverse(text.len()));
    for own in sent {
        // Names of files in an archive have no slashes.
        text = text.replace(own.as_str(), "(sent)").replace(&own.replace('/', "-"), "(sent)");
    }
    let at = secrets.iter().filter_map(|secret| text.find(secret.as_str())).min()?;
    let before = text[..at].char_indices().rev().take(SHOWN).last().map_or(0, |(start, _)| start);
    Some(text[before..].chars().take(2 * SHOWN).collect())
}
