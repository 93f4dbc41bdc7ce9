//! Evaluation of redirect rules for a visitor, with the semantics of Shlink's redirect conditions.

mod agent;
mod buckets;

use std::{borrow::Cow, cell::OnceCell, collections::HashMap, net::IpAddr, ops::Range};

use jiff::Timestamp;
use url::form_urlencoded;

use self::agent::Agent;
use super::{
    Protocol,
    rule::{Condition, Rule},
};

pub use buckets::Buckets;

/// Maximum number of languages that are read of a header. Browsers send a few.
const LANGUAGES_MAX: usize = 100;

/// Properties of a visit that conditions are evaluated on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// `User-Agent` header; empty if absent.
    pub user_agent: &'a str,
    /// `Accept-Language` header; empty if absent.
    pub accept_language: &'a str,
    /// Raw query of the request, without the question mark.
    pub query: &'a str,
    /// Address of the visitor.
    pub ip: IpAddr,
    /// Country code of the address (ISO 3166-1 alpha-2), in any case; `None` if unknown.
    pub country: Option<&'a str>,
    /// City name of the address; `None` if unknown.
    pub city: Option<&'a str>,
    /// Time of the visit.
    pub now: Timestamp,
    /// The buckets of the link's visitors.
    pub buckets: Buckets,
    /// Path behind the link's name as it was sent, with its slash; empty if there is none.
    pub path: &'a str,
    /// Scheme of the visitor's connection.
    pub scheme: Protocol,
}

/// What came of a rule that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried<'r> {
    /// All of its conditions hold.
    Matches,
    /// This condition does not hold, the first of them.
    Differs(&'r Condition),
    /// Only a later release can tell.
    Unreadable,
}

/// Returns the first rule whose conditions all hold, and calls `note` with the index of each rule
/// that was tried.
pub fn choose<'r>(
    rules: &'r [Rule],
    facts: &Facts<'_>,
    mut note: impl FnMut(usize, Tried<'r>),
) -> Option<&'r Rule> {
    let visitor = Visitor {
        facts,
        agent: OnceCell::new(),
        languages: OnceCell::new(),
        query: OnceCell::new(),
        bucket: OnceCell::new(),
    };
    let mut shared = 0;
    for (index, rule) in rules.iter().enumerate() {
        // A share begins where the one before it ends, whether that one's rule matches or not.
        let share = shared..shared + rule.share();
        shared = share.end;
        // Checked first, so that the others of its conditions cost nothing.
        let tried = if rule.is_of_later_release() {
            Tried::Unreadable
        } else {
            let failed = rule.conditions.iter().find(|condition| !visitor.meets(condition, &share));
            failed.map_or(Tried::Matches, Tried::Differs)
        };
        note(index, tried);
        if tried == Tried::Matches {
            return Some(rule);
        }
    }
    None
}

/// Returns `true` if a rule has a condition on country or city. Locating an address takes longer
/// than all other conditions.
pub fn asks_where(rules: &[Rule]) -> bool {
    let asks = |condition: &Condition| matches!(condition, Condition::Country(_) | Condition::City(_));
    rules.iter().any(|rule| rule.conditions.iter().any(asks))
}

/// A visit with the values derived from it.
///
/// Each value is parsed at most once, when the first condition needs it. A link may have thousands
/// of conditions, and a client can send long headers on purpose.
struct Visitor<'a> {
    facts: &'a Facts<'a>,
    agent: OnceCell<Agent>,
    languages: OnceCell<Vec<Locale<'a>>>,
    /// Query parameters. If a name is repeated, its last value counts.
    query: OnceCell<HashMap<Cow<'a, str>, Cow<'a, str>>>,
    bucket: OnceCell<u64>,
}

