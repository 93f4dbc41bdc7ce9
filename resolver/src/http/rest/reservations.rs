//! `/rest/v3/reservations`: codes before links. An addition of ours.
//!
//! A call may hold a connection to the database for seconds. So the calls of one key take turns, as
//! its lists do, and leave connections for other keys.

use std::sync::Arc;

use codes::Code;
use hyper::StatusCode;
use links::{
    Draft,
    api_key::Grant,
    reservation::{Reservation, ReservationId},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    create::draft,
    json,
    problem::{Invalid, Problem},
    split::each_of_array,
};
use crate::{
    http::{Answer, App, empty},
    reservation::{COUNT_MAX, FILL_MAX, Filled, ReserveError},
};

/// A link and its code, or the result of an item that cannot be stored at all.
type Item = Result<(Code, Draft), Value>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    id: &'a str,
    keyspace: &'a str,
    count: u64,
    date_created: String,
    date_closed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    short_codes: Option<Vec<String>>,
}

impl<'a> Shown<'a> {
    fn of(app: &'a App, reservation: &'a Reservation) -> Self {
        Self {
            id: reservation.id.as_str(),
            keyspace: app.reserver.minting(reservation).map_or("", |minting| minting.namespace.as_str()),
            count: reservation.spans.iter().map(|span| span.len()).sum(),
            date_created: reservation.created_at.to_string(),
            date_closed: reservation.closed_at.map(|at| at.to_string()),
            filled: None,
            short_codes: None,
        }
    }
}

/// `POST /rest/v3/reservations`
pub(super) async fn create(
    app: &Arc<App>,
    fields: &Map<String, Value>,
    key: Grant,
) -> Result<Answer, Problem> {
    if let Some(field) = fields.keys().find(|field| !matches!(field.as_str(), "count" | "keyspace")) {
        return Err(Problem::invalid(field, "expected no field of this name"));
    }
    let count = fields.get("count").and_then(Value::as_u64).filter(|count| (1..=COUNT_MAX).contains(count));
    let count =
        count.ok_or_else(|| Problem::invalid("count", format!("expected a number from 1 to {COUNT_MAX}")))?;
    let name = match fields.get("keyspace") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => return Err(Problem::invalid("keyspace", "expected the name of a keyspace, or null")),
    };
    let Some(keyspace) = app.reserver.keyspace(name) else {
        let expected = "expected the name of a keyspace that this resolver mints from";
        return Err(Problem::invalid("keyspace", expected));
    };
    one_domain_only(&key)?;
    let _turn = app.budgets.turn(key.id).await?;
    // Calls that are under way at the same time do not see each other's codes, so a key may have as
    // many more as it has turns.
    let (held, most) = (app.store.reserved(key.id).await?, app.reserved_max);
    if held.saturating_add(count) > most {
        return Err(Problem::TooManyReserved { held, most });
    }
    let reservation = app.reserver.reserve(key.id, keyspace, count).await?;
    show(app, reservation).await
}

/// `GET /rest/v3/reservations`: those of the key; of all keys, for an admin.
pub(super) async fn list(app: &App, key: Grant) -> Result<Answer, Problem> {
    let of = (!sees_all(&key)).then_some(key.id);
    let _turn = app.budgets.turn(key.id).await?;
    let reservations = app.store.reservations(of).await?;
    let shown: Vec<_> = reservations.iter().map(|reservation| Shown::of(app, reservation)).collect();
    Ok(json(&json!({ "reservations": { "data": shown } })))
}

/// `GET /rest/v3/reservations/{id}`
pub(super) async fn get(app: &Arc<App>, id: &str, key: Grant) -> Result<Answer, Problem> {
    let _turn = app.budgets.turn(key.id).await?;
    let reservation = find(app, id, &key).await?;
    show(app, reservation).await
}

/// With its codes: whoever lost the answer to the first call gets them again.
async fn show(app: &Arc<App>, reservation: Reservation) -> Result<Answer, Problem> {
    let filled = app.reserver.filled(&reservation).await?;
    let codes = app.reserver.codes(&reservation).await?.iter().map(ToString::to_string).collect();
    let shown = Shown { filled: Some(filled), short_codes: Some(codes), ..Shown::of(app, &reservation) };
    Ok(json(&shown))
}

