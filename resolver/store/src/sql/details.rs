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
    use std::{collections::BTreeSet, path::Path};

    use jiff::Timestamp;
    use links::{
        Block, Details, DomainId, Origin, PasswordHash, RedirectStatus, Slug, Tag,
        api_key::{ApiKeyId, KeyLimits},
    };
    use serde_json::Value;

    use super::{DELETED_AT, SLUG};
    use crate::sqlite::SqliteStore;

    /// Returns the members of a column that this file names.
    fn named(column: &str) -> BTreeSet<String> {
        let (product, _) = include_str!("details.rs").split_once("#[cfg(test)]").unwrap();
        let arrow = format!("{column}->>'");
        product.split(&arrow).skip(1).map(|rest| rest.split('\'').next().unwrap().to_owned()).collect()
    }

    fn members(stored: &Value) -> BTreeSet<String> {
        stored.as_object().unwrap().keys().cloned().collect()
    }

    /// Every field is set. A new field is missing here until its name is in the list below, too.
    fn full() -> Details {
        let at = Timestamp::UNIX_EPOCH;
        Details {
            slug: Some(Slug::parse("slug").unwrap()),
            domain: Some(DomainId::from_stored(1)),
            mark: Some(1),
            valid_since: Some(at),
            valid_until: Some(at),
            max_visits: Some(1),
            description: Some("any".to_owned()),
            disabled: true,
            blocked: Some(Block { reason: "any".to_owned(), by: ApiKeyId(1), at }),
            status: Some(RedirectStatus::try_from(301).unwrap()),
            password: Some(PasswordHash::from_phc(HASH).unwrap()),
            rules: serde_json::from_str(r#"[{"longUrl":"https://x.y/","conditions":[]}]"#).unwrap(),
            deleted_at: Some(at),
            deleted_tags: vec![Tag::parse("tag").unwrap()],
            edited_at: Some(at),
            edited_by: Some(ApiKeyId(1)),
            version: 1,
            origin: Some(Box::new(Origin { minted: true, ..Origin::default() })),
            others: serde_json::Map::new(),
        }
    }

    const HASH: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";

    #[test]
    fn members_have_the_names_that_they_are_stored_under() {
        let stored = members(&serde_json::to_value(full()).unwrap());
        assert_eq!(stored.len(), 18, "{stored:?}");
        let named_here = named("link.details");
        assert!(named_here.len() == 8 && named_here.is_subset(&stored), "{named_here:?}");

        let limits = KeyLimits {
            domain: Some(DomainId::from_stored(1)),
            own_links_only: true,
            no_orphan_visits: true,
            calls_per_minute: Some(1),
            others: serde_json::Map::new(),
        };
        let stored = members(&serde_json::to_value(limits).unwrap());
        let named_here = named("api_key.limits");
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
        let (connection, _) = SqliteStore::in_memory("").await;
        let plan = format!(
            "EXPLAIN QUERY PLAN SELECT link.id FROM link WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = 'any'"
        );
        let plan: String = connection.lock().unwrap().query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("USING INDEX link_deleted"), "{plan}");
    }
}
