//! Writes links in the formats that [`super::source`] reads back unchanged: a table (RFC 4180) with
//! its column names in the first line, or one JSON object per line with the same names. Of a
//! left-out property only the name is written. A row's `place` is not written.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serializer as _;
use serde_json::{Serializer, Value, json};

use super::{
    csv::{COLUMNS, harmless, join_tags},
    row::{LeftOut, Row},
};

/// Writes links as rows of a CSV table.
pub struct CsvRows<W: Write>(W);

impl<W: Write> CsvRows<W> {
    /// Starts a table by writing its first line, the column names.
    ///
    /// # Errors
    /// Returns an error if the writer fails.
    pub fn new(mut to: W) -> io::Result<Self> {
        write_record(COLUMNS.into_iter(), &mut to)?;
        Ok(Self(to))
    }

    /// Continues a table whose first line is already written.
    pub fn behind_others(to: W) -> Self {
        Self(to)
    }

    /// Flushes buffered rows to the writer.
    ///
    /// # Errors
    /// Returns an error if the writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Writes a link as a row.
    ///
    /// # Errors
    /// Returns an error if the writer fails.
    pub fn write(&mut self, row: &Row) -> io::Result<()> {
        let text = |text: &Option<String>| text.as_deref().map(harmless).unwrap_or_default().into_owned();
        let cells: [String; COLUMNS.len()] = [
            text(&row.code),
            harmless(&row.long_url).into_owned(),
            text(&row.title),
            text(&row.description),
            harmless(&join_tags(&row.tags)).into_owned(),
            text(&row.domain),
            shown(row.created_at),
            shown(row.valid_since),
            shown(row.valid_until),
            shown(row.max_visits),
            shown(row.crawlable),
            shown(row.forward_query),
            shown(row.visits),
            shown(row.uses),
            shown(row.enabled),
            shown(row.redirect_status),
            shown(row.minted),
            text(&row.created_by),
            shown(row.edited_at),
            text(&row.edited_by),
            shown(row.version),
            text(&row.blocked),
            shown(row.blocked_at),
            text(&row.blocked_by),
            names(&row.left_out_of_table()).join("|"),
        ];
        write_record(cells.iter().map(String::as_str), &mut self.0)
    }
}

/// Writes a record (RFC 4180). A cell is in quotation marks if it would be read differently without
/// them, as one with white space around it would be.
fn write_record<'a>(cells: impl Iterator<Item = &'a str>, mut to: impl Write) -> io::Result<()> {
    for (index, cell) in cells.enumerate() {
        let before = if index == 0 { "" } else { "," };
        if cell.contains(['"', ',', '\r', '\n']) || cell.trim_ascii() != cell {
            write!(to, "{before}\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(to, "{before}{cell}")?;
        }
    }
    writeln!(to)
}

fn names(left_out: &[LeftOut]) -> Vec<&'static str> {
    left_out.iter().map(|one| one.as_str()).collect()
}

/// Returns a value as text; `None` is the empty text.
fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Writes a whole table and returns its number of links.
///
/// # Errors
/// Returns an error if the writer fails.
pub fn write_csv<'a>(rows: impl IntoIterator<Item = &'a Row>, to: impl Write) -> io::Result<u64> {
    let mut table = CsvRows::new(to)?;
    let mut count = 0;
    for row in rows {
        table.write(row)?;
        count += 1;
    }
    table.flush()?;
    Ok(count)
}

