//! Pages of lists, as Shlink counts them.

use app::FieldErrors;
use dto::Pagination;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paging {
    pub(super) page: u64,
    /// The number of items per page; `None` for all.
    pub(super) per_page: Option<u64>,
}

impl Paging {
    /// Reads `page` and `itemsPerPage` of a list of visits or tags. As in Shlink, a page below 1 is
    /// the first one, and a size below 1 asks for all items, as does no size. A text that is no
    /// number is recorded as wrong, although Shlink takes it for 0: a misspelled size would be
    /// answered with all visits.
    pub(super) fn read(page: Option<&str>, per_page: Option<&str>, wrong: &mut FieldErrors) -> Self {
        let mut number = |name, text| wrong.note(name, integer(text)).flatten();
        let page = number("page", page).and_then(from_1).unwrap_or(1);
        let per_page = number("itemsPerPage", per_page).and_then(from_1);
        Self { page, per_page }
    }

    pub(super) fn of<T>(self, items: Vec<T>) -> Vec<T> {
        let Some(per_page) = self.per_page else { return items };
        let most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let first = most((self.page - 1).saturating_mul(per_page));
        items.into_iter().skip(first).take(most(per_page)).collect()
    }
}

fn integer(text: Option<&str>) -> Result<Option<i64>, String> {
    text.map(str::parse).transpose().map_err(|_| "expected a whole number".to_owned())
}

fn from_1(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

/// Parses the number of a page of links, which Shlink checks; 1 without one.
pub(super) fn page_number(text: Option<&str>) -> Result<u64, String> {
    let page = text.map_or(Ok(1), str::parse);
    page.ok().filter(|page| *page > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

/// Parses the size of a page of links, which Shlink checks; `None` for all.
pub(super) fn page_size(text: &str) -> Result<Option<u64>, String> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(count) if count > 0 => Ok(u64::try_from(count).ok()),
        _ => Err("expected a number from 1, or -1 for all".to_owned()),
    }
}

/// Describes the position of a page. An empty list has one page.
pub(super) fn pagination(paging: Paging, in_page: usize, total: u64) -> Pagination {
    let per_page = paging.per_page.unwrap_or(total.max(1));
    Pagination {
        current_page: paging.page,
        pages_count: total.div_ceil(per_page).max(1),
        items_per_page: per_page,
        items_in_current_page: in_page as u64,
        total_items: total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_1_are_the_first_page_and_all_items_and_words_are_wrong() {
        let read = |page, per_page| {
            let mut wrong = FieldErrors::default();
            let paging = Paging::read(page, per_page, &mut wrong);
            wrong.finish().is_ok().then_some((paging.page, paging.per_page))
        };
        for (page, per_page, expected) in [
            (None, None, (1, None)),
            (Some("3"), Some("20"), (3, Some(20))),
            (Some("0"), Some("0"), (1, None)),
            (Some("-7"), Some("-1"), (1, None)),
            (None, Some("-9223372036854775808"), (1, None)),
        ] {
            assert_eq!(read(page, per_page), Some(expected), "{page:?} {per_page:?}");
        }
        for wrong in ["many", "1.5", "0x1", "9223372036854775808"] {
            assert_eq!((read(Some(wrong), None), read(None, Some(wrong))), (None, None), "{wrong}");
        }
    }

    #[test]
    fn pages_are_counted_as_shlink_counts_them() {
        let paging = |page, per_page| Paging { page, per_page };
        let counts = |paging: Paging, total: u64| {
            let told = pagination(paging, paging.of((0..total).collect()).len(), total);
            [told.pages_count, told.items_per_page, told.items_in_current_page]
        };
        assert_eq!(counts(paging(1, Some(10)), 0), [1, 10, 0]);
        assert_eq!(counts(paging(2, Some(10)), 15), [2, 10, 5]);
        assert_eq!(counts(paging(9, Some(10)), 15), [2, 10, 0]);
        assert_eq!(counts(paging((1 << 62) + 1, Some(4)), 15), [4, 4, 0], "no number wraps");
        assert_eq!(counts(paging(1, None), 3), [1, 3, 3]);
        assert_eq!(counts(paging(1, None), 0), [1, 1, 0]);
    }
}