impl<'a> Visitor<'a> {
    /// Returns whether a condition holds. `share` has the buckets of its rule's share.
    fn meets(&self, condition: &Condition, share: &Range<u64>) -> bool {
        let is_located =
            |place: Option<&str>, name: &str| place.is_some_and(|at| at.eq_ignore_ascii_case(name));
        match condition {
            Condition::Device(device) => self.agent().is(*device),
            Condition::Browser(browser) => self.agent().has(*browser),
            Condition::Language(language) => {
                let wanted = Locale::read(language.as_str());
                self.languages().iter().any(|locale| locale.is(&wanted))
            }
            Condition::QueryParam { key, value } => self.parameter(key.as_str()) == Some(value.as_str()),
            Condition::AnyValueQueryParam(key) => self.parameter(key.as_str()).is_some(),
            // Shlink uses PHP's `empty`, for which "0" is empty.
            Condition::ValuelessQueryParam(key) => matches!(self.parameter(key.as_str()), Some("" | "0")),
            Condition::IpAddress(pattern) => pattern.contains(self.facts.ip),
            Condition::Country(country) => is_located(self.facts.country, country.0),
            Condition::City(city) => is_located(self.facts.city, city.as_str()),
            Condition::BeforeDate(date) => self.facts.now < date.time,
            Condition::AfterDate(date) => self.facts.now > date.time,
            Condition::Share(_) => share.contains(&self.bucket()),
            Condition::Path(pattern) => pattern.matches(self.facts.path),
            Condition::Scheme(scheme) => self.facts.scheme == *scheme,
            Condition::Unknown(_) => false,
        }
    }

    fn bucket(&self) -> u64 {
        *self.bucket.get_or_init(|| self.facts.buckets.find(self.facts.ip, self.facts.user_agent))
    }

    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| Agent::read(self.facts.user_agent))
    }

    fn languages(&self) -> &[Locale<'a>] {
        self.languages.get_or_init(|| {
            self.facts.accept_language.split(',').take(LANGUAGES_MAX).filter_map(preferred).collect()
        })
    }

    fn parameter(&self, key: &str) -> Option<&str> {
        let query = self.query.get_or_init(|| form_urlencoded::parse(self.facts.query.as_bytes()).collect());
        query.get(key).map(|value| &**value)
    }
}

/// A language and its second subtag, which is usually a country.
struct Locale<'a> {
    language: &'a str,
    country: Option<&'a str>,
}

impl<'a> Locale<'a> {
    fn read(text: &'a str) -> Self {
        let mut subtags = text.trim().split(['-', '_']);
        Self { language: subtags.next().unwrap_or_default(), country: subtags.next() }
    }

    /// Returns `true` if the language is the wanted one, and also the country if one is wanted.
    fn is(&self, wanted: &Locale<'_>) -> bool {
        self.language.eq_ignore_ascii_case(wanted.language)
            && wanted
                .country
                .is_none_or(|wanted| self.country.is_some_and(|own| own.eq_ignore_ascii_case(wanted)))
    }
}

/// Parses an entry of `Accept-Language` (RFC 9110, section 12.5.4). Returns `None` unless it names
/// a language with a weight of at least 0.9.
fn preferred(entry: &str) -> Option<Locale<'_>> {
    let (range, parameters) = entry.split_once(';').unwrap_or((entry, ""));
    let weight = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    let is_preferred = match weight {
        Some(weight) => weight.parse::<f32>().is_ok_and(|weight| (0.9..=1.0).contains(&weight)),
        None => true,
    };
    let is_named = !matches!(range.trim(), "" | "*");
    (is_preferred && is_named).then(|| Locale::read(range))
}

#[cfg(test)]
mod tests {
    use codes::LinkId;

    use super::*;
    use crate::LongUrl;

