//! Batch inserts of new links: one statement on the first free connection, or COPY (`copy.rs`) for
//! large batches.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use links::NewLink;
use numbers::StoreEpoch;
use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, admin, copy,
    line::Line,
    transaction::{DEADLINE, row},
};
use crate::{InsertError, Inserted, Result, StoreError, sql};

impl PostgresStore {
    /// Inserts links, and returns the outcome of each in the order of `links`.
    pub(super) async fn insert_batch(
        &self,
        history: &StoreEpoch,
        links: &[NewLink],
    ) -> Result<Vec<Inserted>, InsertError> {
        let mut order: Vec<&NewLink> = links.iter().collect();
        order.sort_unstable_by_key(|link| link.id);
        let ids: Vec<i64> = order.iter().map(|link| link.id.get()).collect();
        let urls: Vec<&str> = order.iter().map(|link| link.draft.long_url.as_str()).collect();
        let titles: Vec<Option<&str>> = order.iter().map(|link| link.draft.title.as_deref()).collect();
        let crawlable: Vec<bool> = order.iter().map(|link| link.draft.crawlable).collect();
        let forward: Vec<bool> = order.iter().map(|link| link.draft.forward_query).collect();
        let creators: Vec<i64> = order.iter().map(|link| link.draft.created_by.0).collect();
        let details = order.iter().map(|link| sql::details_text(link.draft.details.as_deref()));
        let details: Vec<Option<String>> = details.collect::<Result<_, _>>().map_err(InsertError::Failed)?;
        let writer = self.writer();
        if order.len() >= copy::LINKS_MIN {
            match writer.copy_in(history, DEADLINE, |now| copy::rows(&order, &details, now)).await {
                Ok(at) => return Ok(vec![Inserted::Stored(at); order.len()]),
                // Some id is taken and nothing is stored. The INSERT below tells which id.
                Err(InsertError::Failed(error)) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        let epoch = history.as_str();
        let columns: [&(dyn ToSql + Sync); 8] =
            [&ids, &urls, &titles, &crawlable, &forward, &creators, &details, &epoch];
        let rows = writer.query(DEADLINE, &columns).await?;
        if rows.is_empty() {
            self.all_are_taken(history, &ids).await?;
        }
        outcomes(links, &rows)
    }

    /// Finds out why nothing of a batch was stored: all ids are taken, or the database's history is
    /// another one or has not been compared.
    ///
    /// One statement reads both history and rows. After a fail-over, another server may answer than
    /// the one that stored nothing, and the rows of one server prove nothing about the other.
    async fn all_are_taken(&self, history: &StoreEpoch, ids: &[i64]) -> Result<(), InsertError> {
        match self.within(async { admin::taken(&*self.connection().await?, ids).await }).await {
            Ok((epoch, taken)) if epoch == *history && taken == ids.len() => Ok(()),
            // The mark was compared between the two statements, or another server answered. The
            // numbers are still unused.
            Ok((epoch, _)) if epoch == *history => Err(InsertError::Failed(StoreError::NotCompared)),
            Ok(_) => Err(InsertError::Failed(StoreError::AnotherHistory)),
            Err(error) => Err(InsertError::Failed(error)),
        }
    }

    /// Returns a free connection, or else the next one in turn.
    fn writer(&self) -> &Line {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.writers.len();
        let free = self.writers.iter().find(|line| line.is_free());
        free.unwrap_or(&self.writers[turn])
    }
}

/// Maps returned ids to outcomes: returned ids were stored, and the others were taken.
fn outcomes(links: &[NewLink], rows: &[Row]) -> Result<Vec<Inserted>, InsertError> {
    // The rows are committed by now, so an error while reading them leaves the outcome unknown.
    let stored = |stored: &Row| {
        let stored = row(stored)?;
        Ok((stored.int(0)?, stored.time(1)?))
    };
    let stored = rows.iter().map(stored).collect::<Result<Vec<(i64, Timestamp)>>>();
    let mut stored = stored.map_err(InsertError::Unknown)?;
    // Postgres returns them in the order of the insert, but does not guarantee it.
    stored.sort_unstable_by_key(|(id, _)| *id);
    let outcome = |link: &NewLink| match stored.binary_search_by_key(&link.id.get(), |(id, _)| *id) {
        Ok(index) => Inserted::Stored(stored[index].1),
        Err(_) => Inserted::Taken,
    };
    Ok(links.iter().map(outcome).collect())
}
