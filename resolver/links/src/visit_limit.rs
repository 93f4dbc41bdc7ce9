//! Visit limits: how many redirects a link has left.

/// Returns how many of the wanted visits a link grants that has granted `used` before. A link
/// without a limit grants all of them.
pub fn granted_visits(limit: Option<u64>, used: u64, wanted: u64) -> u64 {
    limit.map_or(wanted, |limit| wanted.min(limit.saturating_sub(used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_visits_are_granted_than_are_left() {
        assert_eq!(granted_visits(None, 9, 5), 5);
        assert_eq!(granted_visits(Some(10), 7, 2), 2);
        assert_eq!(granted_visits(Some(10), 7, 5), 3);
        assert_eq!(granted_visits(Some(10), 10, 1), 0);
        assert_eq!(granted_visits(Some(3), 10, 1), 0, "the limit was lowered");
    }
}
