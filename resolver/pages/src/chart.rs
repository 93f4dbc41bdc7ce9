//! Bar charts, drawn on the server as SVG.
//!
//! 1. Bars stand on zero, and their heights are proportional to their numbers. The axis ends at a
//!    round number.
//! 2. Every coordinate is finite, whatever the numbers are, and has at most two decimals.
//! 3. There are only presentation attributes. The policy of pages forbids styles within them;
//!    colours are in `assets/style.css`.
//! 4. The chart is one image with a title and a description. Its numbers belong in a table beside
//!    it, because a screen reader reads the description only.
//!
//! Rejected: a canvas, which is empty without scripts.

use askama::Template;

use crate::locale::Locale;

/// Size of the picture. The style sheet scales it.
const WIDTH: f64 = 780.0;
const HEIGHT: f64 = 260.0;
/// Left edge of the bars; numbers stand before it.
const LEFT: f64 = 72.0;
/// Right edge of the bars; half of the last time stands behind it.
const RIGHT: f64 = WIDTH - 36.0;
const TOP: f64 = 14.0;
/// Lower edge of the bars; times stand below it.
const BASE: f64 = HEIGHT - 28.0;
const BAR_SHARE: f64 = 0.8;
/// Maximum width of a bar: few bars would be blocks.
const BAR_MAX: f64 = 64.0;
/// Distance of texts from the edges of the bars.
const TEXT_GAP: f64 = 8.0;
/// Maximum number of intervals between grid lines, and of times below the bars.
const GRID_MAX: u64 = 4;
const TIMES_MAX: usize = 8;

/// A number of a chart or a map.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// The time below the bar, if there is room for it, or the code of the country.
    pub(crate) label: String,
    pub(crate) text: String,
    pub(crate) number: u64,
}

/// A bar chart. The template escapes every text. A bar stands in a slot of the full height, so that
/// a pointer finds the text of a low one.
#[derive(Debug, Template)]
#[template(path = "chart.html")]
pub(crate) struct Chart {
    title: String,
    text: String,
    values: Vec<Value>,
    /// Numbers that are drawn as a dashed line from the first bar on.
    before: Vec<u64>,
    /// The numbers of the grid lines, with their texts; the last one is the end of the axis.
    grid: Vec<(u64, String)>,
}

impl Chart {
    /// Draws values as bars, and the numbers of `before` as a dashed line.
    pub(crate) fn new(title: String, text: String, values: Vec<Value>, before: Vec<u64>, t: &Locale) -> Self {
        let most = values.iter().map(|value| value.number).chain(before.iter().copied()).max().unwrap_or(0);
        let step = grid_step(most);
        let numbers = (0..=most.div_ceil(step).max(1)).map(|index| index.saturating_mul(step));
        let grid = numbers.map(|number| (number, t.number(&number))).collect();
        Self { title, text, values, before, grid }
    }

    fn slot_width(&self) -> f64 {
        rounded((RIGHT - LEFT) / self.values.len().max(1) as f64)
    }

    fn bar_width(&self) -> f64 {
        let width = BAR_SHARE * (RIGHT - LEFT) / self.values.len().max(1) as f64;
        rounded(width.min(BAR_MAX))
    }

    /// Returns the left edge of a bar, which stands in the middle of its slot.
    fn bar_x(&self, slot: &usize) -> f64 {
        rounded(self.x(slot, 0.5) - self.bar_width() / 2.0)
    }

    /// Returns a place within a slot: 0 is its left edge, 1 its right one.
    fn x(&self, slot: &usize, within: f64) -> f64 {
        let width = (RIGHT - LEFT) / self.values.len().max(1) as f64;
        rounded(LEFT + (*slot as f64 + within) * width)
    }

    fn height(&self, number: &u64) -> f64 {
        let end = self.grid.last().map_or(1, |(end, _)| *end).max(1);
        rounded((*number as f64 / end as f64).min(1.0) * (BASE - TOP))
    }

    fn y(&self, number: &u64) -> f64 {
        rounded(BASE - self.height(number))
    }

    /// Returns as many times as there is room for, at equal distances, with their slots.
    fn times(&self) -> Vec<(usize, &str)> {
        let every = self.values.len().div_ceil(TIMES_MAX).max(1);
        self.values.iter().map(|value| value.label.as_str()).enumerate().step_by(every).collect()
    }

    /// Returns the points of the dashed line through the middles of the slots; `None` without any.
    /// A single number becomes a line as wide as its slot.
    fn line(&self) -> Option<String> {
        let point = |slot: usize, within, number| format!("{},{}", self.x(&slot, within), self.y(number));
        let points: Vec<String> = match &self.before[..self.before.len().min(self.values.len())] {
            [] => return None,
            [only] => vec![point(0, 0.0, only), point(0, 1.0, only)],
            many => many.iter().enumerate().map(|(slot, number)| point(slot, 0.5, number)).collect(),
        };
        Some(points.join(" "))
    }
}

