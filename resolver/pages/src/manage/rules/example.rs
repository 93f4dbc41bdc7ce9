//! An example visitor: who visits a link, and where the link's rules lead them.

use std::{net::IpAddr, ptr};

use app::values::read_time;
use jiff::{Timestamp, tz::TimeZone};
use links::{Buckets, Facts, LongUrl, Protocol, Rule, choose, location, location_with_query};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::form::Form;

/// The choice of the browser that shows the page.
pub(super) const OWN: &str = "own";
/// The choice of a visitor that names no browser.
pub(super) const NONE: &str = "none";
/// Common browsers, one in each line: value of the choice, name in all languages, user agent.
const BROWSERS: &str = include_str!("browsers.txt");
/// Characters that browsers escape in a query (WHATWG URL, "special-query percent-encode set").
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'');

/// Returns the values, names and user agents of common browsers.
pub(super) fn browsers() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let browser = |line: &'static str| {
        let (value, rest) = line.split_once('|')?;
        rest.split_once('|').map(|(name, user_agent)| (value, name, user_agent))
    };
    BROWSERS.lines().filter_map(browser)
}

/// The request for the page, which the example begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own<'a> {
    pub(super) user_agent: &'a str,
    pub(super) language: &'a str,
    pub(super) ip: IpAddr,
    pub(super) now: Timestamp,
    /// The buckets of visitors of the link that the page is about.
    pub(super) buckets: Buckets,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    /// The number of the rule that matches, from 1; `None` for the link's own long URL.
    pub(super) rule: Option<usize>,
    /// The header `Location` of the redirect.
    pub(super) to: String,
    pub(super) is_denied: bool,
    pub(super) now: Timestamp,
}

