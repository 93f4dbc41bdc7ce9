//! Import of links from Bitly (<https://bitly.com>).
//!
//! Two forms are read. One is the responses of `GET /v4/groups/{group}/bitlinks` (Bitly's API
//! reference), any number of pages in sequence: `{"links":[…],"pagination":{…}}`. The other is
//! the table that the page of links exports, also under the names of the API:
//! `Link,Custom Link,Date created,Title,Destination URL,Engagements,Status`. A link redirects under
//! the name that it was given (`link`) and under its custom names; each of them is read as a link
//! of its own.

use super::{hosted, json::Shape, table::Layout};

pub(super) const SHAPE: Shape = Shape { alone: Some("long_url"), ..Shape::list(hosted::LIST) };

pub(super) const LAYOUT: Layout = hosted::layout(&[
    "shortUrl link bitlink shortLink",
    "customLinks customLink customBitlinks customBitlink customBackHalf",
    "longUrl destinationUrl destination originalUrl",
    "title",
    "tags",
    "createdAt dateCreated created",
    "expiresAt expirationAt expirationDate",
    "clicks totalClicks",
    "engagements totalEngagements",
    "status",
    "archived",
    "deleted isDeleted",
    "deepLinks",
]);
