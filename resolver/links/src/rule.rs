//! Redirect rules: other targets for visitors who meet conditions. Types, names and limits of the
//! values are those of Shlink's REST API v3, except for shares, paths, schemes and browsers within
//! apps.

mod path_pattern;
mod value;

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Invalid, LongUrl, Protocol, extra_path::fill_wildcards};

pub use path_pattern::PathPattern;
pub use value::{AddressPattern, Browser, Country, Date, Device, Share, Text, unmapped_network};

/// Maximum number of rules of one link.
pub const RULES_MAX: usize = 100;
const NO_DATE: &str =
    "not a date: write it like 2030-12-31, 2030-12-31T18:00:00+01:00 or 2030-12-31T18:00:00[Europe/Berlin]";
/// Maximum number of conditions of one rule.
pub const CONDITIONS_MAX: usize = 20;
/// Describes the shares that the rules of a link may have.
pub const SHARES_EXPECTED: &str = "expected shares of at most 100 percent in all rules together";
/// Describes how many conditions on the path a rule may have.
pub const ONE_PATH_EXPECTED: &str = "expected at most one condition on the path in each rule";
const UNKNOWN_RULE: Invalid = Invalid::because(
    "a rule has a condition or member that this release does not know: import it with a later one",
);

/// A target for visitors who meet all conditions. Rules are tried in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Target URL.
    pub long_url: LongUrl,
    /// Conditions, all of which have to hold. A rule without conditions matches every visitor.
    pub conditions: Vec<Condition>,
    /// Members that only a later release can read. A rule with one of them matches no visitor.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Rule {
    /// Creates a rule.
    pub fn new(long_url: LongUrl, conditions: Vec<Condition>) -> Self {
        Self { long_url, conditions, others: Map::new() }
    }

    /// Returns `true` if only a later release can tell which visitors the rule is for. In this one
    /// it matches none.
    pub fn is_of_later_release(&self) -> bool {
        let is_unknown = |condition: &Condition| matches!(condition, Condition::Unknown(_));
        !self.others.is_empty() || self.conditions.iter().any(is_unknown)
    }

    /// Returns the share of visitors that the rule is for, in percent; 0 if it has no such
    /// condition.
    pub fn share(&self) -> u64 {
        let percent = |condition: &Condition| match condition {
            Condition::Share(share) => u64::from(share.percent),
            _ => 0,
        };
        self.conditions.iter().map(percent).sum()
    }

    /// Returns the pattern of the rule's condition on the path, if it has one.
    pub fn path_pattern(&self) -> Option<&PathPattern> {
        self.conditions.iter().find_map(|condition| match condition {
            Condition::Path(pattern) => Some(pattern),
            _ => None,
        })
    }

    /// Returns the place of the second condition on the path. The long URL has no placeholders for
    /// its wildcards, and with twenty in each rule, one visit would cost as much as thousands.
    pub fn second_path(&self) -> Option<usize> {
        let is_path = |(_, condition): &(usize, &Condition)| matches!(condition, Condition::Path(_));
        self.conditions.iter().enumerate().filter(is_path).nth(1).map(|(place, _)| place)
    }

    /// Returns the long URL of a rule with a condition on the path: what its wildcards match takes
    /// the place of `{1}` to `{9}`. Returns `None` if the path does not match, or the URL would be
    /// too long.
    pub fn filled(&self, path: &str) -> Option<String> {
        fill_wildcards(self.long_url.as_str(), &self.path_pattern()?.parts(path)?)
    }

    /// Parses a JSON list of rules, as exports carry it. The long URLs are not checked.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Invalid> {
        let rules: Vec<Self> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_short =
            rules.len() <= RULES_MAX && rules.iter().all(|rule| rule.conditions.len() <= CONDITIONS_MAX);
        if !is_short {
            let most = format!("expected at most {RULES_MAX} rules with {CONDITIONS_MAX} conditions each");
            return Err(most.into());
        }
        if excess_share(&rules).is_some() {
            return Err(Invalid::because(SHARES_EXPECTED));
        }
        if rules.iter().any(|rule| rule.second_path().is_some()) {
            return Err(Invalid::because(ONE_PATH_EXPECTED));
        }
        if rules.iter().any(Self::is_of_later_release) { Err(UNKNOWN_RULE) } else { Ok(rules) }
    }
}

