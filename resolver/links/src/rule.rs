//! Redirect rules: other targets for visitors who meet conditions. Types, names and limits of the
//! values are those of Shlink's REST API v3.

mod value;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::LongUrl;
use value::MAX_LEN;

pub use value::{AddressPattern, Browser, Country, Date, Device, Text};

/// Maximum number of rules of one link.
pub const RULES_MAX: usize = 100;
/// Maximum number of conditions of one rule.
pub const CONDITIONS_MAX: usize = 20;

/// A target for visitors who meet all conditions. A link stores its rules in the order in which
/// they are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Target URL.
    #[serde(with = "stored_url")]
    pub long_url: LongUrl,
    /// Conditions, all of which have to hold. A rule without conditions matches every visitor.
    pub conditions: Vec<Condition>,
    /// Members that only a later release can read. A rule with one of them matches no visitor.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Why the text of a list of rules was refused.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Not a JSON list of rules.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Too many rules, or too many conditions of a rule.
    #[error("expected at most {RULES_MAX} rules with {CONDITIONS_MAX} conditions each")]
    TooMany,
    /// A rule of a later release.
    #[error("a rule has a condition or member that this release does not know: import it with a later one")]
    Unknown,
}

impl Rule {
    /// Creates a rule.
    #[must_use]
    pub fn new(long_url: LongUrl, conditions: Vec<Condition>) -> Self {
        Self { long_url, conditions, others: Map::new() }
    }

    /// Returns `true` if only a later release can tell which visitors the rule is for. In this one
    /// it matches none.
    #[must_use]
    pub fn is_of_later_release(&self) -> bool {
        let is_unknown = |condition: &Condition| matches!(condition, Condition::Unknown(_));
        !self.others.is_empty() || self.conditions.iter().any(is_unknown)
    }

    /// Parses a JSON list of rules in their stored form, as exports carry it. The long URLs are not
    /// checked.
    ///
    /// # Errors
    /// Returns [`RulesError`] if the text is not such a list, or the list is too long for a link.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RulesError> {
        let rules: Vec<Self> = serde_json::from_str(text)?;
        let is_short =
            rules.len() <= RULES_MAX && rules.iter().all(|rule| rule.conditions.len() <= CONDITIONS_MAX);
        if !is_short {
            return Err(RulesError::TooMany);
        }
        if rules.iter().any(Self::is_of_later_release) { Err(RulesError::Unknown) } else { Ok(rules) }
    }
}

/// A condition on a visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Written")]
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
    /// A condition that only a later release can read, as it is stored. It never holds.
    Unknown(Box<Value>),
}

/// Why a condition was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// Unknown type of condition.
    #[error("expected one of the types {}", CONDITION_TYPES.join(", "))]
    Type,
    /// Key missing or of the wrong length.
    #[error("expected the name of a query parameter, 1 to {MAX_LEN} bytes")]
    Key,
    /// Key that the type does not use, but that is too long to be accepted.
    #[error("expected no key, or one of at most {MAX_LEN} bytes")]
    UnusedKey,
    /// Value missing or of the wrong length.
    #[error("expected a value of 1 to {MAX_LEN} bytes")]
    Value,
    /// Value that the type does not use, but that is too long to be accepted.
    #[error("expected no value, or one of at most {MAX_LEN} bytes")]
    UnusedValue,
    /// Unknown device.
    #[error("expected one of the devices {}", Device::names().join(", "))]
    Device,
    /// Unknown browser.
    #[error("expected one of the browsers {}", Browser::names().join(", "))]
    Browser,
    /// Neither an IP address, nor a network, nor a pattern.
    #[error("expected an IP address, a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7")]
    IpAddress,
    /// Unknown country code.
    #[error("expected two capital letters of ISO 3166-1, such as DE")]
    Country,
    /// Not a date or time.
    #[error(
        "not a date: write it like 2030-12-31, 2030-12-31T18:00:00+01:00 or 2030-12-31T18:00:00[Europe/Berlin]"
    )]
    Date,
}

impl ConditionError {
    /// Returns the name of the wrong field in Shlink's API: `type`, `matchKey` or `matchValue`.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Key | Self::UnusedKey => "matchKey",
            Self::Value
            | Self::UnusedValue
            | Self::Device
            | Self::Browser
            | Self::IpAddress
            | Self::Country
            | Self::Date => "matchValue",
        }
    }
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
/// Names of all types of conditions.
pub const CONDITION_TYPES: [&str; 11] = [
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
];

