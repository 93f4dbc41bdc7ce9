//! Reservations: the open ones of the key, a form that makes another one, and with `?id=` the codes
//! of one of them.
//!
//! The codes are a text in the page, and a table (CSV, RFC 4180) at an address of its own. Programs
//! store the links under them, with the API.

use app::{FieldErrors, Reserved, qr_pack::LINKS_MAX};
use askama::Template;
use hyper::StatusCode;
use links::reservation::{COUNT_MAX, Reservation};
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    paged::{Paged, stored_address},
};
use crate::{answer::redirect, context::Context, error::PageError, form::Form, frame::Frame, table};

pub(super) const PATH: &str = "/manage/reservations";
/// The address of the codes of a reservation as CSV.
pub(super) const TABLE: &str = "/manage/reservations.csv";
const COLUMNS: [&str; 2] = ["shortCode", "shortUrl"];

#[derive(Template)]
#[template(path = "manage/reservations.html")]
struct ReservationsPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    chosen: Option<Reserved>,
    reservations: Vec<Reservation>,
    paged: Paged,
    notices: Notices,
    /// The keyspaces that codes can be reserved from, the default one first.
    keyspaces: Vec<String>,
    /// Whether the key may use the domain that reserved codes belong to.
    may_reserve: bool,
    form: &'a Form,
}

fn size(reservation: &Reservation) -> u64 {
    reservation.spans.iter().map(|span| span.len()).sum()
}

fn count<T>(codes: &[T]) -> u64 {
    codes.len() as u64
}

fn fits_pack<T>(codes: &[T]) -> bool {
    count(codes) <= LINKS_MAX
}

/// Shows a page of the open reservations, and the codes of the one that the query names.
pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    let Some(id) = context.query.filled("id") else { return answer(context, None, None).await };
    match context.links.reservation(id, context.by).await {
        Ok(reserved) => answer(context, Some(reserved), None).await,
        Err(error) => answer(context, None, Some(Refusal::new(error, context.t)?)).await,
    }
}

pub(super) async fn change(context: &Context<'_>) -> Result<Answer, PageError> {
    let (links, by, form) = (context.links, context.by, context.form);
    let changed = if form.get("do") == Some("give-up") {
        let given_up = links.give_up_reservation(form.value("id"), by).await;
        given_up.map(|()| stored_address(PATH, &context.query.without(&["id"])))
    } else {
        // A number that cannot be read is none, and the use case says what it expects.
        let count = form.filled("count").and_then(|count| count.parse().ok());
        let reserved = links.reserve(count, form.filled("keyspace"), FieldErrors::default(), by).await;
        reserved.map(|reserved| format!("{PATH}?id={}&stored", reserved.reservation.id))
    };
    match changed {
        Ok(to) => Ok(redirect(StatusCode::SEE_OTHER, &to)),
        Err(error) => answer(context, None, Some(Refusal::new(error, context.t)?)).await,
    }
}

pub(super) async fn download(context: &Context<'_>) -> Result<Answer, PageError> {
    let id = context.query.filled("id").unwrap_or_default();
    let Reserved { reservation, codes, .. } = context.links.reservation(id, context.by).await?;
    let public_url = &context.pages.api.public_url;
    let rows = codes.iter().map(|code| [code.to_string(), format!("{public_url}/{code}")]);
    Ok(table::file(&format!("reservation-{}", reservation.id), table::write(COLUMNS, rows)?))
}

async fn answer(
    context: &Context<'_>,
    chosen: Option<Reserved>,
    refusal: Option<Refusal>,
) -> Result<Answer, PageError> {
    let (links, by) = (context.links, context.by);
    let mut reservations = links.reservations(by).await?;
    reservations.retain(|reservation| reservation.closed_at.is_none());
    // The codes of one reservation are no part of the list.
    let query = context.query.without(&["id"]);
    let (paged, reservations) = Paged::cut(reservations, PATH, &query);
    let keyspaces = links.creator.config.mintings.iter().map(|minting| minting.namespace.to_string());
    let page = ReservationsPage {
        frame: context.frame(PATH),
        context: *context,
        chosen,
        reservations,
        keyspaces: keyspaces.collect(),
        may_reserve: by.limits.domain.is_none_or(|domain| domain.is_default()),
        form: context.form,
        paged,
        notices: Notices::new(&query, refusal),
    };
    Ok(context.page(page.notices.status(), &page))
}
