//! Exported visits as a CSV table (RFC 4180) and as lines of JSON.

use std::io::{self, Write};

use transfer::harmless;

use super::{Visit, answer::Location};

/// A format of exported visits.
pub(super) trait Rows {
    /// Writes a visit.
    fn write(&mut self, visit: &Visit) -> io::Result<()>;
    /// Writes what is left, after the last visit.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// One JSON object per line.
pub(super) struct Lines<W>(pub(super) W);

impl<W: Write> Rows for Lines<W> {
    fn write(&mut self, visit: &Visit) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, visit)?;
        self.0.write_all(b"\n")
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// The columns of a table.
const COLUMNS: [&str; 14] = [
    "date",
    "type",
    "visitedUrl",
    "redirectUrl",
    "referer",
    "userAgent",
    "potentialBot",
    "countryCode",
    "countryName",
    "regionName",
    "cityName",
    "latitude",
    "longitude",
    "timezone",
];

/// A table with the names of its columns in the first line.
pub(super) struct Csv<W: Write>(csv::Writer<W>);

impl<W: Write> Csv<W> {
    pub(super) fn new(to: W) -> io::Result<Self> {
        let mut table = csv::Writer::from_writer(to);
        table.write_record(COLUMNS)?;
        Ok(Self(table))
    }
}

impl<W: Write> Rows for Csv<W> {
    fn write(&mut self, visit: &Visit) -> io::Result<()> {
        let place = visit.visit_location.clone().unwrap_or_else(Location::unknown);
        let degrees = |degrees: f64| if place.is_empty { String::new() } else { degrees.to_string() };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let cells: [String; COLUMNS.len()] = [
            visit.date.clone(),
            text(&visit.r#type),
            text(&visit.visited_url),
            text(&visit.redirect_url),
            visit.referer.clone(),
            visit.user_agent.clone(),
            visit.potential_bot.to_string(),
            place.country_code.clone(),
            place.country_name.clone(),
            place.region_name.clone(),
            place.city_name.clone(),
            degrees(place.latitude),
            degrees(place.longitude),
            place.timezone.clone(),
        ];
        // Visitors choose some of these texts, and a spreadsheet would evaluate a formula in them.
        // Degrees may begin with a minus, and are numbers.
        let is_number = |column: usize| matches!(COLUMNS[column], "latitude" | "longitude");
        let cells = cells.iter().enumerate();
        let cells = cells.map(|(column, cell)| if is_number(column) { cell.into() } else { harmless(cell) });
        Ok(self.0.write_record(cells.map(|cell| cell.into_owned()))?)
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit() -> Visit {
        Visit {
            date: "2026-11-25T10:00:00+00:00".to_owned(),
            visited_url: Some("https://s.test/a".to_owned()),
            referer: "=HYPERLINK(\"https://evil.test\")".to_owned(),
            user_agent: "two\nlines, \"quoted\"".to_owned(),
            visit_location: Some(Location {
                country_code: "BR".to_owned(),
                latitude: -23.5,
                longitude: -46.6,
                ..Location::default()
            }),
            ..Visit::default()
        }
    }

    fn written<'a>(rows: impl FnOnce(&'a mut Vec<u8>) -> Box<dyn Rows + 'a>, to: &'a mut Vec<u8>) {
        let mut rows = rows(to);
        rows.write(&visit()).unwrap();
        rows.write(&Visit { r#type: Some("base_url".to_owned()), ..Visit::default() }).unwrap();
        rows.end().unwrap();
    }

    #[test]
    fn a_table_has_a_row_for_each_visit_and_no_formulas() {
        let mut table = Vec::new();
        written(|to| Box::new(Csv::new(to).unwrap()), &mut table);
        let mut table = csv::Reader::from_reader(&*table);
        assert_eq!(table.headers().unwrap(), &COLUMNS[..]);
        let rows: Vec<_> = table.records().map(Result::unwrap).collect();
        let cell = |row: usize, name| &rows[row][COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!(cell(0, "referer"), "'=HYPERLINK(\"https://evil.test\")");
        assert_eq!(cell(0, "userAgent"), "two\nlines, \"quoted\"");
        assert_eq!((cell(0, "latitude"), cell(0, "countryCode")), ("-23.5", "BR"));
        assert_eq!((cell(1, "type"), cell(1, "latitude"), rows.len()), ("base_url", "", 2));
    }

    #[test]
    fn a_line_of_json_is_a_visit() {
        let mut lines = Vec::new();
        written(|to| Box::new(Lines(to)), &mut lines);
        let lines: Vec<Visit> =
            serde_json::Deserializer::from_slice(&lines).into_iter().map(Result::unwrap).collect();
        assert_eq!(lines[0], visit());
        assert_eq!(lines.len(), 2);
    }
}
