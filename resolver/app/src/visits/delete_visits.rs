//! Deletes visits: those of a link, those that no link redirected, or those of an address.
//!
//! 1. The visits up to this moment are deleted, also those that are not stored yet. Those of a link
//!    and orphan visits count from zero afterwards.
//! 2. Visits of an address are erased: single visits are gone, and what was counted of them stays,
//!    because it names no visitor.
//! 3. The audit log has each deletion. Visits may be in another database than the log, so the entry
//!    is written after the deletion. If that fails, the caller is told to try again, and the second
//!    deletion is logged.

use std::time::Duration;

use links::{api_key::Grant, audit::NewEntry, scope::Scope};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, sleep_until},
};
use visit_store::{Erased, Erasure, ErasureId, VisitStoreError};
use visits::{AddressMode, AddressNetwork, Subject, VisitId};

use crate::{
    AppError, LinkService,
    authorize::{require, require_operator},
    find_link::LinkName,
};

/// How long an erasure is awaited. The upkeep of visits deletes the rest.
const ERASED_WITHIN: Duration = Duration::from_secs(10);
/// Pause while another process deletes rows.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets a process delete one set of visits at a time, with pauses in which visits are stored: a
/// deletion refuses the batches that were made before it.
#[derive(Debug, Default)]
pub struct DeletionPace(Mutex<Option<Instant>>);

impl DeletionPace {
    /// Time from the end of a deletion to the next one.
    const APART: Duration = Duration::from_millis(500);

    /// Runs a deletion when its turn comes.
    async fn run<T>(&self, deletion: impl Future<Output = T>) -> T {
        let mut next = self.0.lock().await;
        if let Some(next) = *next {
            sleep_until(next).await;
        }
        // Also if the caller goes away meanwhile.
        *next = Some(Instant::now() + Self::APART);
        let deleted = deletion.await;
        *next = Some(Instant::now() + Self::APART);
        deleted
    }
}

impl LinkService {
    /// Deletes the visits of a link, also those that were counted before its import, and returns
    /// how many there were.
    pub async fn delete_link_visits(&self, name: &LinkName, by: &Grant) -> Result<u64, AppError> {
        require(by, Scope::Delete)?;
        let link = self.find_link(name, by).await?;
        let _turn = self.turns.writes.take(by.id).await?;
        let deletion = async { self.visits.delete(Subject::Link(link.id), self.next_id()).await };
        let counted = self.deletions.run(deletion).await?;
        let imported = self.store.take_imported_visits(link.id).await?;
        let deleted = counted.saturating_add(imported);
        self.store.add_audit_entry(by.id, &NewEntry::of_link_visits(&link, deleted)).await?;
        Ok(deleted)
    }

    /// Deletes all visits that no link redirected, and returns how many there were. For keys
    /// that see all links, because these visits belong to all domains; a key that sees none of them
    /// deletes none.
    pub async fn delete_orphan_visits(&self, by: &Grant) -> Result<u64, AppError> {
        require(by, Scope::Delete)?;
        if by.limits.hides_links() {
            return Err(AppError::LimitedKey);
        }
        if !by.limits.sees_orphans() {
            return Ok(0);
        }
        let _turn = self.turns.writes.take(by.id).await?;
        let deletion = async { self.visits.delete(Subject::Orphans(None, None), self.next_id()).await };
        let deleted = self.deletions.run(deletion).await?;
        self.store.add_audit_entry(by.id, &NewEntry::of_orphan_visits(deleted)).await?;
        Ok(deleted)
    }

    /// Erases the visits of an address or a network, and returns how many rows are gone so far. For
    /// operators only.
    pub async fn erase_visits(&self, address: Option<&str>, by: &Grant) -> Result<Erased, AppError> {
        require_operator(by)?;
        let network = address.map(str::trim).and_then(AddressNetwork::parse);
        let network = network.ok_or_else(|| AppError::invalid("address", expected_address()))?;
        if self.policy.addresses == AddressMode::None {
            return Err(AppError::AddressesNotKept);
        }
        let _turn = self.turns.writes.take(by.id).await?;
        let begin = async { self.visits.erase(&Erasure { network, before: self.next_id() }).await };
        let id = self.deletions.run(begin).await?;
        let id = id.ok_or(AppError::TooManyErasures(Erasure::MOST))?;
        let erased = self.await_erasure(id).await?;
        let entry = NewEntry::of_erasure(network.cut().to_string(), erased.deleted, erased.is_done);
        self.store.add_audit_entry(by.id, &entry).await?;
        Ok(erased)
    }

    /// Deletes the rows of an erasure, as far as that goes within [`ERASED_WITHIN`].
    async fn await_erasure(&self, id: ErasureId) -> Result<Erased, VisitStoreError> {
        let until = Instant::now() + ERASED_WITHIN;
        loop {
            let erased = self.visits.erased(id).await?;
            if erased.is_done || Instant::now() >= until {
                return Ok(erased);
            }
            match self.visits.delete_rows().await {
                Ok(None) => sleep(PAUSE).await,
                Ok(Some(_)) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "erase visits");
                    return Ok(erased);
                }
            }
        }
    }

    /// Returns the lowest id of a later visit. Ids of this microsecond are lower.
    fn next_id(&self) -> VisitId {
        VisitId::floor(self.domain_cache.now().as_microsecond().saturating_add(1))
    }
}

/// Describes the addresses whose visits can be erased.
fn expected_address() -> String {
    format!(
        "expected an IP address, or a network such as 192.0.2.0/24 or 2001:db8::/48, of at least /{} (IPv4) or /{} (IPv6)",
        AddressNetwork::V4_PREFIX_MIN,
        AddressNetwork::V6_PREFIX_MIN
    )
}
