//! What both stores work out about keyspaces: the ids that belong to one, and which new ones are taken in.

use codes::{Code, Keyspace, KeyspaceIndex, LinkId};
use numbers::Span;

use super::Sql;
use crate::StoreError;

/// The number that an id at or past the end of a keyspace's registered ids stands for.
pub(crate) fn number_of_end(keyspace: KeyspaceIndex, end: Option<i64>) -> u64 {
    let offset = end.map_or(0, |end| end - LinkId::new(keyspace, 0).get());
    u64::try_from(offset).unwrap_or(0)
}

/// Every keyspace.
pub(super) async fn keyspaces<S: Sql>(sql: &mut S) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let rows = sql.query("SELECT \"index\", definition FROM keyspace ORDER BY \"index\"", &[]).await?;
    let stored = rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?.to_owned())));
    let (known, _) = plan_keyspaces(stored.collect::<Result<_, StoreError>>()?, &[])?;
    Ok(known)
}

/// The ids of a whole keyspace: first, and the one after the last.
pub(crate) fn ids_of(keyspace: KeyspaceIndex) -> (i64, i64) {
    let all = Span::new(0, Span::LIMIT).expect("the limit itself is within the limit");
    LinkId::range(keyspace, all)
}

/// Fails when a new keyspace has a code that somebody has picked: it would be minted, and until then be taken for one that nobody has.
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

/// Splits what came from the database into known keyspaces and those to add, and gives the new ones their indexes.
/// Shared by both stores, so that they agree on what may change: nothing that would give a code another meaning.
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
