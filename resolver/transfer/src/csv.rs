//! Links in this project's own formats: a table (RFC 4180) whose first line names its columns in
//! any order, or one JSON object per line with the same names and a few more. Exports by
//! [`super::export`] read back unchanged. An exported table has no columns for a password and for
//! rules; its `leftOut` names those that a link had. It has none for the time of deletion either,
//! so `resolver export` leaves deleted links out of a table. A table may have rules as JSON.

use std::borrow::Cow;

use links::{Condition, stored_time};
use serde_json::{Map, Value};

use super::{
    item::{Item, text_of_time},
    json::Shape,
    row::{JSON_ONLY, LAYOUT, Row, RowError, Secret},
    spreadsheet,
    table::clip,
};

/// Returns the name under which exports have the column that is meant; `None` for an unknown one.
pub fn link_column(name: &str) -> Option<&'static str> {
    LAYOUT.column(name)
}

/// Returns the name under which the JSON form has a field; `None` for an unknown one.
fn field(name: &str) -> Option<&'static str> {
    LAYOUT.column(name).or_else(|| JSON_ONLY.into_iter().find(|known| *known == name))
}

/// Returns a field of an item that the JSON form does not have.
pub(super) fn unknown_field(item: &Item) -> Option<&str> {
    item.fields.keys().map(String::as_str).find(|name| field(name).is_none())
}

/// Each JSON document is one link.
pub(super) const SHAPE: Shape = Shape::list(&[]);

pub(super) fn of_json(item: &Item) -> Result<Row, RowError> {
    let place = item.place;
    let mut fields = Map::new();
    for (name, value) in &item.fields {
        let unknown = || RowError::item(place, format_args!("{:?} is no known field", clip(name)));
        let column = field(name).ok_or_else(unknown)?;
        if fields.insert(column.to_owned(), value.clone()).is_some() {
            return Err(item.wrong(column, "one value, under one of its names"));
        }
    }
    let item = Item { place, fields, zone: item.zone.clone() };
    Ok(Row {
        password_hash: item.text("passwordHash")?.map(Secret),
        redirect_rules: rules(&item)?,
        deleted_at: item.time("deletedAt")?,
        ..Row::read(&item, item.texts("tags")?, &item.texts("leftOut")?)?
    })
}

pub(super) fn of_table(item: &Item) -> Result<Row, RowError> {
    let mut item = item.clone();
    for value in item.fields.values_mut() {
        if let Value::String(text) = value {
            *text = revealed(text).to_owned();
        }
    }
    if item.text("shortCode")?.is_some_and(|code| spreadsheet::is_rounded(&code)) {
        let problem = "a spreadsheet has made a number of it: write the code again, in a column of texts";
        return Err(item.broken("shortCode", problem));
    }
    let list = |name| Ok::<_, RowError>(split_tags(&item.text(name)?.unwrap_or_default()));
    let row = Row::read(&item, list("tags")?, &list("leftOut")?)?;
    Ok(Row { redirect_rules: rules(&item)?, ..row })
}

/// Returns the redirect rules as JSON text, their times with an offset, unvalidated.
pub(super) fn rules(item: &Item) -> Result<Option<String>, RowError> {
    let mut list = match item.fields.get("redirectRules") {
        None | Some(Value::Null) => return Ok(None),
        Some(list @ Value::Array(_)) => list.clone(),
        Some(Value::String(cell)) if cell.is_empty() => return Ok(None),
        Some(Value::String(cell)) => serde_json::from_str::<Vec<Value>>(cell)
            .map(Value::Array)
            .map_err(|_| item.wrong("redirectRules", "a list of rules"))?,
        Some(_) => return Err(item.wrong("redirectRules", "a list of rules")),
    };
    let rules = list.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let conditions = rules.iter_mut().filter_map(|rule| rule.get_mut("conditions")?.as_array_mut()).flatten();
    for condition in conditions {
        if !condition["type"].as_str().is_some_and(Condition::has_time) {
            continue;
        }
        let Some(value) = condition.get_mut("matchValue") else { continue };
        let Some(text) = text_of_time(value) else { continue };
        let time = stored_time(&text, &item.zone);
        let time = time.map_err(|error| item.broken("redirectRules", format_args!("{text:?}: {error}")))?;
        *value = Value::String(time);
    }
    Ok((!rules.is_empty()).then(|| list.to_string()))
}

/// Escapes a text for a cell. A spreadsheet would evaluate a text that begins like a formula
/// (CWE-1236); an apostrophe before it prevents that.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if looks_computed(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Returns the text of a cell that [`harmless`] escaped.
pub(super) fn revealed(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| looks_computed(text)).unwrap_or(cell)
}

/// Returns whether a text begins like a formula, after any number of apostrophes. Spreadsheets of
/// East Asian languages take the wide signs for the narrow ones.
fn looks_computed(text: &str) -> bool {
    const FIRST: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    text.trim_start_matches('\'').starts_with(FIRST)
}

