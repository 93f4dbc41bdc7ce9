//! Stored objects, which a later release may have written: during a rolling upgrade, or before a
//! rollback.
//!
//! 1. What this release cannot read harms only the object that has it. A member with an unknown
//!    name, or with a value that this release cannot read, is set aside and written back unchanged.
//! 2. Such a member may protect or limit the object, so the object is not used as if it were not
//!    there: a link answers 503, a domain as well, and an API key is not valid.
//! 3. A later release can add a member that older ones may ignore: one whose name begins with
//!    [`MAY_BE_IGNORED`].

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Details, DomainSettings, api_key::KeyLimits};

/// First character of the names of members that releases without them may ignore.
const MAY_BE_IGNORED: char = '_';
/// Name under which a value is set aside that is no object.
const NO_OBJECT: &str = "";

/// An object that keeps the members that this release cannot read.
pub trait StoredObject: Default + DeserializeOwned {
    /// Returns the members that this release cannot read.
    fn unknown(&self) -> &Map<String, Value>;

    /// Returns the members that this release cannot read.
    fn unknown_mut(&mut self) -> &mut Map<String, Value>;

    /// Parses a stored object.
    fn from_stored(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| set_aside(text))
    }

    /// Returns `true` if the object has a member that this release cannot read and may not ignore.
    fn is_of_later_release(&self) -> bool {
        self.unknown().keys().any(|name| !name.starts_with(MAY_BE_IGNORED))
    }
}

/// Implements [`StoredObject`] for types that keep such members in `others`.
macro_rules! stored_objects {
    ($($name:ident),+) => {$(
        impl StoredObject for $name {
            fn unknown(&self) -> &Map<String, Value> {
                &self.others
            }

            fn unknown_mut(&mut self) -> &mut Map<String, Value> {
                &mut self.others
            }
        }
    )+};
}

stored_objects!(Details, DomainSettings, KeyLimits);

/// Parses an object member by member, and sets aside those that cannot be read.
fn set_aside<T: StoredObject>(text: &str) -> T {
    let members = match serde_json::from_str(text) {
        Ok(Value::Object(members)) => members,
        Ok(other) => Map::from_iter([(NO_OBJECT.to_owned(), other)]),
        Err(_) => Map::from_iter([(NO_OBJECT.to_owned(), Value::from(text))]),
    };
    let is_readable = |(name, value): &(String, Value)| {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        serde_json::from_value::<T>(Value::Object(alone)).is_ok()
    };
    let (readable, unknown): (Vec<_>, Vec<_>) = members.into_iter().partition(is_readable);
    let readable = Value::Object(Map::from_iter(readable));
    let mut object: T = serde_json::from_value(readable).unwrap_or_default();
    object.unknown_mut().extend(unknown);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_set_aside_and_written_back() {
        for (text, is_later) in [
            (r#"{"maxVisits":3}"#, false),
            (r#"{"_color":"red","maxVisits":3}"#, false),
            (r#"{"fence":["DE"],"maxVisits":3}"#, true),
            (r#"{"password":{"kind":"passkey"},"maxVisits":3}"#, true),
            (r#"{"rules":[{"longUrls":["https://x.y/"]}],"maxVisits":3}"#, true),
            (r#"{"version":"9-beta","maxVisits":3}"#, true),
        ] {
            let details = Details::from_stored(text);
            assert_eq!((details.max_visits, details.is_of_later_release()), (Some(3), is_later), "{text}");
            let written: Value = serde_json::to_value(&details).unwrap();
            assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
        }
        for text in ["[]", "7", "\"x\"", "{"] {
            assert!(Details::from_stored(text).is_of_later_release(), "{text}");
        }
    }

    #[test]
    fn settings_of_domains_and_limits_of_keys_are_kept_alike() {
        let settings = DomainSettings::from_stored(r#"{"disabled":true,"protocol":"gemini","login":1}"#);
        assert!(settings.disabled && settings.is_of_later_release());
        assert_eq!(
            serde_json::to_value(settings).unwrap(),
            serde_json::json!({ "disabled": true, "protocol": "gemini", "login": 1 })
        );
        let limits = KeyLimits::from_stored(r#"{"ownLinksOnly":true,"networks":["10.0.0.0/8"]}"#);
        assert!(limits.own_links_only && limits.is_of_later_release());
        assert!(!KeyLimits::from_stored(r#"{"domain":3}"#).is_of_later_release());
    }
}
