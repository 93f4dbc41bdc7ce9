//! App links: the two files of a host that name the apps which open its links. Systems fetch them
//! over HTTPS from the root of the host, and follow no redirect.
//!
//! 1. Apple reads an object whose `applinks` have details of apps with their paths ("Supporting
//!    associated domains"), of at most 128 KiB since iOS 9.3.1.
//! 2. Android reads a list of statements ("Verify Android App Links", and "Statement List Syntax"
//!    of Digital Asset Links).
//! 3. Only their shape is checked. What else is in them is kept, for systems to come.

use codes::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Invalid, text_value::text_value};

codes::named_values! {
    /// A file of app links. Its name is its field in the API.
    pub enum AppLinksFile {
        /// The file that Apple's systems read.
        Apple => "appleAppSiteAssociation",
        /// The file that Android reads.
        Android => "assetLinks",
    }
}

impl AppLinksFile {
    /// Returns the file that a path below the root of a host names.
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            "/.well-known/apple-app-site-association" => Some(Self::Apple),
            "/.well-known/assetlinks.json" => Some(Self::Android),
            _ => None,
        }
    }
}

/// Maximum depth of a file. A deeper one could be stored, and then the list of all domains would be
/// too deep for the parsers of clients.
const DEPTH_MAX: usize = 16;
const ASSOCIATION: Invalid = Invalid::because(
    "expected an object with applinks.details, a list of apps: each with appIDs or appID, and with \
     components or paths",
);
const STATEMENTS: Invalid = Invalid::because(
    "expected a list of statements: each with a list as its relation, and a target with a namespace; or with \
     include",
);
/// The length is [`AppLinks::MAX_LEN`].
const TOO_LONG: Invalid = Invalid::because("expected at most 128 KiB, white space left out");
const NO_JSON: Invalid = Invalid::because("expected JSON, which has no comments");

/// Contents of a file of app links: JSON without white space, as it is served.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppLinks(Box<str>);

text_value!(AppLinks);

impl AppLinks {
    /// Maximum length in bytes. Apple's systems read no more.
    pub const MAX_LEN: usize = 128 * 1024;

    /// Validates the contents of a file, or a text with them.
    pub fn new(file: AppLinksFile, value: &Value) -> Result<Self, Invalid> {
        if let Value::String(text) = value {
            return Self::parse(file, text);
        }
        let (has_shape, expected) = match file {
            AppLinksFile::Apple => (is_association(value), ASSOCIATION),
            AppLinksFile::Android => (is_list_of(value, is_statement), STATEMENTS),
        };
        if !has_shape || depth(value) > DEPTH_MAX {
            return Err(expected);
        }
        let text = value.to_string();
        if text.len() > Self::MAX_LEN { Err(TOO_LONG) } else { Ok(Self(text.into())) }
    }

    /// Parses the contents of a file, with or without a byte order mark.
    pub fn parse(file: AppLinksFile, text: &str) -> Result<Self, Invalid> {
        match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            // A text within a text would be read to any depth.
            Err(_) | Ok(Value::String(_)) => Err(NO_JSON),
            Ok(value) => Self::new(file, &value),
        }
    }

    /// Returns the contents as a value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns the length and the SHA-256 of the contents, which identify them in the audit log.
    pub fn digest(&self) -> String {
        format!("{} bytes, SHA-256 {}", self.0.len(), hex(&Sha256::digest(self.0.as_bytes())))
    }
}

fn is_association(value: &Value) -> bool {
    value.pointer("/applinks/details").is_some_and(|details| is_list_of(details, is_app))
}

fn is_app(app: &Value) -> bool {
    let is_named = app["appID"].is_string() || is_filled_list(&app["appIDs"]);
    let has_components = is_list_of(&app["components"], Value::is_object);
    is_named && (has_components || is_list_of(&app["paths"], Value::is_string))
}

fn is_statement(statement: &Value) -> bool {
    let is_about = is_filled_list(&statement["relation"]) && statement["target"]["namespace"].is_string();
    is_about || statement["include"].is_string()
}

/// Returns whether a value is a list of texts, at least one.
fn is_filled_list(value: &Value) -> bool {
    is_list_of(value, Value::is_string) && *value != Value::Array(Vec::new())
}

fn is_list_of(value: &Value, is_item: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(is_item))
}

