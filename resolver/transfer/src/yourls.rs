//! Import of links from YOURLS (<https://yourls.org>).
//!
//! Two forms are read. One is the responses of the API's `action=stats&format=json`
//! (`yourls_get_stats` of `YOURLS/YOURLS`), any number of them in sequence:
//! `{"links":{"link_1":{…},…},"stats":{…},…}`, without `links` if there are none. The other is a
//! table. It has the columns of `yourls_url` (`keyword,url,title,timestamp,ip,clicks`), with or
//! without their names in the first line, or those that the plugin
//! `GautamGupta/YOURLS-Import-Export` writes (`source,target,hits`, the source as `/keyword/`).
//! Times are in UTC.

use jiff::Timestamp;

use super::{
    item::Item,
    json::Shape,
    row::{Row, RowError},
    table::Layout,
};

/// MySQL's zero date, for a time that was never set.
const NO_TIME: &str = "0000-00-00 00:00:00";

pub(super) const SHAPE: Shape = Shape { beside: Some("stats"), ..Shape::list(&["links"]) };

pub(super) const LAYOUT: Layout = Layout {
    columns: &["keyword source", "url target", "title", "timestamp", "ip", "clicks hits"],
    needed: &["keyword", "url"],
    is_closed: false,
    unnamed: Some(&["keyword", "url", "title", "timestamp", "ip", "clicks"]),
};

/// Reads a link from an item of a response.
pub(super) fn of_json(item: &Item) -> Result<Row, RowError> {
    item.needed("shorturl")?;
    let (domain, code) = item.short_url("shorturl")?.map(|short| (short.domain, short.code)).unzip();
    let code = code.flatten().ok_or_else(|| item.wrong("shorturl", "a short URL with a keyword"))?;
    row(item, domain, code)
}

pub(super) fn of_table(item: &Item) -> Result<Row, RowError> {
    let keyword = item.needed("keyword")?.trim_matches('/').to_owned();
    if keyword.is_empty() {
        return Err(item.wrong("keyword", "a text that is not empty"));
    }
    row(item, None, keyword)
}

fn row(item: &Item, domain: Option<String>, code: String) -> Result<Row, RowError> {
    Ok(Row {
        place: item.place,
        code: Some(code),
        domain,
        long_url: item.needed("url")?,
        title: item.text("title")?,
        created_at: created_at(item)?,
        visits: item.count("clicks")?,
        ..Row::default()
    })
}

fn created_at(item: &Item) -> Result<Option<Timestamp>, RowError> {
    let is_set = item.text("timestamp")?.is_some_and(|time| time != NO_TIME);
    if is_set { item.time("timestamp") } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, source::read};

    fn link(place: u64) -> Row {
        Row {
            place,
            code: Some("abc".into()),
            domain: None,
            long_url: "https://e.test/?a=\"b\",c".into(),
            title: Some("Tïtle".into()),
            created_at: Some("2019-02-03T04:05:06Z".parse().unwrap()),
            visits: Some(42),
            ..Row::default()
        }
    }

    #[test]
    fn answers_of_the_api_are_read_and_one_without_links_is_no_error() {
        let one = r#"{"links":{"link_1":{"shorturl":"http:\/\/y.test\/abc","url":"https:\/\/e.test\/?a=\"b\",c",
            "title":"T\u00eftle","timestamp":"2019-02-03 04:05:06","ip":"::1","clicks":"42"}},
            "stats":{"total_links":"1","total_clicks":"42"},"statusCode":"200","message":"success"}"#;
        let none =
            r#"{"stats":{"total_links":"1","total_clicks":"42"},"statusCode":200,"message":"success"}"#;
        let emptied = r#"{"links":[],"stats":{}}"#;
        let (links, errors) = read(Source::Yourls, &format!("{one}{none}{emptied}\n{one}"));
        let from_api = |place| Row { domain: Some("y.test".into()), ..link(place) };
        assert_eq!((links, errors), (vec![from_api(1), from_api(2)], vec![]));
        let (_, errors) = read(Source::Yourls, r#"{"message":"Please log in","errorCode":"403"}"#);
        assert_eq!(errors, ["after item 0: the document has no list of links in links"]);
    }

    #[test]
    fn tables_are_read_with_and_without_names_and_from_the_plugin() {
        let line = "abc,\"https://e.test/?a=\"\"b\"\",c\",Tïtle,2019-02-03 04:05:06,::1,42";
        let named = format!("keyword,url,title,timestamp,ip,clicks\r\n{line}\r\n{line}");
        for table in [named, format!("{line}\n{line}\n")] {
            assert_eq!(read(Source::Yourls, &table), (vec![link(1), link(2)], vec![]), "{table}");
        }
        let plugin = "source,target,hits\r\n/abc/,\"https://e.test/?a=\"\"b\"\",c\",42\r\n";
        let expected = Row { title: None, created_at: None, ..link(1) };
        assert_eq!(read(Source::Yourls, plugin), (vec![expected], vec![]));
        let bare = "abc,https://e.test/,\\N,0000-00-00 00:00:00,,0\n";
        let (links, errors) = read(Source::Yourls, bare);
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!((links[0].title.as_deref(), links[0].created_at, links[0].visits), (None, None, Some(0)));
    }

    #[test]
    fn a_bad_line_is_told_and_the_next_one_comes() {
        let table =
            "keyword,url,clicks\n//,https://e.test/,1\na,,1\nb,https://e.test/,many\nc,https://e.test/,1\n";
        let (links, errors) = read(Source::Yourls, table);
        assert_eq!(
            errors,
            [
                "item 1: keyword: expected a text that is not empty",
                "item 2: url: expected a text that is not empty",
                "item 3: clicks: expected a whole number from 0 on",
            ]
        );
        assert_eq!(links.len(), 1);
        assert_eq!((links[0].place, links[0].code.as_deref()), (4, Some("c")));
        let (_, errors) = read(Source::Yourls, r#"[{"shorturl":"http://y.test/","url":"https://e.test/"}]"#);
        assert_eq!(errors, ["item 1: shorturl: expected a short URL with a keyword"]);
    }
}
