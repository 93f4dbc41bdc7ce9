//! What calls say beside their bodies, and what answers say in headers.

use serde_json::{Map, Value, json};

use super::{super::visits, ours, text};
use store::PER_PAGE_MAX;

use app::{create_link::IDEMPOTENCY_KEY_BYTES, list_links};

/// Orders of links, by what they sort.
const LINK_ORDERS: &str = "dateCreated|shortCode|longUrl|title|visits|nonBotVisits";

/// The parameter of this name.
pub(super) fn parameter(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// The header of this name.
pub(super) fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// The two headers that tell what is left to the caller.
pub(super) fn add_rate_limit(headers: &mut Map<String, Value>) {
    headers.insert("RateLimit-Policy".to_owned(), header("RateLimitPolicy"));
    headers.insert("RateLimit".to_owned(), header("RateLimit"));
}

/// All headers of answers, by name.
pub(super) fn headers() -> Value {
    json!({
        "ETag": ours(json!({
            "description": "The version of the link in quotes. `If-Match` with it keeps what others have changed since from being overwritten.",
            "required": true,
            "schema": text("The version in quotes.", &[("pattern", json!("^\"[0-9]+\"$"))]),
            "example": "\"0\"",
        })),
        "RetryAfter": {
            "description": "How many seconds to wait before the next call.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1 },
        },
        "RateLimitPolicy": ours(json!({
            "description": "How many calls there may be in how many seconds, with this key or from this client; only where calls are limited (draft-ietf-httpapi-ratelimit-headers).",
            "schema": { "type": "string" },
            "example": "\"key\";q=600;w=60",
        })),
        "RateLimit": ours(json!({
            "description": "How many calls are left (`r`), and in how many seconds all of them are there again (`t`).",
            "schema": { "type": "string" },
            "example": "\"key\";r=599;t=1",
        })),
    })
}

fn query(name: &str, description: &str, schema: Value) -> (String, Value) {
    let parameter = json!({ "name": name, "in": "query", "description": description, "schema": schema });
    (name.trim_end_matches("[]").to_owned(), parameter)
}

/// All parameters, by name.
pub(super) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    all.extend(paths());
    all.extend(of_calls());
    all.extend(pages());
    all.extend(of_links());
    all.extend(of_visits());
    all
}

fn paths() -> [(String, Value); 5] {
    let in_path = |name: &str, description: &str, schema: Value, is_ours: bool| {
        let parameter = json!({
            "name": name, "in": "path", "required": true, "description": description, "schema": schema,
        });
        (format!("{name}InPath"), if is_ours { ours(parameter) } else { parameter })
    };
    let some = || json!({ "type": "string", "minLength": 1 });
    let id = json!({ "type": "string", "pattern": "^[0-9a-f]{32}$" });
    [
        in_path(
            "shortCode",
            "The code or slug of a link. A slash in it is written as `%2F`, or as it is: a slug may have several segments.",
            some(),
            false,
        ),
        in_path("tag", "A tag, percent-encoded.", some(), false),
        in_path(
            "domain",
            "A domain with its port, if it has one, or `DEFAULT` for the default one.",
            some(),
            false,
        ),
        in_path("pattern", "A pattern as the list shows it, percent-encoded.", some(), true),
        in_path("id", "The id of a reservation.", id, true),
    ]
}

