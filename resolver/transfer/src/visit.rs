//! Single visits: answers of `GET /rest/v3/short-urls/{shortCode}/visits` of Shlink or of this
//! project, exports of `resolver visits export`, and tables and lines of JSON with the same names.
//!
//! Also clicks of two other services. Of Dub: the table of events that its pages export
//! (`events-export-helpers.ts` of `dubinc/dub`), and answers of `GET /events`
//! (`clickEventResponseSchema`). Of Short.io: answers of `POST …/last_clicks` (`LastClicksRes` of
//! `Short-io/client-node`).

use std::{io::Read, ops::ControlFlow};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;
use visits::PlaceText;

use super::{
    csv::revealed,
    encoding::decoded,
    hosted::named,
    item::Item,
    json::{Shape, each_item},
    records::RecordError,
    row::RowError,
    source::begin,
    table::{self, Layout},
};

/// A response has a list; a line of JSON is a visit, recognized by its date.
const SHAPE: Shape = Shape { alone: Some("date"), ..Shape::list(&["visits", "data"]) };

/// The columns of a table. `shortCode` or `visitedUrl` identifies the link.
const LAYOUT: Layout = Layout {
    columns: &[
        "date",
        "shortCode code",
        "domain",
        "visitedUrl link",
        "type",
        "referrerUrl",
        "referer referrer",
        "userAgent",
        "potentialBot",
        "country",
        "countryCode",
        "countryName",
        "regionName",
        "cityName city",
        "latitude",
        "longitude",
        "timezone",
    ],
    needed: &["date"],
    is_closed: false,
    unnamed: None,
};

/// The fields of a click of Short.io or Dub. Dub has the time at the top too, in another form.
const CLICK: Layout = Layout {
    columns: &[
        "date dt click.timestamp",
        "host",
        "path",
        "visitedUrl link.shortLink",
        "referrerUrl ref click.refererUrl",
        "userAgent ua click.ua",
        "human",
        "country click.country",
        "cityName city click.city",
    ],
    needed: &[],
    ..LAYOUT
};

/// What Dub writes if it knows nothing.
const NOT_KNOWN: [&str; 2] = ["(direct)", "Unknown"];
/// How Dub's table has times: as JavaScript does, with the name of the zone behind it.
const SCRIPT_TIME: &str = "%a %b %d %Y %H:%M:%S GMT%z";

/// The fields of a place, in JSON and in a table.
const PLACE: [[&str; 7]; 2] = [
    [
        "visitLocation.countryCode",
        "visitLocation.countryName",
        "visitLocation.regionName",
        "visitLocation.cityName",
        "visitLocation.latitude",
        "visitLocation.longitude",
        "visitLocation.timezone",
    ],
    ["countryCode", "countryName", "regionName", "cityName", "latitude", "longitude", "timezone"],
];

/// Maximum length of a name of a place, in characters.
const NAME_MAX: usize = 100;

/// A visit as another system recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleVisit {
    /// The item's position in the input, counted from 1.
    pub place: u64,
    /// The code or slug of its link, if the item names it.
    pub code: Option<String>,
    /// The host of the link, with its port if it has one; `None` for the default domain.
    pub domain: Option<String>,
    /// The time of the visit.
    pub at: Timestamp,
    /// The referrer; empty if absent.
    pub referrer: String,
    /// The user agent; empty if absent.
    pub user_agent: String,
    /// The place. Empty texts are unknown.
    pub location: PlaceText,
    /// Whether a bot made it; `None` if the item does not say.
    pub is_bot: Option<bool>,
}

impl SingleVisit {
    /// Returns the approximate size of the visit in bytes.
    pub fn weight(&self) -> usize {
        let Self { code, domain, referrer, user_agent, .. } = self;
        let names = [code, domain].into_iter().flatten().map(String::len);
        size_of::<Self>() + referrer.len() + user_agent.len() + names.sum::<usize>()
    }
}