    fn facts() -> Facts<'static> {
        Facts {
            user_agent: "",
            accept_language: "",
            query: "",
            ip: "192.0.2.7".parse().unwrap(),
            country: None,
            city: None,
            now: "2030-06-15T12:00:00Z".parse().unwrap(),
            buckets: Buckets::new([7; 16], LinkId::from_stored(1)),
            path: "",
            scheme: Protocol::Https,
        }
    }

    fn rule(url: &str, conditions: &[(&str, Option<&str>, Option<&str>)]) -> Rule {
        let parse = |(kind, key, value): &(&str, Option<&str>, Option<&str>)| {
            Condition::parse(kind, *key, *value).unwrap()
        };
        Rule::new(LongUrl::from_stored(url), conditions.iter().map(parse).collect())
    }

    fn meets(facts: &Facts<'_>, kind: &str, key: Option<&str>, value: Option<&str>) -> bool {
        choose(&[rule("x", &[(kind, key, value)])], facts, |_, _| {}).is_some()
    }

    #[test]
    fn the_first_rule_wins_all_of_whose_conditions_hold() {
        let rules = [
            rule("one", &[("any-value-query-param", Some("a"), None), ("language", None, Some("de"))]),
            rule("two", &[("any-value-query-param", Some("a"), None)]),
            rule("three", &[("ip-address", None, Some("192.0.2.0/24"))]),
            rule("four", &[("ip-address", None, Some("192.0.*.7"))]),
        ];
        let of = |query, accept_language| {
            let facts = Facts { query, accept_language, ..facts() };
            choose(&rules, &facts, |_, _| {}).map(|rule| rule.long_url.as_str())
        };
        assert_eq!(of("a", "de"), Some("one"));
        assert_eq!(of("a", "fr"), Some("two"));
        assert_eq!(of("", "de"), Some("three"));
        let elsewhere = Facts { ip: "198.51.100.1".parse().unwrap(), ..facts() };
        assert_eq!(choose(&rules, &elsewhere, |_, _| {}), None);
        let mut tried = Vec::new();
        choose(&rules, &Facts { query: "a", ..facts() }, |index, came| tried.push((index, came)));
        assert_eq!(tried, [(0, Tried::Differs(&rules[0].conditions[1])), (1, Tried::Matches)]);
        let always = [rule("x", &[])];
        assert_eq!(choose(&always, &facts(), |_, _| {}), Some(&always[0]));
        assert_eq!(choose(&[], &facts(), |_, _| {}), None);
    }

    #[test]
    fn languages_match_when_they_are_preferred_and_countries_when_they_are_asked_for() {
        for (header, language, expected) in [
            ("en", "en", true),
            ("en-US", "en", true),
            ("en-US", "en_us", true),
            ("EN_us", "en-US", true),
            ("en-US", "en-GB", false),
            ("en", "en-US", false),
            ("de, en;q=0.9", "en", true),
            ("de, en;q=0.89", "en", false),
            ("de,en-US;q=0.7,en;q=0.3", "en", false),
            (" de , en ; Q = 1.000 ", "en", true),
            ("en;q=1.1", "en", false),
            ("en;q=inf", "en", false),
            ("en;q=NaN", "en", false),
            ("en;q=", "en", false),
            ("en;q=0", "en", false),
            ("en;level=1", "en", true),
            ("eng", "en", false),
            ("zh-Hant-TW", "zh-Hant", true),
            ("en", " en ", true),
            ("", "en", false),
            ("*", "en", false),
            ("*", "*", false),
            ("*;q=1, en", "*", false),
            (",,;,", "-", false),
            ("ü;q=ü", "ü", false),
        ] {
            let facts = Facts { accept_language: header, ..facts() };
            assert_eq!(meets(&facts, "language", None, Some(language)), expected, "{header:?} {language:?}");
        }
    }

    #[test]
    fn parameters_are_compared_when_they_are_decoded_and_the_last_one_counts() {
        // Expected for the parameter "k ü": value "v", any value, no value.
        for (query, expected) in [
            ("k+%C3%BC=v", [true, true, false]),
            ("k%20%c3%bc=%76", [true, true, false]),
            ("k+ü=v", [true, true, false]),
            ("a=b&k+ü=w&k+ü=v", [true, true, false]),
            ("k+ü=v&k+ü=w", [false, true, false]),
            ("k+ü=V", [false, true, false]),
            ("k+ü=v=", [false, true, false]),
            ("k+ü", [false, true, true]),
            ("&&k+ü=&", [false, true, true]),
            ("k+ü=0", [false, true, true]),
            ("k+ü=+", [false, true, false]),
            ("k+ü=v&k+ü", [false, true, true]),
            ("K+ü=v", [false, false, false]),
            ("k%2Bü=v", [false, false, false]),
            ("k+%C3=v&%zz=%", [false, false, false]),
            ("", [false, false, false]),
        ] {
            let facts = Facts { query, ..facts() };
            let met = [
                meets(&facts, "query-param", Some("k ü"), Some("v")),
                meets(&facts, "any-value-query-param", Some("k ü"), None),
                meets(&facts, "valueless-query-param", Some("k ü"), None),
            ];
            assert_eq!(met, expected, "{query}");
        }
    }

    fn share(percent: &'static str) -> (&'static str, Option<&'static str>, Option<&'static str>) {
        ("share", None, Some(percent))
    }

    /// Returns the number of visitors who meet each rule, and of those who meet none, of a million.
    fn led(rules: &[Rule]) -> Vec<f64> {
        let (mut led, facts) = (vec![0.0; rules.len() + 1], facts());
        for visitor in 0..1_000_000_u32 {
            let facts = Facts { ip: IpAddr::from(visitor.to_be_bytes()), ..facts };
            let mut matches = None;
            choose(rules, &facts, |index, tried| matches = (tried == Tried::Matches).then_some(index));
            led[matches.unwrap_or(rules.len())] += 1.0;
        }
        led
    }

    #[test]
    fn each_share_gets_its_percentage_of_all_visitors() {
        let rules = [rule("a", &[share("30")]), rule("b", &[share("20")]), rule("c", &[share("1")])];
        let expected = [300_000.0, 200_000.0, 10_000.0, 490_000.0];
        let led = led(&rules);
        let chi: f64 = led.iter().zip(expected).map(|(count, one)| (count - one).powi(2) / one).sum();
        // Three degrees of freedom: one in a million is above 30.7.
        assert!(chi < 30.7, "chi-square {chi}: {led:?}");
    }

    #[test]
    fn shares_add_up_whatever_else_their_rules_ask_for() {
        let german = ("language", None, Some("de"));
        let rules = [rule("a", &[share("30"), german]), rule("b", &[share("70")])];
        let mut seen = [0; 2];
        for last in 0..=255 {
            let of = |accept_language| {
                let facts = Facts { ip: [192, 0, 2, last].into(), accept_language, ..facts() };
                choose(&rules, &facts, |_, _| {}).map(|rule| rule.long_url.as_str())
            };
            let (german, other) = (of("de"), of("en"));
            // Others are not led to `b` instead of `a`, so that every visitor keeps the target.
            match german {
                Some("a") => assert_eq!(other, None),
                same => assert_eq!((same, other), (Some("b"), Some("b"))),
            }
            seen[usize::from(german == Some("b"))] += 1;
        }
        assert!(seen[0] > 0 && seen[1] > seen[0], "{seen:?}");
    }

    #[test]
    fn each_type_of_condition_is_compared_with_its_fact() {
        let user_agent = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0";
        let there = Facts { country: Some("de"), city: Some("BERLIN"), user_agent, ..facts() };
        let there = Facts { path: "/v1.30", scheme: Protocol::Http, ..there };
        for (kind, value, expected) in [
            // In letters of either case.
            ("geolocation-country-code", "DE", true),
            ("geolocation-country-code", "AT", false),
            ("geolocation-city-name", "Berlin", true),
            ("geolocation-city-name", "Ber", false),
            ("device", "android", true),
            ("device", "mobile", true),
            ("device", "desktop", false),
            ("browser", "firefox", true),
            ("browser", "chrome", false),
            ("browser", "in-app", false),
            ("path", "/v#.#", true),
            ("path", "/v#", false),
            ("scheme", "http", true),
        ] {
            assert_eq!(meets(&there, kind, None, Some(value)), expected, "{kind} {value}");
            assert!(!meets(&facts(), kind, None, Some(value)), "{kind}: nothing is known");
        }
        // Dates exclude their own moment.
        for (date, is_before, is_after) in [
            ("2030-06-15T12:00:01Z", true, false),
            ("2030-06-15T12:00:00Z", false, false),
            ("2030-06-15T14:00:00+02:00", false, false),
            ("2030-06-15", false, true),
            ("2030-06-16", true, false),
        ] {
            assert_eq!(meets(&facts(), "before-date", None, Some(date)), is_before, "{date}");
            assert_eq!(meets(&facts(), "after-date", None, Some(date)), is_after, "{date}");
        }
    }
}
