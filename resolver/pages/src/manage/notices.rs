//! The result of a form, which its page shows above the rest.

use app::AppError;
use hyper::StatusCode;
use web::Answer;

use super::paged::{STORED, stored_address};
use crate::{
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    locale::Locale,
    messages::{message, wrong_fields},
};

/// Whether a form was stored or refused before this page.
pub(super) struct Notices {
    pub(super) is_stored: bool,
    pub(super) refusal: Option<Refusal>,
}

impl Notices {
    pub(super) fn new(query: &Form, refusal: Option<Refusal>) -> Self {
        Self { is_stored: refusal.is_none() && query.is_on(STORED), refusal }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.refusal.as_ref().map_or(StatusCode::OK, |refusal| refusal.status)
    }

    pub(super) fn is_wrong(&self, field: &str) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.fields.iter().any(|wrong| wrong == field))
    }
}

pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
    pub(super) fields: Vec<String>,
}

impl Refusal {
    /// Converts an error that the sender of the form can mend; any other has a page of its own.
    pub(super) fn new(error: AppError, t: &Locale) -> Result<Self, PageError> {
        let status = api::rest::status_of(&error);
        // Conflicts, missing objects and wrong values; and a name that the key may not add.
        let is_mendable = matches!(status.as_u16(), 400 | 404 | 409 | 412 | 507)
            || matches!(error, AppError::MayNotAddDomain { .. });
        if !is_mendable {
            return Err(error.into());
        }
        Ok(Self { status, text: message(&error, t), fields: wrong_fields(&error) })
    }

    pub(super) fn of_page(text: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, text, fields: Vec::new() }
    }
}

pub(super) fn stored(context: &Context<'_>, path: &str) -> Answer {
    redirect(StatusCode::SEE_OTHER, &stored_address(path, context.query))
}