impl Condition {
    /// Parses Shlink's fields `type`, `matchKey` and `matchValue`. A key or value that the type
    /// does not use is dropped.
    ///
    /// # Errors
    /// Returns the [`ConditionError`] of the wrong field. An unused key or value is refused if it
    /// is longer than 255 bytes.
    pub fn parse(kind: &str, key: Option<&str>, value: Option<&str>) -> Result<Self, ConditionError> {
        let named = || key.and_then(Text::parse).ok_or(ConditionError::Key);
        let valued = || value.and_then(Text::parse).ok_or(ConditionError::Value);
        let condition = match kind {
            DEVICE => value.and_then(Device::parse).map(Self::Device).ok_or(ConditionError::Device)?,
            BROWSER => value.and_then(Browser::parse).map(Self::Browser).ok_or(ConditionError::Browser)?,
            LANGUAGE => Self::Language(valued()?),
            QUERY_PARAM => Self::QueryParam { key: named()?, value: valued()? },
            ANY_VALUE_QUERY_PARAM => Self::AnyValueQueryParam(named()?),
            VALUELESS_QUERY_PARAM => Self::ValuelessQueryParam(named()?),
            IP_ADDRESS => {
                let pattern = AddressPattern::parse(valued()?);
                Self::IpAddress(pattern.ok_or(ConditionError::IpAddress)?)
            }
            COUNTRY => value.and_then(Country::parse).map(Self::Country).ok_or(ConditionError::Country)?,
            CITY => Self::City(valued()?),
            BEFORE_DATE => Self::BeforeDate(Date::parse(valued()?).ok_or(ConditionError::Date)?),
            AFTER_DATE => Self::AfterDate(Date::parse(valued()?).ok_or(ConditionError::Date)?),
            _ => return Err(ConditionError::Type),
        };
        let is_long = |text: Option<&str>| text.is_some_and(|text| text.len() > MAX_LEN);
        if is_long(key) {
            return Err(ConditionError::UnusedKey);
        }
        if is_long(value) {
            return Err(ConditionError::UnusedValue);
        }
        Ok(condition)
    }

    /// Returns the fields `type`, `matchKey` and `matchValue`, spelled as they were parsed. Unused
    /// ones are `None`.
    #[must_use]
    pub fn parts(&self) -> (&str, Option<String>, Option<String>) {
        let (kind, key, value) = self.fields();
        (kind, key.map(str::to_owned), value.map(str::to_owned))
    }

    fn fields(&self) -> (&str, Option<&str>, Option<&str>) {
        match self {
            Self::Device(device) => (DEVICE, None, Some(device.as_str())),
            Self::Browser(browser) => (BROWSER, None, Some(browser.as_str())),
            Self::Language(language) => (LANGUAGE, None, Some(language.as_str())),
            Self::QueryParam { key, value } => (QUERY_PARAM, Some(key.as_str()), Some(value.as_str())),
            Self::AnyValueQueryParam(key) => (ANY_VALUE_QUERY_PARAM, Some(key.as_str()), None),
            Self::ValuelessQueryParam(key) => (VALUELESS_QUERY_PARAM, Some(key.as_str()), None),
            Self::IpAddress(pattern) => (IP_ADDRESS, None, Some(pattern.as_str())),
            Self::Country(country) => (COUNTRY, None, Some(country.as_str())),
            Self::City(city) => (CITY, None, Some(city.as_str())),
            Self::BeforeDate(date) => (BEFORE_DATE, None, Some(date.as_str())),
            Self::AfterDate(date) => (AFTER_DATE, None, Some(date.as_str())),
            Self::Unknown(stored) => {
                let text = |name| stored.get(name).and_then(Value::as_str);
                (text("type").unwrap_or_default(), text("matchKey"), text("matchValue"))
            }
        }
    }
}

/// Stored form of a known condition.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored {
    r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_value: Option<String>,
}

/// Stored form of any condition.
#[derive(Serialize)]
#[serde(untagged)]
enum Written {
    Known(Stored),
    Unknown(Value),
}