fn of_calls() -> [(String, Value); 4] {
    let in_header = |name: &str, key: &str, description: &str, schema: Value| {
        let parameter = json!({ "name": name, "in": "header", "description": description, "schema": schema });
        (key.to_owned(), ours(parameter))
    };
    let key = json!({ "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES });
    [
        query(
            "domain",
            "The domain of the link; without it, and with `DEFAULT`, the default one.",
            json!({ "type": "string" }),
        ),
        query(
            "all",
            "Whether domains are listed too that have no links and of which nothing is said; only for keys with the scope `admin` and without limits.",
            json!({ "type": "boolean", "default": false }),
        ),
        in_header(
            "If-Match",
            "IfMatch",
            "The `ETag` that the link must still have, several of them, or `*` for any. Without it the call wins over whatever others have changed.",
            json!({ "type": "string", "examples": ["\"0\""] }),
        ),
        in_header(
            "Idempotency-Key",
            "IdempotencyKey",
            "A name of this very call, drawn at random, in visible ASCII characters: whoever lost the answer sends the call again, and is told of the link that was made the first time. It counts for the API key that it came with, and for as long as the operator says. A call with `findIfExists` has no need of it, and passes over it (draft-ietf-httpapi-idempotency-key-header).",
            key,
        ),
    ]
}

fn pages() -> [(String, Value); 5] {
    let per_page =
        || json!({ "type": "integer", "anyOf": [{ "minimum": 1, "maximum": i64::MAX }, { "const": -1 }] });
    let mut of_links = query(
        "itemsPerPage",
        &format!(
            "Links of a page; -1 asks for as many as a page can have, which are {PER_PAGE_MAX}. The answer says how many it has."
        ),
        per_page(),
    );
    of_links.0 = "linksPerPage".to_owned();
    of_links.1["schema"]["default"] = json!(list_links::PER_PAGE);
    [
        query(
            "page",
            "Which page, from 1. One behind the last is empty.",
            json!({ "type": "integer", "minimum": 1, "maximum": u64::MAX, "default": 1 }),
        ),
        query("itemsPerPage", "Items of a page; -1 asks for all, and so does leaving it out.", per_page()),
        of_links,
        query(
            "searchTerm",
            "A text that has to be there, in capital or small letters. Links are searched by their slugs, long URLs, titles, tags and domains, and by a whole code.",
            json!({ "type": "string" }),
        ),
        (
            "before".to_owned(),
            ours(json!({
                "name": "before", "in": "query", "description": "The number that the last page ended with: what came before it is told.",
                "schema": { "type": "integer", "format": "int64" },
            })),
        ),
    ]
}

fn of_links() -> [(String, Value); 11] {
    let tags = || json!({ "type": "array", "items": { "type": "string" } });
    let mode = || json!({ "type": "string", "enum": ["any", "all"], "default": "any" });
    let flag = || json!({ "type": "boolean", "default": false });
    let order = format!("^({LINK_ORDERS})(-(ASC|DESC))?$");
    let exactly = "Exactly this long URL, letter for letter: all codes that lead there. An index answers it, and new links are found at once.";
    let (name, long_url) = query("longUrl", exactly, json!({ "type": "string" }));
    [
        (name, ours(long_url)),
        query("tags[]", "Tags that the links have.", tags()),
        query("tagsMode", "Whether one of the tags is enough, or it takes all.", mode()),
        query("excludeTags[]", "Tags that the links do not have.", tags()),
        query(
            "excludeTagsMode",
            "Whether one of these tags is enough to leave a link out, or it takes all.",
            mode(),
        ),
        query("excludePastValidUntil", "Leaves out links whose `validUntil` has passed.", flag()),
        query(
            "excludeMaxVisitsReached",
            "Leaves out links that were followed as often as `maxVisits` says.",
            flag(),
        ),
        query("deleted", "Lists the links that were deleted, and no others.", flag()),
        query(
            "apiKeyName",
            "The name of an API key: only links that were made with it. Keys that are limited are asked about no other than their own.",
            json!({ "type": "string" }),
        ),
        query(
            "orderBy",
            &format!(
                "What the links are sorted by, with `-ASC` or `-DESC` behind it; without, the latest come first. \
                By `shortCode` only lists of at most {PER_PAGE_MAX} links can be sorted."
            ),
            json!({ "type": "string", "pattern": order, "examples": ["dateCreated-DESC"] }),
        ),
        (
            "tagsOrderBy".to_owned(),
            json!({
                "name": "orderBy", "in": "query",
                "description": "`tag` or `shortUrlsCount`, with `-ASC` or `-DESC` behind it. Another one is that of the names.",
                "schema": { "type": "string", "examples": ["shortUrlsCount-DESC"] },
            }),
        ),
    ]
}

fn of_visits() -> [(String, Value); 4] {
    [
        query("startDate", "Nothing that is earlier.", super::moment("A moment.")),
        query("endDate", "Nothing that is later.", super::moment("A moment.")),
        query(
            "excludeBots",
            "Leaves out visits of bots. No visits are kept by this version, so that it has no effect.",
            json!({ "type": "string" }),
        ),
        query("type", "The kind of orphan visits.", json!({ "type": "string", "enum": visits::ORPHANS })),
    ]
}
