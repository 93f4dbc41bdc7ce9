//! Values as clients write them. Shlink reads numbers and flags from strings too, since forms and
//! some languages have nothing else.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// Implements `JsonSchema` for a type whose schema is written where it is used. A `struct` that has
/// no other use is defined as well.
macro_rules! inline_schema {
    ($visibility:vis struct $type:ident, $schema:expr) => {
        $visibility struct $type;

        $crate::values::inline_schema!($type, $schema);
    };
    ($type:ident, $schema:expr) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                use schemars::json_schema;
                $schema
            }
        }
    };
}

pub(crate) use inline_schema;

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// A whole number from 0, or a string of its digits. JSON does not distinguish 7 from 7.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Number(pub u64);

/// A flag: true or false, or 1 or 0, or a string of one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flag(pub bool);

/// A field that Shlink's clients send and that has no effect here. Any value is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored;

/// A time in a request, or seconds since 1970. It is text, because a time without an offset is in
/// the server's zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Time(pub String);

/// A time in an answer, in RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DateTime(pub String);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = number(&Value::deserialize(from)?);
        number.map(Self).ok_or_else(|| de::Error::custom("no whole number from 0"))
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            let is_number =
                (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        }
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is whole, and small enough to be exact"
)]
fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64)
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let flag = match Value::deserialize(from)? {
            Value::Bool(flag) => Some(flag),
            Value::String(text) if text == "true" => Some(true),
            Value::String(text) if text == "false" => Some(false),
            // "00" and "01" are no flags.
            Value::String(text) if text.len() > 1 => None,
            value => number(&value).filter(|number| *number < 2).map(|number| number == 1),
        };
        flag.map(Self).ok_or_else(|| de::Error::custom("neither true nor false"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(Self(text)),
            value => {
                let seconds = number(&value).map(|seconds| Self(seconds.to_string()));
                seconds.ok_or_else(|| de::Error::custom("neither a text nor a whole number"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Not `IgnoredAny`, which passes over text that is no JSON: too deep, or no UTF-8.
        Value::deserialize(from).map(|_| Self)
    }
}

inline_schema!(
    Number,
    json_schema!({ "type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]{1,20}$" })
);

inline_schema!(Flag, json_schema!({ "enum": [true, false, "true", "false", "1", "0", 1, 0] }));

inline_schema!(
    Ignored,
    json_schema!({ "deprecated": true, "description": "Ignored, whatever its value: Shlink's clients send it." })
);

inline_schema!(DateTime, json_schema!({ "type": "string", "format": "date-time" }));

inline_schema!(
    Time,
    json_schema!({
        "type": ["string", "integer"],
        "minimum": 100_000_000_u64,
        "maximum": 99_999_999_999_u64,
        "anyOf": [
            { "format": "date-time" },
            { "format": "date" },
            { "format": "local-date-time" },
            { "pattern": "^[1-9][0-9]{8,10}$" },
        ],
        "examples": ["2030-12-31T18:00:00+01:00", "2030-12-31", "2030-12-31 18:00:00"],
    })
);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_is_a_text_or_whole_seconds() {
        for (value, time) in [
            (json!("2030-12-31"), Some("2030-12-31")),
            (json!(1_767_225_600), Some("1767225600")),
            (json!(1_767_225_600.0), Some("1767225600")),
            (json!(-1_767_225_600), None),
            (json!(1.5), None),
            (json!(true), None),
        ] {
            assert_eq!(Time::deserialize(&value).ok(), time.map(|time| Time(time.to_owned())), "{value}");
        }
    }

    #[test]
    fn numbers_and_flags_are_read_from_texts_too() {
        for (values, number) in [
            (json!([7, "7", "07", 7.0]), Some(7)),
            (json!([u64::MAX, u64::MAX.to_string()]), Some(u64::MAX)),
            (json!([" 7", 7.5, -7, 1e300, "7.0", "+7", "", "99999999999999999999", "٧", true, [7]]), None),
        ] {
            for value in values.as_array().unwrap() {
                let read = Number::deserialize(value).ok().map(|Number(number)| number);
                assert_eq!(read, number, "{value}");
            }
        }
        for (values, flag) in [
            (json!([true, "true", 1, 1.0]), Some(true)),
            (json!(["0"]), Some(false)),
            (json!(["01", 2, "yes", "", null]), None),
        ] {
            for value in values.as_array().unwrap() {
                assert_eq!(Flag::deserialize(value).ok().map(|Flag(flag)| flag), flag, "{value}");
            }
        }
    }
}
