//! A list that is in memory and shown page by page, with the addresses that lead to its other pages
//! and back to it.

use crate::{addresses::with_parameter, form::Form};

const PER_PAGE: usize = 50;
/// The field of a query that says that a form was stored.
pub(super) const STORED: &str = "stored";
/// The other fields of the queries of lists. Unknown ones would be repeated in every row.
pub(super) const KNOWN: [&str; 12] = [
    "search", "tag", "domain", "order", "page", "before", "id", "deleted", "visits", "created", "ended",
    "count",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paged {
    /// The number of entries on all pages. If they were not all counted, there are more.
    pub(super) total: u64,
    pub(super) page: u64,
    /// The number of pages; `None` if the entries were not all counted.
    pub(super) pages: Option<u64>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Where the forms of the list are sent to: the same page of it.
    pub(super) action: String,
}

impl Paged {
    /// Describes a page of a list with so many entries, `per_page` of them on each page.
    pub(super) fn new(total: u64, page: u64, per_page: u64, path: &str, query: &Form) -> Self {
        let pages = total.div_ceil(per_page).max(1);
        let to = |page: u64| format!("{path}?{}", query.only(&KNOWN).query_with("page", &page.to_string()));
        let before = (page > 1).then(|| to(page - 1));
        let after = (page < pages).then(|| to(page + 1));
        Self { total, page, pages: Some(pages), before, after, action: address(path, query) }
    }

    /// Cuts the page that the query names out of a list. A number that is too high is that of the
    /// last page: the deletion of its last entry leads back to it.
    pub(super) fn cut<T>(list: Vec<T>, path: &str, query: &Form) -> (Self, Vec<T>) {
        let pages = list.len().div_ceil(PER_PAGE).max(1);
        let asked = query.get("page").and_then(|page| page.trim().parse().ok()).unwrap_or(1);
        let page: usize = usize::clamp(asked, 1, pages);
        let paged = Self::new(list.len() as u64, page as u64, PER_PAGE as u64, path, query);
        (paged, list.into_iter().skip((page - 1) * PER_PAGE).take(PER_PAGE).collect())
    }
}

/// Returns the address of a list with the same query: where its forms are sent to.
pub(super) fn address(path: &str, query: &Form) -> String {
    let query = query.only(&KNOWN).query();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Returns the address of a list with the same query, and the notice that a form was stored.
pub(super) fn stored_address(path: &str, query: &Form) -> String {
    with_parameter(&address(path, query), STORED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(total: usize, query: &str) -> (Paged, Vec<usize>) {
        Paged::cut((0..total).collect(), "/p", &Form::parse(query.as_bytes()))
    }

    #[test]
    fn a_page_is_cut_out_and_leads_to_its_neighbours() {
        let (paged, list) = cut(120, "search=a+b&page=2&stored");
        assert_eq!((paged.total, paged.page, paged.pages), (120, 2, Some(3)));
        assert_eq!((list[0], list.len()), (50, 50));
        assert_eq!(paged.before.as_deref(), Some("/p?search=a+b&page=1"));
        assert_eq!(paged.after.as_deref(), Some("/p?search=a+b&page=3"));
    }

    #[test]
    fn a_page_that_does_not_exist_is_the_nearest_one() {
        for (total, query, page, len) in [
            (0, "", 1, 0),
            (50, "page=2", 1, 50),
            (51, "page=9", 2, 1),
            (51, "page=0", 1, 50),
            (1, "page=x", 1, 1),
        ] {
            let (paged, list) = cut(total, query);
            assert_eq!((paged.page, list.len()), (page, len), "{total} {query}");
        }
    }

    #[test]
    fn a_form_leads_back_to_the_page_that_it_was_on() {
        let query = |text: &str| Form::parse(text.as_bytes());
        assert_eq!(address("/p", &query("stored")), "/p");
        assert_eq!(stored_address("/p", &query("")), "/p?stored");
        assert_eq!(stored_address("/p", &query("stored&page=2")), "/p?page=2&stored");
    }
}
