//! The header and the trailer of an export in our own format: the format's version, and the number
//! of links.
//!
//! 1. An export of an unknown version is refused as a whole, because a field unknown to this
//!    version may protect a link.
//! 2. An export without its trailer was truncated. With `--from csv` links are not counted, so
//!    lines can be removed and files concatenated freely.

use std::io::{self, Write};

use serde_json::json;

use super::{item::Item, row::RowError, table::clip};

const FORMAT: &str = "shortmint-links";
/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;
/// The field that only header and trailer have.
const FIELD: &str = "format";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Begin,
    /// The trailer, with the number of links before it.
    End(u64),
}

/// Parses a header or trailer; returns `None` for a link.
pub(super) fn mark(item: &Item) -> Result<Option<Mark>, RowError> {
    let Some(format) = item.fields.get(FIELD) else { return Ok(None) };
    if let (Some(FORMAT), Some(links)) = (format.as_str(), item.fields.get("end")) {
        let problem = "the last line does not say how many links there are";
        let wrong = || RowError::broken(item.place.saturating_sub(1), problem);
        return links.as_u64().map(|links| Some(Mark::End(links))).ok_or_else(wrong);
    }
    let version = item.fields.get("version").cloned().unwrap_or_default();
    if format.as_str() == Some(FORMAT) && version.as_u64() == Some(VERSION) {
        return Ok(Some(Mark::Begin));
    }
    Err(RowError::form(format!(
        "an export of {}, and this release reads version {VERSION}: import it with the release that wrote \
         it, or a later one",
        clip(&format!("{format} {version}"))
    )))
}

/// Writes the header line.
pub fn write_header(mut to: impl Write) -> io::Result<()> {
    writeln!(to, "{}", json!({ FIELD: FORMAT, "version": VERSION }))
}

/// Writes the trailer line after `links` links.
pub fn write_end(links: u64, mut to: impl Write) -> io::Result<()> {
    writeln!(to, "{}", json!({ FIELD: FORMAT, "end": links }))
}

#[cfg(test)]
mod tests {
    use crate::{Source, source::read};

    const BEGIN: &str = r#"{"format":"shortmint-links","version":1}"#;
    const LINK: &str = r#"{"longUrl":"https://e.test/"}"#;

    #[test]
    fn an_export_is_whole_when_its_last_line_says_so() {
        let whole = format!("{BEGIN}\n{LINK}\n{LINK}\n{{\"format\":\"shortmint-links\",\"end\":2}}\n");
        let (links, errors) = read(Source::Shortmint, &whole);
        assert_eq!((links.len(), links[1].place, errors), (2, 2, vec![]));
        for (text, links, error) in [
            (
                format!("{BEGIN}\n{LINK}\n"),
                1,
                "after item 1: the export ends without its last line: it may have been cut off",
            ),
            (whole.replace(":2}", ":3}"), 2, "after item 2: the last line says that there are 3 links"),
            (
                format!("{LINK}\n"),
                0,
                "after item 0: the first line of an export is missing; lines without it are read with --from csv",
            ),
            (
                BEGIN.replace(":1}", ":2}"),
                0,
                "an export of \"shortmint-links\" 2, and this release reads version 1: import it with the release that wrote it, or a later one",
            ),
            (format!("{whole}{LINK}"), 2, "after item 2: more follows after the last line of the export"),
        ] {
            let (read, errors) = read(Source::Shortmint, &text);
            assert_eq!((read.len(), errors), (links, vec![error.to_owned()]), "{text}");
        }
        let (links, errors) = read(Source::Csv, &format!("{BEGIN}\n{LINK}\n{LINK}\nx"));
        assert_eq!((links.len(), links[1].place, errors.len()), (2, 2, 1));
    }
}
