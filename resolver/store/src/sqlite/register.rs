//! The port [`Register`] on SQLite.

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::{Mark, Span, StoreEpoch};
use tokio::sync::watch;

use super::{SqliteStore, backup, calls, reservations};
use crate::{Advanced, BlockEntry, Comparison, Register, Registration, StoreError, Witness, sql};

#[async_trait]
impl Register for SqliteStore {
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        let entry = block.clone();
        let registered = self.writer.run(move |connection| calls::register_block(connection, &entry)).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(registered)
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        let entry = block.clone();
        let taken =
            self.writer.run(move |connection| calls::take_over_block(connection, &entry, leaked)).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(taken)
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        let (block, kept) = (block.clone(), kept.to_vec());
        self.writer.run(move |connection| calls::release_block(connection, &block, &kept)).await
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        self.reader.run(move |connection| calls::registered_end(connection, keyspace)).await
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        let instance = instance.to_owned();
        self.reader.run(move |connection| calls::holds(connection, id, generation, &instance)).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        self.reader.run(move |connection| calls::unused(connection, keyspace, span)).await
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.reader.run(|connection| calls::epoch(connection)).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        let at_least = at_least.max(Witness::mark_of(self.witness.as_ref()));
        let registered = Witness::registered_of(self.witness.as_ref());
        let (advanced, history) =
            self.writer.write(async move |sql| sql::advance(sql, at_least, how, &registered).await).await?;
        Witness::note_advanced(self.witness.as_ref(), advanced, history);
        Ok(advanced)
    }

    async fn begin_history(&self, skip: Option<u64>) -> Result<Mark, StoreError> {
        self.writer.write(async move |sql| sql::begin_history(sql, skip).await).await
    }

    async fn begin_after_restore(&self) -> Result<Option<Timestamp>, StoreError> {
        self.writer.write(backup::begin_after_restore).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        None
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        let mine = mine.to_owned();
        self.writer.run(move |connection| calls::adopt_ledger(connection, &mine)).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        self.writer.run(|connection| calls::forget_ledger(connection)).await
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        let id = id.clone();
        self.writer.run(move |connection| reservations::add(connection, &id, keyspace, key)).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        let id = id.clone();
        self.reader.run(move |connection| reservations::find(connection, &id)).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        self.reader.run(move |connection| reservations::list(connection, of)).await
    }

    async fn count_reserved(&self, of: ApiKeyId) -> Result<OpenReservations, StoreError> {
        self.reader.run(move |connection| reservations::reserved(connection, of)).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        let id = id.clone();
        self.writer.run(move |connection| reservations::close(connection, &id)).await
    }
}
