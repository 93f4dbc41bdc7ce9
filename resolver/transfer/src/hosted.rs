//! Links of the hosted services Bitly, Rebrandly, Short.io and Dub.
//!
//! Each service is a [`Layout`]: the names that its answers and its tables give to the fields that
//! are read here.
//!
//! 1. A link is disabled if it is deleted, in the trash, or in a state that is not known to
//!    redirect. So an import revives nothing.
//! 2. An archived link still redirects at these services. It gets the tag `archived`.
//! 3. Parameters that a service keeps apart from the URL are appended unless the URL has them.
//! 4. Their tables have no columns for passwords and limits, so each link may have lost some.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::{
    csv::split_tags,
    item::{Item, ShortUrl},
    row::{LeftOut, Row, RowError},
    table::Layout,
};

/// The keys under which answers, and the files of scripts that collect them, have the list.
pub(super) const LIST: &[&str] = &["links results data"];

/// The tag of an archived link.
const ARCHIVED: &str = "archived";
/// The states of links that redirect, in small letters. One that is not named is such a state too.
const LIVE: [&str; 6] = ["", "active", "enabled", "live", "hidden", ARCHIVED];
/// Fields that lead some visitors elsewhere and have no counterpart here.
const ELSEWHERE: [&str; 3] = ["deepLinks", "splitUrl", "testVariants"];
/// Fields and the parameters of the URL that they stand for.
const PARAMETERS: [(&str, &str); 5] = [
    ("utmSource", "utm_source"),
    ("utmMedium", "utm_medium"),
    ("utmCampaign", "utm_campaign"),
    ("utmTerm", "utm_term"),
    ("utmContent", "utm_content"),
];
/// Maximum number of custom names of a link, since a row is made for each.
const CUSTOM_MAX: usize = 8;
/// The smallest number that is taken for milliseconds since 1970: a time in 1973. Seconds since
/// 1970 are smaller until the year 5138.
const MILLIS_MIN: u64 = 100_000_000_000;

/// The domain and the code of a link.
type Name = (Option<String>, String);

/// Returns the layout with these columns, of which only the long URL is required.
pub(super) const fn layout(columns: &'static [&'static str]) -> Layout {
    Layout { columns, needed: &["longUrl"], is_closed: false, unnamed: None }
}

/// Reads a link from an item of a response.
pub(super) fn of_json(item: &Item, layout: &Layout) -> Result<Row, RowError> {
    let item = &named(item, layout);
    let mut names = names(item)?.into_iter();
    let (domain, code) = names.next().unzip();
    let (visits, max_visits) = (visits(item)?, item.count("clicksLimit")?);
    Ok(Row {
        place: item.place,
        code,
        domain: domain.flatten(),
        long_url: long_url(item)?,
        title: item.text("title")?,
        description: item.text("notes")?.or(item.text("description")?),
        tags: tags(item)?,
        created_at: time(item, "createdAt")?,
        valid_until: time(item, "expiresAt")?,
        max_visits,
        crawlable: item.flag("crawlable")?,
        forward_query: forward_query(item)?,
        visits,
        // These services count every visit towards the limit.
        uses: max_visits.and(visits),
        enabled: if is_off(item)? { Some(false) } else { None },
        redirect_status: item.count("redirectStatus")?,
        expired_url: item.text("expiredUrl")?,
        redirect_rules: rules(item)?,
        left_out: left_out(item)?,
        other_names: names.collect(),
        ..Row::default()
    })
}

/// Reads a link from a row of a table.
pub(super) fn of_table(item: &Item, layout: &Layout) -> Result<Row, RowError> {
    let mut row = of_json(item, layout)?;
    if !row.left_out.contains(&LeftOut::Limits) {
        row.left_out.push(LeftOut::Limits);
    }
    Ok(row)
}

