//! Visits and their statistics as tables.

use serde_json::Value;
use visits::tenths_of_percent;

use crate::table::{Field, List, grid, pairs, printable, rows, text, time};

/// Dimensions in the order in which they are shown, with their titles. Any other one follows under
/// its name.
const DIMENSIONS: [(&str, &str); 10] = [
    ("referrer", "referrers"),
    ("browser", "browsers"),
    ("os", "systems"),
    ("device", "devices"),
    ("country", "countries"),
    ("region", "regions"),
    ("city", "cities"),
    ("language", "languages"),
    ("outcome", "outcomes"),
    ("rule", "rules"),
];
const UNKNOWN: &str = "(unknown)";
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) const LIST: List = List {
    at: "/visits/data",
    empty: "no visits",
    fields: &[
        ("time", true, |visit| time(&visit["date"])),
        ("type", true, |visit| text(&visit["type"])),
        ("visited URL", false, |visit| text(&visit["visitedUrl"])),
        ("referrer", false, |visit| text(&visit["referer"])),
        ("country", true, |visit| text(&visit["visitLocation"]["countryCode"])),
        ("bot", true, |visit| if visit["potentialBot"] == true { "bot" } else { "" }.to_owned()),
        ("user agent", false, |visit| text(&visit["userAgent"])),
    ],
    below: |answer| {
        if rows(&answer["visits"]["data"]).is_empty() {
            return String::new();
        }
        let number = |name: &str| text(&answer["visits"]["pagination"][name]);
        let (page, pages, total) = (number("currentPage"), number("pagesCount"), number("totalItems"));
        format!("page {page} of {pages}, {total} visits\n")
    },
};

const POINTS: [Field; 3] = [
    ("begins", true, |point| time(&point["start"])),
    ("visits", true, |point| text(&point["total"])),
    ("of bots", true, |point| text(&point["bots"])),
];

/// Formats statistics: totals, the series, and the values of each dimension. On a terminal the
/// series is a line of bars.
pub(super) fn stats(stats: &Value, width: usize, is_terminal: bool) -> String {
    let distinct = |value: &Value| {
        let error = value["error"].as_f64().unwrap_or(0.0) * 100.0;
        match value["count"].as_u64() {
            Some(found) if error > 0.0 => format!("{found} (± {error:.1} %)"),
            Some(found) => found.to_string(),
            None => String::new(),
        }
    };
    let mut shown = pairs(&[
        ("from", time(&stats["startDate"])),
        ("until", time(&stats["endDate"])),
        ("visits", text(&stats["visits"]["total"])),
        ("of bots", text(&stats["visits"]["bots"])),
        ("visitors", distinct(&stats["visitors"])),
        ("addresses", distinct(&stats["addresses"])),
    ]);
    shown += &series(rows(&stats["series"]), &text(&stats["interval"]), width, is_terminal);
    for (name, title) in DIMENSIONS {
        shown += &dimension(title, rows(&stats["dimensions"][name]), width);
    }
    let is_other = |name: &str| DIMENSIONS.iter().all(|(known, _)| *known != name);
    let all = stats["dimensions"].as_object().into_iter().flatten();
    for (name, values) in all.filter(|(name, _)| is_other(name)) {
        shown += &dimension(&printable(name), rows(values), width);
    }
    shown
}

fn series(points: &[Value], interval: &str, width: usize, is_terminal: bool) -> String {
    if points.is_empty() {
        return String::new();
    }
    if is_terminal {
        let totals: Vec<u64> = points.iter().map(|point| point["total"].as_u64().unwrap_or(0)).collect();
        return format!("\nvisits by {interval}\n{}\n", sparkline(&totals, width));
    }
    format!("\nvisits by {interval}\n{}", grid(points, &POINTS, width))
}

/// Formats the values of a dimension with their shares. One of which nothing is known is left out.
fn dimension(title: &str, values: &[Value], width: usize) -> String {
    if values.iter().all(|value| text(&value["value"]).is_empty()) {
        return String::new();
    }
    let sum: u64 = values.iter().filter_map(|value| value["total"].as_u64()).sum();
    let row = |value: &Value| {
        let total = value["total"].as_u64().unwrap_or(0);
        let tenths = tenths_of_percent(total, sum).unwrap_or(0);
        let name = text(&value["value"]);
        let name = if name.is_empty() { UNKNOWN.to_owned() } else { name };
        [name, text(&value["total"]), format!("{}.{} %", tenths / 10, tenths % 10)]
    };
    let rows: Vec<[String; 3]> = values.iter().map(row).collect();
    let fields: [Field<'_, [String; 3]>; 3] = [
        (title, false, |row| row[0].clone()),
        ("visits", true, |row| row[1].clone()),
        ("share", true, |row| row[2].clone()),
    ];
    format!("\n{}", grid(&rows, &fields, width))
}

