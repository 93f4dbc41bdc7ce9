//! Import of links from Dub (<https://dub.co>).
//!
//! Two forms are read. One is the responses of `GET /links` (`LinkSchema` of `dubinc/dub`), any
//! number of lists in sequence. The other is the table that its pages export, with the columns that
//! were chosen there, under their ids (`link,url,clicks,createdAt,tags`) or their titles (`Short
//! link,Destination URL`).

use super::{hosted, json::Shape, table::Layout};

pub(super) const SHAPE: Shape = Shape { alone: Some("url"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = hosted::layout(&[
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
]);
