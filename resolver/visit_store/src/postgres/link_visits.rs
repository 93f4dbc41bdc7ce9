//! Adds visits by link to the links' own table.

use store::{Sql as _, Value, add_to_links, postgres::PostgresSql};
use tokio_postgres::Client;

use crate::{
    Result,
    link_visits::{decode_links, sum_links},
};

const BATCHES: usize = 64;

/// Adds up the oldest batches, and removes them in the same transaction.
pub(super) async fn fold(client: &mut Client) -> Result<bool> {
    let transaction = client.transaction().await?;
    let sql = &mut PostgresSql(&transaction);
    let take = "DELETE FROM visit_link_batch WHERE number IN
             (SELECT number FROM visit_link_batch ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING links";
    let mut batches = sql.query(take, &[Value::count(BATCHES)]).await?;
    let mut all = Vec::new();
    for batch in &mut batches {
        all.append(&mut decode_links(&batch.take_bytes(0)?)?);
    }
    add_to_links(sql, &sum_links(all)).await?;
    transaction.commit().await?;
    Ok(batches.len() == BATCHES)
}
