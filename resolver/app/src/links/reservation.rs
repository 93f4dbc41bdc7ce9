//! Codes before links (G7): numbers are reserved, their codes are returned at once, and the links
//! are stored later.
//!
//! 1. A reservation is a holder of its own at the issuer. Its blocks do not leak, however long it
//!    is silent. As for any holder, its blocks are registered before a code is returned.
//! 2. A link is stored under its reserved number by the same insert that every create uses, and the
//!    primary key decides. So a fill may be repeated after an unknown outcome. A fill that arrives
//!    after the reservation was given up does no harm.
//!    A create by the same key whose custom slug is a reserved code is such a fill.
//! 3. Giving up turns the holder into one whose blocks are leaked. A holder that takes them over
//!    asks the database which numbers are unused, so nothing here has to know what was filled.
//! 4. Every resolver serves every reservation. One that does not know a reservation's keyspace
//!    reads the settings again. If that fails, it does not know what is reserved, and the call may
//!    be repeated.
//!
//! Rejected: taking the numbers out of this resolver's own block. A reservation outlives the
//! process, and the account would have to count its numbers as used although they have no rows.

use std::{collections::HashSet, sync::Arc, time::Duration};

use codes::{Code, LinkId, is_reserved};
use links::{
    Draft, NewLink,
    api_key::ApiKeyId,
    reservation::{Reservation, ReservationId},
};
use numbers::{Block, Span};
use store::{BATCH_MAX, BlockEntry, InsertError, Inserted, Registration, Source};
use tokio::{task::spawn_blocking, time::timeout};

use supply::{Minting, ReservationHolder, safety_rule::SafetyRule};

use crate::{AppError, creator::Creator};

const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of blocks in a reservation. Free parts may be short, and the issuer limits the
/// blocks of one holder.
const BLOCKS_MAX: u64 = 48;
/// Up to this many codes are computed on the calling thread.
const CODES_AT_ONCE: u64 = 100;
/// The instance name with which a reservation's holder registers while the reservation is open.
const LIVING: &str = "reserved";
const GIVEN_UP: &str = "given-up";

/// The outcome of one link of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The link is stored, by this call or by an earlier attempt of it.
    Stored,
    /// The code does not belong to this reservation.
    NotReserved,
    /// The code occurred earlier in the same call.
    Repeated,
    /// Another link is stored under the code.
    Conflict,
    /// Surely not stored. It may be sent again.
    Failed,
    /// Unknown whether it is stored. It may be sent again, unchanged.
    Unknown,
}

impl Creator {
    /// Returns the supply of a keyspace by name; `None` means the default keyspace.
    pub fn keyspace(&self, name: Option<&str>) -> Option<&Arc<Minting>> {
        match name {
            Some(name) => self.config.mintings.iter().find(|minting| minting.namespace.as_str() == name),
            None => self.config.mintings.first(),
        }
    }

    /// Returns the name of a reservation's keyspace, or an empty text if this process does not mint
    /// from it.
    pub fn keyspace_of(&self, reservation: &Reservation) -> &str {
        self.minting(reservation.keyspace).map_or("", |minting| minting.namespace.as_str())
    }

    /// Reserves numbers. If that fails, those already allocated are given up again.
    pub async fn reserve(
        &self,
        key: ApiKeyId,
        minting: &Minting,
        count: u64,
    ) -> Result<Reservation, AppError> {
        // Before the numbers are reserved, because from then on other calls can fill them.
        self.config.lookup.wait_until_shown(LinkId::new(minting.index, 0)).await;
        let id = ReservationId::draw().map_err(|_| AppError::Unavailable)?;
        let created_at = self.config.store.add_reservation(&id, minting.index, key).await?;
        let spans = if count > minting.capacity {
            Ok(Err(AppError::Exhausted))
        } else {
            timeout(DEADLINE, self.take(&id, minting, count)).await
        };
        match spans.unwrap_or(Err(AppError::Unavailable)) {
            Ok(spans) => {
                self.config.metrics.reserved.increment(count);
                let keyspace = minting.index;
                Ok(Reservation { id, keyspace, created_by: key, created_at, closed_at: None, spans })
            }
            Err(error) => {
                // The allocated blocks leak. To return them as unused would be wrong: the key could
                // see the reservation in its list meanwhile, and may have filled some of it. If
                // this fails too, the key can still give up the reservation in its list.
                let given_up = timeout(DEADLINE, self.close(&id, minting)).await;
                if let Err(reason) = given_up.unwrap_or(Err(AppError::Unavailable)) {
                    tracing::warn!(
                        reservation = %id,
                        error = &reason as &dyn std::error::Error,
                        "a reservation that failed could not be given up"
                    );
                }
                Err(error)
            }
        }
    }

