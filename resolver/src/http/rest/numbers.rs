//! Numbers and flags as clients write them: Shlink reads them from texts as well, since forms and some languages know nothing else.

use serde_json::Value;

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// A whole number, or a text or a fraction of zero that is one.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole_of(number.as_f64()?)),
        Value::String(text) => {
            let is_number =
                (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        }
        _ => None,
    }
}

/// JSON does not tell 7 from 7.0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is whole, and small enough to be exact"
)]
fn whole_of(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && (0.0..EXACT).contains(&number);
    is_whole.then_some(number as u64)
}

/// A flag, or a text or a number that stands for one.
pub(super) fn flag_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        Value::Number(_) => match whole(value) {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_flags_are_read_from_texts_too() {
        for (value, number) in [
            (json!(7), Some(7)),
            (json!("7"), Some(7)),
            (json!("07"), Some(7)),
            (json!(" 7"), None),
            (json!(7.0), Some(7)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(u64::MAX.to_string()), Some(u64::MAX)),
            (json!(7.5), None),
            (json!(-7), None),
            (json!(1e300), None),
            (json!("7.0"), None),
            (json!("+7"), None),
            (json!(""), None),
            (json!("99999999999999999999"), None),
            (json!("٧"), None),
            (json!(true), None),
            (json!([7]), None),
        ] {
            assert_eq!(whole(&value), number, "{value}");
        }
        for (value, flag) in [
            (json!(true), Some(true)),
            (json!("true"), Some(true)),
            (json!(1), Some(true)),
            (json!("0"), Some(false)),
            (json!(2), None),
            (json!("yes"), None),
            (json!(""), None),
            (json!(null), None),
        ] {
            assert_eq!(flag_of(&value), flag, "{value}");
        }
    }
}
