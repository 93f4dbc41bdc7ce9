//! Members of the JSON columns that statements ask for, as SQL expressions in both dialects.
//!
//! 1. No other file of this crate names a member. A test compares the names here with those that
//!    [`links::Details`] and [`links::api_key::KeyLimits`] are stored under.
//! 2. A value that only a later release can read is NULL here, and no error, which would fail the
//!    statement for all other rows.
//! 3. The index `link_deleted` has the expressions [`SLUG`] and [`DELETED_AT`]. A statement that
//!    expressed them differently would read the whole table.

/// Returns a text as a number; NULL if it is none. Both dialects have `trim` with characters.
macro_rules! number {
    ($text:literal) => {
        concat!(
            "CASE WHEN length(",
            $text,
            ") BETWEEN 1 AND 18 AND trim(substr(",
            $text,
            ", 1, 1), '-0123456789') = '' AND trim(substr(",
            $text,
            ", 2), '0123456789') = '' AND ",
            $text,
            " <> '-' THEN CAST(",
            $text,
            " AS bigint) END"
        )
    };
}

/// Slug of a link, NULL for a minted code.
pub(super) const SLUG: &str = "link.details->>'slug'";
/// Domain of a link, NULL for the default domain.
pub(super) const DOMAIN: &str = number!("link.details->>'domain'");
/// The same as text on Postgres.
pub(super) const DOMAIN_TEXT: &str = "link.details->>'domain'";
/// Domain of a link, 0 for the default domain.
pub(super) const DOMAIN_OR_DEFAULT: &str = concat!("coalesce(", number!("link.details->>'domain'"), ", 0)");
/// Whether a link belongs to the default domain.
pub(super) const IS_ON_DEFAULT_DOMAIN: &str = "link.details->>'domain' IS NULL";
/// Start time of a link in milliseconds since 1970, or NULL.
pub(super) const VALID_SINCE: &str = number!("link.details->>'validSince'");
/// End time of a link in milliseconds since 1970, or NULL.
pub(super) const VALID_UNTIL: &str = number!("link.details->>'validUntil'");
/// Visit limit of a link, or NULL.
pub(super) const MAX_VISITS: &str = number!("link.details->>'maxVisits'");
/// Takedown of a link as text, or NULL.
pub(super) const BLOCKED: &str = "link.details->>'blocked'";
/// Deletion time of a link as text, or NULL.
pub(super) const DELETED_AT: &str = "link.details->>'deletedAt'";
/// Deletion time of a link in milliseconds since 1970, or NULL.
pub(super) const DELETED_AT_MS: &str = number!("link.details->>'deletedAt'");
/// Whether a row is no link, but keeps a number or a version for other links, or NULL.
pub(super) const GIVEN_UP: &str = "link.details->>'_givenUp'";

/// Version of a link, or NULL for the first one.
pub(super) const VERSION: &str = number!("link.details->>'version'");

/// Condition on a row of `slug` with its row of `link`: the link is in use. Such a link is not
/// deleted, or it is blocked and keeps its code from others. A deleted link with a minted code has
/// a row in `slug` as well, so that the code is not reused.
pub(super) const IS_IN_USE: &str =
    "(link.details->>'deletedAt' IS NULL OR link.details->>'blocked' IS NOT NULL)";

/// The only domain of an API key, or NULL.
pub(super) const KEY_DOMAIN: &str = number!("api_key.limits->>'domain'");

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        path::Path,
        sync::{Arc, Mutex},
    };

    use links::{Details, StoredObject as _, api_key::KeyLimits};
    use rusqlite::Connection;
    use serde_json::{Value, json};

    use super::{DELETED_AT, SLUG};
    use crate::{Store as _, sqlite::SqliteStore};

    /// Returns the members of a column that this file names.
    fn named(column: &str) -> BTreeSet<String> {
        let (product, _) = include_str!("details.rs").split_once("#[cfg(test)]").unwrap();
        let arrow = format!("{column}->>'");
        product.split(&arrow).skip(1).map(|rest| rest.split('\'').next().unwrap().to_owned()).collect()
    }

    fn members(stored: Value) -> BTreeSet<String> {
        let Value::Object(members) = stored else { panic!("{stored} is no object") };
        members.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn members_have_the_names_that_they_are_stored_under() {
        let details = r#"{"slug": "any", "domain": 1, "validSince": 1, "validUntil": 1, "maxVisits": 1,
            "blocked": {"reason": "any", "by": 1, "at": 1}, "deletedAt": 1, "version": 1,
            "_givenUp": true}"#;
        let details = Details::from_stored(details);
        assert!(details.others.is_empty(), "{details:?}");
        let (stored, named_here) = (members(json!(details)), named("link.details"));
        assert!(named_here.len() == 9 && named_here.is_subset(&stored), "{named_here:?}");

        let limits = KeyLimits::from_stored(r#"{"domain": 1}"#);
        assert!(limits.others.is_empty(), "{limits:?}");
        let (stored, named_here) = (members(json!(limits)), named("api_key.limits"));
        assert!(named_here.len() == 1 && named_here.is_subset(&stored), "{named_here:?}");
    }

    #[test]
    fn no_other_file_names_a_member() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("sql/details.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(!text.contains("->>"), "{} names a member of a JSON column", path.display());
                }
            }
        }
    }

    #[tokio::test]
    async fn the_index_of_deleted_links_has_these_expressions() {
        let connection = Arc::new(Mutex::new(Connection::open_in_memory().unwrap()));
        SqliteStore::here(&connection).migrate().await.unwrap();
        let plan = format!(
            "EXPLAIN QUERY PLAN SELECT link.id FROM link WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = 'any'"
        );
        let plan: String = connection.lock().unwrap().query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("USING INDEX link_deleted"), "{plan}");
    }
}
