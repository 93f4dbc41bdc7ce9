//! The port [`Register`] on Postgres.

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::{Mark, Span, StoreEpoch};
use tokio::sync::watch;

use super::{PostgresStore, admin, blocks, reservations};
use crate::{Advanced, BlockEntry, Comparison, Register, Registration, StoreError, Witness, sql};

#[async_trait]
impl Register for PostgresStore {
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        let registered =
            self.within(async { blocks::register(&mut *self.connection().await?, block).await }).await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(registered)
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        let taken = self
            .within(async { blocks::take_over(&mut *self.connection().await?, block, leaked).await })
            .await?;
        Witness::note_block(self.witness.as_ref(), block).await;
        Ok(taken)
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        self.within(async { blocks::release(&mut *self.connection().await?, block, kept).await }).await
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        let end =
            self.within(async { blocks::registered_end(&*self.connection().await?, keyspace).await }).await?;
        Witness::note_registered(self.witness.as_ref(), keyspace, end).await;
        Ok(end)
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        self.within(async { blocks::holds(&*self.connection().await?, id, generation, instance).await }).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        let mut gaps = sql::Gaps::new(keyspace, span);
        while !self.within(async { blocks::scan(&*self.connection().await?, &mut gaps).await }).await? {}
        Ok(gaps.finish())
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.within(async { admin::epoch(&*self.connection().await?).await }).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        let at_least = at_least.max(Witness::mark_of(self.witness.as_ref()));
        let registered = &Witness::registered_of(self.witness.as_ref());
        let (advanced, history) =
            self.run(async |sql| sql::advance(sql, at_least, how, registered).await).await?;
        Witness::note_advanced(self.witness.as_ref(), advanced, history);
        Ok(advanced)
    }

    async fn begin_history(&self, skip: Option<u64>) -> Result<Mark, StoreError> {
        self.run(async |sql| sql::begin_history(sql, skip).await).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.server_start.subscribe())
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        self.within(async { admin::adopt_ledger(&*self.connection().await?, mine).await }).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        self.within(async { admin::forget_ledger(&*self.connection().await?).await }).await
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        self.within(async { reservations::add(&*self.connection().await?, id, keyspace, key).await }).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        self.within(async { reservations::find(&*self.connection().await?, id).await }).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        self.within(async { reservations::list(&*self.connection().await?, of).await }).await
    }

    async fn count_reserved(&self, of: ApiKeyId) -> Result<OpenReservations, StoreError> {
        self.within(async { reservations::reserved(&*self.connection().await?, of).await }).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        self.within(async { reservations::close(&*self.connection().await?, id).await }).await
    }
}