/// Draws a series as one line of bars, in at most `width` cells. Neighbours are added up if there
/// are more points. A point without visits is a space; the highest one is a full bar.
fn sparkline(series: &[u64], width: usize) -> String {
    let together = series.len().div_ceil(width.max(1)).max(1);
    let sums: Vec<u64> = series
        .chunks(together)
        .map(|points| points.iter().fold(0, |sum: u64, point| sum.saturating_add(*point)))
        .collect();
    let highest = sums.iter().copied().max().unwrap_or(0);
    sums.iter().map(|sum| bar(*sum, highest)).collect()
}

fn bar(sum: u64, highest: u64) -> char {
    if sum == 0 {
        return ' ';
    }
    // In eighths of the highest point, rounded up, so that a single visit is seen.
    let eighths = (u128::from(sum) * 8).div_ceil(u128::from(highest));
    BARS[usize::try_from(eighths).unwrap_or(BARS.len()).clamp(1, BARS.len()) - 1]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_visit_is_a_line_and_unknown_columns_are_left_out() {
        let visits = [json!({
            "date": "2026-11-25T10:00:00+00:00", "visitedUrl": "https://s.test/abc", "referer": "", "userAgent": "curl/8",
            "visitLocation": null, "potentialBot": true, "redirectUrl": null,
        })];
        let answer = |visits: &[Value]| {
            let pagination = json!({ "currentPage": 1, "pagesCount": 3, "totalItems": 41 });
            json!({ "visits": { "data": visits, "pagination": pagination } })
        };
        let expected = "time                 visited URL         bot  user agent\n\
                        2026-11-25 10:00:00  https://s.test/abc  bot  curl/8\n\
                        page 1 of 3, 41 visits\n";
        assert_eq!(LIST.format(&answer(&visits), 100), expected);
        assert_eq!(LIST.format(&answer(&[]), 100), "no visits\n");
    }

    #[test]
    fn statistics_have_totals_a_series_and_shares() {
        let answer = json!({
            "interval": "day", "startDate": "2026-11-24T00:00:00+00:00", "endDate": "2026-11-26T00:00:00+00:00",
            "visits": { "total": 3, "nonBots": 2, "bots": 1 },
            "series": [
                { "start": "2026-11-24T00:00:00+00:00", "total": 1, "bots": 1 },
                { "start": "2026-11-25T00:00:00+00:00", "total": 2, "bots": 0 },
            ],
            "dimensions": {
                "browser": [{ "value": "Firefox", "total": 2, "bots": 0 }, { "value": "", "total": 1, "bots": 1 }],
                "city": [{ "value": "", "total": 3, "bots": 1 }],
                "later": [{ "value": "x", "total": 3, "bots": 1 }],
            },
            "visitors": { "count": 2, "error": 0.025 }, "addresses": { "count": 1, "error": 0.0 },
        });
        let plain = stats(&answer, 80, false);
        for expected in [
            "visits     3\n",
            "visitors   2 (± 2.5 %)\n",
            "addresses  1\n",
            "2026-11-25 00:00:00  2       0\n",
            "browsers   visits  share\nFirefox    2       66.7 %\n(unknown)  1       33.3 %\n",
            "later  visits  share\nx      3       100.0 %\n",
        ] {
            assert!(plain.contains(expected), "{expected:?} in {plain}");
        }
        assert!(!plain.contains("cities"), "{plain}");
        assert!(stats(&answer, 80, true).contains("visits by day\n▄█\n"));
    }

    #[test]
    fn the_highest_point_is_a_full_bar_and_any_visit_is_seen() {
        assert_eq!(sparkline(&[0, 1, 50, 100], 10), " ▁▄█");
        assert_eq!(sparkline(&[1, 1], 10), "██");
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(sparkline(&[0, 0], 10), "  ");
        assert_eq!(sparkline(&[u64::MAX, u64::MAX, 1], 1), "█");
    }

    #[test]
    fn more_points_than_cells_are_added_up() {
        assert_eq!(sparkline(&[1, 1, 1, 1, 8, 8], 3), "▁▁█");
        assert_eq!(sparkline(&[2; 365], 50).chars().count(), 46);
    }
}
