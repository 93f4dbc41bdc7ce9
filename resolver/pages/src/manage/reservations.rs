//! Reservations: the open ones of the key, a form that makes another one, and with `?id=` the codes
//! of one of them.
//!
//! The codes are a text in the page, and a table (CSV, RFC 4180) at an address of its own. Programs
//! store the links under them, with the API.

use std::sync::Arc;

use app::{AppError, FieldErrors, InvalidField, Reserved};
use askama::Template;
use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use links::{
    api_key::Grant,
    reservation::{COUNT_MAX, Reservation},
};
use web::{Answer, answer};

use super::paged::{Paged, address, is_stored, stored_address};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    frame::{Frame, Place},
    home::shown_time,
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// The address of the page.
pub(super) const PATH: &str = "/manage/reservations";
/// The address of the codes of a reservation as CSV.
pub(super) const TABLE: &str = "/manage/reservations.csv";
/// The columns of the table.
const COLUMNS: [&str; 2] = ["shortCode", "shortUrl"];

/// The table of open reservations.
#[derive(Template)]
#[template(path = "manage/reservations.html")]
struct ReservationsPage<'a> {
    frame: Frame<'a>,
    /// The reservation that the query names.
    chosen: Option<ShownCodes>,
    reservations: Vec<ShownReservation>,
    paged: Paged,
    /// Where the forms are sent to.
    action: String,
    /// The keyspaces that codes can be reserved from, the default one first.
    keyspaces: Vec<String>,
    count_max: u64,
    /// Whether the key may use the domain that reserved codes belong to.
    may_reserve: bool,
    /// The form that was refused; empty without one.
    form: &'a Form,
    is_stored: bool,
    /// Why the form was refused, or why no codes are shown.
    refused: Option<String>,
    wrong_fields: Vec<String>,
}

/// A reservation in the table.
struct ShownReservation {
    id: String,
    /// The address of its codes.
    address: String,
    created: String,
    /// The creation time for programs.
    exact_created: String,
    /// The name of its keyspace; empty if another process mints from it, which can give it up.
    keyspace: String,
    count: u64,
    /// Whether the key of the session has made it.
    is_own: bool,
}

/// The codes of a reservation.
struct ShownCodes {
    id: String,
    count: u64,
    /// The number of codes that have a link.
    filled: u64,
    /// When the reservation was given up.
    given_up: Option<String>,
    /// All codes, one on each line.
    text: String,
    /// The address of the codes as CSV.
    table: String,
}

impl ReservationsPage<'_> {
    /// Returns what was typed in a field.
    fn value(&self, name: &str) -> &str {
        self.form.get(name).unwrap_or("")
    }

    /// Returns whether a field was refused.
    fn is_wrong(&self, name: &str) -> bool {
        self.wrong_fields.iter().any(|field| field == name)
    }
}

impl ShownReservation {
    /// Shows a reservation without its codes.
    fn new(pages: &Pages, reservation: &Reservation, by: &Grant) -> Self {
        Self {
            id: reservation.id.to_string(),
            address: codes_address(reservation),
            created: shown_time(pages, reservation.created_at),
            exact_created: reservation.created_at.to_string(),
            keyspace: pages.api.links.keyspace_of_reservation(reservation).to_owned(),
            count: reservation.spans.iter().map(|span| span.len()).sum(),
            is_own: reservation.created_by == by.id,
        }
    }
}

impl ShownCodes {
    /// Shows the codes of a reservation.
    fn new(pages: &Pages, reserved: &Reserved) -> Self {
        let Reserved { reservation, filled, .. } = reserved;
        let codes = codes(reserved);
        Self {
            id: reservation.id.to_string(),
            count: codes.len() as u64,
            filled: *filled,
            given_up: reservation.closed_at.map(|at| shown_time(pages, at)),
            text: codes.join("\n"),
            table: format!("{TABLE}?id={}", reservation.id),
        }
    }
}

/// Shows a page of the open reservations, and the codes of the one that the query names.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let mut shown = shown(pages, request, session).await?;
    let mut status = StatusCode::OK;
    if let Some(id) = request.query.filled("id") {
        match pages.api.links.reservation(id, &session.grant).await {
            Ok(reserved) => shown.chosen = Some(ShownCodes::new(pages, &reserved)),
            Err(error @ AppError::NoReservation { .. }) => {
                status = api::rest::status_of(&error);
                shown.refused = Some(reason(&error, shown.frame.t));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(page(request.renderer, status, Forms::Stay, &shown))
}

/// Makes a reservation or gives one up, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (service, by, form) = (&pages.api.links, &session.grant, &request.form);
    let changed = if form.get("do") == Some("give-up") {
        let given_up = service.give_up_reservation(form.get("id").unwrap_or_default(), by).await;
        given_up.map(|()| stored_address(PATH, &list_query(request)))
    } else {
        // A number that cannot be read is none, and the use case says what it expects.
        let count = form.filled("count").and_then(|count| count.parse().ok());
        let reserved = service.reserve(count, form.filled("keyspace"), FieldErrors::default(), by).await;
        reserved.map(|reserved| format!("{}&stored", codes_address(&reserved.reservation)))
    };
    let error = match changed {
        Ok(to) => return Ok(redirect(StatusCode::SEE_OTHER, &to)),
        Err(error) if concerns_form(&error) => error,
        Err(error) => return Err(error.into()),
    };
    let mut shown = shown(pages, request, session).await?;
    shown.refused = Some(reason(&error, shown.frame.t));
    shown.wrong_fields = match &error {
        AppError::Invalid(fields) => fields.iter().map(|field| field.field.clone()).collect(),
        AppError::TooManyReserved { .. } => vec!["count".to_owned()],
        _ => Vec::new(),
    };
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

/// Answers with the codes of a reservation as a file.
pub(super) async fn download(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let id = request.query.filled("id").unwrap_or_default();
    let reserved = pages.api.links.reservation(id, &session.grant).await?;
    let table = csv_of(&codes(&reserved), &pages.api.public_url).map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "write a table of codes");
        AppError::Internal
    })?;
    let mut answer = answer(StatusCode::OK, "text/csv; charset=utf-8", table);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let disposition = format!("attachment; filename=\"reservation-{}.csv\"", reserved.reservation.id);
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(answer)
}

