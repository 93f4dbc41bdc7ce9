//! Import of links from Rebrandly (<https://www.rebrandly.com>).
//!
//! Two forms are read. One is the responses of `GET /v1/links` (Rebrandly's developer
//! documentation, "Link entity"), any number of lists in sequence. The other is a table with the
//! same names, as `domain.fullName`, or with those of Rebrandly's pages.

use super::{
    hosted,
    item::Item,
    json::Shape,
    row::{Row, RowError},
    table::Layout,
};

pub(super) const SHAPE: Shape = Shape { alone: Some("destination"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = Layout {
    columns: &[
        "shortUrl shortLink brandedLink link",
        "code slashtag slug keyword",
        "domain domain.fullName",
        "domainName",
        "longUrl destination destinationUrl targetUrl",
        "title",
        "notes note",
        "description",
        "tags tag",
        "createdAt creationDate dateCreated created",
        "expiresAt expirationDate",
        "clicks totalClicks",
        "status",
        "archived",
        "hasPassword",
        "password",
        "forwardQuery forwardParameters",
    ],
    needed: &["longUrl"],
    is_closed: false,
    unnamed: None,
};

pub(super) fn of_json(item: &Item) -> Result<Row, RowError> {
    hosted::of_json(item, &LAYOUT)
}

pub(super) fn of_table(item: &Item) -> Result<Row, RowError> {
    hosted::of_table(item, &LAYOUT)
}