/// The characters that separate tags. The last one is the comma of East Asian keyboards.
const BETWEEN_TAGS: [char; 3] = ['|', ',', '，'];

/// Joins tags with `|`. A backslash escapes a separator or a backslash in a tag.
pub(super) fn join_tags(tags: &[Value]) -> String {
    let escaped = |tag: &Value| {
        let mut escaped = String::new();
        for character in tag.as_str().unwrap_or_default().chars() {
            if character == '\\' || BETWEEN_TAGS.contains(&character) {
                escaped.push('\\');
            }
            escaped.push(character);
        }
        escaped
    };
    tags.iter().map(escaped).collect::<Vec<_>>().join("|")
}

/// Splits the tags of a cell at bars and commas, and drops blank ones. A backslash before a
/// separator or a backslash makes it part of the tag; before any other character it stands for
/// itself.
pub fn split_tags(text: &str) -> Vec<String> {
    let mut tags = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_escapable = |next: &char| *next == '\\' || BETWEEN_TAGS.contains(next);
        let escaped = if character == '\\' { characters.next_if(is_escapable) } else { None };
        if escaped.is_none() && BETWEEN_TAGS.contains(&character) {
            tags.push(String::new());
        } else if let Some(tag) = tags.last_mut() {
            tag.push(escaped.unwrap_or(character));
        }
    }
    tags.iter().map(|tag| tag.trim()).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LeftOut, Source, source::read};

    #[test]
    fn columns_come_in_any_order_and_under_any_of_their_names() {
        let time = |text: &str| Some(text.parse().unwrap());
        let expected = Row {
            place: 1,
            code: Some("promo".into()),
            domain: Some("d.test".into()),
            long_url: "https://e.test/".into(),
            title: Some("a, \"b\"\nc".into()),
            description: Some("d".into()),
            tags: vec!["x".into(), "y".into()],
            created_at: time("2026-01-02T00:00:00Z"),
            valid_since: time("2026-01-03T03:04:05Z"),
            valid_until: time("2026-01-03T03:04:05.5Z"),
            max_visits: Some(7),
            crawlable: Some(true),
            forward_query: Some(false),
            visits: Some(0),
            ..Row::default()
        };
        for (code, url) in
            [("shortCode", "longUrl"), ("code", "url"), ("slug", "target"), ("customSlug", "LONGURL")]
        {
            let table = format!(
                "{url},visits,forwardQuery,crawlable,maxVisits,validUntil,validSince,createdAt,domain,tags,description,title,{code}\r\n\
                 https://e.test/,0,0,TRUE,7,2026-01-03T03:04:05.5Z,2026-01-03 03:04:05,2026-01-02,d.test,x|y,d,\"a, \"\"b\"\"\nc\",promo\r\n"
            );
            assert_eq!(read(Source::Csv, &table), (vec![expected.clone()], vec![]), "{table}");
        }
        let line = r#"{"slug":"promo","url":"https://e.test/"}"#;
        let (links, _) = read(Source::Csv, line);
        assert_eq!((links[0].code.as_deref(), &*links[0].long_url), (Some("promo"), "https://e.test/"));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let (links, errors) = read(Source::Csv, "longUrl,colour\nhttps://e.test/,red\n");
        assert_eq!((links.len(), errors.len()), (0, 1));
        let known = "; the first line has to name the columns: shortCode (or code";
        assert!(errors[0].starts_with(&format!("\"colour\" is no known column{known}")), "{errors:?}");
        let lines = "{\"longUrl\":\"a\",\"colour\":1}\n{\"url\":\"a\",\"target\":\"b\"}\n{\"url\":\"c\"}\n\
                     {\"longUrl\":\"a\",\"colour\":1}";
        let (links, errors) = read(Source::Csv, lines);
        assert_eq!((links.len(), links[0].place), (1, 3));
        let known = "item 1: \"colour\" is no known field; known are shortCode (or code";
        assert!(errors[0].starts_with(known), "{errors:?}");
        assert_eq!(errors[1], "item 2: longUrl: expected one value, under one of its names");
        assert_eq!(errors[2], "item 4: \"colour\" is no known field", "the list comes once");
    }

    #[test]
    fn a_file_of_another_system_is_told_by_its_columns() {
        let hint = " (is this a file of dub? Use --from dub); ";
        let table = "Short Link,Destination URL,Notes,Tag Names,Total Clicks\nd.test/a,https://e.test/,,,1\n";
        let line = r#"{"domain":"d.test","key":"a","url":"https://e.test/","archived":false,"doIndex":true}"#;
        for file in [table, line] {
            let (_, errors) = read(Source::Csv, file);
            assert!(errors[0].contains(hint), "{errors:?}");
        }
        let (_, errors) = read(Source::Csv, "shortCode,longUrl,archived,title,tags,createdBy\n");
        assert!(!errors[0].contains("--from"), "most columns are our own: {errors:?}");
    }

    #[test]
    fn a_bad_cell_is_named_and_the_next_line_comes() {
        let table = "longUrl,maxVisits,crawlable,validUntil\n,7,,\n,,,\na,x,,\na,,maybe,\na,,,never\na,1,1,2026-01-01\n";
        let (links, errors) = read(Source::Csv, table);
        assert_eq!(
            errors,
            [
                "item 1: longUrl: expected a text that is not empty",
                "item 2: maxVisits: expected a whole number from 0 on",
                "item 3: crawlable: expected true or false",
                "item 4: validUntil: not a time: write it like 2026-11-22T10:00:00+01:00, \
                 2026-11-22T10:00:00[Europe/Berlin] or 2026-11-22",
            ]
        );
        assert_eq!((links.len(), links[0].place), (1, 5));
    }

    #[test]
    fn tags_are_parted_by_bars_and_commas_and_come_apart_as_they_were_joined() {
        for (text, tags) in [
            ("", vec![]),
            (" | |", vec![]),
            ("a", vec!["a"]),
            ("a|b||ü c", vec!["a", "b", "ü c"]),
            ("a|b, c d，e,|", vec!["a", "b", "c d", "e"]),
            (r"a\|b|c\\|d\", vec!["a|b", r"c\", r"d\"]),
            (r"a\,b,c\，d", vec!["a,b", "c，d"]),
            (r"\n", vec![r"\n"]),
        ] {
            assert_eq!(split_tags(text), tags, "{text:?}");
            let joined = join_tags(&tags.iter().copied().map(Value::from).collect::<Vec<_>>());
            assert_eq!(split_tags(&joined), tags, "{text:?}");
        }
    }

    #[test]
    fn a_cell_that_a_spreadsheet_would_compute_is_a_text_and_reads_back() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("'=1", "''=1"),
            ("''@x", "'''@x"),
            ("-1", "'-1"),
            ("\n=1", "'\n=1"),
            ("＝1", "'＝1"),
            ("'quoted'", "'quoted'"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!((&*harmless(text), revealed(cell)), (cell, text));
        }
    }

    #[test]
    fn a_rule_has_its_time_as_a_text_or_as_seconds() {
        let line = |kind: &str, value: &str| {
            let condition = format!(r#"{{"type":"{kind}","matchValue":{value}}}"#);
            format!(r#"{{"longUrl":"a","redirectRules":[{{"longUrl":"b","conditions":[{condition}]}}]}}"#)
        };
        for (kind, value, kept) in [
            ("before-date", "1525132800", "\"2018-05-01T00:00:00+00:00\""),
            ("after-date", "\"1525132800\"", "\"2018-05-01T00:00:00+00:00\""),
            ("language", "1525132800", "1525132800"),
        ] {
            let (links, errors) = read(Source::Csv, &line(kind, value));
            assert!(errors.is_empty(), "{errors:?}");
            let rules = links[0].redirect_rules.as_deref().unwrap();
            assert!(rules.contains(&format!("\"matchValue\":{kept}")), "{rules}");
        }
        let (_, errors) = read(Source::Csv, &line("before-date", "1525132800000"));
        assert!(errors[0].contains("looks like milliseconds"), "{errors:?}");
    }

    #[test]
    fn only_json_has_the_fields_that_a_table_cannot_carry() {
        let line = r#"{"longUrl":"a","passwordHash":"$argon2id$x","redirectRules":[{"longUrl":"b"}],"deletedAt":"2026-01-02",
            "leftOut":["disabled-domain","of-a-later-version"],"uses":2,"enabled":false}"#;
        let (links, errors) = read(Source::Csv, line);
        assert_eq!(errors, Vec::<String>::new());
        let link = &links[0];
        assert_eq!(link.password_hash, Some(Secret("$argon2id$x".into())));
        assert_eq!(link.redirect_rules.as_deref(), Some(r#"[{"longUrl":"b"}]"#));
        assert_eq!((link.uses, link.enabled, link.deleted_at.is_some()), (Some(2), Some(false), true));
        assert_eq!(link.left_out, [LeftOut::DisabledDomain, LeftOut::Unknown]);
        let table = "longUrl,redirectRules\na,\"[{\"\"longUrl\"\":\"\"b\"\"}]\"\nc,\nd,x\n";
        let (links, errors) = read(Source::Csv, table);
        assert_eq!(links[0].redirect_rules.as_deref(), Some(r#"[{"longUrl":"b"}]"#));
        assert_eq!((links.len(), &links[1].redirect_rules), (2, &None));
        assert_eq!(errors, ["item 3: redirectRules: expected a list of rules"]);
        for name in JSON_ONLY {
            let (_, errors) = read(Source::Csv, &format!("longUrl,{name}\na,b\n"));
            assert!(errors[0].contains("is no known column"), "{errors:?}");
        }
    }
}