/// Passes the visits of an input to `take` until it breaks. Reading goes on after an error, unless
/// [`RowError::is_final`]. Times without an offset are in UTC.
pub fn each_visit(reader: impl Read, mut take: impl FnMut(Result<SingleVisit, RowError>) -> ControlFlow<()>) {
    let broken = |problem: &str| Err(RowError::broken(0, problem));
    let read = match decoded(reader).and_then(begin) {
        Err(cause) => Err(RowError::broken(0, RecordError::from(cause))),
        Ok((None, _)) => broken("the input is empty"),
        Ok((Some(b'{' | b'['), input)) => of_documents(input, &mut take),
        Ok((Some(_), input)) => table::each_item(input, LAYOUT, &TimeZone::UTC, |item| {
            take(item.and_then(of_table))?;
            ControlFlow::Continue(0)
        }),
    };
    if let Err(error) = read {
        // Nothing follows, so it does not matter whether `take` breaks.
        let _ = take(Err(error));
    }
}

fn of_documents(
    input: impl Read,
    take: &mut impl FnMut(Result<SingleVisit, RowError>) -> ControlFlow<()>,
) -> Result<(), RowError> {
    let (mut count, mut has_none) = (0, false);
    let read = each_item(input, SHAPE, |found| match found {
        Some(value) => {
            count += 1;
            take(read_visit(count, value))
        }
        None => {
            has_none = true;
            ControlFlow::Break(())
        }
    });
    match read {
        Err(error) => Err(RowError::broken(count, error)),
        Ok(_) if has_none => {
            Err(RowError::broken(count, "the document has no list of visits in visits.data"))
        }
        Ok(_) => Ok(()),
    }
}

/// Reads a visit from an item of a response of the API.
pub fn read_visit(place: u64, value: Value) -> Result<SingleVisit, RowError> {
    let Value::Object(fields) = value else {
        return Err(RowError::item(place, "expected a JSON object"));
    };
    let item = Item { place, fields, zone: TimeZone::UTC };
    if item.fields.contains_key("date") { read(&item, &PLACE[0]) } else { read(&of_click(&item), &PLACE[1]) }
}

/// Returns a click of Short.io or Dub under the names of a table.
fn of_click(item: &Item) -> Item {
    let mut item = named(item, &CLICK);
    if let [Some(Value::String(host)), Some(Value::String(path))] =
        ["host", "path"].map(|name| item.fields.get(name))
    {
        let url = format!("{host}/{}", path.trim_start_matches('/'));
        item.fields.insert("visitedUrl".to_owned(), url.into());
    }
    item
}

fn of_table(mut item: Item) -> Result<SingleVisit, RowError> {
    for value in item.fields.values_mut() {
        if let Value::String(text) = value {
            *text = revealed(text).to_owned();
        }
    }
    read(&item, &PLACE[1])
}

fn read(item: &Item, place: &[&'static str; 7]) -> Result<SingleVisit, RowError> {
    let at = time(item)?.ok_or_else(|| item.wrong("date", "a time"))?;
    if item.text("type")?.is_some() {
        return Err(item.broken("type", "an orphan visit, which belongs to no link"));
    }
    let (code, domain) = match item.text("shortCode")? {
        Some(code) => (Some(code), item.text("domain")?),
        None => match item.short_url("visitedUrl")? {
            Some(url) => (url.code, Some(url.domain)),
            None => (None, None),
        },
    };
    let &[country, country_name, region, city, latitude, longitude, time_zone] = place;
    let known = |field| Ok::<_, RowError>(item.text(field)?.filter(|text| !NOT_KNOWN.contains(&&**text)));
    let name = |field| Ok::<_, RowError>(known(field)?.map(|text| clean(&text)).unwrap_or_default());
    // A code in the answers of these services, and a name in Dub's table.
    let told = name("country")?;
    let told_code = Some(name(country)?).filter(|code| !code.is_empty());
    let country = told_code.unwrap_or_else(|| told.clone()).to_ascii_uppercase();
    let is_country = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase());
    let country_name = Some(name(country_name)?).filter(|name| !name.is_empty());
    let human = item.flag("human")?;
    Ok(SingleVisit {
        place: item.place,
        code,
        domain,
        at,
        referrer: known("referrerUrl")?.or(known("referer")?).unwrap_or_default(),
        user_agent: item.text("userAgent")?.unwrap_or_default(),
        location: PlaceText {
            country: if is_country { country } else { String::new() },
            country_name: country_name.unwrap_or(if is_country { String::new() } else { told }),
            region: name(region)?,
            city: name(city)?,
            latitude: item.degrees(latitude)?,
            longitude: item.degrees(longitude)?,
            time_zone: name(time_zone)?,
        },
        is_bot: item.flag("potentialBot")?.or(human.map(|human| !human)),
    })
}

