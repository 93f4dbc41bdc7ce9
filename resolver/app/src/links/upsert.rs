//! Creates with the caller's own id of the link (`externalId`), which may be sent again: the link
//! then gets the fields of the last request.
//!
//! 1. The create is deduplicated by the id ([`ExternalId::entry`]), in its own transaction. So
//!    there is one link, whichever requests run at once and whatever becomes of their answers.
//! 2. The fields follow in an edit, as of a PATCH: those that are not sent stay. An edit that
//!    changes nothing makes no version and no entry in the audit log, so the link that was just
//!    created, and one that is sent as it is, stay as they are.
//! 3. A link that was deleted does not count: the next request makes another one.

use links::{Edit, ExternalId, Precondition, Record, api_key::Grant};

use crate::{Answer, AppError, LinkService};

/// The id of a link, and the fields that it gets if it exists.
#[derive(Clone)]
pub(super) struct Upsert {
    pub(super) id: ExternalId,
    pub(super) edit: Edit,
}

impl LinkService {
    /// Gives the link of an external id the fields of a request.
    pub(super) fn bring_up_to_date<'a>(
        &'a self,
        record: Record,
        edit: &'a Edit,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            let link = &record.link;
            let edit = Edit { precondition: Precondition::of(link), ..self.check_against(link, edit)? };
            // It is gone, or elsewhere, since it was found. The same request finds out.
            self.store_edit(link.id, &edit, by.id).await?.map_err(|_| AppError::Unavailable)
        })
    }
}