/// Rounds a coordinate to two decimals.
fn rounded(coordinate: f64) -> f64 {
    (coordinate * 100.0).round() / 100.0
}

/// Returns the distance of grid lines below which at most [`GRID_MAX`] intervals reach a number: 1,
/// 2 or 5 times a power of ten.
fn grid_step(most: u64) -> u64 {
    let steps = |power: u32| [1, 2, 5].map(|one| 10_u64.checked_pow(power)?.checked_mul(one));
    let mut steps = (0..=19).flat_map(steps).flatten();
    steps.find(|step| step.saturating_mul(GRID_MAX) >= most).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::english;

    fn drawn(numbers: &[u64], before: &[u64]) -> Chart {
        let value = |number: &u64| Value {
            label: "11-25".to_owned(),
            text: format!("2026-11-25: {number}"),
            number: *number,
        };
        let values = numbers.iter().map(value).collect();
        Chart::new("Visits".to_owned(), "Bars".to_owned(), values, before.to_vec(), english())
    }

    #[test]
    fn heights_are_proportional_and_bars_stand_on_zero() {
        let chart = drawn(&[0, 10, 20, 40], &[]);
        assert_eq!([0, 10, 20, 40].map(|number| chart.height(&number)), [0.0, 54.5, 109.0, 218.0]);
        assert!(
            [0, 10, 40].iter().all(|number| (chart.y(number) + chart.height(number) - BASE).abs() < 0.02)
        );
        assert!(chart.x(&0, 0.0) >= LEFT && chart.x(&3, 1.0) <= RIGHT && chart.y(&40) >= TOP);
        assert!(chart.bar_x(&0) + chart.bar_width() < chart.bar_x(&1));
        // Without visits the bars are flat, below 0 and 1.
        let flat = drawn(&[0, 0, 0], &[0, 0, 0]);
        assert_eq!((flat.height(&0), flat.y(&0), flat.grid.len()), (0.0, BASE, 2));
    }

    #[test]
    fn the_axis_ends_at_a_round_number_that_both_periods_fit_below() {
        let labels = |numbers: &[u64], before: &[u64]| {
            drawn(numbers, before).grid.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[3], &[]), ["0", "1", "2", "3"]);
        assert_eq!(labels(&[7, 2], &[1]), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(&[1], &[1_200]), ["0", "500", "1,000", "1,500"]);
        assert_eq!([0, 1, 4, 5, 8, 9, 20, 21, 40].map(grid_step), [1, 1, 1, 2, 2, 5, 5, 10, 10]);
    }

    #[test]
    fn every_coordinate_is_finite_and_text_is_escaped() {
        let many = vec![u64::MAX; 10_000];
        for (numbers, before) in
            [(&[][..], &[][..]), (&[], &[1, 2]), (&[0], &[0, 9]), (&[u64::MAX, 1], &many[..])]
        {
            let svg = drawn(numbers, before).render().unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf\"") && !svg.contains("style="), "{svg}");
            assert_eq!(svg.matches("<rect class=\"bar\"").count(), numbers.len());
        }
        let mut chart = drawn(&many, &[]);
        assert!(chart.times().len() <= TIMES_MAX);
        chart.title = "</title><script>".to_owned();
        assert!(!chart.render().unwrap().contains("<script>"));
    }

    #[test]
    fn bars_have_a_maximum_width_and_stand_in_the_middle_of_their_slots() {
        for (count, width) in [(1, BAR_MAX), (2, BAR_MAX), (30, 17.92)] {
            let chart = drawn(&vec![1; count], &[]);
            let before = chart.bar_x(&0) - chart.x(&0, 0.0);
            let behind = chart.x(&0, 1.0) - chart.bar_x(&0) - chart.bar_width();
            assert!((chart.bar_width() - width).abs() < 0.01, "{count}: {}", chart.bar_width());
            assert!((before - behind).abs() < 0.02, "{count}: {before} {behind}");
        }
    }

    #[test]
    fn the_line_has_a_point_for_each_bar_and_two_for_a_single_one() {
        let points = |numbers: &[u64], before: &[u64]| {
            drawn(numbers, before).line().map_or(0, |points| points.split(' ').count())
        };
        assert_eq!((points(&[1, 2], &[1, 2, 3]), points(&[1, 2, 3], &[1, 2])), (2, 2));
        assert_eq!((points(&[1, 2], &[]), points(&[], &[1])), (0, 0));
        let single = drawn(&[5], &[10]);
        assert_eq!(single.line().as_deref(), Some("72,14 744,14"));
        assert_eq!(single.times(), [(0, "11-25")]);
    }
}