fn time(item: &Item) -> Result<Option<Timestamp>, RowError> {
    let text = item.text("date")?.unwrap_or_default();
    let script = text.split_once(" (").and_then(|(time, _)| Timestamp::strptime(SCRIPT_TIME, time).ok());
    script.map_or_else(|| item.time("date"), |at| Ok(Some(at)))
}

fn clean(name: &str) -> String {
    name.trim().chars().filter(|character| !character.is_control()).take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(input: &str) -> (Vec<SingleVisit>, Vec<String>) {
        let (mut visits, mut errors) = (Vec::new(), Vec::new());
        each_visit(input.as_bytes(), |visit| {
            match visit {
                Ok(visit) => visits.push(visit),
                Err(error) => errors.push(error.to_string()),
            }
            ControlFlow::Continue(())
        });
        (visits, errors)
    }

    fn expected(place: u64) -> SingleVisit {
        SingleVisit {
            place,
            code: Some("abc".to_owned()),
            domain: Some("s.test".to_owned()),
            at: "2026-11-25T10:00:00Z".parse().unwrap(),
            referrer: "https://e.test/".to_owned(),
            user_agent: "=curl/8".to_owned(),
            location: PlaceText {
                country: "DE".to_owned(),
                city: "Berlin".to_owned(),
                latitude: 52.5,
                longitude: -0.25,
                ..PlaceText::default()
            },
            is_bot: Some(true),
        }
    }

    #[test]
    fn answers_lines_and_tables_tell_the_same() {
        let fields = r#""date":"2026-11-25T11:00:00+01:00","referer":"https://e.test/","userAgent":"=curl/8","potentialBot":true,
            "visitLocation":{"countryCode":"de","cityName":"Berlin","latitude":52.5,"longitude":-0.25,"isEmpty":false}"#;
        let by_url = format!(r#"{{"visitedUrl":"https://s.test/abc?x",{fields}}}"#);
        let by_code = format!(r#"{{"shortCode":"abc","domain":"s.test",{fields}}}"#);
        let answer =
            format!(r#"{{"visits":{{"data":[{by_url},{by_code}],"pagination":{{"totalItems":2}}}}}}"#);
        let table = "date,visitedUrl,redirectUrl,referer,userAgent,potentialBot,countryCode,cityName,latitude,longitude\n\
            2026-11-25T10:00:00+00:00,https://s.test/abc,,https://e.test/,'=curl/8,true,DE,Berlin,52.5,-0.25\n\
            2026-11-25T10:00:00+00:00,https://s.test/abc,,https://e.test/,'=curl/8,true,DE,Berlin,52.5,-0.25\n";
        for input in [&*answer, &format!("{by_url}\n{by_code}\n"), table] {
            assert_eq!(visits(input), (vec![expected(1), expected(2)], vec![]), "{input}");
        }
    }

    #[test]
    fn clicks_of_dub_and_of_shortio_are_read() {
        let table = "Date,Event,Link,Country,City,Device,Referrer,Referrer URL,Click ID\n\
            Wed Nov 25 2026 10:00:00 GMT+0000 (Coordinated Universal Time),link,s.test/abc,Germany,Berlin,Desktop,\
            e.test,https://e.test/,x1\n\
            2026-11-25T10:00:00.000Z,qr,s.test/abc,Unknown,,Mobile,(direct),(direct),x2\n\
            2026-11-25T10:00:00.000Z,qr,s.test,,,Mobile,(direct),(direct),x3\n";
        let (dub, errors) = visits(table);
        let plain = SingleVisit { user_agent: String::new(), is_bot: None, ..expected(1) };
        let place = |country: &str, name: &str| PlaceText {
            country: country.to_owned(),
            country_name: name.to_owned(),
            city: "Berlin".to_owned(),
            ..PlaceText::default()
        };
        let first = SingleVisit { location: place("", "Germany"), ..plain.clone() };
        let location = PlaceText::default();
        let second = SingleVisit { place: 2, referrer: String::new(), location, ..plain };
        assert_eq!(dub, [first, second]);
        assert!(errors.len() == 1 && errors[0].starts_with("item 3: visitedUrl: "), "{errors:?}");

        let shortio = r#"[{"host":"s.test","path":"/abc","lcpath":"/abc","dt":"2026-11-25T10:00:00.000Z","st":302,"ref":"https://e.test/",
            "url":"https://example.com/","ua":"=curl/8","human":false,"browser":"curl","country":"DE","city":"Berlin"}]"#;
        let events = r#"[{"event":"click","timestamp":"Wed Nov 25 2026","domain":"s.test","key":"abc","country":"DE",
            "click":{"id":"x","timestamp":"2026-11-25T10:00:00.000Z","country":"DE","city":"Berlin","ua":"=curl/8",
            "referer":"e.test","refererUrl":"https://e.test/"},"link":{"id":"l","shortLink":"https://s.test/abc"}}]"#;
        for (input, is_bot) in [(shortio, Some(true)), (events, None)] {
            let visit = SingleVisit { location: place("DE", ""), is_bot, ..expected(1) };
            assert_eq!(visits(input), (vec![visit], vec![]), "{input}");
        }
    }

    #[test]
    fn what_is_missing_is_empty_and_what_is_wrong_is_told() {
        let input = r#"{"date":"2026-11-25T10:00:00Z","visitLocation":null,"userAgent":""}
            {"date":"2026-11-25T10:00:00Z","visitLocation":{"countryCode":"Germany","cityName":"Ber\nlin"}}
            {"date":"yesterday"}{"date":null}{"date":"2026-11-25","type":"base_url"}{"date":"2026-11-25","referer":1}"#;
        let (visits, errors) = visits(input);
        let at = "2026-11-25T10:00:00Z".parse().unwrap();
        let none = SingleVisit { code: None, domain: None, at, ..expected(1) };
        let none = SingleVisit { referrer: String::new(), user_agent: String::new(), is_bot: None, ..none };
        let empty = SingleVisit { location: PlaceText::default(), ..none.clone() };
        let location = PlaceText { city: "Berlin".to_owned(), ..PlaceText::default() };
        assert_eq!(visits, [empty, SingleVisit { place: 2, location, ..none }]);
        assert_eq!(errors.len(), 4, "{errors:?}");
        let parts = ["item 3: date", "item 4: date", "item 5: type", "item 6: referer"];
        for (error, part) in errors.iter().zip(parts) {
            assert!(error.starts_with(part), "{error}");
        }
        for (input, error) in [
            ("", "after item 0: the input is empty"),
            (r#"{"title":"no"}"#, "after item 0: the document has no list of visits in visits.data"),
        ] {
            assert_eq!(self::visits(input), (vec![], vec![error.to_owned()]));
        }
        assert!(self::visits("shortCode\nabc\n").1[0].contains("date is missing"));
    }
}
