//! Sparklines: a series as one line of bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a series in at most `width` cells. Neighbours are added up if there are more points. A point
/// without visits is a space; the highest one is a full bar.
pub(super) fn draw(series: &[u64], width: usize) -> String {
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
    use super::*;

    #[test]
    fn the_highest_point_is_a_full_bar_and_any_visit_is_seen() {
        assert_eq!(draw(&[0, 1, 50, 100], 10), " ▁▄█");
        assert_eq!(draw(&[1, 1], 10), "██");
        assert_eq!(draw(&[], 10), "");
        assert_eq!(draw(&[0, 0], 10), "  ");
        assert_eq!(draw(&[u64::MAX, u64::MAX, 1], 1), "█");
    }

    #[test]
    fn more_points_than_cells_are_added_up() {
        assert_eq!(draw(&[1, 1, 1, 1, 8, 8], 3), "▁▁█");
        assert_eq!(draw(&[2; 365], 50).chars().count(), 46);
    }
}
