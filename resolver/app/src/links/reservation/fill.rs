//! Stores links under reserved codes.

use std::collections::HashSet;

use codes::{Code, LinkId, is_reserved};
use links::{Draft, NewLink, reservation::Reservation};
use numbers::Span;
use store::{BATCH_MAX, InsertError, Inserted, Source};

use supply::safety_rule::SafetyRule;

use super::{Filled, Reserver};
use crate::AppError;

impl Reserver {
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
            for (position, filled) in positions.iter().zip(self.store_batch(batch).await) {
                outcomes[*position] = filled;
            }
        }
        Ok(outcomes)
    }

    fn reserved_id(&self, reservation: &Reservation, code: &Code) -> Option<LinkId> {
        let id = self.mint.read(code)?;
        let (keyspace, number) = id.unpack()?;
        let within = |span: &Span| span.start() <= number && number < span.end();
        let reserved = keyspace == reservation.keyspace && reservation.spans.iter().any(within);
        (reserved && !is_reserved(code)).then_some(id)
    }

    /// Inserts a batch. A row that exists already may come from an earlier attempt of the call, so
    /// it is read. So is the row of an insert in doubt; if it is absent, it may still arrive.
    async fn store_batch(&self, links: &[NewLink]) -> Vec<Filled> {
        // Any history will do: no other holder has these numbers in any history of the database.
        let Ok(history) = self.store.epoch().await else { return vec![Filled::Failed; links.len()] };
        let (inserted, absent) = match self.store.insert(&history, links).await {
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
            let read = self.store.read(&ids, Source::Primary).await;
            read.ok().filter(|read| read.complete).map(|read| read.links)
        };
        let look = |link: &NewLink| match &rows {
            Some(rows) => match rows.iter().find(|row| row.id == link.id) {
                Some(row) if row.is(&link.draft) => Filled::Stored,
                Some(_) if self.lookup.sizes.rules.keep(SafetyRule::FilledOnce) => Filled::Conflict,
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
