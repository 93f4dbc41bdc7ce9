//! The download: series and rankings as CSV (RFC 4180).
//!
//! One table holds everything, so that every record has the same columns. `part` is `series`,
//! `previous` for the period before, or the name of a dimension; `value` is the beginning of an
//! interval (RFC 3339) or a value of the dimension as the API returns it.

use app::{
    AppError,
    visit_stats::{VisitCount, VisitStats},
};
use jiff::tz::TimeZone;
use visits::series::rfc3339;

use crate::table;

const COLUMNS: [&str; 4] = ["part", "value", "visits", "bots"];

pub(super) fn write(stats: &VisitStats, zone: &TimeZone) -> Result<Vec<u8>, AppError> {
    let row = |part: &str, value: String, count: VisitCount| {
        [part.to_owned(), value, count.total.to_string(), count.bots.to_string()]
    };
    let previous = stats.previous.iter().map(|previous| ("previous", previous));
    let points = previous.chain([("series", &stats.current)]).flat_map(|(part, range)| {
        range.points.iter().map(move |(start, count)| row(part, rfc3339(*start, zone), *count))
    });
    let values = stats.dimensions.iter().flat_map(|(dimension, values)| {
        values.iter().map(move |(value, count)| row(dimension.as_str(), value.clone(), *count))
    });
    table::write(COLUMNS, points.chain(values))
}

#[cfg(test)]
mod tests {
    use visits::tally::Dimension;

    use super::{super::sample, *};

    #[test]
    fn series_and_rankings_are_one_table() {
        let count = VisitCount { total: 3, bots: 1 };
        let values = ["example.com", "a,\"b\""].map(|referrer| (referrer.to_owned(), count));
        let mut stats = sample::stats(&[2], Some(&[1]));
        stats.dimensions = vec![(Dimension::Referrer, values.to_vec())];
        assert_eq!(
            String::from_utf8(write(&stats, &TimeZone::UTC).unwrap()).unwrap(),
            "part,value,visits,bots\r\n\
             previous,2025-11-16T00:00:00+00:00,1,0\r\n\
             series,2025-11-25T00:00:00+00:00,2,0\r\n\
             referrer,example.com,3,1\r\n\
             referrer,\"a,\"\"b\"\"\",3,1\r\n"
        );
    }
}
