//! Reserves codes before their links exist, fills them, and gives them up.
//!
//! A call may hold a database connection for seconds. So the calls of one key share the permits of
//! its lists, which leaves connections to other keys.

use codes::Code;
use links::{
    Draft, Link, Record, Slug, Tag,
    api_key::Grant,
    reservation::{COUNT_MAX, FILL_MAX, OPEN_MAX, OpenReservations, Reservation, ReservationId},
    scope::Scope,
};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkService,
    authorize::{require, require_default_domain, require_operator},
    reservation::Filled,
};

/// Why a create cannot set a field of a link under a reserved code, as no fill can.
const NOT_IN_FILL: &str = "cannot be set for a reserved code: create the link without it, and edit it then";

/// A reservation with its codes. It is returned by every read, for callers that lost the first
/// answer.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// The reservation.
    pub reservation: Reservation,
    /// The number of codes that have a link.
    pub filled: u64,
    /// All codes of the reservation, in the order of their numbers.
    pub codes: Vec<Code>,
}

impl LinkService {
    /// Reserves codes from the keyspace of this name; without a name, from the default keyspace.
    pub fn reserve<'a>(
        &'a self,
        count: Option<u64>,
        keyspace: Option<&'a str>,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Reserved> {
        Box::pin(async move {
            require(by, Scope::Reserve)?;
            let count = count.unwrap_or_default();
            if !(1..=COUNT_MAX).contains(&count) {
                wrong.add("count", expected_count());
            }
            wrong.finish()?;
            let minting = self.creator.keyspace(keyspace).ok_or_else(|| {
                AppError::invalid("keyspace", "expected the name of a keyspace that this resolver mints from")
            })?;
            require_default_domain(by, Scope::Reserve)?;
            let _turn = self.turns.queries.take(by.id).await?;
            // Concurrent calls do not see each other's codes, so a key may exceed its limits once
            // for each of its permits.
            require_room(self.store.count_reserved(by.id).await?, count, self.policy.reserved_max)?;
            let reservation = self.creator.reserve(by.id, minting, count).await?;
            self.with_codes(reservation).await
        })
    }

    /// Returns the reservations of a key, or those of all keys for an operator.
    pub async fn reservations(&self, by: &Grant) -> Result<Vec<Reservation>, AppError> {
        require(by, Scope::Reserve)?;
        let of = require_operator(by).is_err().then_some(by.id);
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.reservations(of).await?)
    }

    /// Returns a reservation with its codes.
    pub fn reservation<'a>(&'a self, id: &'a str, by: &'a Grant) -> Answer<'a, Reserved> {
        Box::pin(async move {
            require(by, Scope::Reserve)?;
            let _turn = self.turns.queries.take(by.id).await?;
            let reservation = self.find_reservation(id, by).await?;
            self.with_codes(reservation).await
        })
    }

    /// Gives up the codes of a reservation that have no link. Idempotent.
    pub fn give_up_reservation<'a>(&'a self, id: &'a str, by: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            require(by, Scope::Reserve)?;
            let _turn = self.turns.queries.take(by.id).await?;
            let reservation = self.find_reservation(id, by).await?;
            self.creator.give_up(&reservation).await?;
            Ok(())
        })
    }

    /// Stores links under codes of a reservation, and returns what `read` returned beside the
    /// links, with the outcome of each link.
    ///
    /// `read` parses the links once the key has its permit. Parsed links take many times the memory
    /// of their text, and none of it is held while a permit is awaited.
    pub async fn fill_reservation<T, E: From<AppError>>(
        &self,
        id: &str,
        by: &Grant,
        read: impl FnOnce() -> Result<(Vec<(Code, Draft)>, T), E>,
    ) -> Result<(T, Vec<Filled>), E> {
        require_default_domain(by, Scope::Reserve)?;
        let _turn = self.turns.queries.take(by.id).await.map_err(AppError::from)?;
        let reservation = self.find_reservation(id, by).await?;
        let (links, rest) = read()?;
        check_fill_len(links.len())?;
        Ok((rest, self.creator.fill(&reservation, links).await?))
    }

    /// Stores a new link under a custom slug that is a code of an open reservation of the key, as a
    /// fill of one link does. Returns `None` for any other slug, and if the code has another link.
    pub(super) fn fill_slug<'a>(
        &'a self,
        slug: &'a Slug,
        (draft, tags): (Draft, Vec<Tag>),
        by: &'a Grant,
    ) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            let code = slug.code_on(draft.domain());
            let code = code.filter(|_| require_default_domain(by, Scope::Reserve).is_ok());
            let Some((code, number)) = code.zip(self.lookup.id_of(slug.as_str())) else { return Ok(None) };
            let turn = self.turns.queries.take(by.id).await?;
            let mut own = self.store.reservations(Some(by.id)).await?.into_iter();
            let has_code = |one: &Reservation| self.creator.reserved_id(one, &code).is_some();
            let open = own.find(|one| one.closed_at.is_none() && has_code(one));
            let Some(reservation) = open else { return Ok(None) };
            let mut wrong = FieldErrors::default();
            let has_password = draft.details().password.is_some();
            for (field, is_set) in [(Field::Tags, !tags.is_empty()), (Field::Password, has_password)] {
                wrong.note(field.name(), if is_set { Err(NOT_IN_FILL.to_owned()) } else { Ok(()) });
            }
            wrong.finish()?;
            let filled = self.creator.fill(&reservation, vec![(code, draft)]).await?;
            drop(turn);
            match filled.first() {
                Some(Filled::Stored) => {}
                Some(Filled::Failed | Filled::Unknown) => return Err(AppError::Unavailable),
                _ => return Ok(None),
            }
            let found = self.lookup.read_fresh(number).await.map_err(|_| AppError::Unavailable)?;
            let link = found.ok_or(AppError::Unavailable)?;
            Ok(Some(Record { link: Link::clone(&link), tags }))
        })
    }

    async fn with_codes(&self, reservation: Reservation) -> Result<Reserved, AppError> {
        let filled = self.creator.filled(&reservation).await?;
        let codes = self.creator.codes(&reservation).await?;
        Ok(Reserved { reservation, filled, codes })
    }

    async fn find_reservation(&self, id: &str, by: &Grant) -> Result<Reservation, AppError> {
        let missing = || AppError::NoReservation(id.to_owned());
        let parsed = ReservationId::parse(id).ok_or_else(missing)?;
        let found = self.store.reservation(&parsed).await?;
        found.filter(|one| one.created_by == by.id || require_operator(by).is_ok()).ok_or_else(missing)
    }
}