/// `DELETE /rest/v3/reservations/{id}`: gives up what is not filled. It may be repeated.
pub(super) async fn give_up(app: &App, id: &str, key: Grant) -> Result<Answer, Problem> {
    let _turn = app.budgets.turn(key.id).await?;
    let reservation = find(app, id, &key).await?;
    app.reserver.give_up(&reservation).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// `POST /rest/v3/reservations/{id}/short-urls`: an array of links, each with its `shortCode`; a result for each.
pub(super) async fn fill(app: &App, id: &str, body: &[u8], key: Grant) -> Result<Answer, Problem> {
    one_domain_only(&key)?;
    let _turn = app.budgets.turn(key.id).await?;
    let reservation = find(app, id, &key).await?;
    // Only now: its items take many times the memory of its text, and none of it is held while a
    // turn is waited for.
    let items = read_all(app, body, &key)?;
    let mut results = vec![Value::Null; items.len()];
    let (mut positions, mut drafts) = (Vec::new(), Vec::new());
    for (position, item) in items.into_iter().enumerate() {
        match item {
            Ok(item) => {
                positions.push(position);
                drafts.push(item);
            }
            Err(invalid) => results[position] = invalid,
        }
    }
    let codes: Vec<Code> = drafts.iter().map(|(code, _)| *code).collect();
    let filled = app.reserver.fill(&reservation, drafts).await.map_err(|error| match error {
        ReserveError::Closed => Problem::ReservationClosed { id: id.to_owned() },
        other => other.into(),
    })?;
    for ((position, code), filled) in positions.into_iter().zip(codes).zip(filled) {
        results[position] = result(app, &code, filled);
    }
    Ok(json(&json!({ "results": results })))
}

/// Whether others' reservations are a key's business too.
fn sees_all(key: &Grant) -> bool {
    key.scopes.is_admin() && !key.limits.hides_links()
}

/// Reserved codes are the default domain's.
fn one_domain_only(key: &Grant) -> Result<(), Problem> {
    let is_other = key.limits.domain.is_some_and(|domain| !domain.is_default());
    if is_other { Err(Problem::OneDomainOnly) } else { Ok(()) }
}

/// The items of a body, one by one: what JSON takes in memory is many times its text.
fn read_all(app: &App, body: &[u8], key: &Grant) -> Result<Vec<Item>, Problem> {
    let mut items = Vec::new();
    each_of_array(body, |item| {
        if items.len() == FILL_MAX {
            return Err(Problem::invalid(
                "(the array)",
                format!("expected at most {FILL_MAX} links, got more"),
            ));
        }
        let item = serde_json::from_slice(item).map_err(|_| Problem::MalformedBody)?;
        items.push(read(app, item, key));
        Ok(())
    })?;
    Ok(items)
}

/// One item; or its result, when it cannot be stored at all.
fn read(app: &App, mut item: Map<String, Value>, key: &Grant) -> Item {
    let invalid = |code: Value, invalid: &[Invalid]| {
        let expected: Map<_, _> =
            invalid.iter().map(|one| (one.field.clone(), json!(one.expected))).collect();
        json!({ "shortCode": code, "result": "invalid", "expected": expected })
    };
    let given = item.shift_remove("shortCode").unwrap_or_default();
    let Some(code) = given.as_str().and_then(|text| Code::parse(text).ok()) else {
        let expected = "expected one of the reservation's codes".to_owned();
        return Err(invalid(given, &[Invalid { field: "shortCode".to_owned(), expected }]));
    };
    match draft(app, &item, key.id) {
        Ok(draft) => Ok((code, draft)),
        Err(Problem::InvalidData(fields)) => Err(invalid(given, &fields)),
        Err(_) => Err(invalid(given, &[])),
    }
}

fn result(app: &App, code: &Code, filled: Filled) -> Value {
    let name = match filled {
        Filled::Stored => {
            let short_url = format!("{}/{code}", app.public_url);
            return json!({ "shortCode": code.as_str(), "result": "stored", "shortUrl": short_url });
        }
        Filled::NotReserved => "not-reserved",
        Filled::Repeated => "repeated",
        Filled::Conflict => "conflict",
        Filled::Failed => "failed",
        Filled::Unknown => "unknown",
    };
    json!({ "shortCode": code.as_str(), "result": name })
}

/// The reservation, if the key may see it: whose it is concerns nobody else.
async fn find(app: &App, id: &str, key: &Grant) -> Result<Reservation, Problem> {
    let missing = || Problem::NoReservation { id: id.to_owned() };
    let parsed = ReservationId::parse(id).ok_or_else(missing)?;
    let found = app.store.reservation(&parsed).await?;
    found.filter(|one| one.created_by == key.id || sees_all(key)).ok_or_else(missing)
}
