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
/// See [`WIDTH`].
const HEIGHT: f64 = 260.0;
/// Left edge of the bars; numbers stand before it.
const LEFT: f64 = 72.0;
/// Right edge of the bars; half of the last time stands behind it.
const RIGHT: f64 = WIDTH - 36.0;
/// Upper edge of the bars.
const TOP: f64 = 14.0;
/// Lower edge of the bars; times stand below it.
const BASE: f64 = HEIGHT - 28.0;
/// The part of a slot that its bar takes.
const BAR_SHARE: f64 = 0.8;
/// Distance of texts from the edges of the bars.
const TEXT_GAP: f64 = 8.0;
/// Maximum number of intervals between grid lines, and of times below the bars.
const GRID_MAX: u64 = 4;
/// See [`GRID_MAX`].
const TIMES_MAX: usize = 8;

/// A number that a chart shows as a bar.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// The time below the bar, if there is room for it.
    pub(crate) time: String,
    /// The text of the bar: its time and number.
    pub(crate) text: String,
    /// The number.
    pub(crate) number: u64,
}

/// A bar chart with its coordinates. The template escapes every text.
#[derive(Debug, Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" role="img" aria-labelledby="chart-title" aria-describedby="chart-text"
 viewBox="0 0 {{ width }} {{ height }}">
<title id="chart-title">{{ title }}</title><desc id="chart-text">{{ text }}</desc>
{% for line in grid -%}
<line class="grid" x1="{{ line.left }}" x2="{{ line.right }}" y1="{{ line.y }}" y2="{{ line.y }}"/>
<text x="{{ line.label.x }}" y="{{ line.label.y }}" text-anchor="end">{{ line.label.text }}</text>
{% endfor %}
{%- for bar in bars -%}
<g><title>{{ bar.text }}</title>
<rect class="slot" x="{{ bar.slot_x }}" y="{{ bar.slot_y }}"
 width="{{ bar.slot_width }}" height="{{ bar.slot_height }}"/>
<rect class="bar" x="{{ bar.x }}" y="{{ bar.y }}" width="{{ bar.width }}" height="{{ bar.height }}"/></g>
{% endfor %}
{%- for time in times -%}
<text x="{{ time.x }}" y="{{ time.y }}" text-anchor="middle">{{ time.text }}</text>
{% endfor %}
{%- if let Some(points) = before %}<polyline class="before" points="{{ points }}"/>{% endif %}
</svg>"#
)]
pub(crate) struct Chart {
    /// Size of the picture.
    width: f64,
    /// See `width`.
    height: f64,
    title: String,
    text: String,
    grid: Vec<GridLine>,
    bars: Vec<Bar>,
    times: Vec<Label>,
    /// The points of the dashed line.
    before: Option<String>,
}

/// A horizontal line with its number.
#[derive(Clone, Debug)]
struct GridLine {
    left: f64,
    right: f64,
    y: f64,
    label: Label,
}

/// A text in the picture.
#[derive(Clone, Debug)]
struct Label {
    x: f64,
    y: f64,
    text: String,
}

/// A bar in its slot. The slot has the full height, so that a pointer finds the text of a low bar.
#[derive(Clone, Debug)]
struct Bar {
    slot_x: f64,
    slot_y: f64,
    slot_width: f64,
    slot_height: f64,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    text: String,
}

impl Chart {
    /// Draws values as bars, and the numbers of `before` as a dashed line from the first bar on.
    /// Title and text describe the picture.
    pub(crate) fn new((title, text): (String, String), values: &[Value], before: &[u64], t: &Locale) -> Self {
        let most = values.iter().map(|value| value.number).chain(before.iter().copied()).max().unwrap_or(0);
        let step = grid_step(most);
        let end = most.div_ceil(step).max(1).saturating_mul(step);
        let slots = Slots::new(values.len());
        // As many times as there is room for, at equal distances.
        let every = values.len().div_ceil(TIMES_MAX).max(1);
        let times = values.iter().enumerate().step_by(every);
        Self {
            width: WIDTH,
            height: HEIGHT,
            title,
            text,
            grid: grid(step, end, t),
            bars: values.iter().enumerate().map(|(index, value)| slots.bar(index, value, end)).collect(),
            times: times.map(|(index, value)| slots.time(index, value)).collect(),
            before: slots.line(before, end),
        }
    }
}

/// The places of bars, from left to right.
#[derive(Clone, Copy, Debug)]
struct Slots {
    count: usize,
    width: f64,
}

impl Slots {
    /// Divides the width among some bars.
    fn new(count: usize) -> Self {
        Self { count, width: (RIGHT - LEFT) / count.max(1) as f64 }
    }

    /// Returns the left edge of a slot.
    fn left(self, index: usize) -> f64 {
        LEFT + index as f64 * self.width
    }

    /// Returns the middle of a slot.
    fn middle(self, index: usize) -> f64 {
        self.left(index) + self.width / 2.0
    }

    /// Draws the bar of a value on an axis that ends at `end`.
    fn bar(self, index: usize, value: &Value, end: u64) -> Bar {
        let height = rounded(height_of(value.number, end));
        let margin = self.width * (1.0 - BAR_SHARE) / 2.0;
        Bar {
            slot_x: rounded(self.left(index)),
            slot_y: TOP,
            slot_width: rounded(self.width),
            slot_height: BASE - TOP,
            x: rounded(self.left(index) + margin),
            y: rounded(BASE - height),
            width: rounded(self.width * BAR_SHARE),
            height,
            text: value.text.clone(),
        }
    }