/// Writes a link as a JSON object on a line of its own. The writer should be buffered.
///
/// # Errors
/// Returns an error if the writer fails or `redirect_rules` is not valid JSON.
pub fn write_ndjson(row: &Row, mut to: impl Write) -> io::Result<()> {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let rules = row.redirect_rules.as_deref().map(serde_json::from_str::<Value>).transpose()?;
    let fields = [
        ("shortCode", json!(row.code)),
        ("longUrl", json!(row.long_url)),
        ("title", json!(row.title)),
        ("description", json!(row.description)),
        ("tags", json!(row.tags)),
        ("domain", json!(row.domain)),
        ("createdAt", json!(time(row.created_at))),
        ("validSince", json!(time(row.valid_since))),
        ("validUntil", json!(time(row.valid_until))),
        ("maxVisits", json!(row.max_visits)),
        ("crawlable", json!(row.crawlable)),
        ("forwardQuery", json!(row.forward_query)),
        ("visits", json!(row.visits)),
        ("uses", json!(row.uses)),
        ("enabled", json!(row.enabled)),
        ("redirectStatus", json!(row.redirect_status)),
        ("minted", json!(row.minted)),
        ("passwordHash", json!(row.password_hash.as_ref().map(|hash| &hash.0))),
        ("redirectRules", json!(rules)),
        ("createdBy", json!(row.created_by)),
        ("editedAt", json!(time(row.edited_at))),
        ("editedBy", json!(row.edited_by)),
        ("version", json!(row.version)),
        ("blocked", json!(row.blocked)),
        ("blockedAt", json!(time(row.blocked_at))),
        ("blockedBy", json!(row.blocked_by)),
        ("deletedAt", json!(time(row.deleted_at))),
        ("leftOut", json!(names(&row.left_out))),
    ];
    // Absent values and empty lists are omitted.
    let has =
        |(_, value): &(&str, Value)| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    Serializer::new(&mut to).collect_map(fields.into_iter().filter(has))?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::{
        Source,
        header::{write_end, write_header},
        row::Secret,
        source::read,
    };

    fn csv_of(rows: &[Row]) -> String {
        let mut to = Vec::new();
        let count = write_csv(rows, &mut to).unwrap();
        assert_eq!(count, rows.len() as u64);
        String::from_utf8(to).unwrap()
    }

    fn ndjson_of(rows: &[Row]) -> String {
        let mut to = Vec::new();
        for row in rows {
            write_ndjson(row, &mut to).unwrap();
        }
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn a_link_is_written_under_the_names_that_the_api_uses() {
        let row = Row {
            code: Some("promo".into()),
            long_url: "https://e.test/?a=1,2".into(),
            tags: vec!["x".into(), "y|z".into()],
            created_at: Some("2026-01-02T03:04:05.5Z".parse().unwrap()),
            crawlable: Some(true),
            visits: Some(3),
            ..Row::default()
        };
        assert_eq!(
            csv_of(std::slice::from_ref(&row)),
            "shortCode,longUrl,title,description,tags,domain,createdAt,validSince,validUntil,maxVisits,crawlable,forwardQuery,visits,\
             uses,enabled,redirectStatus,minted,createdBy,editedAt,editedBy,version,blocked,blockedAt,blockedBy,leftOut\n\
             promo,\"https://e.test/?a=1,2\",,,x|y\\|z,,2026-01-02T03:04:05.5Z,,,,true,,3,,,,,,,,,,,,\n"
        );
        assert_eq!(
            ndjson_of(&[row]),
            "{\"shortCode\":\"promo\",\"longUrl\":\"https://e.test/?a=1,2\",\"tags\":[\"x\",\"y|z\"],\
             \"createdAt\":\"2026-01-02T03:04:05.5Z\",\"crawlable\":true,\"visits\":3}\n"
        );
        assert_eq!(read(Source::Csv, &csv_of(&[])), (vec![], vec![]));
    }

    #[test]
    fn an_output_that_takes_nothing_is_an_error() {
        let row = Row { long_url: "https://e.test/".into(), ..Row::default() };
        let mut full: [u8; 4] = [0; 4];
        assert!(write_csv([&row], &mut full[..]).is_err());
        assert!(write_ndjson(&row, &mut full[..]).is_err());
    }

    /// Generates non-empty texts, biased towards characters with a meaning in the formats.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z\"',;|\\\\\r\n\t\u{0}\u{feff} {}:üß短🦣=+@-]{1,20}",
            "\\PC{1,20}",
            Just("\\N".to_owned())
        ]
    }

    fn time() -> impl Strategy<Value = Option<Timestamp>> {
        const YEAR_1: i64 = -62_135_596_800;
        let seconds = YEAR_1..Timestamp::MAX.as_second();
        option::of(
            (seconds, 0..1_000_000_000)
                .prop_map(|(seconds, nanos)| Timestamp::new(seconds, nanos).unwrap_or_default()),
        )
    }

    fn limits() -> impl Strategy<Value = Row> {
        let count = any::<Option<u64>>;
        (count(), count(), count(), count(), count(), any::<[Option<bool>; 4]>()).prop_map(
            |(max_visits, visits, uses, redirect_status, version, flags)| Row {
                max_visits,
                visits,
                uses,
                redirect_status,
                version,
                crawlable: flags[0],
                forward_query: flags[1],
                enabled: flags[2],
                minted: flags[3],
                ..Row::default()
            },
        )
    }

    prop_compose! {
        fn row()(
            long_url in text(),
            (code, domain, title, description) in (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
            (created_by, edited_by, blocked, blocked_by) in
                (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
            // Tags have no white space around them.
            tags in vec(text().prop_map(|tag| tag.trim().to_owned()).prop_filter("blank", |tag| !tag.is_empty()), 0..5),
            (created_at, valid_since, valid_until, edited_at, blocked_at) in (time(), time(), time(), time(), time()),
            rest in limits(),
        ) -> Row {
            Row {
                code, domain, long_url, title, description, tags, created_at, valid_since, valid_until, edited_at,
                created_by, edited_by, blocked, blocked_by, blocked_at, ..rest
            }
        }
    }

    prop_compose! {
        fn json_row()(
            row in row(),
            hash in option::of(text()),
            rules in vec(text(), 0..3),
            deleted_at in time(),
            left_out in option::of(proptest::sample::select(&LeftOut::ALL)),
        ) -> Row {
            let redirect_rules = (!rules.is_empty()).then(|| json!(rules).to_string());
            let left_out = left_out.into_iter().collect();
            Row { password_hash: hash.map(Secret), redirect_rules, deleted_at, left_out, ..row }
        }
    }

    fn numbered(rows: &[Row]) -> Vec<Row> {
        (1..).zip(rows).map(|(place, row)| Row { place, ..row.clone() }).collect()
    }

    proptest! {
        #[test]
        fn links_read_back_as_they_were_written_in_either_form(rows in vec(row(), 1..8)) {
            let expected = numbered(&rows);
            prop_assert_eq!(read(Source::Csv, &csv_of(&rows)), (expected.clone(), vec![]));
            prop_assert_eq!(read(Source::Csv, &ndjson_of(&rows)), (expected, vec![]));
        }

        #[test]
        fn every_field_of_a_link_survives_the_export_of_our_own_form(rows in vec(json_row(), 0..8)) {
            let mut export = Vec::new();
            write_header(&mut export).unwrap();
            export.extend(ndjson_of(&rows).into_bytes());
            write_end(rows.len() as u64, &mut export).unwrap();
            let export = String::from_utf8(export).unwrap();
            let expected = numbered(&rows);
            prop_assert_eq!(read(Source::Shortmint, &export), (expected.clone(), vec![]));
            prop_assert_eq!(read(Source::Csv, &export), (expected, vec![]));
        }

        #[test]
        fn a_table_names_the_protection_that_it_has_no_column_for(rows in vec(json_row(), 1..5)) {
            let (links, errors) = read(Source::Csv, &csv_of(&rows));
            prop_assert_eq!(errors, Vec::<String>::new());
            for (row, link) in rows.iter().zip(links) {
                prop_assert_eq!(link.left_out, row.left_out_of_table());
                prop_assert!(row.password_hash.is_none() || row.left_out_of_table().contains(&LeftOut::Password));
            }
        }

        #[test]
        fn no_text_makes_a_reader_panic(input in "\\PC{0,60}|[a-z,\"\n{}:\\[\\]]{0,60}") {
            for source in Source::ALL {
                let _ = read(source, &input);
            }
        }
    }
}
