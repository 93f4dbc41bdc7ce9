//! Keyspaces of a deployment, and their ranges of ids.

use codes::{AdoptionError, Keyspace, KeyspaceIndex, LinkId};
use numbers::Span;

use super::Sql;
use crate::StoreError;

/// Converts the exclusive end of a keyspace's registered ids into a number; 0 if none is
/// registered.
pub(crate) fn number_of_end(keyspace: KeyspaceIndex, end: Option<i64>) -> u64 {
    let offset = end.map_or(0, |end| end - LinkId::new(keyspace, 0).get());
    u64::try_from(offset).unwrap_or(0)
}

/// Returns the range of all ids of a keyspace: first, and end (exclusive).
pub(crate) fn ids_of(keyspace: KeyspaceIndex) -> (i64, i64) {
    let all = Span::new(0, Span::LIMIT).expect("the limit itself is within the limit");
    LinkId::range(keyspace, all)
}

/// Returns all keyspaces.
pub(super) async fn keyspaces<S: Sql>(sql: &mut S) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let rows = sql.query("SELECT \"index\", definition FROM keyspace ORDER BY \"index\"", &[]).await?;
    let stored = rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?.to_owned())));
    parse_keyspaces(stored.collect::<Result<_, StoreError>>()?)
}

/// Parses stored indexes and definitions.
pub(crate) fn parse_keyspaces(
    stored: Vec<(i64, String)>,
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let parse = |(index, definition): (i64, String)| {
        let index = KeyspaceIndex::new(index).map_err(|error| corrupt(&error))?;
        Ok((index, Keyspace::parse(&definition).map_err(|error| corrupt(&error))?))
    };
    stored.into_iter().map(parse).collect()
}

impl From<AdoptionError> for StoreError {
    fn from(error: AdoptionError) -> Self {
        match error {
            AdoptionError::Overlap { .. } | AdoptionError::Slugs { .. } => Self::Keyspace(error.to_string()),
            AdoptionError::Index(error) => corrupt(&error),
        }
    }
}

fn corrupt(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("table keyspace: {error}"))
}
