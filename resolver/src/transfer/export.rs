//! Writes links so that [`super::source`] reads them back as they were: as a table (RFC 4180) with the names of its columns in the first
//! line, or as one JSON object per line with the same names. What a row leaves out is not written, and neither is its place.

use std::io::{self, Write};

use serde::Serialize;

use super::{
    csv::{COLUMNS, join_tags},
    row::Row,
    table::plain,
};

/// Writes a table, line by line.
pub struct CsvRows<W: Write>(::csv::Writer<W>);

impl<W: Write> CsvRows<W> {
    /// Begins a table with its first line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(to: W) -> io::Result<Self> {
        let mut table = ::csv::Writer::from_writer(to);
        table.write_record(COLUMNS).map_err(plain)?;
        Ok(Self(table))
    }

    /// Goes on with a table whose first line is written.
    pub fn behind_others(to: W) -> Self {
        Self(::csv::Writer::from_writer(to))
    }

    /// Hands on what is still held.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Writes a link.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, row: &Row) -> io::Result<()> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let cells: [String; COLUMNS.len()] = [
            text(&row.code),
            row.long_url.clone(),
            text(&row.title),
            text(&row.description),
            join_tags(&row.tags),
            text(&row.domain),
            shown(row.created_at),
            shown(row.valid_since),
            shown(row.valid_until),
            shown(row.max_visits),
            shown(row.crawlable),
            shown(row.forward_query),
            shown(row.visits),
        ];
        self.0.write_record(&cells).map_err(plain)
    }

    /// Writes what is still held and gives the output back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.0.into_inner().map_err(|error| io::Error::new(error.error().kind(), error.error().to_string()))
    }
}

/// A value as text; none is empty.
fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Writes a whole table and says how many links it has.
///
/// # Errors
/// When it cannot be written.
pub fn write_csv<'a>(rows: impl IntoIterator<Item = &'a Row>, to: impl Write) -> io::Result<u64> {
    let mut table = CsvRows::new(to)?;
    let mut count = 0;
    for row in rows {
        table.write(row)?;
        count += 1;
    }
    table.finish()?.flush()?;
    Ok(count)
}

/// Writes a link as an object on a line of its own. The output should be buffered.
///
/// # Errors
/// When it cannot be written.
pub fn write_ndjson(row: &Row, mut to: impl Write) -> io::Result<()> {
    let line = Line {
        short_code: row.code.as_deref(),
        long_url: &row.long_url,
        title: row.title.as_deref(),
        description: row.description.as_deref(),
        tags: &row.tags,
        domain: row.domain.as_deref(),
        created_at: row.created_at.map(|time| time.to_string()),
        valid_since: row.valid_since.map(|time| time.to_string()),
        valid_until: row.valid_until.map(|time| time.to_string()),
        max_visits: row.max_visits,
        crawlable: row.crawlable,
        forward_query: row.forward_query,
        visits: row.visits,
    };
    serde_json::to_writer(&mut to, &line)?;
    to.write_all(b"\n")
}

/// A link as an object; what is none is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    short_code: Option<&'a str>,
    long_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_visits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crawlable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_query: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<u64>,
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::transfer::{Source, source::read};

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
            "shortCode,longUrl,title,description,tags,domain,createdAt,validSince,validUntil,maxVisits,crawlable,forwardQuery,visits\n\
             promo,\"https://e.test/?a=1,2\",,,x|y\\|z,,2026-01-02T03:04:05.5Z,,,,true,,3\n"
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

    /// Any text that is not empty, with a liking for what the forms give a meaning to.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z\"',;|\\\\\r\n\t\u{0}\u{feff} {}:üß短🦣=+@-]{1,20}",
            "\\PC{1,20}",
            Just("\\N".to_owned())
        ]
    }

    fn time() -> impl Strategy<Value = Option<Timestamp>> {
        let seconds = Timestamp::MIN.as_second()..Timestamp::MAX.as_second();
        option::of(
            (seconds, 0..1_000_000_000)
                .prop_map(|(seconds, nanos)| Timestamp::new(seconds, nanos).unwrap_or_default()),
        )
    }

    prop_compose! {
        fn row()(
            long_url in text(),
            (code, domain, title, description) in (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
            tags in vec(text().prop_filter("blank", |tag| !tag.trim().is_empty()), 0..5),
            (created_at, valid_since, valid_until) in (time(), time(), time()),
            (max_visits, visits) in (any::<Option<u64>>(), any::<Option<u64>>()),
            (crawlable, forward_query) in (any::<Option<bool>>(), any::<Option<bool>>()),
        ) -> Row {
            Row {
                place: 0, code, domain, long_url, title, description, tags, created_at, valid_since, valid_until,
                max_visits, crawlable, forward_query, visits, left_out: vec![],
            }
        }
    }

    proptest! {
        #[test]
        fn links_read_back_as_they_were_written_in_either_form(rows in vec(row(), 1..8)) {
            let expected: Vec<Row> = (1..).zip(&rows).map(|(place, row)| Row { place, ..row.clone() }).collect();
            prop_assert_eq!(read(Source::Csv, &csv_of(&rows)), (expected.clone(), vec![]));
            prop_assert_eq!(read(Source::Csv, &ndjson_of(&rows)), (expected, vec![]));
        }

        #[test]
        fn no_text_makes_a_reader_panic(input in "\\PC{0,60}|[a-z,\"\n{}:\\[\\]]{0,60}") {
            for source in [Source::Shlink, Source::Kutt, Source::Yourls, Source::Csv] {
                let _ = read(source, &input);
            }
        }
    }
}