impl From<Condition> for Written {
    fn from(condition: Condition) -> Self {
        if let Condition::Unknown(stored) = condition {
            return Self::Unknown(*stored);
        }
        let (kind, match_key, match_value) = condition.parts();
        Self::Known(Stored { r#type: kind.to_owned(), match_key, match_value })
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

/// Serialization of the URL as text, the form of the column that links have for it.
mod stored_url {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::LongUrl;

    pub(super) fn serialize<S: Serializer>(url: &LongUrl, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(url.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LongUrl, D::Error> {
        Box::<str>::deserialize(from).map(LongUrl::from_stored)
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
        ] {
            let condition = Condition::parse(kind, key, value).unwrap();
            let parts = (kind, key.map(String::from), value.map(String::from));
            assert_eq!(condition.parts(), parts);
            let text = serde_json::to_string(&condition).unwrap();
            assert_eq!(serde_json::from_str::<Condition>(&text).unwrap(), condition, "{text}");
        }
    }

    #[test]
    fn a_field_without_a_use_is_dropped() {
        let of = |kind, key, value| Condition::parse(kind, key, value).unwrap();
        let device = of(DEVICE, Some("x"), Some("ios"));
        assert_eq!(device.parts(), (DEVICE, None, Some("ios".into())));
        let any = of(ANY_VALUE_QUERY_PARAM, Some("x"), Some(""));
        assert_eq!(any.parts(), (ANY_VALUE_QUERY_PARAM, Some("x".into()), None));
    }

    #[test]
    fn what_is_refused_is_refused_with_its_field() {
        let fits = "ü".repeat(MAX_LEN / 2);
        let long = "ü".repeat(MAX_LEN / 2 + 1);
        assert!(Condition::parse(QUERY_PARAM, Some(&fits), Some(&fits)).is_ok());
        for (kind, key, value, error, field) in [
            ("", None, None, ConditionError::Type, "type"),
            ("Device", None, Some("ios"), ConditionError::Type, "type"),
            (DEVICE, None, None, ConditionError::Device, "matchValue"),
            (DEVICE, None, Some("iOS"), ConditionError::Device, "matchValue"),
            (DEVICE, Some(&*long), Some("ios"), ConditionError::UnusedKey, "matchKey"),
            (BROWSER, None, Some("netscape"), ConditionError::Browser, "matchValue"),
            (LANGUAGE, None, None, ConditionError::Value, "matchValue"),
            (LANGUAGE, None, Some(""), ConditionError::Value, "matchValue"),
            (QUERY_PARAM, None, Some("x"), ConditionError::Key, "matchKey"),
            (QUERY_PARAM, Some(""), Some("x"), ConditionError::Key, "matchKey"),
            (QUERY_PARAM, Some("x"), None, ConditionError::Value, "matchValue"),
            (QUERY_PARAM, Some("x"), Some(&*long), ConditionError::Value, "matchValue"),
            (QUERY_PARAM, Some(&*long), Some("x"), ConditionError::Key, "matchKey"),
            (ANY_VALUE_QUERY_PARAM, None, Some("x"), ConditionError::Key, "matchKey"),
            (ANY_VALUE_QUERY_PARAM, Some("x"), Some(&*long), ConditionError::UnusedValue, "matchValue"),
            (VALUELESS_QUERY_PARAM, None, None, ConditionError::Key, "matchKey"),
            (IP_ADDRESS, None, Some("1.2.3"), ConditionError::IpAddress, "matchValue"),
            (COUNTRY, None, Some("de"), ConditionError::Country, "matchValue"),
            (CITY, None, Some(""), ConditionError::Value, "matchValue"),
            (BEFORE_DATE, None, Some("tomorrow"), ConditionError::Date, "matchValue"),
            (AFTER_DATE, None, None, ConditionError::Value, "matchValue"),
        ] {
            let refused = Condition::parse(kind, key, value).unwrap_err();
            assert_eq!((refused, refused.field()), (error, field), "{kind:?} {key:?} {value:?}");
            assert!(
                ["expected ", "not "].iter().any(|first| refused.to_string().starts_with(first)),
                "{refused}"
            );
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
            assert!(matches!(Rule::parse_list(&format!("[{rule}]")), Err(RulesError::Unknown)), "{rule}");
        }
    }
}
