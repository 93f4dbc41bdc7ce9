//! Shares of visits.

/// Returns a part of a whole in tenths of a percent, rounded; `None` if the whole is nothing.
pub fn tenths_of_percent(part: u64, whole: u64) -> Option<u64> {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 1_000 + whole / 2).checked_div(whole)?;
    Some(u64::try_from(tenths).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_and_nothing_overflows() {
        assert_eq!([1, 2, 999].map(|part| tenths_of_percent(part, 2_000)), [Some(1), Some(1), Some(500)]);
        assert_eq!(tenths_of_percent(5, 0), None);
        assert_eq!(tenths_of_percent(u64::MAX, 1), Some(u64::MAX));
        assert_eq!(tenths_of_percent(u64::MAX, u64::MAX), Some(1_000));
    }
}
