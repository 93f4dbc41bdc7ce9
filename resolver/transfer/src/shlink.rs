//! Import of links from Shlink (<https://shlink.io>).
//!
//! Three forms are read. One is the responses of `GET /rest/v3/short-urls` (Shlink's OpenAPI
//! document; versions 2 to 5), any number of pages in sequence. The second is the table that
//! Shlink's web client exports (`ExportShortUrlsBtn` of `shlinkio/shlink-web-component`):
//! `createdAt,domain,shortCode,shortUrl,longUrl,title,tags,visits`. There tags are separated by
//! `|`, and older versions have neither `domain` nor `shortCode`. The third is the table that
//! Shlink's own command reads (`CsvImporter` of `shlinkio/shlink-importer`): `Long URL;Short code`
//! with `Domain`, `Title`, `Tags` and `Short URL`, the tags separated by `|` or `,`. Tables name
//! the default domain like any other; the responses have null for it. Tables have no limits, times
//! or rules, so each of their links may have lost some. Responses have no rules either, unless
//! those of `GET /rest/v3/short-urls/{shortCode}/redirect-rules` were added to their items.

use super::{
    csv::{rules, split_tags},
    item::Item,
    json::Shape,
    row::{LeftOut, Row, RowError},
    table::Layout,
};

pub(super) const SHAPE: Shape = Shape::list(&["shortUrls", "data"]);

/// The columns of the web client's table.
pub(super) const LAYOUT: Layout = Layout {
    columns: &["createdAt", "domain", "shortCode", "shortUrl", "longUrl", "title", "tags", "visits"],
    needed: &["longUrl"],
    is_closed: false,
    unnamed: None,
};

/// Reads a link from an item of a response.
pub(super) fn of_json(item: &Item) -> Result<Row, RowError> {
    let mut left_out = Vec::new();
    // Version 4 replaced version 3's device URLs by redirect rules.
    let device_urls = item.fields.get("deviceLongUrls").and_then(|urls| urls.as_object());
    let has_device_urls = device_urls.is_some_and(|urls| urls.values().any(|url| !url.is_null()));
    let redirect_rules = rules(item)?;
    let has_rules = item.flag("hasRedirectRules")?.unwrap_or(false) && redirect_rules.is_none();
    if has_rules || has_device_urls {
        left_out.push(LeftOut::RedirectRules);
    }
    // Fields that this project's API adds to Shlink's.
    if item.flag("hasPassword")?.unwrap_or(false) {
        left_out.push(LeftOut::Password);
    }
    let visits = match item.count("visitsSummary.total")? {
        Some(total) => Some(total),
        None => item.count("visitsCount")?,
    };
    let max_visits = item.count("meta.maxVisits")?;
    Ok(Row {
        code: Some(item.needed("shortCode")?),
        domain: item.text("domain")?,
        long_url: item.needed("longUrl")?,
        tags: item.texts("tags")?,
        created_at: item.time("dateCreated")?,
        valid_since: item.time("meta.validSince")?,
        valid_until: item.time("meta.validUntil")?,
        max_visits,
        visits,
        // Shlink counts every visit towards the limit.
        uses: max_visits.and(visits),
        blocked: item.text("blocked.reason")?,
        blocked_at: item.time("blocked.date")?,
        deleted_at: item.time("deletedAt")?,
        redirect_rules,
        left_out,
        ..Row::read_named(item)?
    })
}

