//! The download: series and rankings as CSV (RFC 4180).
//!
//! One table holds everything, so that every record has the same columns. `part` is `series`,
//! `previous` for the period before, or the name of a dimension; `value` is the beginning of an
//! interval (RFC 3339) or a value of the dimension as the API returns it.

use app::visit_stats::{VisitCount, VisitStats};
use jiff::tz::TimeZone;
use transfer::harmless;
use visits::series::rfc3339;

/// The names of the columns.
const COLUMNS: [&str; 4] = ["part", "value", "visits", "bots"];

/// Writes statistics as a table.
///
/// # Errors
/// Returns [`csv::Error`] if a record cannot be written, which memory does not refuse.
pub(super) fn write(stats: &VisitStats, zone: &TimeZone) -> Result<Vec<u8>, csv::Error> {
    let mut table = Table(csv::Writer::from_writer(Vec::new()));
    table.0.write_record(COLUMNS)?;
    let previous = stats.previous.iter().map(|previous| ("previous", previous));
    for (part, count) in previous.chain([("series", &stats.current)]) {
        for (start, count) in &count.points {
            table.add(part, &rfc3339(*start, zone), *count)?;
        }
    }
    for (dimension, values) in &stats.dimensions {
        for (value, count) in values {
            table.add(dimension.as_str(), value, *count)?;
        }
    }
    table.0.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

/// A table in memory.
struct Table(csv::Writer<Vec<u8>>);

impl Table {
    /// Adds a record. Visitors choose some of the values, and a spreadsheet would evaluate a
    /// formula in them.
    fn add(&mut self, part: &str, value: &str, count: VisitCount) -> Result<(), csv::Error> {
        self.0.write_record([part, &harmless(value), &count.total.to_string(), &count.bots.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use app::visit_stats::RangeCount;
    use visits::{
        DAY, Day, TimeRange,
        series::Interval,
        tally::{Dimension, Estimate},
    };

    use super::*;

    const START: i64 = 1_764_028_800_000_000; // 2025-11-25T00:00:00Z

    fn stats(referrers: &[&str]) -> VisitStats {
        let count = VisitCount { total: 3, bots: 1 };
        let counted = |from: i64| RangeCount {
            range: TimeRange { from, before: from + DAY },
            visits: count,
            points: vec![(from, count)],
        };
        let exact = Estimate { count: 0, is_exact: true };
        let values = referrers.iter().map(|referrer| ((*referrer).to_owned(), count)).collect();
        VisitStats {
            current: counted(START),
            interval: Interval::Day,
            days: (Day::of(START), Day::of(START)),
            dimensions: vec![(Dimension::Referrer, values)],
            visitors: exact,
            addresses: exact,
            previous: Some(counted(START - DAY)),
        }
    }

    fn written(referrers: &[&str]) -> String {
        String::from_utf8(write(&stats(referrers), &TimeZone::UTC).unwrap()).unwrap()
    }

    #[test]
    fn series_and_rankings_are_one_table() {
        assert_eq!(
            written(&["example.com", "a,\"b\""]),
            "part,value,visits,bots\n\
             previous,2025-11-24T00:00:00+00:00,3,1\n\
             series,2025-11-25T00:00:00+00:00,3,1\n\
             referrer,example.com,3,1\n\
             referrer,\"a,\"\"b\"\"\",3,1\n"
        );
    }

    #[test]
    fn no_cell_begins_like_a_formula() {
        let formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"];
        let table = written(&formulas);
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let cells: Vec<String> =
            reader.records().skip(2).map(|record| record.unwrap()[1].to_owned()).collect();
        assert_eq!(cells, formulas.map(|formula| format!("'{formula}")));
    }
}
