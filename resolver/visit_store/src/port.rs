//! The application's port to a store of visits.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use codes::LinkId;
use store::{
    Done,
    Lane::{self, List, Read, Write},
    Operation, VisitTotals, Work,
    postgres::PoolCount,
};
use visits::{AddressSecret, Day, DaySecret, Subject, TextKey, VisitId, VisitRow};

use crate::{
    Batch, Changes, Columns, DayCounters, Days, Erased, Erasure, ErasureId, Producer, Remaining, Result,
    RowQuery, RowsRecord, SpoolId, Standing, StoredText, TextRef, VisitStoreError, WriteError,
    sql::{
        changes, closing, counters, deletion, erasures, old_counters, producers, rows, secrets,
        transferred::NothingTransferred,
    },
};

async fn run<A: Send + Sync + 'static, T: Send + 'static>(
    database: &(impl VisitReader + ?Sized),
    lane: Lane,
    args: A,
    work: Work<A, T, VisitStoreError>,
) -> Result<T> {
    Ok(database.run(lane, Operation::new(args, work)).await?.take())
}

/// The reading side of a store of visits, for lists and statistics.
#[async_trait]
pub trait VisitReader: Send + Sync + 'static {
    /// Runs an operation that Postgres and SQLite share (`sql/`). One that writes runs in a
    /// transaction, which is committed.
    async fn run(&self, lane: Lane, operation: Operation<VisitStoreError>) -> Result<Done>;

    /// Returns the counters of a subject, a value for each day with visits, in the order of days.
    /// Columns that were not asked for are empty.
    async fn days(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        run(self, Read, (subject, days, columns), |sql, (subject, days, columns)| {
            Box::pin(counters::days(sql, *subject, *days, *columns))
        })
        .await
    }

    /// Returns the same counters in as few values as possible, each of one day or more. A value of
    /// more than one day has no counts by quarter hour.
    async fn spans(&self, subject: Subject, days: Days, columns: Columns) -> Result<Vec<DayCounters>> {
        run(self, Read, (subject, days, columns), |sql, (subject, days, columns)| {
            Box::pin(counters::spans(sql, *subject, *days, *columns))
        })
        .await
    }

    /// Returns rows, the latest first.
    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>> {
        run(self, List, *query, |sql, query| Box::pin(rows::rows(sql, query))).await
    }

    /// Returns the number of rows of a query, whatever its `skip` and `most`.
    async fn count_rows(&self, query: &RowQuery) -> Result<u64> {
        run(self, List, *query, |sql, query| Box::pin(rows::count(sql, query))).await
    }

    /// Returns the first day that rows are kept of; `None` if no row was ever removed for its age.
    async fn rows_from(&self) -> Result<Option<Day>> {
        run(self, Read, (), |sql, ()| Box::pin(rows::rows_from(sql))).await
    }

    /// Returns the first day whose visits count; `None` if all do.
    async fn counts_from(&self) -> Result<Option<Day>> {
        run(self, Read, (), |sql, ()| Box::pin(old_counters::counts_from(sql))).await
    }
}

/// A store of visits: rows, their texts, and counters.
///
/// 1. A batch is stored exactly once: the transaction that stores it moves the producer's position,
///    and compares the old one first ([`store`](Self::store)).
/// 2. A process that was replaced stores nothing more: [`register`](Self::register) gives each
///    start a higher incarnation, which every transaction compares.
/// 3. Counters are appended to, never overwritten: two writers lose nothing of each other.
/// 4. Visits that were deleted do not come back from a spool, and visits count for the tags that
///    their link has: a batch is refused until its writer knows all [`Changes`].
#[async_trait]
pub trait VisitStore: VisitReader {
    /// Applies all pending migrations of the visits' own schema.
    async fn migrate(&self) -> Result<()>;

    /// Returns the connections of its pool, if it has one of its own.
    fn pools(&self) -> Vec<PoolCount> {
        Vec::new()
    }

