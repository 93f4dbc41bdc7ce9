//! Import of links from Short.io (<https://short.io>).
//!
//! Two forms are read. One is the responses of `GET /api/links` (`Link` of `Short-io/client-node`),
//! any number of pages in sequence: `{"links":[…],"count":…,"nextPageToken":…}`. The other is
//! the table that its pages export (Short.io's documentation, "How to export short links"), whose
//! columns are `idString,shortURL,originalPath,originalURL,title,clicks` and
//! `createdAt,updatedAt,expiresAt,createdBy,tags`.

use super::{hosted, json::Shape, table::Layout};

pub(super) const SHAPE: Shape = Shape { alone: Some("originalURL"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = hosted::layout(&[
    "shortUrl shortUrls shortLink",
    "code path paths originalPath originalPaths slug",
    "domain domain.hostname hostname",
    "longUrl originalUrl originalUrls destinationUrl",
    "title titles",
    "tags tag",
    "createdAt createdAt(date)",
    "expiresAt expiresAt(date)",
    "ttl",
    "clicks totalClicks",
    "clicksLimit",
    "archived",
    "hasPassword",
    "password",
    "redirectStatus redirectType",
    "skipQuery skipQs",
    "iosUrl iphoneUrl",
    "androidUrl",
    "expiredUrl",
    "splitUrl",
    "utmSource",
    "utmMedium",
    "utmCampaign",
    "utmTerm",
    "utmContent",
]);
