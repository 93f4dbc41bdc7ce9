//! The block register and the database's history, which say for which numbers links may be stored;
//! and reservations, whose numbers are rows of the register.

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::{Mark, Span, StoreEpoch};
use tokio::sync::watch;

use crate::{
    Advanced, BlockEntry, Comparison, Database,
    Lane::{Read, Write},
    Registration, Result, StoreError, Witness,
    operation::run,
    sql::{blocks, deployment, history, reservations},
};

/// The register of blocks with the database's history, and reservations.
///
/// A block is in the register before a number of it is claimed. [`Registration::Overlaps`] means
/// that none of the block's numbers may be used.
#[async_trait]
pub trait Register: Database {
    /// Registers a block. Idempotent.
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration> {
        let registered =
            run(self, Write, block.clone(), |sql, block| Box::pin(blocks::register_block(sql, block)))
                .await?;
        Witness::note_registered(self.witness(), block.keyspace, block.span.end()).await;
        Ok(registered)
    }

    /// Takes over a block that was leaked under the generation `leaked`, and registers it under its
    /// new one. Idempotent. The result is [`Registration::Overlaps`] if another holder has taken
    /// over the block since, or if an open reservation owns some of its numbers.
    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration> {
        let args = (block.clone(), leaked);
        let taken = run(self, Write, args, |sql, (block, leaked)| {
            Box::pin(blocks::take_over_block(sql, block, *leaked))
        });
        let taken = match taken.await {
            Ok(()) => Registration::Registered,
            Err(StoreError::Overlap) => Registration::Overlaps,
            Err(error) => return Err(error),
        };
        Witness::note_registered(self.witness(), block.keyspace, block.span.end()).await;
        Ok(taken)
    }

    /// Removes a block's numbers from the register, except those of `kept`. Idempotent. The removed
    /// numbers were not used, and may be allocated to another holder.
    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<()> {
        let args = (block.clone(), kept.to_vec());
        run(self, Write, args, |sql, (block, kept)| Box::pin(blocks::release_block(sql, block, kept))).await
    }

    /// Returns the first number past all registered ones of a keyspace, or 0 if none is registered.
    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64> {
        let end = run(self, Read, keyspace, |sql, keyspace| Box::pin(blocks::registered_end(sql, *keyspace)))
            .await?;
        Witness::note_registered(self.witness(), keyspace, end).await;
        Ok(end)
    }

    /// Returns whether the register assigns the id's number to this allocation: same generation and
    /// instance.
    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool> {
        run(self, Read, (id, generation, instance.to_owned()), |sql, (id, generation, instance)| {
            Box::pin(blocks::holds(sql, *id, *generation, instance))
        })
        .await
    }

    /// Returns the numbers of a span under which no link is stored, as ascending, disjoint and
    /// non-adjacent spans.
    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>> {
        let mut gaps = Gaps::of(keyspace, span);
        while let Some((next, end)) = gaps.left() {
            let ids = run(self, Read, (next, end), |sql, (next, end)| {
                Box::pin(blocks::page_of_links(sql, *next, *end))
            });
            let ids = ids.await?;
            let last = ids.last().filter(|_| ids.len() == blocks::LINKS_PAGE);
            let until = last.map_or(end, |last| last + 1);
            gaps.note(ids, until);
        }
        Ok(gaps.unused)
    }

    /// Returns the same for a block that is taken over. Numbers of which a node that is away could
    /// tell count as used: the others must not wait for it.
    async fn known_unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>> {
        self.unused(keyspace, span).await
    }

    /// Returns the database's current history. It changes when a copy takes over that may lack the
    /// last links.
    async fn epoch(&self) -> Result<StoreEpoch>;

    /// Compares the database's mark with `at_least` and with the witness file, then raises it if
    /// requested. A lower mark means that the database is an older copy. A new history begins, and
    /// the numbers that the witness knows to be registered are withheld.
    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced> {
        let known = Witness::known_of(self.witness());
        let args = (at_least.max(known.mark), how, known);
        let advanced = run(self, Write, args, |sql, (at_least, how, known)| {
            Box::pin(history::advance(sql, *at_least, *how, known))
        });
        let (advanced, history) = advanced.await?;
        Witness::note_advanced(self.witness(), advanced, history);
        Ok(advanced)
    }

