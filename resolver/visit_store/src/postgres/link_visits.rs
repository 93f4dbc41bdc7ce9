//! Adds visits by link to the links' own table.

use tokio_postgres::{Client, types::Type};

use codes::LinkId;

use crate::{
    Result,
    link_visits::{decode_links, sum_links},
};

const BATCHES: i64 = 64;

/// Adds up the oldest batches, and removes them in the same transaction.
pub(super) async fn fold(client: &mut Client) -> Result<bool> {
    let transaction = client.transaction().await?;
    let take = "DELETE FROM visit_link_batch WHERE number IN
             (SELECT number FROM visit_link_batch ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING links";
    let batches = transaction.query_typed(take, &[(&BATCHES, Type::INT8)]).await?;
    if batches.is_empty() {
        return Ok(false);
    }
    let mut all = Vec::new();
    for batch in &batches {
        all.append(&mut decode_links(batch.get(0))?);
    }
    let all = sum_links(all);
    let links: Vec<i64> = all.iter().map(|visits| LinkId::get(visits.link)).collect();
    let totals: Vec<i64> = all.iter().map(|visits| visits.total).collect();
    let bots: Vec<i64> = all.iter().map(|visits| visits.bots).collect();
    let last: Vec<i64> = all.iter().map(|visits| visits.last).collect();
    // The ids ascend, so that two resolvers do not wait for each other in a circle.
    let add = "INSERT INTO link_seen AS old (link_id, seen_at, total, bots)
         SELECT link, to_timestamp(last / 1000000.0), total, bots
         FROM unnest($1, $2, $3, $4) AS new (link, last, total, bots)
         ON CONFLICT (link_id) DO UPDATE SET seen_at = greatest(old.seen_at, excluded.seen_at),
             total = old.total + excluded.total, bots = old.bots + excluded.bots";
    transaction
        .execute_typed(
            add,
            &[
                (&links, Type::INT8_ARRAY),
                (&last, Type::INT8_ARRAY),
                (&totals, Type::INT8_ARRAY),
                (&bots, Type::INT8_ARRAY),
            ],
        )
        .await?;
    transaction.commit().await?;
    Ok(batches.len() == usize::try_from(BATCHES).unwrap_or(usize::MAX))
}
