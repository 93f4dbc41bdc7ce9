//! Changes that batches have to respect: deletions, erasures, and tags of links.

use std::collections::HashMap;

use codes::LinkId;
use store::{Sql, Value};
use visits::VisitId;

use super::erasures;
use crate::{Batch, Changes, Cut, Result};

/// Returns the changes after a version. The version is read first: a change that comes in between
/// is among the cuts, and is returned once more with the next version.
pub(crate) async fn changes(sql: &mut dyn Sql, after: i64) -> Result<Changes> {
    let version = version(sql).await?;
    let query = "SELECT link_id, before_id FROM visit_cut WHERE version > $1 ORDER BY version";
    let mut cuts = Vec::new();
    for row in sql.query(query, &[after.into()]).await? {
        cuts.push(Cut { link: stored_link(row.int(0)?), before: VisitId::from_stored(row.int(1)?) });
    }
    Ok(Changes { version, cuts, erasures: erasures::after(sql, after).await? })
}

async fn version(sql: &mut dyn Sql) -> Result<i64> {
    Ok(sql.number("SELECT version FROM visit_state", &[]).await?.unwrap_or(0))
}

/// Reads the number of a link; 0 stands for none.
pub(crate) fn stored_link(number: i64) -> Option<LinkId> {
    (number != 0).then(|| LinkId::from_stored(number))
}

pub(crate) async fn tags_of(sql: &mut dyn Sql, links: &[LinkId]) -> Result<HashMap<LinkId, Vec<i64>>> {
    let mut tags: HashMap<LinkId, Vec<i64>> = HashMap::new();
    if links.is_empty() {
        return Ok(tags);
    }
    let query =
        format!("SELECT link_id, tag_id FROM visit_tag WHERE {}", sql.dialect().among("link_id", "$1"));
    let links = Value::numbers(links.iter().map(|link| link.get()));
    for row in sql.query(&query, &[links]).await? {
        tags.entry(LinkId::from_stored(row.int(0)?)).or_default().push(row.int(1)?);
    }
    Ok(tags)
}

/// Marks batches that were made before this transaction as outdated, and returns the new version.
pub(crate) async fn outdate(sql: &mut dyn Sql) -> Result<i64> {
    let update = "UPDATE visit_state SET version = version + 1 RETURNING version";
    Ok(sql.number(update, &[]).await?.unwrap_or(0))
}

/// Returns whether something has changed since a batch was made that concerns its visits. All else
/// goes on beside it: a deletion of other visits, or a change of the tags of other links.
pub(crate) async fn is_outdated(sql: &mut dyn Sql, batch: &Batch, known: i64) -> Result<bool> {
    if version(sql).await? != known {
        let Changes { cuts, erasures, .. } = changes(sql, known).await?;
        if !erasures.is_empty() || cuts.iter().any(|cut| batch.has_visits_of(cut.link)) {
            return Ok(true);
        }
    }
    let links: Vec<LinkId> = batch.tags.keys().copied().collect();
    Ok(!links.is_empty() && !batch.has_tags(&tags_of(sql, &links).await?))
}
