//! The port [`Links`] on Postgres.
//!
//! Reads for redirects come from a replica, from the primary, and while there is no primary from
//! any server that proves to be as recent.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, atomic::Ordering},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{
    Details, DomainId, Link, LongUrl, NewLink, Slug, StoredObject as _,
    api_key::ApiKeyId,
    slug_spellings,
    webhook::{EventKind, Subscription},
};
use numbers::StoreEpoch;
use tokio::{sync::mpsc, time::Instant};
use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore,
    budget::{ReplicaRead, Server},
    changes,
    transaction::DEADLINE,
};
use crate::{
    Bucket, Change, Database as _, InsertError, Inserted, Links, NamedIds, READ_MAX, Reading, Result, Source,
    StoreError, Under, operation::insert, sql::create,
};

/// Deadline of a read from the primary, for each phase of
/// [`Line::query`](super::line::Line::query). Any other server is asked after it.
const PRIMARY_DEADLINE: Duration = Duration::from_secs(1);
/// Deadline of a read from a replica; the primary may have to be asked after it.
const REPLICA_DEADLINE: Duration = Duration::from_millis(500);
/// Back-off after a failed read: how long a server is not asked.
const SHUNNED: Duration = Duration::from_secs(1);

#[async_trait]
impl Links for PostgresStore {
    fn insert_lanes(&self) -> usize {
        self.writers.len() * self.read_lanes()
    }

    fn read_lanes(&self) -> usize {
        self.nodes.load().as_ref().map_or(1, |nodes| nodes.count())
    }

    fn read_lane(&self, link: LinkId) -> usize {
        self.nodes.load().as_ref().map_or(0, |nodes| nodes.place(link))
    }

    fn bucket(&self, link: LinkId) -> Bucket {
        self.nodes.load().as_ref().map_or(Bucket(0), |nodes| nodes.bucket(link))
    }

    fn open_bucket(&self) -> Option<Bucket> {
        self.nodes.load().as_ref().map(|nodes| nodes.open_bucket())
    }

    fn is_up(&self, bucket: Bucket) -> bool {
        self.nodes.load().as_ref().is_none_or(|nodes| nodes.is_up(bucket))
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        if !self.announces_creates() {
            // Its statement records no events, so that it stays as fast as it is.
            return match self.find_nodes().await.map_err(InsertError::Failed)? {
                Some(nodes) => nodes.insert(history, links).await,
                None => self.insert_batch(history, links).await,
            };
        }
        let Some(first) = links.first() else { return Ok(Vec::new()) };
        let under = Some(Under { history, link: first.id });
        insert(self, under, links.to_vec(), |sql, links| Box::pin(create::insert_links(sql, links))).await
    }