/// Returns the filled fields under the names of their columns. A field of an inner object may have
/// a column too, as `domain.fullName`; it then counts instead of the object.
pub(super) fn named(item: &Item, layout: &Layout) -> Item {
    let mut fields = Map::new();
    for (name, value) in &item.fields {
        let inner = value.as_object().into_iter().flatten();
        let inner = inner.map(|(key, value)| (format!("{name}.{key}"), value));
        for (name, value) in inner.chain([(name.clone(), value)]) {
            let column = layout.column(&name).filter(|_| is_filled(value));
            if let Some(column) = column {
                fields.entry(column).or_insert_with(|| value.clone());
            }
        }
    }
    Item { place: item.place, fields, zone: item.zone.clone() }
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Returns the names of a link, at least one and each once. Those that people chose come first.
fn names(item: &Item) -> Result<Vec<Name>, RowError> {
    let wrong = || item.wrong("shortUrl", "a short URL with a code");
    let short = item.short_url("shortUrl")?;
    let domain = short.as_ref().map(|short| short.domain.clone());
    let mut names = Vec::new();
    for custom in custom_links(item)? {
        names.push(match ShortUrl::parse(&custom).filter(|_| custom.contains('/')) {
            Some(ShortUrl { domain, code: Some(code) }) => (Some(domain), code),
            Some(_) => return Err(wrong()),
            // Only the code.
            None => (domain.clone(), custom),
        });
    }
    match short {
        Some(ShortUrl { domain, code: Some(code) }) => names.push((Some(domain), code)),
        Some(_) => {
            let problem = "the link of a whole domain: set it with `resolver domain redirects`";
            return Err(item.broken("shortUrl", problem));
        }
        None => match item.text("code")? {
            Some(code) => names.push((item.text("domain")?.or(item.text("domainName")?), code)),
            None if names.is_empty() => return Err(wrong()),
            None => {}
        },
    }
    let mut unique: Vec<Name> = Vec::new();
    for (domain, code) in names {
        let name = (domain, code.trim().trim_matches('/').to_owned());
        if name.1.is_empty() {
            return Err(wrong());
        }
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    Ok(unique)
}

/// Returns the custom names of a link, as short URLs or codes.
fn custom_links(item: &Item) -> Result<Vec<String>, RowError> {
    let links = match item.fields.get("customLinks") {
        Some(Value::String(text)) => split_tags(text),
        _ => item.texts("customLinks")?,
    };
    if links.len() > CUSTOM_MAX {
        return Err(item.broken("customLinks", format_args!("expected at most {CUSTOM_MAX} of them")));
    }
    Ok(links)
}

/// Returns the URL, with the parameters that the service keeps apart.
fn long_url(item: &Item) -> Result<String, RowError> {
    let mut url = item.needed("longUrl")?;
    for (field, name) in PARAMETERS {
        if let Some(value) = item.text(field)? {
            url = with_parameter(url, name, value.trim());
        }
    }
    Ok(url)
}

/// Appends a parameter to a web URL, unless it has one of this name.
fn with_parameter(url: String, name: &str, value: &str) -> String {
    let (head, fragment) = url.find('#').map_or((&*url, ""), |at| url.split_at(at));
    let query = head.split_once('?').map(|(_, query)| query);
    let mut present = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    if present.any(|(present, _)| present == name) || !head.starts_with("http") {
        return url;
    }
    let between = match query {
        None => "?",
        Some(query) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    format!("{head}{between}{name}={value}{fragment}")
}

/// Returns the tags: texts, objects with a name, or in a table both as JSON or separated texts.
fn tags(item: &Item) -> Result<Vec<String>, RowError> {
    let wrong = || item.wrong("tags", "texts, or objects with a name");
    let list = match item.fields.get("tags") {
        None => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => split_tags(text).into_iter().map(Value::from).collect(),
        },
        Some(_) => return Err(wrong()),
    };
    let names: Option<Vec<&str>> =
        list.iter().map(|tag| tag.as_str().or_else(|| tag.get("name")?.as_str())).collect();
    let names = names.ok_or_else(wrong)?.into_iter().map(str::trim).filter(|name| !name.is_empty());
    let mut tags: Vec<String> = names.map(str::to_owned).collect();
    let is_archived = flag(item, "archived")? || matches!(&*status(item)?, "hidden" | ARCHIVED);
    if is_archived && !tags.iter().any(|tag| tag == ARCHIVED) {
        tags.push(ARCHIVED.to_owned());
    }
    Ok(tags)
}

fn status(item: &Item) -> Result<String, RowError> {
    Ok(item.text("status")?.unwrap_or_default().trim().to_lowercase())
}

fn is_off(item: &Item) -> Result<bool, RowError> {
    let is_off = item.fields.contains_key("disabledAt") || !LIVE.contains(&&*status(item)?);
    Ok(is_off || flag(item, "deleted")?)
}

/// Reads a boolean field. An absent one is false.
fn flag(item: &Item, field: &'static str) -> Result<bool, RowError> {
    Ok(item.flag(field)?.unwrap_or(false))
}

fn visits(item: &Item) -> Result<Option<u64>, RowError> {
    let clicks = item.count("clicks")?;
    Ok(clicks.or(item.count("engagements")?))
}

fn forward_query(item: &Item) -> Result<Option<bool>, RowError> {
    let skips = item.flag("skipQuery")?;
    Ok(item.flag("forwardQuery")?.or(skips.map(|skips| !skips)))
}

/// Reads a time, which some services write as milliseconds since 1970.
fn time(item: &Item, field: &'static str) -> Result<Option<Timestamp>, RowError> {
    let Some(value) = item.fields.get(field) else { return Ok(None) };
    let is_digits = |text: &str| text.trim().bytes().all(|byte| byte.is_ascii_digit());
    if !value.is_number() && !value.as_str().is_some_and(is_digits) {
        return item.time(field);
    }
    let millis = item.count(field)?.filter(|millis| *millis >= MILLIS_MIN);
    let millis = millis.and_then(|millis| i64::try_from(millis).ok());
    let time = millis.and_then(|millis| Timestamp::from_millisecond(millis).ok());
    time.map(Some).ok_or_else(|| item.wrong(field, "a date, or milliseconds since 1970"))
}

/// Returns rules for the URLs of devices and countries.
fn rules(item: &Item) -> Result<Option<String>, RowError> {
    let rule = |url: &str, kind: &str, value: &str| {
        let condition = json!({ "type": kind, "matchKey": null, "matchValue": value });
        json!({ "longUrl": url, "conditions": [condition] })
    };
    let mut rules = Vec::new();
    for (field, device) in [("iosUrl", "ios"), ("androidUrl", "android")] {
        rules.extend(item.text(field)?.map(|url| rule(&url, "device", device)));
    }
    if let Some(Value::Object(countries)) = item.fields.get("geo") {
        for (country, url) in countries {
            let url = url.as_str().ok_or_else(|| item.wrong("geo", "a URL for each country"))?;
            rules.push(rule(url, "geolocation-country-code", country));
        }
    }
    Ok((!rules.is_empty()).then(|| Value::from(rules).to_string()))
}

fn left_out(item: &Item) -> Result<Vec<LeftOut>, RowError> {
    let has = |field: &str| item.fields.contains_key(field);
    // A table has the URLs of countries as a text.
    let is_elsewhere = ELSEWHERE.into_iter().any(has) || item.fields.get("geo").is_some_and(Value::is_string);
    let lost = [
        (has_password(item)?, LeftOut::Password),
        (is_elsewhere, LeftOut::RedirectRules),
        // Such a link is deleted after a while.
        (has("ttl"), LeftOut::Limits),
    ];
    Ok(lost.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, lost)| lost).collect())
}

