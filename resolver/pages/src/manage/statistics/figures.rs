//! Figures of a statistics page, as texts.

use std::cmp::Ordering;

use visits::{
    tally::{Estimate, RELATIVE_ERROR},
    tenths_of_percent,
};

use crate::locale::Locale;

/// The minus of numbers, as wide as the plus.
const MINUS: char = '−';

/// Returns a change as sign and percentage, for the eye, and in words.
pub(super) fn change(visits: &u64, before: &u64, t: &Locale) -> (String, String) {
    let size = tenths_of_percent(visits.abs_diff(*before), *before);
    match (size, visits.cmp(before)) {
        (_, Ordering::Equal) => (format!("{} %", percent(0, t)), t.text("stats-change-none")),
        // There is no percentage of nothing.
        (None, _) => ("–".to_owned(), t.text("stats-change-new")),
        (Some(tenths), Ordering::Greater) => {
            let value = percent(tenths, t);
            (format!("+{value} %"), t.with("stats-change-more", value))
        }
        (Some(tenths), Ordering::Less) => {
            let value = percent(tenths, t);
            (format!("{MINUS}{value} %"), t.with("stats-change-less", value))
        }
    }
}

pub(super) fn exactness(estimate: &Estimate, t: &Locale) -> String {
    if estimate.is_exact {
        return t.text("stats-exact");
    }
    t.with("stats-error", format!("{:.1}", 100.0 * RELATIVE_ERROR))
}

/// Formats tenths of a percent as a percentage with one decimal, without the sign.
pub(super) fn percent(tenths: u64, t: &Locale) -> String {
    format!("{}.{}", t.number(&(tenths / 10)), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::english;

    #[test]
    fn changes_have_a_sign_and_words() {
        let t = english();
        let shown = |visits, before| change(&visits, &before, t).0;
        assert_eq!(shown(30, 20), "+50.0 %");
        assert_eq!(shown(20, 30), "−33.3 %");
        assert_eq!(shown(0, 30), "−100.0 %");
        assert_eq!((shown(7, 7), shown(0, 0)), ("0.0 %".to_owned(), "0.0 %".to_owned()));
        assert_eq!(shown(7, 0), "–");
        assert_eq!(shown(123_457, 100), "+123,357.0 %");
        assert!(change(&20, &30, t).1.contains("33.3 %"));
    }

    #[test]
    fn estimates_state_their_error() {
        let t = english();
        assert_eq!(exactness(&Estimate { count: 1_234, is_exact: false }, t), "± 1.6 %");
        assert_eq!(exactness(&Estimate { count: 7, is_exact: true }, t), t.text("stats-exact"));
    }
}
