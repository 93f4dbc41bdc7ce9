//! Keyspaces of a deployment, and their ranges of ids.

use codes::{Keyspace, KeyspaceIndex, LinkId, check_slugs, plan_adoption};
use numbers::{Invalid, Span};

use super::{Row, Sql, Value, note_change};
use crate::{Result, StoreError};

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

pub(super) async fn keyspaces(sql: &mut dyn Sql) -> Result<Vec<(KeyspaceIndex, Keyspace)>> {
    let rows = sql.query("SELECT \"index\", definition FROM keyspace ORDER BY \"index\"", &[]).await?;
    let parse = |row: &Row| {
        let index = KeyspaceIndex::new(row.int(0)?).map_err(|error| corrupt(&error))?;
        Ok((index, Keyspace::parse(row.text(1)?).map_err(|error| corrupt(&error))?))
    };
    rows.iter().map(parse).collect()
}

/// The table is locked, so that two resolvers that start together give a keyspace one index.
pub(crate) async fn adopt_keyspaces(
    sql: &mut dyn Sql,
    mine: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>> {
    sql.query(&sql.dialect().lock_table("keyspace", "EXCLUSIVE"), &[]).await?;
    let mut known = keyspaces(sql).await?;
    let refused = |error: Invalid| StoreError::Keyspace(error.to_string());
    let new = plan_adoption(&known, mine).map_err(refused)?;
    if !new.is_empty() {
        let slugs = "SELECT slug FROM slug WHERE domain_id = 0 AND length(slug) <= 8";
        let slugs = sql.query(slugs, &[]).await?;
        let slugs = slugs.iter().map(|row| Ok(row.text(0)?.to_owned()));
        check_slugs(&slugs.collect::<Result<Vec<_>>>()?, &new).map_err(refused)?;
        note_change(sql).await?;
    }
    let now = sql.dialect().now();
    let add =
        format!("INSERT INTO keyspace (\"index\", name, definition, adopted_at) VALUES ($1, $2, $3, {now})");
    for (index, keyspace) in &new {
        let (name, definition) = (keyspace.name.as_str().to_owned(), keyspace.to_string());
        sql.query(&add, &[index.get().into(), Value::Text(name), Value::Text(definition)]).await?;
    }
    known.extend(new);
    Ok(known)
}

fn corrupt(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("table keyspace: {error}"))
}
