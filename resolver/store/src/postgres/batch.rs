//! Batch inserts of new links: one statement on the first free connection, or COPY (`copy.rs`) for
//! large batches.

use std::collections::HashMap;

use jiff::Timestamp;
use links::{NewLink, Slug};
use numbers::StoreEpoch;
use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, admin, copy,
    line::Line,
    transaction::{DEADLINE, is_contended, row},
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
        let columns = Columns::new(&order).map_err(InsertError::Failed)?;
        let writer = Line::free(&self.writers, &self.turn);
        if order.len() >= copy::LINKS_MIN
            && let Some(at) = copy_in(writer, Some(history), &order, &columns).await?
        {
            return Ok(vec![Inserted::Stored(at); order.len()]);
        }
        let epoch = history.as_str();
        let [ids, urls, titles, crawlable, forward, creators, details] = columns.params();
        let params = [ids, urls, titles, crawlable, forward, creators, details, &epoch];
        let rows = writer.query(DEADLINE, &params).await?;
        if rows.is_empty() {
            self.all_are_taken(history, &columns.ids).await?;
        }
        outcomes(links, &rows)
    }

    /// Inserts links at the numbers of their custom slugs, and returns their creation times in the
    /// order of `links`. Of links with one slug, only the first is tried.
    pub(super) async fn insert_slug_batch(
        &self,
        links: &[NewLink],
    ) -> Result<Vec<Option<Timestamp>>, InsertError> {
        let mut order: Vec<&NewLink> = links.iter().collect();
        order.sort_by_key(|link| link.id);
        order.dedup_by_key(|link| link.id);
        let columns = Columns::new(&order).map_err(InsertError::Failed)?;
        let slugs: Option<Vec<&str>> =
            order.iter().map(|link| link.draft.details().slug.as_ref().map(Slug::as_str)).collect();
        let slugs =
            slugs.ok_or_else(|| InsertError::Failed(StoreError::Corrupt("a link without a slug".into())))?;
        let [ids, urls, titles, crawlable, forward, creators, details] = columns.params();
        let params = [ids, urls, titles, crawlable, forward, creators, details, &slugs];
        let rows = match self.slug_writer.query(DEADLINE, &params).await {
            // Rolled back because of one of them, and each may be tried by itself.
            Err(InsertError::Failed(error)) if is_contended(&error) => return Ok(vec![None; links.len()]),
            rows => rows?,
        };
        let stored = stored(&rows).map_err(InsertError::Unknown)?;
        let mut stored: HashMap<i64, Timestamp> = stored.into_iter().collect();
        Ok(links.iter().map(|link| stored.remove(&link.id.get())).collect())
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
}

/// Inserts links of one bucket on the node that has it, and returns the outcome of each in the
/// order of `links`. Small batches are copied too: an INSERT takes a node of Citus twice as long as
/// any other server, and COPY does not (2026-11-30, batches of 50).
pub(super) async fn insert_on(node: &Line, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
    let mut order: Vec<&NewLink> = links.iter().collect();
    order.sort_unstable_by_key(|link| link.id);
    let columns = Columns::new(&order).map_err(InsertError::Failed)?;
    match copy_in(node, None, &order, &columns).await? {
        Some(at) => Ok(vec![Inserted::Stored(at); order.len()]),
        None => outcomes(links, &node.query(DEADLINE, &columns.params()).await?),
    }
}

/// Copies links in, and returns their creation time. Returns `None` if some id is taken and nothing
/// is stored: an INSERT tells which.
async fn copy_in(
    line: &Line,
    history: Option<&StoreEpoch>,
    order: &[&NewLink],
    columns: &Columns<'_>,
) -> Result<Option<Timestamp>, InsertError> {
    match line.copy_in(history, DEADLINE, |now| copy::rows(order, &columns.details, now)).await {
        Ok(at) => Ok(Some(at)),
        Err(InsertError::Failed(error)) if error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The columns of new links, as their statements take them.
struct Columns<'a> {
    ids: Vec<i64>,
    urls: Vec<&'a str>,
    titles: Vec<Option<&'a str>>,
    crawlable: Vec<bool>,
    forward: Vec<bool>,
    creators: Vec<i64>,
    details: Vec<Option<String>>,
}

impl<'a> Columns<'a> {
    fn new(order: &[&'a NewLink]) -> Result<Self> {
        let drafts = || order.iter().map(|link| &link.draft);
        let details = drafts().map(|draft| sql::details_text(draft.details.as_deref()));
        Ok(Self {
            ids: order.iter().map(|link| link.id.get()).collect(),
            urls: drafts().map(|draft| draft.long_url.as_str()).collect(),
            titles: drafts().map(|draft| draft.title.as_deref()).collect(),
            crawlable: drafts().map(|draft| draft.crawlable).collect(),
            forward: drafts().map(|draft| draft.forward_query).collect(),
            creators: drafts().map(|draft| draft.created_by.0).collect(),
            details: details.collect::<Result<_, _>>()?,
        })
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 7] {
        let Self { ids, urls, titles, crawlable, forward, creators, details } = self;
        [ids, urls, titles, crawlable, forward, creators, details]
    }
}

/// Reads the ids and creation times of the rows that were stored.
fn stored(rows: &[Row]) -> Result<Vec<(i64, Timestamp)>> {
    let stored = |stored: &Row| {
        let stored = row(stored)?;
        Ok((stored.int(0)?, stored.time(1)?))
    };
    rows.iter().map(stored).collect()
}

/// Maps returned ids to outcomes: returned ids were stored, and the others were taken.
fn outcomes(links: &[NewLink], rows: &[Row]) -> Result<Vec<Inserted>, InsertError> {
    // The rows are committed by now, so an error while reading them leaves the outcome unknown.
    let mut stored = stored(rows).map_err(InsertError::Unknown)?;
    // Postgres returns them in the order of the insert, but does not guarantee it.
    stored.sort_unstable_by_key(|(id, _)| *id);
    let outcome = |link: &NewLink| match stored.binary_search_by_key(&link.id.get(), |(id, _)| *id) {
        Ok(index) => Inserted::Stored(stored[index].1),
        Err(_) => Inserted::Taken,
    };
    Ok(links.iter().map(outcome).collect())
}
