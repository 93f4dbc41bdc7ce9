//! State of a domain for the audit log, with the field names of the API.

use serde_json::{Map, Value, json};

use super::state::{CHANGED, differences, named};
use crate::{Authority, Domain};

/// Name of the default domain in the log: its own name is set by `--public-url`.
const DEFAULT: &str = "DEFAULT";

/// Returns the name of a domain in the log.
pub fn domain_name(domain: &Domain) -> &str {
    domain.authority.as_ref().map_or(DEFAULT, Authority::as_str)
}

/// Returns the state of a domain after an edit. `changed` has each field that the edit changed,
/// with its value before and after.
pub fn domain_change(before: &Domain, after: &Domain) -> Value {
    let mut state = fields(after);
    let changed = differences(&fields(before), &state);
    state.retain(|_, value| !value.is_null());
    state.insert(CHANGED.to_owned(), Value::Object(changed));
    Value::Object(state)
}

fn fields(domain: &Domain) -> Map<String, Value> {
    let (settings, redirects) = (&domain.settings, &domain.settings.redirects);
    named([
        ("domain", json!(domain_name(domain))),
        ("enabled", json!(!settings.disabled)),
        ("protocol", json!(settings.protocol)),
        ("baseUrlRedirect", json!(redirects.base_url)),
        ("regular404Redirect", json!(redirects.regular_404)),
        ("invalidShortUrlRedirect", json!(redirects.invalid_short_url)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DomainEdit, DomainId, DomainSettings};

    #[test]
    fn a_change_says_what_a_domain_was_before_and_after() {
        let name = |text| Some(Authority::from_stored(text));
        let settings = DomainSettings::default();
        let before = Domain { id: DomainId::from_stored(3), authority: name("old.example"), settings };
        let edit = DomainEdit {
            disabled: Some(true),
            base_url: Some(Some("https://e.test/".into())),
            ..DomainEdit::default()
        };
        let settings = edit.apply(before.settings.clone());
        let after = Domain { authority: name("new.example"), settings, ..before };
        let expected = json!({
            "domain": "new.example", "enabled": false, "baseUrlRedirect": "https://e.test/", "changed": {
                "domain": { "from": "old.example", "to": "new.example" }, "enabled": { "from": true, "to": false },
                "baseUrlRedirect": { "from": null, "to": "https://e.test/" },
            },
        });
        assert_eq!(domain_change(&before, &after), expected);
        let default = Domain { id: DomainId::DEFAULT, authority: None, ..before };
        assert_eq!(domain_change(&default, &default)["changed"], json!({}));
        assert_eq!(domain_name(&default), "DEFAULT");
    }
}
