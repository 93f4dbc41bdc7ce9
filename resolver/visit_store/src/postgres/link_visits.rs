//! Adds visits by link to the links' own table.

use store::{Sql, Value, add_to_links};

use crate::{
    Result,
    link_visits::{decode_links, sum_links},
};

const BATCHES: usize = 64;

/// Adds up the oldest batches, and removes them.
pub(super) async fn fold(sql: &mut dyn Sql) -> Result<bool> {
    let take = "DELETE FROM visit_link_batch WHERE number IN
             (SELECT number FROM visit_link_batch ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING links";
    let mut batches = sql.query(take, &[Value::count(BATCHES)]).await?;
    let mut all = Vec::new();
    for batch in &mut batches {
        all.append(&mut decode_links(&batch.take_bytes(0)?)?);
    }
    add_to_links(sql, &sum_links(all)).await?;
    Ok(batches.len() == BATCHES)
}
