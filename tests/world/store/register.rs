//! The port [`Register`] of a process in the simulated world.

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::{Mark, Span, StoreEpoch};
use store::{Advanced, BlockEntry, Comparison, Register, Registration, StoreError};
use tokio::sync::watch;

use super::super::ways::FaultyStore;
use supply::safety_rule::{self, SafetyRule};

#[async_trait]
impl Register for FaultyStore {
    async fn register_block(&self, block: &BlockEntry) -> Result<Registration, StoreError> {
        self.pass(self.database.sqlite.register_block(block)).await
    }

    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        self.pass(async {
            if !safety_rule::is_on(SafetyRule::OpenReservation) {
                self.database.forget_holders(block, leaked);
            }
            self.database.sqlite.take_over_block(block, leaked).await
        })
        .await
    }

    async fn release_block(&self, block: &BlockEntry, kept: &[Span]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.release_block(block, kept)).await
    }

    async fn registered_end(&self, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
        self.pass(self.database.sqlite.registered_end(keyspace)).await
    }

    async fn holds(&self, id: LinkId, generation: u64, instance: &str) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.holds(id, generation, instance)).await
    }

    async fn unused(&self, keyspace: KeyspaceIndex, span: Span) -> Result<Vec<Span>, StoreError> {
        self.pass(self.database.sqlite.unused(keyspace, span)).await
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.pass(self.database.epoch()).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        self.pass(async {
            match how.since {
                Some(seen) if Some(seen) != *self.database.start.borrow() => Ok(Advanced::Restarted),
                seen => {
                    let advanced = self.database.sqlite.advance(at_least, how).await?;
                    if seen.is_some() {
                        self.database.note_compared();
                    }
                    Ok(advanced)
                }
            }
        })
        .await
    }

    async fn begin_history(&self, skip: Option<u64>) -> Result<Mark, StoreError> {
        self.pass(self.database.sqlite.begin_history(skip)).await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.database.start.subscribe())
    }

    async fn adopt_ledger(&self, mine: &str) -> Result<String, StoreError> {
        self.pass(self.database.sqlite.adopt_ledger(mine)).await
    }

    async fn forget_ledger(&self) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.forget_ledger()).await
    }

    async fn add_reservation(
        &self,
        id: &ReservationId,
        keyspace: KeyspaceIndex,
        key: ApiKeyId,
    ) -> Result<Timestamp, StoreError> {
        self.pass(self.database.sqlite.add_reservation(id, keyspace, key)).await
    }

    async fn reservation(&self, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
        self.pass(self.database.sqlite.reservation(id)).await
    }

    async fn reservations(&self, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
        self.pass(self.database.sqlite.reservations(of)).await
    }

    async fn count_reserved(&self, of: ApiKeyId) -> Result<OpenReservations, StoreError> {
        self.pass(self.database.sqlite.count_reserved(of)).await
    }

    async fn close_reservation(&self, id: &ReservationId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.close_reservation(id)).await
    }
}
