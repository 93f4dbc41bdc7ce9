//! Imports from other systems and from exports of this one.
//!
//! The first line of the input names the source (`csv`, `kutt`, …), and its length is the size of
//! the pieces in which the rest, the file to import, is read. Spaces behind the name make pieces
//! longer.
//!
//! 1. Each result is a row or an error that names its item, or the number of items before it. Items
//!    are counted upwards, none twice, and nothing follows an error that ends the reading.
//! 2. No row is invented: there are no more items than the file could hold, and the texts of all
//!    rows together are not much longer than the file.
//! 3. How the file is cut into reads has no effect.
//! 4. Rows that are exported again, with header and trailer or as a table, are read back unchanged.
#![no_main]

use std::{
    io::{self, Read},
    ops::ControlFlow,
};

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use transfer::{
    LeftOut, Row, RowError, Source, each_row, write_csv, write_csv_head, write_end, write_header,
    write_ndjson,
};

/// How many times longer than the file the texts of its rows may be. Names of domains grow when
/// they are normalized and written in Punycode.
const GROWTH_MAX: usize = 16;
/// How many names a link may have.
const NAMES_MAX: usize = 9;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (name, file) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let named = std::str::from_utf8(name).ok().and_then(|name| name.trim().parse().ok());
    let source: Source = named.unwrap_or(Source::ALL[name.len() % Source::ALL.len()]);

    let whole = results(source, file);
    check_results(source, file, &whole);
    let pieces = Pieces { rest: file, size: name.len().max(1) };
    assert_eq!(shown(&results(source, pieces)), shown(&whole), "in pieces of {}", name.len().max(1));

    let mut links: Vec<Row> = whole.into_iter().filter_map(Result::ok).filter(is_exact).collect();
    for (row, place) in links.iter_mut().zip(1..) {
        row.place = place;
    }
    check_export(&links);
    check_table(&links);
});

/// A reader that returns a few bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let size = self.size.min(to.len());
        self.rest.read(&mut to[..size])
    }
}

fn results(source: Source, file: impl Read) -> Vec<Result<Row, RowError>> {
    let mut results = Vec::new();
    each_row(source, file, &TimeZone::UTC, |row| {
        results.push(row);
        ControlFlow::Continue(())
    });
    results
}

fn shown(results: &[Result<Row, RowError>]) -> Vec<Result<&Row, String>> {
    results.iter().map(|result| result.as_ref().map_err(ToString::to_string)).collect()
}

fn check_results(source: Source, file: &[u8], results: &[Result<Row, RowError>]) {
    let mut last = 0;
    for (place, result) in results.iter().enumerate() {
        match result {
            Ok(row) => {
                assert!(row.place > last && !row.long_url.is_empty(), "{row:?}");
                last = row.place;
            }
            Err(error) => {
                check_error(error, &mut last);
                assert!(!error.is_final || place + 1 == results.len(), "{error} is not the last");
            }
        }
    }
    let is_json = file.iter().any(|byte| matches!(byte, b'{' | b'['));
    let openers = file.iter().filter(|byte| matches!(byte, b'{' | b',' | b'[')).count();
    let lines = file.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    let items =
        if source == Source::Kutt || source == Source::Shortmint { openers } else { openers.max(lines) };
    // A link of Bitly is a row under each of its names, which an item lists.
    let names = if source == Source::Bitly { NAMES_MAX } else { 1 };
    let most = names * items;
    assert!(last <= most as u64 + 1, "{last} items");
    let count = results.iter().filter(|result| result.is_ok()).count();
    assert!(is_json || count <= names * lines, "{count} rows");
    let texts: usize = results.iter().flatten().map(|row| row.weight() - size_of::<Row>()).sum();
    let tags: usize = results.iter().flatten().map(|row| row.tags.len() * size_of::<String>()).sum();
    assert!(texts - tags <= GROWTH_MAX * file.len(), "{texts} bytes from {}", file.len());
}

fn check_error(error: &RowError, last: &mut u64) {
    let text = error.to_string();
    if let Some(place) = error.place {
        assert!(text.starts_with(&format!("item {place}: ")), "{text}");
        assert!(place > *last, "{text}, after item {last}");
        *last = place;
    } else if let Some(behind) = text.strip_prefix("after item ") {
        let after: Option<u64> = behind.split(':').next().and_then(|after| after.parse().ok());
        // A header or trailer that is wrong itself is not counted any more.
        assert!(after.is_some_and(|after| after + 1 >= *last), "{text}, after item {last}");
    }
}

/// Returns whether a row can be written without a loss. Rules are kept as JSON text and are not
/// checked before a link is created, and the JSON parser may round a number that has no place
/// there.
fn is_exact(row: &Row) -> bool {
    let rules = row.redirect_rules.as_deref().map(serde_json::from_str::<Value>);
    rules.is_none_or(|rules| rules.is_ok_and(|rules| !has_fraction(&rules)))
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(list) => list.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        _ => false,
    }
}

fn check_export(links: &[Row]) {
    let mut export = Vec::new();
    write_header(&mut export).expect("a vector takes everything");
    for row in links {
        write_ndjson(row, &mut export).expect("a vector takes everything");
    }
    write_end(links.len() as u64, &mut export).expect("a vector takes everything");
    for source in [Source::Shortmint, Source::Csv] {
        check_reading(source, &export, links);
    }
}

/// Checks the export as a table, which has no columns for three of the fields and names two of
/// them.
fn check_table(links: &[Row]) {
    let mut table = Vec::new();
    write_csv_head(&mut table).expect("a vector takes everything");
    for row in links {
        write_csv(row, &mut table).expect("a vector takes everything");
    }
    check_reading(Source::Csv, &table, &links.iter().map(in_table).collect::<Vec<_>>());
}

fn check_reading(source: Source, file: &[u8], links: &[Row]) {
    let expected: Vec<Result<&Row, String>> = links.iter().map(Ok).collect();
    assert_eq!(shown(&results(source, file)), expected);
}

fn in_table(row: &Row) -> Row {
    let left_out: Vec<LeftOut> = row.left_out_of_table();
    assert!(row.password_hash.is_none() || left_out.contains(&LeftOut::Password));
    Row { left_out, password_hash: None, redirect_rules: None, deleted_at: None, ..row.clone() }
}
