//! Import of links from Kutt (<https://kutt.it>).
//!
//! Reads the responses of `GET /api/v2/links` (`links.handler.js` and `utils.sanitize.link` of
//! `thedevs-network/kutt`), any number of pages in sequence:
//! `{"total":…,"limit":…,"skip":…,"data":[…]}`. An item's `domain` is null for the default domain,
//! which is then taken from `link`.

use super::{
    item::Item,
    json::Shape,
    row::{LeftOut, Row, RowError},
};

pub(super) const SHAPE: Shape = Shape::list(&["data"]);

/// Reads a link. A banned one is an error, because an import must not revive it.
pub(super) fn of_json(item: &Item) -> Result<Row, RowError> {
    if item.flag("banned")?.unwrap_or(false) {
        return Err(item.wrong("banned", "a link that was not banned"));
    }
    let has_password = item.flag("password")?.unwrap_or(false);
    let domain = match item.text("domain")? {
        Some(domain) => Some(domain),
        None => item.short_url("link")?.map(|short| short.domain),
    };
    Ok(Row {
        place: item.place,
        code: Some(item.needed("address")?),
        domain,
        long_url: item.needed("target")?,
        description: item.text("description")?,
        created_at: item.time("created_at")?,
        valid_until: item.time("expire_in")?,
        visits: item.count("visit_count")?,
        left_out: if has_password { vec![LeftOut::Password] } else { Vec::new() },
        ..Row::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, source::read};

    /// A link in the API's form.
    const LINK: &str = r#"{"id":"0b5c","address":"abc","banned":false,"created_at":"2024-03-01T10:00:00.000Z",
        "updated_at":"2024-03-01T10:00:00.000Z","password":false,"description":"for } you","expire_in":null,
        "target":"https://e.test/","visit_count":3,"domain":null,"link":"https://kutt.test/abc"}"#;

    fn page(items: &str) -> String {
        format!(r#"{{"total":2,"limit":10,"skip":0,"data":[{items}]}}"#)
    }

    fn link() -> Row {
        Row {
            place: 1,
            code: Some("abc".into()),
            domain: Some("kutt.test".into()),
            long_url: "https://e.test/".into(),
            description: Some("for } you".into()),
            created_at: Some("2024-03-01T10:00:00Z".parse().unwrap()),
            visits: Some(3),
            ..Row::default()
        }
    }

    #[test]
    fn pages_are_read_and_what_has_no_place_here_is_noted() {
        let other = LINK
            .replace("\"password\":false", "\"password\":true")
            .replace("\"expire_in\":null", "\"expire_in\":\"2030-01-01 00:00:00\"")
            .replace("\"domain\":null", "\"domain\":\"d.test\"");
        let second = Row {
            place: 2,
            domain: Some("d.test".into()),
            valid_until: Some("2030-01-01T00:00:00Z".parse().unwrap()),
            left_out: vec![LeftOut::Password],
            ..link()
        };
        let (links, errors) = read(Source::Kutt, &format!("{}\n{}", page(LINK), page(&other)));
        assert_eq!((links, errors), (vec![link(), second], vec![]));
    }

    #[test]
    fn a_banned_link_is_an_error_and_so_is_one_without_a_target() {
        for (from, to, error) in [
            ("\"banned\":false", "\"banned\":true", "banned: expected a link that was not banned"),
            ("\"https://e.test/\"", "null", "target: expected a text that is not empty"),
            ("\"address\":\"abc\",", "", "address: expected a text that is not empty"),
            ("https://kutt.test/", "", "link: expected an absolute URL such as https://s.example/code"),
            (
                "\"visit_count\":3",
                "\"visit_count\":\"3 of 4\"",
                "visit_count: expected a whole number from 0 on",
            ),
            (LINK, "7", "expected a JSON object"),
        ] {
            let wrong = LINK.replace(from, to);
            let (links, errors) = read(Source::Kutt, &page(&format!("{wrong},{LINK}")));
            assert_eq!(errors, [format!("item 1: {error}")]);
            assert_eq!(links, [Row { place: 2, ..link() }]);
        }
        let (_, errors) = read(Source::Kutt, r#"{"error":"Unauthorized"}"#);
        assert_eq!(errors, ["after item 0: the document has no list of links in data"]);
    }
}