/// Describes the numbers of codes that a reservation may have.
pub fn expected_count() -> String {
    format!("expected a number from 1 to {COUNT_MAX}")
}

/// Requires that a fill has at most [`FILL_MAX`] links. An adapter that reads them one by one asks
/// before each of them, so that a longer fill is refused before it is read.
pub fn check_fill_len(links: usize) -> Result<(), AppError> {
    if links <= FILL_MAX {
        return Ok(());
    }
    Err(AppError::invalid("(the array)", format!("expected at most {FILL_MAX} links, got more")))
}

/// Requires that a key with these open reservations may have another one, with `count` codes.
fn require_room(open: OpenReservations, count: u64, codes_max: u64) -> Result<(), AppError> {
    if open.count >= OPEN_MAX {
        return Err(AppError::TooManyReservations { held: open.count, most: OPEN_MAX });
    }
    if open.codes.saturating_add(count) > codes_max {
        return Err(AppError::TooManyReserved { held: open.codes, most: codes_max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_of_a_key_are_limited_by_number_and_by_codes() {
        let room = |count, codes, more| require_room(OpenReservations { count, codes }, more, 10_000);
        assert!(room(0, 0, 10_000).is_ok());
        assert!(room(OPEN_MAX - 1, 9_999, 1).is_ok());
        let refused = room(OPEN_MAX, OPEN_MAX, 1);
        assert!(matches!(refused, Err(AppError::TooManyReservations { held: OPEN_MAX, most: OPEN_MAX })));
        let refused = room(1, 9_999, 2);
        assert!(matches!(refused, Err(AppError::TooManyReserved { held: 9_999, most: 10_000 })));
        assert!(room(1, 1, u64::MAX).is_err());
    }

    #[test]
    fn a_fill_has_up_to_ten_thousand_links() {
        assert!(check_fill_len(FILL_MAX).is_ok());
        assert!(matches!(check_fill_len(FILL_MAX + 1), Err(AppError::Invalid(_))));
    }
}