    /// Returns how many slots have producers that stored recently, and how many slots there are.
    /// `None`: the store has a single producer.
    async fn slots(&self) -> Result<Option<(u32, u32)>> {
        Ok(None)
    }

    /// Returns the time since the beginning of the oldest day whose counters are not closed
    /// ([`merge`](Self::merge)); zero if all are.
    async fn oldest_open(&self) -> Result<Duration> {
        run(self, Read, (), |sql, ()| Box::pin(closing::oldest_open(sql))).await
    }

    /// Registers the spool of a process that starts, or whose slot was taken. From now on an
    /// earlier process with this spool stores nothing.
    ///
    /// Returns [`NoSlot`](crate::VisitStoreError::NoSlot) if all slots belong to spools that stored
    /// recently.
    async fn register(&self, spool: SpoolId, holder: &str) -> Result<Producer> {
        let args = (spool, holder.to_owned());
        run(self, Write, args, |sql, (spool, holder)| Box::pin(producers::register(sql, *spool, holder)))
            .await
    }

    /// Returns the stored position of a producer, if it still has its slot and incarnation, and
    /// notes that it lives.
    async fn standing(&self, producer: &Producer) -> Result<Standing> {
        run(self, Write, *producer, |sql, producer| Box::pin(producers::standing(sql, producer))).await
    }

    /// Gives the slot back: the spool is empty, and its process ends.
    async fn release(&self, producer: &Producer) -> Result<()> {
        run(self, Write, *producer, |sql, producer| Box::pin(producers::release(sql, producer))).await
    }

    /// Stores a batch and moves the producer's position from `batch.from` to `batch.to`, in one
    /// transaction. `known` is the version of the changes that the batch respects.
    async fn store(&self, producer: &Producer, batch: &Batch, known: i64) -> Result<(), WriteError>;

    /// Returns whether rows are in a database of their own. Then [`store`](Self::store) leaves them
    /// out, and its caller records them before, and stores them afterwards.
    fn keeps_rows_apart(&self) -> bool {
        false
    }

    /// Stores the rows of a batch that is stored already. A record that
    /// [may be stored](RowsRecord::may_be_stored) can be sent any number of times, also by several
    /// processes: rows that are there are not stored again.
    async fn store_rows(&self, _record: &RowsRecord) -> Result<()> {
        Ok(())
    }

    /// Returns the changes after a version that batches have to respect.
    async fn changes(&self, after: i64) -> Result<Changes> {
        run(self, Read, after, |sql, after| Box::pin(changes::changes(sql, *after))).await
    }

    /// Returns the tags whose counters include these links, by link. Links without one are left
    /// out.
    async fn tags_of(&self, links: &[LinkId]) -> Result<HashMap<LinkId, Vec<i64>>> {
        run(self, Read, links.to_vec(), |sql, links| Box::pin(changes::tags_of(sql, links))).await
    }

    /// Returns the secrets of the deployment. The first call creates them.
    async fn secrets(&self) -> Result<(TextKey, AddressSecret)> {
        run(self, Write, (), |sql, ()| Box::pin(secrets::of_deployment(sql))).await
    }

    /// Returns the secret that tokens for live visits are signed with. The first call creates it.
    async fn token_secret(&self) -> Result<TokenSecret> {
        run(self, Write, (), |sql, ()| Box::pin(secrets::of_tokens(sql))).await
    }

    /// Returns the secret of a day, and creates it for today, yesterday and tomorrow by the
    /// database's clock. `None`: it was erased, or the day is too far off.
    async fn day_secret(&self, day: Day) -> Result<Option<DaySecret>> {
        run(self, Write, day, |sql, day| Box::pin(secrets::of_day(sql, *day))).await
    }

    /// Returns the visits of links within days, without the time of the last one. Links without
    /// visits are left out.
    async fn link_totals(&self, links: &[LinkId], days: Days) -> Result<HashMap<LinkId, VisitTotals>> {
        let args = (links.to_vec(), days);
        run(self, Read, args, |sql, (links, days)| Box::pin(counters::link_totals(sql, links, *days))).await
    }