    /// Returns the database's mark.
    async fn mark(&self) -> Result<Mark> {
        run(self, Read, (), |sql, ()| Box::pin(history::mark(sql))).await
    }

    /// Begins a new history on an operator's request, and withholds the next `skip` numbers of each
    /// keyspace.
    async fn begin_history(&self, skip: Option<u64>) -> Result<Mark> {
        run(self, Write, skip, |sql, skip| Box::pin(history::begin_history(sql, *skip))).await
    }

    /// Begins a new history if the database is a backup that was restored, and has served nobody
    /// since. Returns the time of the backup.
    async fn begin_after_restore(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    /// Watches the start time of the database server, as last seen. Returns `None` for a store
    /// without a server.
    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        None
    }

    /// Adopts the ledger that numbers come from if none is stored, and returns the stored one.
    async fn adopt_ledger(&self, mine: &str) -> Result<String> {
        run(self, Write, mine.to_owned(), |sql, mine| Box::pin(deployment::adopt_ledger(sql, mine))).await
    }

    /// Clears the adopted ledger, so that the next one is adopted. For operators whose ledger is
    /// lost.
    async fn forget_ledger(&self) -> Result<()> {
        run(self, Write, (), |sql, ()| Box::pin(deployment::forget_ledger(sql))).await
    }

    /// Records a reservation before its numbers are allocated. Returns its creation time by the
    /// database's clock.
    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp> {
        run(self, Write, (id.clone(), keyspace, key), |sql, (id, keyspace, key)| {
            Box::pin(reservations::add_reservation(sql, id, *keyspace, *key))
        })
        .await
    }

    /// Returns a reservation with its numbers, or `None` if it does not exist.
    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>> {
        run(self, Read, id.clone(), |sql, id| Box::pin(reservations::reservation(sql, id))).await
    }

    /// Returns the latest reservations of one API key or of all keys, open ones first, at most
    /// [`RESERVATIONS_MAX`](crate::RESERVATIONS_MAX).
    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>> {
        run(self, Read, of, |sql, of| Box::pin(reservations::reservations(sql, *of))).await
    }

    /// Counts the open reservations of an API key and their codes.
    async fn count_reserved(&self, of: ApiKeyId) -> Result<OpenReservations> {
        run(self, Read, of, |sql, of| Box::pin(reservations::count_reserved(sql, *of))).await
    }

    /// Closes a reservation. Idempotent.
    async fn close_reservation(&self, id: &ReservationId) -> Result<()> {
        run(self, Write, id.clone(), |sql, id| Box::pin(reservations::close_reservation(sql, id))).await
    }
}

/// The numbers of a span without a link, as far as they are known.
pub(crate) struct Gaps {
    /// The number of the first id.
    start: u64,
    first: i64,
    next: i64,
    end: i64,
    pub(crate) unused: Vec<Span>,
}

impl Gaps {
    pub(crate) fn of(keyspace: KeyspaceIndex, span: Span) -> Self {
        let (first, end) = LinkId::range(keyspace, span);
        Self { start: span.start(), first, next: first, end, unused: Vec::new() }
    }

    /// Returns the range of ids that is left.
    pub(crate) fn left(&self) -> Option<(i64, i64)> {
        (self.next < self.end).then_some((self.next, self.end))
    }

    /// Notes the ids that are taken among those before `until`, in ascending order.
    pub(crate) fn note(&mut self, taken: Vec<i64>, until: i64) {
        for id in taken.into_iter().chain([until]) {
            let [offset, len] =
                [self.next - self.first, id - self.next].map(|ids| u64::try_from(ids).unwrap_or(0));
            let start = self.start + offset;
            // A gap may go on from one page to the next.
            let before = if len > 0 { self.unused.pop_if(|last| last.end() == start) } else { None };
            let first = before.map_or(start, |before| before.start());
            self.unused.extend(Span::new(first, start + len - first).ok());
            self.next = id + 1;
        }
        self.next = until;
    }
}
