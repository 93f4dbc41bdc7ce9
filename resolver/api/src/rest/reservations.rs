//! `/rest/v3/reservations`: codes before their links. An addition to Shlink's API.

use std::collections::BTreeMap;

use app::{
    AppError, InvalidField, Reserved,
    reservation::Filled,
    reserve_codes::{check_fill_len, expected_count},
};
use codes::Code;
use dto::{DateTime, FillResult, FillWord};
use links::{
    Draft,
    reservation::{COUNT_MAX, FILL_MAX, Reservation},
};
use serde_json::Value;
use store::RESERVATIONS_MAX;

use super::{
    link_fields::{SHORT_CODE, create_command, given_code},
    prelude::*,
    read::{in_order, read_fields},
    route::{array_of, json_of},
    split::each_of_array,
};
use crate::Api;

const RESERVATIONS: &str = "/rest/v3/reservations";
const RESERVATION: &str = "/rest/v3/reservations/{id}";
/// Maximum length of a fill's body: ten thousand links of ordinary length.
const FILL_BYTES: usize = 4 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    let of = |method, path, handler, id, summary| {
        Route::new(method, path, handler).document(id, Topic::Reservations, summary).addition()
    };
    vec![
        of(Method::POST, RESERVATIONS, keyed!(Scope::Reserve, create), "reserve", "Reserve codes")
            .text(format!("Up to {COUNT_MAX} codes of one keyspace. No other link gets one of them until the reservation is given up."))
            .body::<dto::NewReservation>()
            .answers::<dto::Reservation>("The reservation with its codes.")
            .fails(&[Kind::OneDomainOnly, Kind::TooManyReserved, Kind::Exhausted]),
        of(Method::GET, RESERVATIONS, keyed!(Scope::Reserve, list), "listReservations", "List reservations")
            .text(format!("Those of the key, and all for an admin: the latest {RESERVATIONS_MAX}, open ones first, without their codes."))
            .answers::<dto::ReservationList>("Reservations."),
        of(Method::GET, RESERVATION, keyed!(Scope::Reserve, get), "getReservation", "Show a reservation")
            .text("With its codes: a caller that lost the answer to the first call gets them again.")
            .answers::<dto::Reservation>("The reservation with its codes."),
        of(Method::DELETE, RESERVATION, keyed!(Scope::Reserve, give_up), "giveUpReservation", "Give up unfilled codes")
            .text("Links that were filled in stay. Codes without a link may be given to other links. The call may be repeated.")
            .done("The reservation is given up."),
        of(Method::POST, "/rest/v3/reservations/{id}/short-urls", keyed!(Scope::Reserve, fill), "fillReservation", "Create links under reserved codes")
            .body_bytes(FILL_BYTES)
            .text(format!(
                "Up to {FILL_MAX} links in at most {FILL_BYTES} bytes. Each has a result of its own, and a wrong one fails no other. \
                 A fill may be repeated: a link that is stored already is reported as `stored` again if it is the same, and as `conflict` if it is another."
            ))
            .body_of(json_of(|generator| array_of::<dto::FillItem>(generator, FILL_MAX)))
            .answers::<dto::FillResults>("A result for each item, in their order.")
            .fails(&[Kind::OneDomainOnly, Kind::ReservationClosed]),
    ]
}

impl Fields for dto::NewReservation {
    fn expected(field: &str) -> String {
        match field {
            "count" => expected_count(),
            _ => "expected the name of a keyspace, or null".to_owned(),
        }
    }
}

fn shown<'a>(api: &'a Api, reservation: &'a Reservation) -> dto::Reservation<'a> {
    dto::Reservation {
        id: reservation.id.as_str(),
        keyspace: api.links.creator.keyspace_of(reservation),
        count: reservation.spans.iter().map(|span| span.len()).sum(),
        date_created: DateTime(reservation.created_at.to_string()),
        date_closed: reservation.closed_at.map(|at| DateTime(at.to_string())),
        filled: None,
        short_codes: None,
    }
}

fn answer_with_codes(api: &Api, Reserved { reservation, filled, codes }: Reserved) -> Answer {
    let short_codes = Some(codes.iter().map(ToString::to_string).collect());
    json(&dto::Reservation { filled: Some(filled), short_codes, ..shown(api, &reservation) })
}

