//! Import of links from Dub (<https://dub.co>).
//!
//! Two forms are read. One is the responses of `GET /links` (`LinkSchema` of `dubinc/dub`), any
//! number of lists in sequence. The other is the table that its pages export, with the columns that
//! were chosen there, under their ids (`link,url,clicks,createdAt,tags`) or their titles (`Short
//! link,Destination URL`).

use super::{
    hosted,
    item::Item,
    json::Shape,
    row::{Row, RowError},
    table::Layout,
};

pub(super) const SHAPE: Shape = Shape { alone: Some("url"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = Layout {
    columns: &[
        "shortUrl shortLink link",
        "code key slug",
        "domain",
        "longUrl url destinationUrl",
        "title",
        "notes comments",
        "description",
        "tags tagNames",
        "createdAt created createdDate",
        "expiresAt",
        "clicks totalClicks",
        "archived",
        "disabledAt",
        "password",
        "crawlable doIndex",
        "iosUrl ios",
        "androidUrl android",
        "geo",
        "expiredUrl",
        "testVariants",
        "utmSource",
        "utmMedium",
        "utmCampaign",
        "utmTerm",
        "utmContent",
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
