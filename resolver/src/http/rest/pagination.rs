//! Pages of lists, as Shlink counts them.

use serde_json::{Value, json};

use super::query::Query;

/// Which page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Paging {
    /// From 1.
    pub(super) page: u64,
    /// None for all.
    pub(super) per_page: Option<u64>,
}

impl Paging {
    /// Reads a query's `page` and `itemsPerPage`; without the latter everything is on one page.
    pub(super) fn read(query: &Query) -> Result<Self, (&'static str, String)> {
        Ok(Self {
            page: Self::page(query).map_err(|expected| ("page", expected))?,
            per_page: Self::per_page(query, None).map_err(|expected| ("itemsPerPage", expected))?,
        })
    }

    pub(super) fn page(query: &Query) -> Result<u64, String> {
        let page = query.text("page").map_or(Ok(1), str::parse);
        page.ok().filter(|page| *page > 0).ok_or_else(|| "expected a number from 1".to_owned())
    }

    /// -1 asks for all.
    pub(super) fn per_page(query: &Query, default: Option<u64>) -> Result<Option<u64>, String> {
        let Some(text) = query.text("itemsPerPage") else { return Ok(default) };
        match text.parse::<i64>() {
            Ok(-1) => Ok(None),
            Ok(count) if count > 0 => Ok(u64::try_from(count).ok()),
            _ => Err("expected a number from 1, or -1 for all".to_owned()),
        }
    }

    /// The items of the wanted page.
    pub(super) fn of<T>(self, items: Vec<T>) -> Vec<T> {
        let Some(per_page) = self.per_page else { return items };
        let most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let first = most((self.page - 1).saturating_mul(per_page));
        items.into_iter().skip(first).take(most(per_page)).collect()
    }
}

/// What is told of a page. An empty list has one page.
pub(super) fn pagination(paging: Paging, in_page: usize, total: u64) -> Value {
    let per_page = paging.per_page.unwrap_or(total.max(1));
    json!({
        "currentPage": paging.page,
        "pagesCount": total.div_ceil(per_page).max(1),
        "itemsPerPage": per_page,
        "itemsInCurrentPage": in_page,
        "totalItems": total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_as_shlink_counts_them() {
        let paging = |page, per_page| Paging { page, per_page };
        let counts = |paging: Paging, total: u64| {
            let told = pagination(paging, paging.of((0..total).collect()).len(), total);
            ["pagesCount", "itemsPerPage", "itemsInCurrentPage"].map(|name| told[name].as_u64().unwrap())
        };
        assert_eq!(counts(paging(1, Some(10)), 0), [1, 10, 0]);
        assert_eq!(counts(paging(2, Some(10)), 15), [2, 10, 5]);
        assert_eq!(counts(paging(9, Some(10)), 15), [2, 10, 0]);
        assert_eq!(counts(paging(1, None), 3), [1, 3, 3]);
        assert_eq!(counts(paging(1, None), 0), [1, 1, 0]);
    }
}