/// Returns the place of the first share with which those of all rules are more than 100 percent:
/// that of its rule, and of the condition there.
pub fn excess_share(rules: &[Rule]) -> Option<(usize, usize)> {
    let mut sum = 0;
    rules.iter().enumerate().find_map(|(place, rule)| {
        sum += rule.share();
        let is_share = |condition: &Condition| matches!(condition, Condition::Share(_));
        if sum > 100 { Some((place, rule.conditions.iter().position(is_share)?)) } else { None }
    })
}

/// A condition on a visit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub enum Condition {
    /// The user agent names this device, or one of this kind.
    Device(Device),
    /// The user agent names this browser.
    Browser(Browser),
    /// The visitor prefers this language, with its country if one is given, as in `en-US`.
    Language(Text),
    /// The query has this parameter with exactly this value.
    QueryParam {
        /// Name of the parameter.
        key: Text,
        /// Value of the parameter.
        value: Text,
    },
    /// The query has this parameter, with any value or none.
    AnyValueQueryParam(Text),
    /// The query has this parameter without a value: empty or `0`.
    ValuelessQueryParam(Text),
    /// The visitor's address matches this pattern.
    IpAddress(AddressPattern),
    /// The visitor's address is located in this country.
    Country(Country),
    /// The visitor's address is located in a city of this name.
    City(Text),
    /// The visit is before this time.
    BeforeDate(Date),
    /// The visit is after this time.
    AfterDate(Date),
    /// The visitor is in this share of the link's visitors. The shares of all rules of a link add
    /// up: each visitor is in at most one of them.
    Share(Share),
    /// The path behind the link's name matches this pattern.
    Path(PathPattern),
    /// The visitor's connection has this scheme.
    Scheme(Protocol),
    /// A condition that only a later release can read, as it is stored. It never holds.
    Unknown(Box<Value>),
}

/// Why a condition was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ConditionError {
    /// The wrong field in Shlink's API: `type`, `matchKey` or `matchValue`.
    pub field: &'static str,
    reason: String,
}

const DEVICE: &str = "device";
const BROWSER: &str = "browser";
const LANGUAGE: &str = "language";
const QUERY_PARAM: &str = "query-param";
const ANY_VALUE_QUERY_PARAM: &str = "any-value-query-param";
const VALUELESS_QUERY_PARAM: &str = "valueless-query-param";
const IP_ADDRESS: &str = "ip-address";
const COUNTRY: &str = "geolocation-country-code";
const CITY: &str = "geolocation-city-name";
const BEFORE_DATE: &str = "before-date";
const AFTER_DATE: &str = "after-date";
const SHARE: &str = "share";
const PATH: &str = "path";
const SCHEME: &str = "scheme";
/// Names of all types of conditions.
pub const CONDITION_TYPES: [&str; 14] = [
    DEVICE,
    BROWSER,
    LANGUAGE,
    QUERY_PARAM,
    ANY_VALUE_QUERY_PARAM,
    VALUELESS_QUERY_PARAM,
    IP_ADDRESS,
    COUNTRY,
    CITY,
    BEFORE_DATE,
    AFTER_DATE,
    SHARE,
    PATH,
    SCHEME,
];

impl Condition {
    /// Returns whether conditions of this type compare with a time.
    pub fn has_time(kind: &str) -> bool {
        matches!(kind, BEFORE_DATE | AFTER_DATE)
    }