    async fn insert_slugs(&self, links: &[NewLink]) -> Result<Vec<Option<Timestamp>>, InsertError> {
        let is_distributed = self.find_nodes().await.map_err(InsertError::Failed)?.is_some();
        if self.announces_creates() || is_distributed {
            // Only a transaction of its own records an event, and writes on several nodes.
            return Ok(vec![None; links.len()]);
        }
        self.insert_slug_batch(links).await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading> {
        if let Some(nodes) = self.find_nodes().await? {
            // A replica of the coordinator proves nothing about the nodes.
            let read = nodes.read(ids).await;
            return Ok(Reading { links: links(&read?)?, copied: None, complete: true });
        }
        let replica = match source {
            Source::Any { lag } => self.read_replica(ids, lag).await,
            Source::Primary => None,
        };
        let copied = replica.map(|(mut links, as_of)| {
            // A link that is deleted on the replica may have been restored since.
            links.retain(|link| !link.is_deleted());
            (links, as_of)
        });
        let found: HashSet<LinkId> = copied.iter().flat_map(|(links, _)| links).map(|link| link.id).collect();
        let missing: Vec<i64> = ids.iter().filter(|id| !found.contains(id)).map(|id| id.get()).collect();
        if missing.is_empty() {
            return Ok(Reading { links: Vec::new(), copied, complete: true });
        }
        if let Some(rows) = self.read_primary(&missing).await {
            return Ok(Reading { links: links(&rows)?, copied, complete: true });
        }
        let (rows, as_of) = self.read_copy(&missing).await?;
        let (mut shown, replayed) = copied.unwrap_or((Vec::new(), as_of));
        shown.extend(links(&rows)?);
        Ok(Reading { links: Vec::new(), copied: Some((shown, as_of.min(replayed))), complete: false })
    }

    async fn find_slugs(&self, places: &[(DomainId, Slug)]) -> Result<NamedIds> {
        let spellings: Vec<_> = places.iter().map(|(_, slug)| slug_spellings(slug.as_str())).collect();
        let (mut domains, mut slugs): (Vec<i64>, Vec<&str>) = (Vec::new(), Vec::new());
        for ((domain, _), spellings) in places.iter().zip(&spellings) {
            for spelling in spellings {
                domains.push(domain.get());
                slugs.push(spelling);
            }
        }
        let of: [&(dyn ToSql + Sync); 2] = [&domains, &slugs];
        let (rows, complete) = match self.slug_reader.read(PRIMARY_DEADLINE, &of).await {
            Ok(rows) => (rows, true),
            // A copy can prove presence, but never absence (I8). An older entry does no harm: it
            // leads to a row, which tells its own name and how old it is.
            Err(error) => match self.copy_slug_reader.query(DEADLINE, &of).await? {
                rows if rows.is_empty() => return Err(error.into()),
                rows => (rows, false),
            },
        };
        let mut stored = HashMap::new();
        for row in &rows {
            stored.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
        }
        let mut ids = HashMap::new();
        for ((domain, slug), spellings) in places.iter().zip(&spellings) {
            let id = spellings.iter().find_map(|one| stored.get(&(domain.get(), &**one)));
            ids.extend(id.map(|id| ((*domain, slug.clone()), LinkId::from_stored(*id))));
        }
        Ok(NamedIds { ids, complete })
    }

    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        changes::tell(&self.address, &changes).await;
    }
}

impl PostgresStore {
    /// Notes whether a webhook is called for new links. Each insert of a link would otherwise ask.
    pub(super) fn note_subscriptions(&self, subscriptions: &[Subscription]) {
        let creates = |one: &Subscription| one.kinds.iter().any(|kind| kind == EventKind::Created.as_str());
        self.tells_creates.store(subscriptions.iter().any(creates), Ordering::Relaxed);
    }

    /// Reads from the primary. Returns `None` if the read fails, or failed within the back-off.
    async fn read_primary(&self, ids: &[i64]) -> Option<Vec<Row>> {
        if lock(&self.shunned).is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let read = match span_of(ids) {
            None => self.reader.read(PRIMARY_DEADLINE, &[&ids]).await,
            Some((first, last)) => {
                let mut read = self.reader.read_span(PRIMARY_DEADLINE, first, last).await;
                if let Ok(rows) = &mut read {
                    let is_wanted = |id: i64| ids.binary_search(&id).is_ok();
                    rows.retain(|row| row.try_get(0).is_ok_and(is_wanted));
                }
                read
            }
        };
        *lock(&self.shunned) = read.is_err().then(|| Instant::now() + SHUNNED);
        if let Err(error) = &read {
            tracing::warn!(?error, "read links from the primary");
        }
        read.ok()
    }