/// Returns how deep arrays and objects are nested.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_known_by_their_whole_paths() {
        let files = [
            ("/.well-known/apple-app-site-association", Some(AppLinksFile::Apple)),
            ("/.well-known/assetlinks.json", Some(AppLinksFile::Android)),
            ("/.well-known/assetlinks.json/", None),
            ("/assetlinks.json", None),
            ("/.well-known/mercure", None),
        ];
        for (path, file) in files {
            assert_eq!(AppLinksFile::of_path(path), file, "{path}");
        }
    }

    #[test]
    fn files_have_the_shapes_that_systems_read() {
        let apps = |app: Value| json!({ "applinks": { "apps": [], "details": [app] } });
        let (id, path) = (json!(["ABCDE12345.com.example.app"]), json!([{ "/": "/buy/*", "exclude": true }]));
        for (value, is_valid) in [
            (apps(json!({ "appIDs": id, "components": path })), true),
            (apps(json!({ "appID": "ABCDE12345.com.example.app", "paths": ["NOT /a", "*"] })), true),
            (json!({ "applinks": { "details": [] }, "webcredentials": { "apps": id } }), true),
            (apps(json!({ "appIDs": id })), false),
            (apps(json!({ "appIDs": [], "components": path })), false),
            (apps(json!({ "appIDs": [7], "components": path })), false),
            (apps(json!({ "appIDs": id, "components": ["/buy/*"] })), false),
            (apps(json!({ "appID": 7, "paths": ["*"] })), false),
            (apps(json!("ABCDE12345.com.example.app")), false),
            (json!({ "applinks": { "details": {} } }), false),
            (json!({ "applinks": [] }), false),
            (json!([]), false),
            (Value::Null, false),
        ] {
            assert_eq!(AppLinks::new(AppLinksFile::Apple, &value).is_ok(), is_valid, "{value}");
        }
        let app = json!({ "namespace": "android_app", "package_name": "com.example.app" });
        for (value, is_valid) in [
            (json!([{ "relation": ["delegate_permission/common.handle_all_urls"], "target": app }]), true),
            (json!([{ "include": "https://example.com/includedstatements.json" }]), true),
            (json!([]), true),
            (json!([{ "relation": "delegate_permission/common.handle_all_urls", "target": app }]), false),
            (json!([{ "relation": [], "target": app }]), false),
            (json!([{ "relation": ["x"], "target": {} }]), false),
            (json!([{ "include": true }]), false),
            (json!([7]), false),
            (json!({}), false),
        ] {
            assert_eq!(AppLinks::new(AppLinksFile::Android, &value).is_ok(), is_valid, "{value}");
        }
    }

    #[test]
    fn files_are_kept_in_their_order_without_white_space() {
        let text = "[ { \"target\": { \"namespace\": \"web\" },\n  \"relation\": [ \"a b\" ] } ]";
        let kept = r#"[{"target":{"namespace":"web"},"relation":["a b"]}]"#;
        let links = AppLinks::parse(AppLinksFile::Android, text).unwrap();
        assert_eq!(links.as_str(), kept);
        assert_eq!(links.value().to_string(), kept);
        assert!(links.digest().starts_with("51 bytes, SHA-256 ") && links.digest().len() == 18 + 64);
        for text in ["[", "[] // none", "", "\"[]\""] {
            assert_eq!(AppLinks::parse(AppLinksFile::Android, text).err(), Some(NO_JSON), "{text}");
        }
        let marked = json!(format!("\u{feff}{text}"));
        assert_eq!(AppLinks::new(AppLinksFile::Android, &marked).unwrap(), links, "a text with the contents");
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_refused() {
        let include = |length: usize| json!([{ "include": "x".repeat(length) }]);
        let most = AppLinks::MAX_LEN - include(0).to_string().len();
        assert!(AppLinks::new(AppLinksFile::Android, &include(most)).is_ok());
        assert_eq!(AppLinks::new(AppLinksFile::Android, &include(most + 1)), Err(TOO_LONG));
        let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| json!([inner]));
        let statement = |levels: usize| json!([{ "include": "x", "later": nested(levels) }]);
        assert!(AppLinks::new(AppLinksFile::Android, &statement(DEPTH_MAX - 2)).is_ok());
        assert_eq!(AppLinks::new(AppLinksFile::Android, &statement(DEPTH_MAX - 1)), Err(STATEMENTS));
    }
}