    async fn take(&self, id: &ReservationId, minting: &Minting, count: u64) -> Result<Vec<Span>, AppError> {
        let holder = self.config.client.register_reservation(id.holder(), minting, LIVING, true).await?;
        let (mut spans, mut missing, mut seq) = (Vec::new(), count, 0);
        while missing > 0 && seq < BLOCKS_MAX {
            seq += 1;
            let store_epoch = self.config.store.epoch().await?.to_string();
            let allocated = self.config.client.set_aside(&holder, minting, seq, missing, store_epoch).await?;
            let block = allocated.ok_or(AppError::Unavailable)?;
            let entry = BlockEntry {
                keyspace: minting.index,
                span: block.span,
                generation: block.generation.0,
                holder: holder.holder.clone(),
                incarnation: holder.incarnation,
                instance: format!("{id}/{seq}"),
            };
            let entered = self.enter(&holder, block, entry).await?;
            missing -= entered.iter().map(|span| span.len()).sum::<u64>();
            spans.extend(entered);
        }
        if missing > 0 {
            tracing::warn!(reservation = %id, blocks = BLOCKS_MAX, missing, "the free numbers lie too scattered for a reservation");
            return Err(AppError::Unavailable);
        }
        spans.sort_unstable();
        Ok(spans)
    }

    /// Registers a block, and returns the parts of it that are free. Codes that are taken as custom
    /// slugs are left out. Returns nothing if the register has some of its numbers already; then
    /// the block is returned.
    async fn enter(
        &self,
        holder: &ReservationHolder,
        block: Block,
        entry: BlockEntry,
    ) -> Result<Vec<Span>, AppError> {
        let registered = self.config.store.register_block(&entry).await?;
        if registered == Registration::Registered {
            let free = self.config.store.unused(entry.keyspace, block.span).await?;
            if free != [block.span] {
                self.config.store.release_block(&entry, &free).await?;
            }
            return Ok(free);
        }
        self.config.supply_metrics.blocks_overlapping.increment(1);
        let end = self.config.store.registered_end(entry.keyspace).await?;
        tracing::error!(
            start = block.span.start(),
            len = block.span.len(),
            "the register has numbers of this block already"
        );
        self.config.client.return_overlapping(holder, &block, end).await?;
        Ok(Vec::new())
    }

    /// Gives a reservation up, so that unfilled numbers go to other holders. Idempotent.
    /// Returns [`AppError::Unavailable`] if the issuer or the database is unavailable, or if
    /// this process does not mint from the keyspace. Part of the work may be done then.
    pub async fn give_up(&self, reservation: &Reservation) -> Result<(), AppError> {
        // Only a resolver that mints from its keyspace can give a reservation up.
        let minting = self.minting(reservation.keyspace).ok_or(AppError::Unavailable)?;
        self.close(&reservation.id, minting).await
    }

    async fn close(&self, id: &ReservationId, minting: &Minting) -> Result<(), AppError> {
        self.config.store.close_reservation(id).await?;
        self.config.client.register_reservation(id.holder(), minting, GIVEN_UP, false).await?;
        Ok(())
    }

    /// Ensures that this process knows a reservation's keyspace, which may have been added while it
    /// ran. Otherwise it would take the codes for slugs.
    async fn know(&self, reservation: &Reservation) -> Result<(), AppError> {
        let is_known = || {
            self.config.lookup.mint.len_of(reservation.keyspace).is_some()
                || !self.config.lookup.has_rule(SafetyRule::KeyspaceKnown)
        };
        if is_known() {
            return Ok(());
        }
        self.config.domain_cache.refresh().await?;
        if is_known() { Ok(()) } else { Err(AppError::Unavailable) }
    }

    /// Returns the codes of a reservation, in the order of their numbers.
    pub async fn codes(&self, reservation: &Reservation) -> Result<Vec<Code>, AppError> {
        self.know(reservation).await?;
        let (mint, keyspace, spans) =
            (Arc::clone(&self.config.lookup.mint), reservation.keyspace, reservation.spans.clone());
        let count: u64 = spans.iter().map(|span| span.len()).sum();
        let compute = move || {
            let numbers = spans.iter().flat_map(|span| span.start()..span.end());
            let codes = numbers.filter_map(|number| mint.code_of(LinkId::new(keyspace, number)));
            codes.filter(|code| !is_reserved(code)).collect()
        };
        if count <= CODES_AT_ONCE {
            return Ok(compute());
        }
        // Each code is one permutation. A hundred thousand of them would block everything else on
        // this thread.
        spawn_blocking(compute).await.map_err(|_| AppError::Unavailable)
    }