/// Reads the fields of the example from the query of the page: `browser` ([`OWN`], [`NONE`] or one
/// of [`browsers`]), `userAgent` in place of that browser's, `language`, `country`, `city`, `ip`,
/// `query` and `time`. Without an example it is the visit of the page's reader.
pub(super) fn typed(query: &Form, own: &Own<'_>) -> Form {
    if query.is_on("browser") {
        return query.clone();
    }
    let fields =
        [("browser", OWN.to_owned()), ("language", own.language.to_owned()), ("ip", own.ip.to_string())];
    Form(fields.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// Returns where a link leads the visit of an example, as a redirect decides it, or the names of
/// wrong fields. A link that `forwards` passes the query on. `allows` says whether the target rules
/// allow a URL.
pub(super) fn lead(
    typed: &Form,
    own: &Own<'_>,
    zone: &TimeZone,
    rules: &[Rule],
    long_url: &LongUrl,
    forwards: bool,
    allows: impl Fn(&LongUrl) -> bool,
) -> Result<Lead, Vec<&'static str>> {
    let ip = typed.filled("ip").map_or(Some(own.ip), |ip| ip.parse().ok());
    let now = typed.filled("time").map_or(Some(own.now), |time| read_time(time, zone).ok());
    let (Some(ip), Some(now)) = (ip, now) else {
        let wrong = [("ip", ip.is_none()), ("time", now.is_none())];
        return Err(wrong.into_iter().filter(|(_, is_wrong)| *is_wrong).map(|(name, _)| name).collect());
    };
    // The query as a browser sends it.
    let query = typed.filled("query").unwrap_or_default();
    let query = utf8_percent_encode(query.strip_prefix('?').unwrap_or(query), QUERY).to_string();
    let facts = Facts {
        user_agent: user_agent(typed, own),
        accept_language: typed.filled("language").unwrap_or_default(),
        query: &query,
        ip,
        country: typed.filled("country"),
        city: typed.filled("city"),
        now,
        buckets: own.buckets,
        path: "",
        scheme: Protocol::Https,
    };
    let chosen = choose(rules, &facts, |_, _| {});
    let target = chosen.map_or(long_url, |rule| &rule.long_url);
    let merged = if forwards { location_with_query(target.as_str(), &query) } else { None };
    Ok(Lead {
        rule: chosen.and_then(|chosen| Some(1 + rules.iter().position(|rule| ptr::eq(rule, chosen))?)),
        to: merged.unwrap_or_else(|| location(target.as_str())),
        is_denied: !allows(target),
        now,
    })
}

/// Returns the user agent: the typed one, or else that of the chosen browser.
fn user_agent<'a>(typed: &'a Form, own: &Own<'a>) -> &'a str {
    typed.filled("userAgent").unwrap_or_else(|| match typed.filled("browser") {
        Some(OWN) => own.user_agent,
        browser => {
            let chosen = browsers().find(|(value, _, _)| Some(*value) == browser);
            chosen.map_or("", |(_, _, user_agent)| user_agent)
        }
    })
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use links::Condition;

    use super::*;

    fn own() -> Own<'static> {
        Own {
            user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            language: "de",
            ip: "192.0.2.7".parse().unwrap(),
            now: "2030-06-15T12:00:00Z".parse().unwrap(),
            buckets: Buckets::new([7; 16], LinkId::from_stored(1)),
        }
    }

    fn read(query: &str) -> Form {
        typed(&Form::parse(query.as_bytes()), &own())
    }

    fn rule(url: &str, kind: &str, value: &str) -> Rule {
        let key = Some("k").filter(|_| kind.contains("query"));
        let conditions = vec![Condition::parse(kind, key, Some(value)).unwrap()];
        Rule::new(LongUrl::from_stored(url), conditions)
    }

    fn matched(query: &str, kind: &str, value: &str) -> bool {
        let (rules, url) =
            ([rule("https://a.example/", kind, value)], LongUrl::from_stored("https://e.example/"));
        let lead = lead(&read(query), &own(), &TimeZone::UTC, &rules, &url, true, |_| true);
        lead.unwrap().rule.is_some()
    }

    #[test]
    fn every_field_of_the_example_counts() {
        for (query, kind, value, expected) in [
            // Without a query the example is the reader.
            ("", "device", "linux", true),
            ("", "browser", "firefox", true),
            ("", "language", "de", true),
            ("", "ip-address", "192.0.2.7", true),
            ("", "before-date", "2030-06-16", true),
            ("", "geolocation-country-code", "DE", false),
            ("browser=iphone", "device", "ios", true),
            ("browser=iphone&userAgent=x", "device", "ios", false),
            ("browser=none", "device", "linux", false),
            ("browser=other", "device", "linux", false),
            ("browser=own&language=en-US", "language", "en", true),
            ("browser=own", "language", "de", false),
            ("browser=own&country=de", "geolocation-country-code", "DE", true),
            ("browser=own&city=Berlin", "geolocation-city-name", "berlin", true),
            ("browser=own&ip=2001:db8::1", "ip-address", "2001:db8::/32", true),
            ("browser=own&query=%3Fk%3Da+b", "query-param", "a b", true),
            ("browser=own&time=2031-01-01T10:00", "after-date", "2031-01-01", true),
        ] {
            assert_eq!(matched(query, kind, value), expected, "{query} {kind}");
        }
    }

    #[test]
    fn a_share_is_of_examples_with_different_addresses() {
        let examples = || (0..=255).map(|last| format!("browser=own&ip=192.0.2.{last}"));
        let count = examples().filter(|example| matched(example, "share", "50")).count();
        assert!((64..192).contains(&count), "{count}");
    }

    #[test]
    fn common_browsers_are_what_their_names_say() {
        for (value, device, browser) in [
            ("iphone", "ios", "safari"),
            ("iphone-chrome", "ios", "chrome"),
            ("android", "android", "chrome"),
            ("android-firefox", "android", "firefox"),
            ("windows", "windows", "chrome"),
            ("windows-edge", "windows", "edge"),
            ("windows-opera", "windows", "opera"),
            ("macos", "macos", "safari"),
            ("linux", "linux", "firefox"),
            ("chromeos", "chromeos", "chrome"),
            ("in-app", "ios", "in-app"),
        ] {
            assert!(browsers().any(|(one, _, _)| one == value), "{value}");
            let query = format!("browser={value}");
            assert!(matched(&query, "device", device) && matched(&query, "browser", browser), "{value}");
        }
    }

    #[test]
    fn a_visit_is_led_as_a_redirect_is() {
        let (first, second) = ("https://a.example/?k=1", "https://b.example/");
        let rules = [rule(first, "device", "ios"), rule(second, "device", "mobile")];
        let own_url = LongUrl::from_stored("https://e.example/ü");
        let lead = |query: &str, forwards| {
            let allows = |url: &LongUrl| url.as_str() != second;
            lead(&read(query), &own(), &TimeZone::UTC, &rules, &own_url, forwards, allows).unwrap()
        };
        let now = own().now;
        let expected = |rule, to: &str, is_denied| Lead { rule, to: to.to_owned(), is_denied, now };
        assert_eq!(lead("browser=iphone&query=k%3D2", false), expected(Some(1), first, false));
        let forwarded = expected(Some(1), "https://a.example/?k=2&x=%20%23", false);
        assert_eq!(lead("browser=iphone&query=k%3D2%26x%3D%20%23", true), forwarded);
        assert_eq!(lead("browser=android", true), expected(Some(2), second, true));
        assert_eq!(lead("browser=linux", true), expected(None, "https://e.example/%C3%BC", false));
    }

    #[test]
    fn wrong_fields_are_named() {
        let url = LongUrl::from_stored("https://e.example/");
        let wrong =
            |query: &str| lead(&read(query), &own(), &TimeZone::UTC, &[], &url, true, |_| true).unwrap_err();
        assert_eq!(wrong("browser=own&ip=1.2.3&time=tomorrow"), ["ip", "time"]);
        assert_eq!(wrong("browser=own&time=2030-13-01"), ["time"]);
    }
}