/// Returns whether a link has a password. Some services write the password itself.
fn has_password(item: &Item) -> Result<bool, RowError> {
    let is_set = |value: &Value| match value {
        Value::Bool(is_set) => *is_set,
        Value::String(text) => !["false", "no", "0"].contains(&&*text.trim().to_lowercase()),
        _ => true,
    };
    Ok(item.fields.get("password").is_some_and(is_set) || flag(item, "hasPassword")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, source::read};

    fn one(source: Source, input: &str) -> Row {
        let (links, errors) = read(source, input);
        assert_eq!((links.len(), errors), (1, vec![]), "{input}");
        links.into_iter().next().unwrap()
    }

    fn shortio(fields: &str) -> String {
        format!(r#"{{"originalURL":"https://e.test/","shortURL":"https://s.test/a",{fields}}}"#)
    }

    #[test]
    fn parameters_are_appended_once_and_before_the_fragment() {
        for (url, expected) in [
            ("https://e.test/", "https://e.test/?utm_term=a+b"),
            ("https://e.test/?", "https://e.test/?utm_term=a+b"),
            ("https://e.test/?x=1#top", "https://e.test/?x=1&utm_term=a+b#top"),
            ("https://e.test/?x=1&", "https://e.test/?x=1&utm_term=a+b"),
            ("https://e.test/?utm_term=c", "https://e.test/?utm_term=c"),
            ("mailto:a@e.test", "mailto:a@e.test"),
        ] {
            assert_eq!(with_parameter(url.to_owned(), "utm_term", "a b"), expected);
        }
        let row = one(Source::Shortio, &shortio(r#""utmSource":"mail","utmMedium":null,"utmContent":"ü""#));
        assert_eq!(row.long_url, "https://e.test/?utm_source=mail&utm_content=%C3%BC");
    }

    #[test]
    fn what_is_not_known_to_redirect_is_disabled_and_an_archived_link_is_tagged() {
        for (fields, enabled, tags) in [
            (r#""status":"Active""#, None, &["x"][..]),
            (r#""status":"trashed""#, Some(false), &["x"]),
            (r#""status":"of a later version""#, Some(false), &["x"]),
            (r#""status":"ARCHIVED""#, None, &["x", "archived"]),
            (r#""archived":"Yes""#, None, &["x", "archived"]),
            (r#""archived":"no""#, None, &["x"]),
        ] {
            let link =
                format!(r#"{{"shortUrl":"r.test/a","destination":"https://e.test/","tags":["x"],{fields}}}"#);
            let row = one(Source::Rebrandly, &link);
            assert_eq!(row.enabled, enabled, "{fields}");
            assert_eq!(row.tags, tags, "{fields}");
        }
        let disabled = r#"{"shortLink":"d.test/a","url":"https://e.test/","disabledAt":"2026-01-01"}"#;
        assert_eq!(one(Source::Dub, disabled).enabled, Some(false));
        let deleted = r#"{"link":"https://b.test/a","long_url":"https://e.test/","is_deleted":true}"#;
        assert_eq!(one(Source::Bitly, deleted).enabled, Some(false));
    }

    #[test]
    fn tags_are_texts_or_have_a_name_and_times_may_be_milliseconds() {
        for (tags, expected) in [
            (r#"["a"," ","b c"]"#, &["a", "b c"][..]),
            (r#"[{"id":"1","name":"a","color":"red"}]"#, &["a"]),
            (r#""a, b|c""#, &["a", "b", "c"]),
            (r#""[\"a\",\"b,c\"]""#, &["a", "b,c"]),
            ("null", &[]),
        ] {
            assert_eq!(one(Source::Shortio, &shortio(&format!(r#""tags":{tags}"#))).tags, expected, "{tags}");
        }
        let expected: Option<Timestamp> = Some("2030-01-01T00:00:00Z".parse().unwrap());
        for time in ["1893456000000", "\"1893456000000\"", "\"2030-01-01T00:00:00.000Z\""] {
            let row = one(Source::Shortio, &shortio(&format!(r#""expiresAt":{time}"#)));
            assert_eq!(row.valid_until, expected, "{time}");
        }
        for wrong in [r#""expiresAt":1893456000"#, r#""tags":[7]"#, r#""tags":true"#, r#""clicks":"many""#] {
            assert_eq!(read(Source::Shortio, &shortio(wrong)).1.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn protection_and_destinations_that_are_lost_are_named() {
        for (fields, left_out) in [
            (r#""hasPassword":true"#, &[LeftOut::Password][..]),
            (r#""password":"hush""#, &[LeftOut::Password]),
            (r#""password":"","hasPassword":false"#, &[]),
            (r#""splitURL":"https://e.test/b","expiredURL":null"#, &[LeftOut::RedirectRules]),
            (r#""ttl":"2030-01-01T00:00:00Z""#, &[LeftOut::Limits]),
        ] {
            assert_eq!(one(Source::Shortio, &shortio(fields)).left_out, left_out, "{fields}");
        }
        let row = one(Source::Shortio, &shortio(r#""iphoneURL":"https://e.test/ios","androidURL":"""#));
        let condition = r#"{"type":"device","matchKey":null,"matchValue":"ios"}"#;
        let rules = format!(r#"[{{"longUrl":"https://e.test/ios","conditions":[{condition}]}}]"#);
        assert_eq!(row.redirect_rules, Some(rules));
    }

    #[test]
    fn a_link_has_each_of_its_names_and_the_visits_once() {
        let link = |custom: &str| {
            let rest = r#""link":"https://b.test/a","long_url":"https://e.test/","clicks":7"#;
            format!(r#"{{"custom_bitlinks":{custom},{rest}}}"#)
        };
        let several = link(r#"["https://b.test/Own","c.test/x/","https://b.test/a"]"#);
        let (links, errors) = read(Source::Bitly, &format!("{several}{}", link("[]")));
        assert_eq!(errors, Vec::<String>::new());
        let names = links.iter().map(|link| {
            (link.place, link.domain.as_deref().unwrap(), link.code.as_deref().unwrap(), link.visits)
        });
        let expected = [
            (1, "b.test", "Own", Some(7)),
            (2, "c.test", "x", None),
            (3, "b.test", "a", None),
            (4, "b.test", "a", Some(7)),
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);

        let table = "Link,Custom Link,Destination URL\nb.test/a,Own,https://e.test/\n,,https://e.test/\n";
        let (links, errors) = read(Source::Bitly, table);
        let codes: Vec<Option<&str>> = links.iter().map(|link| link.code.as_deref()).collect();
        assert_eq!(codes, [Some("Own"), Some("a")]);
        assert_eq!(errors, ["item 3: shortUrl: expected a short URL with a code"]);
        let nine: Vec<String> = (0..9).map(|number| format!("\"n{number}\"")).collect();
        let (_, errors) = read(Source::Bitly, &link(&format!("[{}]", nine.join(","))));
        assert_eq!(errors, ["item 1: customLinks: expected at most 8 of them"]);
    }

    #[test]
    fn lists_and_links_that_stand_alone_are_read_and_an_error_is_told() {
        let link = r#"{"domain":"d.test","key":"a/b","shortLink":"d.test/a/b","url":"https://e.test/"}"#;
        for input in [
            link.to_owned(),
            format!("[{link}]"),
            format!(r#"{{"results":[{link}],"total":1}}"#),
            format!(r#"{{"total":1,"links":[{link}]}}"#),
        ] {
            let row = one(Source::Dub, &input);
            let name = (row.domain.as_deref(), row.code.as_deref());
            assert_eq!(name, (Some("d.test"), Some("a/b")), "{input}");
        }
        let (_, errors) = read(Source::Dub, r#"{"error":{"code":"unauthorized"}}"#);
        assert_eq!(errors, ["after item 0: the document has no list of links in links or results or data"]);
        let root = link.replace("d.test/a/b", "https://d.test").replace("a/b", "_root");
        let (_, errors) = read(Source::Dub, &root);
        assert_eq!(
            errors,
            ["item 1: shortUrl: the link of a whole domain: set it with `resolver domain redirects`"]
        );
    }
}