    /// Parses Shlink's fields `type`, `matchKey` and `matchValue`, and drops unused ones.
    pub fn parse(kind: &str, key: Option<&str>, value: Option<&str>) -> Result<Self, ConditionError> {
        let wrong = |field, reason| ConditionError { field, reason };
        let wrong_value = |expected: &str| wrong("matchValue", format!("expected {expected}"));
        let one_of =
            |kind: &str, names: &[&str]| wrong_value(&format!("one of the {kind} {}", names.join(", ")));
        let no_key = || format!("expected the name of a query parameter, 1 to {} bytes", Text::MAX_LEN);
        let named = || key.and_then(Text::parse).ok_or_else(|| wrong("matchKey", no_key()));
        let no_value = || wrong_value(&format!("a value of 1 to {} bytes", Text::MAX_LEN));
        let valued = || value.and_then(Text::parse).ok_or_else(no_value);
        let dated = || Date::parse(valued()?).ok_or_else(|| wrong("matchValue", NO_DATE.to_owned()));
        Ok(match kind {
            DEVICE => {
                let device = value.and_then(Device::parse);
                Self::Device(device.ok_or_else(|| one_of("devices", &Device::NAMES))?)
            }
            BROWSER => {
                let browser = value.and_then(Browser::parse);
                Self::Browser(browser.ok_or_else(|| one_of("browsers", &Browser::NAMES))?)
            }
            LANGUAGE => Self::Language(valued()?),
            QUERY_PARAM => Self::QueryParam { key: named()?, value: valued()? },
            ANY_VALUE_QUERY_PARAM => Self::AnyValueQueryParam(named()?),
            VALUELESS_QUERY_PARAM => Self::ValuelessQueryParam(named()?),
            IP_ADDRESS => Self::IpAddress(AddressPattern::parse(valued()?).ok_or_else(|| {
                wrong_value("an IP address, a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7")
            })?),
            COUNTRY => {
                let country = value.and_then(Country::parse);
                let expected = "two capital letters of ISO 3166-1, such as DE";
                Self::Country(country.ok_or_else(|| wrong_value(expected))?)
            }
            CITY => Self::City(valued()?),
            BEFORE_DATE => Self::BeforeDate(dated()?),
            AFTER_DATE => Self::AfterDate(dated()?),
            SHARE => {
                let share = value.and_then(Text::parse).and_then(Share::parse);
                Self::Share(share.ok_or_else(|| wrong_value("a whole percentage from 1 to 99"))?)
            }
            PATH => Self::Path(PathPattern::parse(valued()?).ok_or_else(|| {
                wrong_value("a path that begins with a slash and has at most nine wildcards: #, * or **")
            })?),
            SCHEME => {
                let scheme = value.and_then(Protocol::parse);
                Self::Scheme(scheme.ok_or_else(|| one_of("schemes", &Protocol::NAMES))?)
            }
            _ => {
                let types = CONDITION_TYPES.join(", ");
                return Err(wrong("type", format!("expected one of the types {types}")));
            }
        })
    }

