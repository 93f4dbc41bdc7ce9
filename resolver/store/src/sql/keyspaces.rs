//! Rules for keyspaces that both stores share: their ranges of ids, and which new ones may be
//! adopted.

use codes::{Code, Keyspace, KeyspaceIndex, LinkId};
use numbers::Span;

use super::Sql;
use crate::StoreError;

/// Converts the exclusive end of a keyspace's registered ids into a number; 0 if none is
/// registered.
pub(crate) fn number_of_end(keyspace: KeyspaceIndex, end: Option<i64>) -> u64 {
    let offset = end.map_or(0, |end| end - LinkId::new(keyspace, 0).get());
    u64::try_from(offset).unwrap_or(0)
}

/// Returns all keyspaces.
pub(super) async fn keyspaces<S: Sql>(sql: &mut S) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let rows = sql.query("SELECT \"index\", definition FROM keyspace ORDER BY \"index\"", &[]).await?;
    let stored = rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?.to_owned())));
    let (known, _) = plan_keyspaces(stored.collect::<Result<_, StoreError>>()?, &[])?;
    Ok(known)
}

/// Returns the range of all ids of a keyspace: first, and end (exclusive).
pub(crate) fn ids_of(keyspace: KeyspaceIndex) -> (i64, i64) {
    let all = Span::new(0, Span::LIMIT).expect("the limit itself is within the limit");
    LinkId::range(keyspace, all)
}

/// Checks that no custom slug is a code of a new keyspace. Such a code would be minted, and until
/// then treated as unused.
///
/// # Errors
/// Returns [`StoreError::Keyspace`] if there is such a slug.
pub(crate) fn check_slugs(slugs: &[String], new: &[(KeyspaceIndex, Keyspace)]) -> Result<(), StoreError> {
    for (_, keyspace) in new {
        let picked = |slug: &&String| Code::parse(slug).is_ok_and(|code| keyspace.contains(&code));
        let some: Vec<&str> = slugs.iter().filter(picked).take(5).map(String::as_str).collect();
        if !some.is_empty() {
            return Err(StoreError::Keyspace(format!(
                "keyspace {keyspace} has codes that links were given by hand, such as {}: expected other codes, or these links to be deleted, or unblocked if they are deleted already",
                some.join(", ")
            )));
        }
    }
    Ok(())
}

/// Assigns indexes to new keyspaces. Returns all keyspaces, and how many of them were stored
/// before; the new ones follow.
///
/// Both stores use this function, so that they agree on which changes are allowed: none that would
/// give a code another meaning.
///
/// # Errors
/// Returns [`StoreError::Keyspace`] if a new keyspace overlaps a stored one without being equal to
/// it.
pub(crate) fn plan_keyspaces(
    stored: Vec<(i64, String)>,
    mine: &[Keyspace],
) -> Result<(Vec<(KeyspaceIndex, Keyspace)>, usize), StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(format!("table keyspace: {error}"));
    let mut known = Vec::new();
    for (index, definition) in stored {
        let index = KeyspaceIndex::new(index).map_err(|error| corrupt(&error))?;
        known.push((index, Keyspace::parse(&definition).map_err(|error| corrupt(&error))?));
    }
    let before = known.len();
    for keyspace in mine {
        if known.iter().any(|(_, other)| other == keyspace) {
            continue;
        }
        if let Some((_, other)) = known.iter().find(|(_, other)| other.overlaps(keyspace)) {
            return Err(StoreError::Keyspace(format!(
                "keyspace {keyspace} shares its name or codes with {other}, which this database has had before: \
                 expected the same definition, or another name and other codes"
            )));
        }
        let highest = known.iter().map(|(index, _)| index.get()).max().unwrap_or(0);
        let index = KeyspaceIndex::new(i64::from(highest) + 1).map_err(|error| corrupt(&error))?;
        known.push((index, keyspace.clone()));
    }
    Ok((known, before))
}
