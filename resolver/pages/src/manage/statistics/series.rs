//! Visits over time: the chart, and the table with the same numbers.

use app::visit_stats::{RangeCount, VisitCount, VisitStats};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use visits::series::Interval;

use crate::{
    chart::{Chart, Value},
    locale::Locale,
    markup::Markup,
};

pub(super) struct ShownSeries {
    pub(super) chart: Markup,
    pub(super) points: Vec<ShownPoint>,
    pub(super) has_before: bool,
}

pub(super) struct ShownPoint {
    pub(super) time: String,
    pub(super) visits: String,
    pub(super) bots: String,
    /// The visits of the interval at the same place of the period before; empty without one.
    pub(super) before: String,
}

impl ShownSeries {
    pub(super) fn new(stats: &VisitStats, zone: &TimeZone, t: &Locale) -> Self {
        let points = &stats.current.points;
        let before = stats.previous.as_ref().map(|previous| beside(previous, points.len()));
        let (long, short) = formats(stats.interval);
        let value = |(start, count): &(i64, VisitCount)| {
            let start = zoned(*start, zone);
            Value {
                label: start.strftime(short).to_string(),
                text: format!("{}: {}", start.strftime(long), t.count("count-visits", &count.total)),
                number: count.total,
            }
        };
        let values: Vec<Value> = points.iter().map(value).collect();
        let (from, until) = dates(&stats.current, zone);
        let (title, text) = (t.text("stats-over-time"), t.with_two("stats-chart-text", from, until));
        let chart = Chart::new(title, text, values, before.clone().unwrap_or_default(), t);
        let row = |(index, (start, count)): (usize, &(i64, VisitCount))| ShownPoint {
            time: zoned(*start, zone).strftime(long).to_string(),
            visits: t.number(&count.total),
            bots: t.number(&count.bots),
            before: before.as_ref().and_then(|before| Some(t.number(before.get(index)?))).unwrap_or_default(),
        };
        Self {
            chart: Markup::of(&chart),
            points: points.iter().enumerate().map(row).collect(),
            has_before: before.is_some(),
        }
    }
}

/// Returns the visits of the period before, one for each of `count` points from the first on.
///
/// Both periods have the same length, but weeks and months need not fall on their bounds alike. A
/// point too many is the first one, of which only a part is counted.
fn beside(previous: &RangeCount, count: usize) -> Vec<u64> {
    let extra = previous.points.len().saturating_sub(count);
    previous.points.iter().skip(extra).map(|(_, count)| count.total).collect()
}

/// Returns the first and the last day of a range, in a zone.
pub(super) fn dates(count: &RangeCount, zone: &TimeZone) -> (String, String) {
    (date(count.range.from, zone), date(count.range.before.saturating_sub(1), zone))
}

/// Returns the day of a time in microseconds since 1970, in a zone.
pub(super) fn date(at: i64, zone: &TimeZone) -> String {
    zoned(at, zone).date().to_string()
}

/// Returns the formats of times: whole, and short enough for the axis.
fn formats(interval: Interval) -> (&'static str, &'static str) {
    match interval {
        Interval::QuarterHour => ("%Y-%m-%d %H:%M", "%H:%M"),
        Interval::Hour => ("%Y-%m-%d %H:%M", "%m-%d %H:%M"),
        Interval::Day => ("%Y-%m-%d", "%m-%d"),
        Interval::Week => ("%Y-%m-%d", "%Y-%m-%d"),
        Interval::Month => ("%Y-%m", "%Y-%m"),
    }
}

fn zoned(at: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::MAX).to_zoned(zone.clone())
}

#[cfg(test)]
mod tests {
    use super::{
        super::sample::{START, counted, stats},
        *,
    };
    use crate::locale::english;

    fn befores(stats: &VisitStats) -> Vec<String> {
        let shown = ShownSeries::new(stats, &TimeZone::UTC, english());
        shown.points.into_iter().map(|point| point.before).collect()
    }

    #[test]
    fn the_table_has_the_numbers_of_the_chart() {
        let stats = stats(&[1_000, 0], Some(&[7, 8]));
        let shown = ShownSeries::new(&stats, &TimeZone::UTC, english());
        let svg = shown.chart.to_string();
        assert!(svg.contains("<title>2025-11-25: 1,000 visits</title>"), "{svg}");
        assert!(svg.contains("class=\"before\"") && shown.has_before);
        let first = &shown.points[0];
        assert_eq!((&*first.time, &*first.visits, &*first.before), ("2025-11-25", "1,000", "7"));
        assert_eq!(shown.points.len(), 2);
    }

    #[test]
    fn the_periods_are_laid_beside_each_other() {
        assert_eq!(befores(&stats(&[1, 2], Some(&[5, 6, 7]))), ["6", "7"]);
        assert_eq!(befores(&stats(&[1, 2], Some(&[5]))), ["5", ""]);
        assert_eq!(befores(&stats(&[1, 2], None)), ["", ""]);
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let shown = dates(&counted(START, &[1, 2]), &zone);
        assert_eq!(shown, ("2025-11-24".to_owned(), "2025-11-26".to_owned()));
        let shown = dates(&counted(START, &[1, 2]), &TimeZone::UTC);
        assert_eq!(shown, ("2025-11-25".to_owned(), "2025-11-26".to_owned()));
    }
}