    /// Asks every server that the store needs whether it answers.
    async fn ping(&self) -> Result<()> {
        self.rows_from().await.map(drop)
    }

    /// Asks the server of rows, where they are in a database of their own, whether it answers.
    async fn ping_rows(&self) -> Result<()> {
        Ok(())
    }

    /// Returns texts, as far as they are kept, in any order.
    async fn texts(&self, texts: &[TextRef]) -> Result<Vec<StoredText>> {
        run(self, Read, texts.to_vec(), |sql, texts| Box::pin(rows::texts(sql, texts))).await
    }

    /// Deletes the visits of a link or the orphan visits that are older than `before`: counters at
    /// once, and rows later, in steps ([`delete_rows`](Self::delete_rows)). Returns how many there
    /// were.
    async fn delete(&self, subject: Subject, before: VisitId) -> Result<u64> {
        let args = (subject, before);
        run(self, Write, args, |sql, (subject, before)| {
            Box::pin(deletion::delete(sql, *subject, *before, &NothingTransferred, None))
        })
        .await
    }

    /// Begins to erase visits by their addresses. Their rows are deleted later, in steps
    /// ([`delete_rows`](Self::delete_rows)). Returns `None` if there are [`Erasure::MOST`] erasures
    /// already.
    async fn erase(&self, erasure: &Erasure) -> Result<Option<ErasureId>> {
        run(self, Write, *erasure, |sql, erasure| Box::pin(erasures::erase(sql, erasure))).await
    }

    /// Returns how far an erasure has come.
    async fn erased(&self, id: ErasureId) -> Result<Erased> {
        run(self, Read, id, |sql, id| Box::pin(erasures::erased(sql, *id))).await
    }

    /// Deletes some of the rows that cuts and erasures have left over. Returns their number, and
    /// `None` once there are no more.
    async fn delete_rows(&self) -> Result<Option<u64>>;

    /// Prepares the days around today, removes rows and texts of days before `rows_from`, forgets
    /// erasures of visits that would have no rows, and erases secrets that are due.
    async fn keep(&self, rows_from: Day) -> Result<()>;

    /// Rebuilds the index of a closed day if that saves space. Returns whether there was one. It
    /// may take long. Days that go soon, those after `rows_from`, are left as they are.
    async fn rebuild_index(&self, _rows_from: Day) -> Result<bool> {
        Ok(false)
    }

    /// Closes past days, whose counters of all slots become one row, and merges closed days into
    /// months.
    async fn merge(&self) -> Result<Remaining>;

    /// Removes some counters of days before the first day of a month. From now on, nothing of those
    /// days counts, also if it arrives late. The totals of links stay.
    async fn remove_old_counters(&self, counts_from: Day) -> Result<Remaining>;

    /// Adds visits by link that were stored with batches to the links themselves, for lists and for
    /// the removal of unvisited links. Returns whether there is more to do.
    async fn fold_link_visits(&self) -> Result<bool>;

    /// Passes the events of batches on to the webhooks, each once. Returns whether there
    /// is more to do. A store in the database of the webhooks records them with the batch.
    async fn pass_on_events(&self) -> Result<bool> {
        Ok(false)
    }

    /// Lets the counters of tags follow the tags that links have now. Returns whether there is more
    /// to do.
    async fn follow_tags(&self) -> Result<bool>;

    /// Returns the latest rows after an id, at most `most`, for live views.
    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>> {
        let args = (after, most);
        run(self, List, args, |sql, (after, most)| Box::pin(rows::latest(sql, *after, *most))).await
    }

    /// Closes the store: its process is about to end.
    async fn close(&self) {}
}

/// The secret that tokens for live visits are signed with: one for a deployment, so that every
/// resolver takes the tokens of the others.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(pub [u8; 32]);

impl std::fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

/// A slot that has no producer belongs to merged counters.
pub(crate) const MERGED: i16 = -1;
/// The slot of merged counters that are transferred to another database.
pub(crate) const LEAVING: i16 = -2;