/// Reads a link from a row of a table. Domain and code are taken from the short URL if it is there,
/// because the web client's columns for them lack the port and are percent-encoded.
pub(super) fn of_table(item: &Item) -> Result<Row, RowError> {
    let (domain, code) = match item.short_url("shortUrl")? {
        Some(short) => {
            let wrong = || item.wrong("shortUrl", "a short URL with a code");
            (Some(short.domain), short.code.ok_or_else(wrong)?)
        }
        None => (item.text("domain")?, item.needed("shortCode")?),
    };
    Ok(Row {
        place: item.place,
        code: Some(code),
        domain,
        long_url: item.needed("longUrl")?,
        title: item.text("title")?,
        tags: split_tags(&item.text("tags")?.unwrap_or_default()),
        created_at: item.time("createdAt")?,
        visits: item.count("visits")?,
        left_out: vec![LeftOut::Limits],
        ..Row::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, source::read};

    /// A short URL in the API's form.
    const FULL: &str = r#"{"shortUrl":"https://s.test/abc123","shortCode":"abc123","longUrl":"https://shlink.io",
        "dateCreated":"2018-05-01T02:00:00+02:00","tags":["bar","foo"],
        "meta":{"validSince":null,"validUntil":"2020-05-01T00:00:00+00:00","maxVisits":2},
        "domain":"d.test:8080","title":"My \"cool\" {title}]","crawlable":true,"forwardQuery":false,
        "visitsSummary":{"total":3,"nonBots":3,"bots":0},"hasRedirectRules":true}"#;
    /// A short URL of an older version with the fewest fields possible.
    const BARE: &str = r#"{"shortCode":"🦣","longUrl":"https://e.test/","dateCreated":null,"tags":[],"meta":{},
        "domain":null,"title":null,"visitsCount":7,"deviceLongUrls":{"android":null}}"#;

    fn page(items: &str) -> String {
        format!(r#"{{"shortUrls":{{"data":[{items}],"pagination":{{"currentPage":1,"pagesCount":2}}}}}}"#)
    }

    fn full() -> Row {
        Row {
            place: 1,
            code: Some("abc123".into()),
            domain: Some("d.test:8080".into()),
            long_url: "https://shlink.io".into(),
            title: Some("My \"cool\" {title}]".into()),
            tags: vec!["bar".into(), "foo".into()],
            created_at: Some("2018-05-01T00:00:00Z".parse().unwrap()),
            valid_until: Some("2020-05-01T00:00:00Z".parse().unwrap()),
            max_visits: Some(2),
            crawlable: Some(true),
            forward_query: Some(false),
            visits: Some(3),
            uses: Some(3),
            left_out: vec![LeftOut::RedirectRules],
            ..Row::default()
        }
    }

    #[test]
    fn pages_of_the_api_are_read_one_after_the_other() {
        let long_url = "https://e.test/".to_owned();
        let bare = Row { place: 2, code: Some("🦣".into()), long_url, visits: Some(7), ..Row::default() };
        let third = Row { place: 3, ..full() };
        let (first, second) = (page(&format!("{FULL},{BARE}")), page(FULL));
        for between in ["", "\n", "\r\n\r\n"] {
            let (links, errors) = read(Source::Shlink, &format!("{first}{between}{second}"));
            assert_eq!(links, [full(), bare.clone(), third.clone()]);
            assert_eq!(errors, Vec::<String>::new());
        }
        let (links, errors) = read(Source::Shlink, &format!("[{FULL}]"));
        assert_eq!((links, errors), (vec![full()], vec![]));
    }

    #[test]
    fn urls_for_devices_are_left_out_too_and_a_deleted_link_stays_so() {
        let other = BARE
            .replace("\"android\":null", "\"android\":\"https://a.test\"")
            .replace("\"title\":null", "\"title\":null,\"deletedAt\":\"2026-01-31T12:00:00+00:00\"");
        let (links, errors) = read(Source::Shlink, &page(&other));
        assert_eq!(links[0].left_out, [LeftOut::RedirectRules]);
        assert_eq!(links[0].deleted_at, Some("2026-01-31T12:00:00Z".parse().unwrap()), "{errors:?}");
    }

    #[test]
    fn rules_that_were_added_to_an_item_come_along() {
        let rules = r#"[{"longUrl":"https://a.test/","conditions":[{"type":"device","matchKey":null,
            "matchValue":"ios"}]}]"#;
        let with = |rules: &str| FULL.replace("true}", &format!("true,\"redirectRules\":{rules}}}"));
        let (links, errors) = read(Source::Shlink, &page(&with(rules)));
        assert_eq!(errors, Vec::<String>::new());
        assert!(links[0].redirect_rules.as_ref().is_some_and(|text| text.contains("https://a.test/")));
        assert_eq!(links[0].left_out, []);
        let (_, errors) = read(Source::Shlink, &page(&with("7")));
        assert_eq!(errors, ["item 1: redirectRules: expected a list of rules"]);
    }

    #[test]
    fn a_bad_field_is_named_and_the_next_item_comes() {
        for (from, to, error) in [
            ("\"abc123\",\"longUrl\"", "\"\",\"longUrl\"", "shortCode: expected a text that is not empty"),
            ("\"https://shlink.io\"", "7", "longUrl: expected a text"),
            (
                "2018-05-01T02",
                "soon",
                "dateCreated: not a time: write it like 2026-11-22T10:00:00+01:00, 2026-11-22T10:00:00[Europe/Berlin] or 2026-11-22",
            ),
            ("[\"bar\",\"foo\"]", "[1]", "tags: expected a list of texts"),
            ("\"maxVisits\":2", "\"maxVisits\":-2", "meta.maxVisits: expected a whole number from 0 on"),
            ("\"crawlable\":true", "\"crawlable\":\"x\"", "crawlable: expected true or false"),
        ] {
            let wrong = FULL.replace(from, to);
            assert_ne!(wrong, FULL, "{from}");
            let (links, errors) = read(Source::Shlink, &page(&format!("{wrong},{FULL}")));
            assert_eq!(errors, [format!("item 1: {error}")]);
            assert_eq!(links, [Row { place: 2, ..full() }]);
        }
    }

    #[test]
    fn an_answer_that_tells_of_an_error_and_one_that_is_cut_off_are_told() {
        let denied = r#"{"title":"Invalid API key","status":401}"#;
        let (links, errors) = read(Source::Shlink, &format!("{}{denied}{}", page(FULL), page(FULL)));
        assert_eq!(links.len(), 2);
        assert_eq!(errors, ["after item 1: the document has no list of links in shortUrls.data"]);
        let whole = page(FULL);
        let (links, errors) = read(Source::Shlink, &whole[..whole.len() - 1]);
        assert_eq!(links.len(), 1);
        assert!(errors[0].starts_with("after item 1: EOF"), "{errors:?}");
    }

    #[test]
    fn tables_of_the_web_client_are_read_in_their_newer_and_older_form() {
        let newer = "\"createdAt\",\"domain\",\"shortCode\",\"shortUrl\",\"longUrl\",\"title\",\"tags\",\"visits\"\n\
            \"2018-05-01T00:00:00+00:00\",\"s.test\",\"%C3%BC\",\"https://s.test:81/ü\",\"https://e.test/?a=1,2\",\"a \"\"b\"\"\r\nc\",\"x|y z\",3\n";
        let older = "createdAt,title,shortUrl,longUrl,tags,visits\r\n\
            2018-05-01T00:00:00+00:00,\"a \"\"b\"\"\r\nc\",https://s.test:81/ü,\"https://e.test/?a=1,2\",x|y z,3\r\n";
        let expected = Row {
            place: 1,
            code: Some("ü".into()),
            domain: Some("s.test:81".into()),
            long_url: "https://e.test/?a=1,2".into(),
            title: Some("a \"b\"\r\nc".into()),
            tags: vec!["x".into(), "y z".into()],
            created_at: Some("2018-05-01T00:00:00Z".parse().unwrap()),
            visits: Some(3),
            left_out: vec![LeftOut::Limits],
            ..Row::default()
        };
        for table in [newer, older] {
            assert_eq!(read(Source::Shlink, table), (vec![expected.clone()], vec![]), "{table}");
        }
        let (_, errors) = read(
            Source::Shlink,
            "shortUrl,longUrl\n,https://e.test/\nabc,https://e.test/\nhttp://s.test,https://e.test/\n",
        );
        assert_eq!(
            errors,
            [
                "item 1: shortCode: expected a text that is not empty",
                "item 2: shortUrl: expected an absolute URL such as https://s.example/code",
                "item 3: shortUrl: expected a short URL with a code",
            ]
        );
    }
}
