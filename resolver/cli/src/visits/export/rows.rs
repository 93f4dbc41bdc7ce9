//! Exported visits as a CSV table (RFC 4180) and as lines of JSON.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde_json::Value;
use transfer::{harmless, write_record};

use super::VisitsFormat;

/// The columns of a table, and where each is in a visit.
const COLUMNS: [(&str, &str); 14] = [
    ("date", "/date"),
    ("type", "/type"),
    ("visitedUrl", "/visitedUrl"),
    ("redirectUrl", "/redirectUrl"),
    ("referer", "/referer"),
    ("userAgent", "/userAgent"),
    ("potentialBot", "/potentialBot"),
    ("countryCode", "/visitLocation/countryCode"),
    ("countryName", "/visitLocation/countryName"),
    ("regionName", "/visitLocation/regionName"),
    ("cityName", "/visitLocation/cityName"),
    ("latitude", "/visitLocation/latitude"),
    ("longitude", "/visitLocation/longitude"),
    ("timezone", "/visitLocation/timezone"),
];

/// Writes what is before the first visit: the names of the columns of a table.
pub(super) fn write_head(format: VisitsFormat, to: impl Write) -> io::Result<()> {
    match format {
        VisitsFormat::Csv => write_record(COLUMNS.iter().map(|(name, _)| *name), to),
        VisitsFormat::Ndjson => Ok(()),
    }
}

pub(super) fn write_visit(format: VisitsFormat, visit: &Value, mut to: impl Write) -> io::Result<()> {
    match format {
        VisitsFormat::Csv => {
            let cells = COLUMNS.map(|(_, pointer)| cell(visit.pointer(pointer)));
            write_record(cells.iter().map(|cell| &**cell), to)
        }
        VisitsFormat::Ndjson => writeln!(to, "{visit}"),
    }
}

/// Formats a value for a cell. Visitors choose some of the texts, and a spreadsheet would evaluate
/// a formula in them. Degrees may begin with a minus, and are numbers.
fn cell(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => harmless(text),
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(value) => Cow::Owned(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_visit_and_no_formulas() {
        let visits = [
            json!({
                "date": "2026-11-25T10:00:00+00:00", "visitedUrl": "https://s.test/a", "potentialBot": true,
                "referer": "=HYPERLINK(\"https://evil.test\")", "userAgent": "two\nlines, \"quoted\"",
                "visitLocation": { "countryCode": "BR", "latitude": -23.5 },
            }),
            json!({ "type": "base_url", "visitLocation": null }),
        ];
        let mut table = Vec::new();
        write_head(VisitsFormat::Csv, &mut table).unwrap();
        for visit in &visits {
            write_visit(VisitsFormat::Csv, visit, &mut table).unwrap();
        }
        let mut records = transfer::Records::open(&*table, |_| 0).unwrap();
        let mut rows: Vec<Vec<String>> = Vec::new();
        while let Some(record) = records.next().unwrap() {
            rows.push(record.cells().map(|cell| cell.unwrap().to_owned()).collect());
        }
        assert_eq!(rows.remove(0), COLUMNS.map(|(name, _)| name));
        let cell = |row: usize, name| &*rows[row][COLUMNS.iter().position(|it| it.0 == name).unwrap()];
        assert_eq!(cell(0, "referer"), "'=HYPERLINK(\"https://evil.test\")");
        assert_eq!(cell(0, "userAgent"), "two\nlines, \"quoted\"");
        assert_eq!((cell(0, "latitude"), cell(0, "countryCode")), ("-23.5", "BR"));
        assert_eq!((cell(0, "potentialBot"), cell(1, "latitude"), rows.len()), ("true", "", 2));
    }

    #[test]
    fn a_line_of_json_is_a_visit_as_the_api_has_it() {
        let (visit, mut lines) = (json!({ "date": "2026-11-25", "aNewField": [1] }), Vec::new());
        write_visit(VisitsFormat::Ndjson, &visit, &mut lines).unwrap();
        assert_eq!(lines, b"{\"date\":\"2026-11-25\",\"aNewField\":[1]}\n");
    }
}