async fn create(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::NewReservation { count, keyspace }, wrong) = call.fields()?;
    let reserved = call.api.links.reserve(count, keyspace.value().as_deref(), wrong, by).await?;
    Ok(answer_with_codes(&call.api, reserved))
}

/// Lists the reservations of the key; those of all keys for an operator.
async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let reservations = call.api.links.reservations(by).await?;
    let data = reservations.iter().map(|reservation| shown(&call.api, reservation)).collect();
    Ok(json(&dto::ReservationList { reservations: dto::Data { data } }))
}

async fn get(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(answer_with_codes(&call.api, call.api.links.reservation(&call.parameters[0], by).await?))
}

async fn give_up(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.give_up_reservation(&call.parameters[0], by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Stores links under reserved codes. The results are in the order of the items.
async fn fill(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let read = || read_all(api, &call.body, by);
    let (results, filled) = api.links.fill_reservation(&call.parameters[0], by, read).await?;
    let mut filled = filled.into_iter();
    let result = |item: Result<FillResult, Code>| match item {
        Ok(invalid) => Some(invalid),
        Err(code) => filled.next().map(|filled| result_of(api, &code, filled)),
    };
    Ok(json(&dto::FillResults { results: results.into_iter().filter_map(result).collect() }))
}

/// The links of a fill with their codes, and for each item its result, or its code if it may be
/// stored.
type Items = (Vec<(Code, Draft)>, Vec<Result<FillResult, Code>>);

/// Reads the items of a body one by one: parsed JSON takes many times the memory of its text.
fn read_all(api: &Api, body: &[u8], key: &Grant) -> Result<Items, Problem> {
    let (mut links, mut results) = (Vec::new(), Vec::new());
    each_of_array(body, |item| {
        check_fill_len(results.len() + 1)?;
        results.push(match read(api, item, key)? {
            Ok((code, draft)) => {
                links.push((code, draft));
                Err(code)
            }
            Err(invalid) => Ok(invalid),
        });
        Ok(())
    })?;
    Ok((links, results))
}

/// Reads an item: a link and its code, or the result of an item that cannot be stored.
fn read(api: &Api, item: &[u8], key: &Grant) -> Result<Result<(Code, Draft), FillResult>, Problem> {
    let (mut fields, mut wrong) = read_fields::<dto::LinkFields>(item)?;
    let given = given_code(item, &std::mem::take(&mut fields.short_code));
    let Some(code) = given.as_str().and_then(|text| Code::parse(text).ok()) else {
        let expected = "expected one of the reservation's codes".to_owned();
        let wrong = InvalidField { field: SHORT_CODE.to_owned(), expected };
        return Ok(Err(invalid(given, &[wrong])));
    };
    let request = create_command(api, fields, &mut wrong);
    let draft = api.links.check_plain_create(request, wrong, key.id);
    let wrong_fields = |error| match in_order(error, item) {
        AppError::Invalid(fields) => fields,
        _ => Vec::new(),
    };
    Ok(draft.map(|draft| (code, draft)).map_err(|error| invalid(given, &wrong_fields(error))))
}

fn invalid(code: Value, wrong: &[InvalidField]) -> FillResult {
    let expected: BTreeMap<_, _> =
        wrong.iter().map(|one| (one.field.clone(), one.expected.clone())).collect();
    FillResult { short_code: code, result: FillWord::Invalid, short_url: None, expected: Some(expected) }
}

fn result_of(api: &Api, code: &Code, filled: Filled) -> FillResult {
    let result = match filled {
        Filled::Stored => FillWord::Stored,
        Filled::NotReserved => FillWord::NotReserved,
        Filled::Repeated => FillWord::Repeated,
        Filled::Conflict => FillWord::Conflict,
        Filled::Failed => FillWord::Failed,
        Filled::Unknown => FillWord::Unknown,
    };
    let short_url = (result == FillWord::Stored).then(|| format!("{}/{code}", api.public_url));
    FillResult { short_code: Value::from(code.as_str()), result, short_url, expected: None }
}
