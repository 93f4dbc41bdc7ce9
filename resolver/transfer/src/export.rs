//! Writes links in the formats that [`super::source`] reads back unchanged: a table (RFC 4180) with
//! its column names in the first line, or one JSON object per line with the same names. Of a
//! left-out property only the name is written. A row's `place` is not written.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{
    csv::{harmless, join_tags},
    row::{LAYOUT, Row, WRITTEN},
    table::first_name,
};

/// Writes the first line of a CSV table: the column names.
pub fn write_csv_head(to: impl Write) -> io::Result<()> {
    write_record(columns(), to)
}

/// Writes a link as a row of a CSV table. The writer should be buffered. `redirect_rules` that are
/// not valid JSON are an error, here and in [`write_ndjson`].
pub fn write_csv(row: &Row, to: impl Write) -> io::Result<()> {
    let mut fields = serde_json::to_value(row)?;
    fields["leftOut"] = json!(row.left_out_of_table());
    let cell = |column: &str| match &fields[column] {
        Value::String(text) => harmless(text).into_owned(),
        Value::Array(list) => harmless(&join_tags(list)).into_owned(),
        Value::Null => String::new(),
        value => value.to_string(),
    };
    let cells: Vec<String> = columns().map(cell).collect();
    write_record(cells.iter().map(String::as_str), to)
}

fn columns() -> impl Iterator<Item = &'static str> {
    LAYOUT.columns.iter().copied().take(WRITTEN).map(first_name)
}

/// Writes a record (RFC 4180). A cell is in quotation marks if it would be read differently without
/// them, as one with white space around it would be.
pub fn write_record<'a>(cells: impl Iterator<Item = &'a str>, mut to: impl Write) -> io::Result<()> {
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

/// Writes a link as a JSON object on a line of its own. The writer should be buffered.
pub fn write_ndjson(row: &Row, mut to: impl Write) -> io::Result<()> {
    let mut fields = serde_json::to_value(row)?;
    if let Some(fields) = fields.as_object_mut() {
        // Absent values and empty lists are omitted.
        fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    }
    writeln!(to, "{fields}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::{
        array::{uniform4, uniform5, uniform10},
        collection::vec,
        option,
        prelude::*,
    };

    use super::*;
    use crate::{
        Source,
        header::{write_end, write_header},
        row::{LeftOut, Secret},
        source::read,
    };

    fn csv_of(rows: &[Row]) -> String {
        let mut to = Vec::new();
        write_csv_head(&mut to).unwrap();
        for row in rows {
            write_csv(row, &mut to).unwrap();
        }
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
             uses,enabled,redirectStatus,extraPath,expiredUrl,previewTitle,previewDescription,previewImage,externalId,minted,createdBy,\
             editedAt,editedBy,version,blocked,blockedAt,blockedBy,leftOut\n\
             promo,\"https://e.test/?a=1,2\",,,x|y\\|z,,2026-01-02T03:04:05.5Z,,,,true,,3,,,,,,,,,,,,,,,,,,\n"
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
        assert!(write_csv(&row, &mut full[..]).is_err());
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

    prop_compose! {
        fn row()(
            long_url in text(),
            [code, domain, title, description, extra_path, expired_url, created_by, edited_by, blocked,
                blocked_by] in uniform10(option::of(text())),
            [preview_title, preview_description, preview_image, external_id] in uniform4(option::of(text())),
            // Tags have no white space around them.
            tags in vec(text().prop_map(|tag| tag.trim().to_owned()).prop_filter("blank", |tag| !tag.is_empty()), 0..5),
            [created_at, valid_since, valid_until, edited_at, blocked_at] in uniform5(time()),
            [max_visits, visits, uses, redirect_status, version] in any::<[Option<u64>; 5]>(),
            [crawlable, forward_query, enabled, minted] in any::<[Option<bool>; 4]>(),
        ) -> Row {
            Row {
                code, domain, long_url, title, description, tags, created_at, valid_since, valid_until, max_visits,
                crawlable, forward_query, visits, uses, enabled, redirect_status, extra_path, expired_url,
                preview_title, preview_description, preview_image, external_id, minted, created_by, edited_at, edited_by, version,
                blocked, blocked_at, blocked_by, ..Row::default()
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
