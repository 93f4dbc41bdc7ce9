//! Limits of a link's fields and of lists that no type enforces by itself.

use super::Slug;

/// Maximum length of a title in bytes. A longer one is cut, as in Shlink.
pub const TITLE_BYTES: usize = 512;
/// Maximum length of a description in bytes.
pub const DESCRIPTION_BYTES: usize = 4_096;
/// Maximum length of a code that is not a custom slug, in characters, as in Shlink.
pub const CODE_LEN_MAX: usize = Slug::MAX_LEN;
/// Maximum length of a domain's redirect for visitors that no link redirects, in bytes.
pub const STRAY_TARGET_BYTES: usize = 2_048;
/// Default number of links on a page of a list.
pub const PER_PAGE: u64 = 10;
/// Maximum number of links on a page of a list.
pub const PER_PAGE_MAX: u64 = 10_000;
/// Maximum number of links counted for a list's total. A longer list reports this number, because
/// an exact total would read all links for each page.
pub const COUNTED_MAX: u64 = 1_000_000;
/// Maximum number of links that one call for many changes.
pub const BULK_PAGE_MAX: u64 = 10_000;
/// Default number of links that one call for many changes.
pub const BULK_PAGE: u64 = 1_000;
/// Maximum number of links that one call for many changes by their names.
pub const BULK_NAMES_MAX: usize = 1_000;

/// Maximum number of scheduled edits of a link, those that failed included.
pub const SCHEDULED_PER_LINK: u32 = 10;
/// Maximum number of edits that an API key has scheduled, those that failed included.
pub const SCHEDULED_PER_KEY: u32 = 10_000;

/// Returns how many wanted visits a link grants that has granted `used` of its limit.
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