    /// Returns how many of a reservation's numbers have a link.
    pub async fn filled(&self, reservation: &Reservation) -> Result<u64, AppError> {
        let mut filled = 0;
        for span in &reservation.spans {
            let unused = self.config.store.unused(reservation.keyspace, *span).await?;
            filled += span.len() - unused.iter().map(|gap| gap.len()).sum::<u64>();
        }
        Ok(filled)
    }

    /// Stores links under reserved codes, and returns the outcome of each in the order of `items`.
    pub async fn fill(
        &self,
        reservation: &Reservation,
        items: Vec<(Code, Draft)>,
    ) -> Result<Vec<Filled>, AppError> {
        if reservation.closed_at.is_some() {
            return Err(AppError::ReservationClosed(reservation.id.to_string()));
        }
        self.know(reservation).await?;
        let mut outcomes = vec![Filled::NotReserved; items.len()];
        let (mut seen, mut positions, mut links) = (HashSet::new(), Vec::new(), Vec::new());
        for (position, (code, draft)) in items.into_iter().enumerate() {
            let Some(id) = self.reserved_id(reservation, &code) else { continue };
            outcomes[position] = Filled::Repeated;
            if seen.insert(id) {
                positions.push(position);
                links.push(NewLink { id, draft });
            }
        }
        for (positions, batch) in positions.chunks(BATCH_MAX).zip(links.chunks(BATCH_MAX)) {
            for (position, filled) in positions.iter().zip(self.store_batches(batch).await) {
                outcomes[*position] = filled;
            }
        }
        Ok(outcomes)
    }

    /// Returns the number of a code of a reservation; `None` for any other code.
    pub(crate) fn reserved_id(&self, reservation: &Reservation, code: &Code) -> Option<LinkId> {
        let id = self.config.lookup.mint.read(code)?;
        let (keyspace, number) = id.unpack()?;
        let within = |span: &Span| span.start() <= number && number < span.end();
        let reserved = keyspace == reservation.keyspace && reservation.spans.iter().any(within);
        (reserved && !is_reserved(code)).then_some(id)
    }

    /// Inserts the links of each bucket as a batch.
    async fn store_batches(&self, links: &[NewLink]) -> Vec<Filled> {
        let mut filled = vec![Filled::Failed; links.len()];
        for places in self.config.store.by_bucket(links) {
            let of_bucket: Vec<NewLink> = places.iter().map(|place| links[*place].clone()).collect();
            for (place, one) in places.into_iter().zip(self.store_batch(&of_bucket).await) {
                filled[place] = one;
            }
        }
        filled
    }

    /// Inserts a batch. A row that exists already may come from an earlier attempt of the call, so
    /// it is read. So is the row of an insert in doubt; if it is absent, it may still arrive.
    async fn store_batch(&self, links: &[NewLink]) -> Vec<Filled> {
        // Any history will do: no other holder has these numbers in any history of the database.
        let Ok(history) = self.config.store.epoch().await else { return vec![Filled::Failed; links.len()] };
        let (inserted, absent) = match self.config.store.insert(&history, links).await {
            Ok(inserted) => (inserted, Filled::Conflict),
            Err(InsertError::Failed(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    links = links.len(),
                    "fill a reservation"
                );
                return vec![Filled::Failed; links.len()];
            }
            Err(InsertError::Unknown(_)) => (vec![Inserted::Taken; links.len()], Filled::Unknown),
        };
        let doubtful = links.iter().zip(&inserted).filter(|(_, one)| **one == Inserted::Taken);
        let ids: Vec<LinkId> = doubtful.map(|(link, _)| link.id).collect();
        let rows = if ids.is_empty() {
            Some(Vec::new())
        } else {
            // An answer of a replica while the primary is down decides nothing.
            let read = self.config.store.read(&ids, Source::Primary).await;
            read.ok().filter(|read| read.complete).map(|read| read.links)
        };
        let look = |link: &NewLink| match &rows {
            Some(rows) => match rows.iter().find(|row| row.id == link.id) {
                Some(row) if row.is(&link.draft) => Filled::Stored,
                Some(_) if self.config.lookup.has_rule(SafetyRule::FilledOnce) => Filled::Conflict,
                Some(_) => Filled::Stored,
                None => absent,
            },
            None => Filled::Unknown,
        };
        links
            .iter()
            .zip(inserted)
            .map(|(link, one)| match one {
                Inserted::Stored(_) => Filled::Stored,
                Inserted::Taken => look(link),
            })
            .collect()
    }
}