    /// Reads from any server of the URL that has all that the primary is known to have written.
    /// Returns the rows with the instant that they are at least as recent as.
    async fn read_copy(&self, ids: &[i64]) -> Result<(Vec<Row>, Instant)> {
        if lock(&self.copy_shunned).is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::ReplicaBehind);
        }
        let read = self.copy_reader.read_replica(DEADLINE, &[&ids]).await.map_err(StoreError::from);
        let read = read.and_then(|(replayed, rows)| {
            let position = replayed.position.filter(|_| replayed.is_all);
            let as_of = position.and_then(|position| self.positions.as_of_the_last(position));
            Ok((rows, as_of.ok_or(StoreError::ReplicaBehind)?))
        });
        *lock(&self.copy_shunned) = read.is_err().then(|| Instant::now() + SHUNNED);
        if matches!(read, Err(StoreError::ReplicaBehind)) {
            self.copy_reader.leave().await;
        }
        read
    }

    /// Reads links from the replica. Returns them with the instant that they are at least as recent
    /// as.
    ///
    /// Returns `None` without a replica, and if it does not answer, is in its back-off, or cannot
    /// prove that it lags at most `lag` behind.
    async fn read_replica(&self, ids: &[LinkId], lag: Duration) -> Option<(Vec<Link>, Instant)> {
        let (replica, observer) = (self.replica.as_ref()?, &self.address.observer);
        // Reads within the back-off count as well, by its reason: otherwise a replica that lags
        // would be seen once a second, whatever the load.
        let shunned = *lock(&self.replica_shunned);
        if let Some((_, why)) = shunned.filter(|(until, _)| Instant::now() < *until) {
            observer.replica_read(why);
            return None;
        }
        let ids: Vec<i64> = ids.iter().map(|id| id.get()).collect();
        let read = replica.read_replica(REPLICA_DEADLINE, &[&ids]).await.map_err(StoreError::from);
        let found = read.and_then(|(replayed, rows)| {
            let as_of = replayed.position.and_then(|replayed| self.positions.as_of(replayed, lag));
            Ok((links(&rows)?, as_of.ok_or(StoreError::ReplicaBehind)?))
        });
        let outcome = match &found {
            Ok(_) => ReplicaRead::Answered,
            Err(StoreError::ReplicaBehind) => ReplicaRead::Behind,
            Err(_) => ReplicaRead::Failed,
        };
        observer.replica_read(outcome);
        *lock(&self.replica_shunned) = found.is_err().then(|| (Instant::now() + SHUNNED, outcome));
        let log = |error: &StoreError| {
            tracing::warn!(error = error as &dyn std::error::Error, "read links from the replica");
        };
        found.inspect_err(log).ok()
    }

    /// Asks the replica whether it answers, if there is one, and tells the observer.
    pub(super) async fn probe_replica(&self) {
        let Some(replica) = &self.replica else { return };
        let none: &[i64] = &[];
        if replica.read_replica(REPLICA_DEADLINE, &[&none]).await.is_ok() {
            self.address.observer.answered(Server::Replica);
        }
    }
}

fn lock<T>(shunned: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
    shunned.lock().expect("no code panics while it holds this lock")
}

/// Returns the first and the last of ids of a start with a warm cache, if at most as many other
/// links are between them.
fn span_of(ids: &[i64]) -> Option<(i64, i64)> {
    let (first, last) = (*ids.first()?, *ids.last()?);
    let is_dense = || ids.is_sorted() && last.abs_diff(first) < 2 * ids.len() as u64;
    (ids.len() > READ_MAX && is_dense()).then_some((first, last))
}

fn links(rows: &[Row]) -> Result<Vec<Link>> {
    rows.iter().map(link).collect()
}

/// Decodes a row of [`READ`](super::statements::READ) in place: a start with a warm cache reads
/// millions of them, and [`sql::Row`](crate::sql::Row) copies each text once more.
fn link(row: &Row) -> Result<Link> {
    let created_at = Timestamp::try_from(row.try_get::<_, SystemTime>(5)?);
    let details: Option<&str> = row.try_get(7)?;
    Ok(Link {
        id: LinkId::from_stored(row.try_get(0)?),
        long_url: LongUrl::from_stored(row.try_get::<_, &str>(1)?),
        title: row.try_get(2)?,
        crawlable: row.try_get(3)?,
        forward_query: row.try_get(4)?,
        created_at: created_at.map_err(|error| StoreError::Corrupt(format!("a time: {error}")))?,
        created_by: ApiKeyId(row.try_get(6)?),
        details: details.map(|text| Box::new(Details::from_stored(text))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ids_that_lie_close_together_are_read_as_a_span() {
        let every = |step: i64| -> Vec<i64> { (0..200).map(|number| number * step).collect() };
        assert_eq!(span_of(&every(1)), Some((0, 199)));
        assert_eq!(span_of(&every(2)), Some((0, 398)));
        assert_eq!(span_of(&every(3)), None, "most links of the span are others");
        assert_eq!(span_of(&every(-1)), None, "they do not ascend");
        assert_eq!(span_of(&every(1)[..READ_MAX]), None, "so few may be misses");
        assert_eq!(span_of(&[]), None);
    }
}
