//! Pages of lists, as Shlink counts them.

use app::FieldErrors;
use dto::Pagination;

/// The requested page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paging {
    /// The page, from 1.
    pub(super) page: u64,
    /// The number of items per page; `None` for all.
    pub(super) per_page: Option<u64>,
}

impl Paging {
    /// Reads `page` and `itemsPerPage`; without the latter everything is on one page. Wrong values
    /// are recorded.
    pub(super) fn read(page: Option<&str>, per_page: Option<&str>, wrong: &mut FieldErrors) -> Self {
        let page = wrong.note("page", page_number(page)).unwrap_or(1);
        let per_page = wrong.note("itemsPerPage", per_page.map_or(Ok(None), page_size)).flatten();
        Self { page, per_page }
    }

    /// Returns the items of the page.
    pub(super) fn of<T>(self, items: Vec<T>) -> Vec<T> {
        let Some(per_page) = self.per_page else { return items };
        let most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let first = most((self.page - 1).saturating_mul(per_page));
        items.into_iter().skip(first).take(most(per_page)).collect()
    }
}

/// Parses the number of a page; 1 without one.
pub(super) fn page_number(text: Option<&str>) -> Result<u64, String> {
    let page = text.map_or(Ok(1), str::parse);
    page.ok().filter(|page| *page > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

/// Parses the size of a page; `None` for all.
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
    fn pages_are_counted_as_shlink_counts_them() {
        let paging = |page, per_page| Paging { page, per_page };
        let counts = |paging: Paging, total: u64| {
            let told = pagination(paging, paging.of((0..total).collect()).len(), total);
            [told.pages_count, told.items_per_page, told.items_in_current_page]
        };
        assert_eq!(counts(paging(1, Some(10)), 0), [1, 10, 0]);
        assert_eq!(counts(paging(2, Some(10)), 15), [2, 10, 5]);
        assert_eq!(counts(paging(9, Some(10)), 15), [2, 10, 0]);
        assert_eq!(counts(paging(1, None), 3), [1, 3, 3]);
        assert_eq!(counts(paging(1, None), 0), [1, 1, 0]);
    }
}
