//! Import of links from Rebrandly (<https://www.rebrandly.com>).
//!
//! Two forms are read. One is the responses of `GET /v1/links` (Rebrandly's developer
//! documentation, "Link entity"), any number of lists in sequence. The other is a table with the
//! same names, as `domain.fullName`, or with those of Rebrandly's pages.

use super::{hosted, json::Shape, table::Layout};

pub(super) const SHAPE: Shape = Shape { alone: Some("destination"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = hosted::layout(&[
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
]);