    /// Writes the time of a value below its bar.
    fn time(self, index: usize, value: &Value) -> Label {
        Label { x: rounded(self.middle(index)), y: HEIGHT - TEXT_GAP, text: value.time.clone() }
    }

    /// Returns the points of a line through the middles of the slots; `None` without numbers. A
    /// single number becomes a line as wide as its slot. Numbers without a slot are left out.
    fn line(self, numbers: &[u64], end: u64) -> Option<String> {
        let point =
            |x: f64, number: u64| format!("{},{}", rounded(x), rounded(BASE - height_of(number, end)));
        let points: Vec<String> = match &numbers[..numbers.len().min(self.count)] {
            [] => return None,
            [only] => vec![point(self.left(0), *only), point(self.left(1), *only)],
            many => {
                let points = many.iter().enumerate();
                points.map(|(index, number)| point(self.middle(index), *number)).collect()
            }
        };
        Some(points.join(" "))
    }
}

/// Returns the height of a number on an axis that ends at `end`.
fn height_of(number: u64, end: u64) -> f64 {
    if end == 0 { 0.0 } else { (number as f64 / end as f64).min(1.0) * (BASE - TOP) }
}

/// Rounds a coordinate to two decimals.
fn rounded(coordinate: f64) -> f64 {
    (coordinate * 100.0).round() / 100.0
}

/// Draws lines at the multiples of `step` up to `end`, with their numbers.
fn grid(step: u64, end: u64, t: &Locale) -> Vec<GridLine> {
    let numbers = (0..=end / step).map(|index| index.saturating_mul(step));
    let line = |number: u64| {
        let y = rounded(BASE - height_of(number, end));
        let label = Label { x: LEFT - TEXT_GAP, y: y + 4.0, text: t.number(&number) };
        GridLine { left: LEFT, right: RIGHT, y, label }
    };
    numbers.map(line).collect()
}

/// Returns the distance of grid lines below which at most [`GRID_MAX`] intervals reach a number: 1,
/// 2 or 5 times a power of ten.
fn grid_step(most: u64) -> u64 {
    let powers = (0..=19).filter_map(|power| 10_u64.checked_pow(power));
    let mut steps =
        powers.flat_map(|power| [1, 2, 5].into_iter().filter_map(move |one| power.checked_mul(one)));
    steps.find(|step| step.saturating_mul(GRID_MAX) >= most).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::Locales;

    fn drawn(numbers: &[u64], before: &[u64]) -> Chart {
        let value = |number: &u64| Value {
            time: "11-25".to_owned(),
            text: format!("2026-11-25: {number}"),
            number: *number,
        };
        let values: Vec<Value> = numbers.iter().map(value).collect();
        let locales = Locales::embedded();
        Chart::new(("Visits".to_owned(), "Bars".to_owned()), &values, before, locales.find("en").unwrap())
    }

    #[test]
    fn heights_are_proportional_and_bars_stand_on_zero() {
        let chart = drawn(&[0, 10, 20, 40], &[]);
        let heights: Vec<f64> = chart.bars.iter().map(|bar| bar.height).collect();
        assert_eq!(heights, [0.0, 54.5, 109.0, 218.0]);
        for bar in &chart.bars {
            assert!((bar.y + bar.height - BASE).abs() < 0.02, "{bar:?}");
            assert!(bar.x >= LEFT && bar.x + bar.width <= RIGHT && bar.y >= TOP, "{bar:?}");
        }
        assert!(chart.bars.is_sorted_by(|one, other| one.x + one.width < other.x));
    }

    #[test]
    fn the_axis_ends_at_a_round_number_that_both_periods_fit_below() {
        let ends = |numbers: &[u64], before: &[u64]| {
            let chart = drawn(numbers, before);
            chart.grid.iter().map(|line| line.label.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[3], &[]), ["0", "1", "2", "3"]);
        assert_eq!(ends(&[7, 2], &[1]), ["0", "2", "4", "6", "8"]);
        assert_eq!(ends(&[1], &[1_200]), ["0", "500", "1,000", "1,500"]);
        assert_eq!([0, 1, 4, 5, 8, 9, 20, 21, 40].map(grid_step), [1, 1, 1, 2, 2, 5, 5, 10, 10]);
    }

    #[test]
    fn without_visits_the_bars_are_flat() {
        let chart = drawn(&[0, 0, 0], &[0, 0, 0]);
        assert!(chart.bars.iter().all(|bar| bar.height == 0.0 && (bar.y - BASE).abs() < 0.01));
        assert_eq!(chart.grid.len(), 2, "0 and 1");
    }

    #[test]
    fn one_point_fills_the_width_and_its_line_has_two_ends() {
        let chart = drawn(&[5], &[10]);
        assert_eq!((chart.bars.len(), chart.times.len()), (1, 1));
        assert!(chart.bars[0].width > (RIGHT - LEFT) / 2.0);
        assert_eq!(chart.before.as_deref(), Some("72,14 744,14"));
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
        assert!(chart.times.len() <= TIMES_MAX);
        chart.title = "</title><script>".to_owned();
        assert!(!chart.render().unwrap().contains("<script>"));
    }

    #[test]
    fn a_longer_period_before_is_cut_at_the_last_bar() {
        let points = |numbers: &[u64], before: &[u64]| {
            drawn(numbers, before).before.map_or(0, |points| points.split(' ').count())
        };
        assert_eq!((points(&[1, 2], &[1, 2, 3]), points(&[1, 2, 3], &[1, 2])), (2, 2));
        assert_eq!((points(&[1, 2], &[]), points(&[], &[1])), (0, 0));
    }
}