    /// Returns the fields `type`, `matchKey` and `matchValue` as written; unused ones are `None`.
    pub fn parts(&self) -> (&str, Option<&str>, Option<&str>) {
        match self {
            Self::Device(device) => (DEVICE, None, Some(device.as_str())),
            Self::Browser(browser) => (BROWSER, None, Some(browser.as_str())),
            Self::Language(language) => (LANGUAGE, None, Some(language.as_str())),
            Self::QueryParam { key, value } => (QUERY_PARAM, Some(key.as_str()), Some(value.as_str())),
            Self::AnyValueQueryParam(key) => (ANY_VALUE_QUERY_PARAM, Some(key.as_str()), None),
            Self::ValuelessQueryParam(key) => (VALUELESS_QUERY_PARAM, Some(key.as_str()), None),
            Self::IpAddress(pattern) => (IP_ADDRESS, None, Some(pattern.text.as_str())),
            Self::Country(country) => (COUNTRY, None, Some(country.0)),
            Self::City(city) => (CITY, None, Some(city.as_str())),
            Self::BeforeDate(date) => (BEFORE_DATE, None, Some(date.text.as_str())),
            Self::AfterDate(date) => (AFTER_DATE, None, Some(date.text.as_str())),
            Self::Share(share) => (SHARE, None, Some(share.text.as_str())),
            Self::Path(pattern) => (PATH, None, Some(pattern.text.as_str())),
            Self::Scheme(scheme) => (SCHEME, None, Some(scheme.as_str())),
            Self::Unknown(stored) => {
                let text = |name| stored.get(name).and_then(Value::as_str);
                (text("type").unwrap_or_default(), text("matchKey"), text("matchValue"))
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored<'a> {
    r#type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_key: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_value: Option<Cow<'a, str>>,
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Self::Unknown(stored) = self {
            return stored.serialize(to);
        }
        let (kind, key, value) = self.parts();
        let (match_key, match_value) = (key.map(Cow::Borrowed), value.map(Cow::Borrowed));
        Stored { r#type: kind.into(), match_key, match_value }.serialize(to)
    }
}

impl From<Value> for Condition {
    fn from(value: Value) -> Self {
        let known = Stored::deserialize(&value).ok().and_then(|stored| {
            Self::parse(&stored.r#type, stored.match_key.as_deref(), stored.match_value.as_deref()).ok()
        });
        known.unwrap_or_else(|| Self::Unknown(Box::new(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_gives_back_the_three_fields_that_it_was_read_from() {
        for (kind, key, value) in [
            (DEVICE, None, Some("chromeos")),
            (BROWSER, None, Some("android_browser")),
            (BROWSER, None, Some("in-app")),
            (LANGUAGE, None, Some("en_US")),
            (LANGUAGE, None, Some(" pt-br ")),
            (QUERY_PARAM, Some("größe"), Some("a b+c%20")),
            (ANY_VALUE_QUERY_PARAM, Some("utm_source"), None),
            (VALUELESS_QUERY_PARAM, Some("debug"), None),
            (IP_ADDRESS, None, Some("192.0.2.7/24")),
            (IP_ADDRESS, None, Some("2001:DB8:0::1")),
            (IP_ADDRESS, None, Some("11.*.22.*")),
            (COUNTRY, None, Some("DE")),
            (CITY, None, Some("São Paulo")),
            (BEFORE_DATE, None, Some("2030-01-01T00:00:00+01:00")),
            (AFTER_DATE, None, Some("2030-01-01")),
            (SHARE, None, Some("50")),
            (PATH, None, Some("/v#.#/**")),
            (SCHEME, None, Some("http")),
        ] {
            let condition = Condition::parse(kind, key, value).unwrap();
            assert_eq!(condition.parts(), (kind, key, value));
            let text = serde_json::to_string(&condition).unwrap();
            assert_eq!(serde_json::from_str::<Condition>(&text).unwrap(), condition, "{text}");
        }
        // A field without a use is dropped.
        let device = Condition::parse(DEVICE, Some("x"), Some("ios")).unwrap();
        assert_eq!(device.parts(), (DEVICE, None, Some("ios")));
        let any = Condition::parse(ANY_VALUE_QUERY_PARAM, Some("x"), Some("")).unwrap();
        assert_eq!(any.parts(), (ANY_VALUE_QUERY_PARAM, Some("x"), None));
    }

    #[test]
    fn what_is_refused_is_refused_with_its_field() {
        let fits = "ü".repeat(Text::MAX_LEN / 2);
        let long = "ü".repeat(Text::MAX_LEN / 2 + 1);
        assert!(Condition::parse(QUERY_PARAM, Some(&fits), Some(&fits)).is_ok());
        for (kind, key, value, reason, field) in [
            ("", None, None, "of the types", "type"),
            ("Device", None, Some("ios"), "of the types", "type"),
            (DEVICE, None, None, "of the devices", "matchValue"),
            (DEVICE, None, Some("iOS"), "of the devices", "matchValue"),
            (BROWSER, None, Some("netscape"), "of the browsers", "matchValue"),
            (LANGUAGE, None, None, "a value of 1 to 255", "matchValue"),
            (LANGUAGE, None, Some(""), "a value of 1 to 255", "matchValue"),
            (QUERY_PARAM, None, Some("x"), "the name of a query", "matchKey"),
            (QUERY_PARAM, Some(""), Some("x"), "the name of a query", "matchKey"),
            (QUERY_PARAM, Some("x"), None, "a value of 1 to 255", "matchValue"),
            (QUERY_PARAM, Some("x"), Some(&*long), "a value of 1 to 255", "matchValue"),
            (QUERY_PARAM, Some(&*long), Some("x"), "the name of a query", "matchKey"),
            (ANY_VALUE_QUERY_PARAM, None, Some("x"), "the name of a query", "matchKey"),
            (VALUELESS_QUERY_PARAM, None, None, "the name of a query", "matchKey"),
            (IP_ADDRESS, None, Some("1.2.3"), "an IP address", "matchValue"),
            (COUNTRY, None, Some("de"), "two capital letters", "matchValue"),
            (CITY, None, Some(""), "a value of 1 to 255", "matchValue"),
            (BEFORE_DATE, None, Some("tomorrow"), "not a date", "matchValue"),
            (AFTER_DATE, None, None, "a value of 1 to 255", "matchValue"),
            (SHARE, None, None, "a whole percentage", "matchValue"),
            (SHARE, None, Some("100"), "a whole percentage", "matchValue"),
            (PATH, None, None, "a value of 1 to 255", "matchValue"),
            (PATH, None, Some("v#"), "begins with a slash", "matchValue"),
            (SCHEME, None, Some("HTTP"), "of the schemes", "matchValue"),
        ] {
            let refused = Condition::parse(kind, key, value).unwrap_err();
            assert_eq!(refused.field, field, "{kind:?} {key:?} {value:?}");
            assert!(refused.to_string().contains(reason), "{kind:?} {key:?} {value:?}: {refused}");
        }
    }

    #[test]
    fn shares_of_all_rules_are_at_most_all_visitors() {
        let read = |shares: &[&[u8]]| -> Vec<Rule> {
            let share = |percent: &u8| Condition::parse(SHARE, None, Some(&percent.to_string())).unwrap();
            let device = || Condition::parse(DEVICE, None, Some("ios")).unwrap();
            let rule = |shares: &&[u8]| {
                let conditions = [device()].into_iter().chain(shares.iter().map(share)).collect();
                Rule::new(LongUrl::from_stored("https://e.test/"), conditions)
            };
            shares.iter().map(rule).collect()
        };
        let cases = [
            (&[][..], None),
            (&[&[60][..], &[], &[40]], None),
            (&[&[60][..], &[41], &[]], Some((1, 1))),
            (&[&[60][..], &[30], &[], &[10], &[1]], Some((4, 1))),
            // Within a rule they add up too.
            (&[&[60, 40][..]], None),
            (&[&[60, 41][..]], Some((0, 1))),
        ];
        for (shares, excess) in cases {
            let rules = read(shares);
            assert_eq!(excess_share(&rules), excess, "{shares:?}");
            let parsed = Rule::parse_list(&serde_json::to_string(&rules).unwrap());
            assert_eq!(parsed.is_err(), excess.is_some(), "{parsed:?}");
        }
    }

    #[test]
    fn a_rule_has_one_condition_on_the_path_at_most() {
        let path = || Condition::parse(PATH, None, Some("/*")).unwrap();
        let scheme = || Condition::parse(SCHEME, None, Some("http")).unwrap();
        for (conditions, second) in [
            (vec![], None),
            (vec![scheme(), path()], None),
            (vec![path(), scheme(), path(), path()], Some(2)),
        ] {
            let rule = Rule::new(LongUrl::from_stored("https://e.test/"), conditions);
            assert_eq!(rule.second_path(), second, "{rule:?}");
            // Each rule may have one.
            let rules = serde_json::to_string(&[rule.clone(), rule]).unwrap();
            let expected = second.map(|_| Invalid::because(ONE_PATH_EXPECTED));
            assert_eq!(Rule::parse_list(&rules).err(), expected, "{rules}");
        }
    }

    #[test]
    fn a_rule_is_stored_under_stable_names() {
        let conditions =
            CONDITION_TYPES[3..5].iter().map(|t| Condition::parse(t, Some("k"), Some("v")).unwrap());
        let rule = Rule::new(LongUrl::from_stored("https://example.com/ä"), conditions.collect());
        let text = serde_json::to_string(&rule).unwrap();
        assert_eq!(
            text,
            r#"{"longUrl":"https://example.com/ä","conditions":[{"type":"query-param","matchKey":"k","matchValue":"v"},{"type":"any-value-query-param","matchKey":"k"}]}"#
        );
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
        let nulls = r#"{"longUrl":"x","conditions":[{"type":"device","matchKey":null,"matchValue":"ios"}]}"#;
        assert_eq!(serde_json::from_str::<Rule>(nulls).unwrap().conditions.len(), 1);
        assert!(serde_json::from_str::<Rule>(r#"{"longUrl":"x"}"#).is_err());
    }

    #[test]
    fn a_rule_of_a_later_release_is_kept_as_it_is_and_not_imported() {
        for rule in [
            r#"{"longUrl":"x","conditions":[{"type":"moon-phase","matchValue":"full"}]}"#,
            r#"{"longUrl":"x","conditions":[{"type":"ip-address","matchValue":7}]}"#,
            r#"{"longUrl":"x","conditions":[{"type":"device","matchValue":"watch"}]}"#,
            r#"{"longUrl":"x","conditions":[{"type":"device","matchValue":"ios","negated":true}]}"#,
            r#"{"longUrl":"x","conditions":[{"anyOf":[]}]}"#,
            r#"{"longUrl":"x","conditions":[7]}"#,
            r#"{"longUrl":"x","conditions":[],"weight":3}"#,
        ] {
            let read: Rule = serde_json::from_str(rule).unwrap();
            assert!(read.is_of_later_release(), "{rule}");
            let (written, stored): (Value, Value) =
                (serde_json::to_value(read).unwrap(), serde_json::from_str(rule).unwrap());
            assert_eq!(written, stored);
            assert_eq!(Rule::parse_list(&format!("[{rule}]")), Err(UNKNOWN_RULE), "{rule}");
        }
    }
}