/// Writes codes with their short URLs as CSV. A code has letters and digits alone, so that no cell
/// begins like a formula.
fn csv_of(codes: &[String], public_url: &str) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for code in codes {
        writer.write_record([code, &format!("{public_url}/{code}")])?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Reads the open reservations that the key may know of.
async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<ReservationsPage<'a>, PageError> {
    let (service, by, query) = (&pages.api.links, &session.grant, list_query(request));
    let mut reservations = service.reservations(by).await?;
    reservations.retain(|reservation| reservation.closed_at.is_none());
    let (paged, reservations) = Paged::cut(reservations, PATH, &query);
    let keyspaces = service.reserver.mintings.iter().map(|minting| minting.namespace.to_string());
    Ok(ReservationsPage {
        frame: Frame::new(request, Some(session), Place::Reservations),
        chosen: None,
        reservations: reservations.iter().map(|one| ShownReservation::new(pages, one, by)).collect(),
        paged,
        action: address(PATH, &query),
        keyspaces: keyspaces.collect(),
        count_max: COUNT_MAX,
        may_reserve: by.limits.domain.is_none_or(|domain| domain.is_default()),
        form: &request.form,
        is_stored: is_stored(&query),
        refused: None,
        wrong_fields: Vec::new(),
    })
}

/// Returns the query of the list, which the codes of one reservation are no part of.
fn list_query(request: &PageRequest<'_>) -> Form {
    Form::parse(request.query.without(&["id"]).as_bytes())
}

/// Returns the address of the codes of a reservation.
fn codes_address(reservation: &Reservation) -> String {
    format!("{PATH}?id={}", reservation.id)
}

/// Returns the codes of a reservation as texts.
fn codes(reserved: &Reserved) -> Vec<String> {
    reserved.codes.iter().map(ToString::to_string).collect()
}

/// Returns whether an error is shown on the page with the form that caused it.
fn concerns_form(error: &AppError) -> bool {
    matches!(
        error,
        AppError::Invalid(_)
            | AppError::NoReservation { .. }
            | AppError::TooManyReserved { .. }
            | AppError::TooManyReservations { .. }
            | AppError::Exhausted
    )
}

/// Returns the text of an error that concerns the form.
fn reason(error: &AppError, t: &Locale) -> String {
    let expected = |field: &InvalidField| match field.field.as_str() {
        "count" => t.with("reservations-expected-count", t.number(&COUNT_MAX)),
        "keyspace" => t.text("reservations-expected-keyspace"),
        _ => error::expected(field, t),
    };
    match error {
        AppError::Invalid(fields) => fields.iter().map(expected).collect::<Vec<_>>().join(" "),
        AppError::NoReservation { id } => t.with("reservations-absent", id),
        AppError::TooManyReserved { held, most } => {
            t.with_two("reservations-too-many-codes", t.number(held), t.number(most))
        }
        AppError::TooManyReservations { held, most } => {
            t.with_two("reservations-too-many", t.number(held), t.number(most))
        }
        AppError::Exhausted => t.text("reservations-exhausted"),
        other => error::message(other, t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::Locales;

    #[test]
    fn codes_are_written_with_their_short_urls() {
        let codes = ["aB3x9Q", "000001"].map(str::to_owned);
        assert_eq!(
            String::from_utf8(csv_of(&codes, "https://s.example").unwrap()).unwrap(),
            "shortCode,shortUrl\r\n\
             aB3x9Q,https://s.example/aB3x9Q\r\n\
             000001,https://s.example/000001\r\n"
        );
    }

    #[test]
    fn every_refusal_is_told_in_every_language() {
        let invalid = |field: &str| AppError::invalid(field, "expected something");
        let errors = [
            invalid("count"),
            invalid("keyspace"),
            AppError::NoReservation { id: "0".to_owned() },
            AppError::TooManyReserved { held: 9_999, most: 10_000 },
            AppError::TooManyReservations { held: 1_000, most: 1_000 },
            AppError::Exhausted,
        ];
        for locale in Locales::embedded().all() {
            for error in &errors {
                assert!(concerns_form(error));
                let told = reason(error, locale);
                // A text that does not exist or lacks a value is its own name.
                assert!(!told.starts_with("reservations-"), "{told}");
                assert_ne!(told, error.to_string());
            }
        }
    }
}
