//! `/rest/v3/reservations`: codes before links. An addition to Shlink's API.

use app::{
    AppError, InvalidField, Reserved,
    reservation::{COUNT_MAX, FILL_MAX, Filled},
};
use codes::Code;
use hyper::StatusCode;
use links::{Draft, api_key::Grant, reservation::Reservation};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{create::draft, json, problem::Problem, split::each_of_array};
use crate::http::{Answer, App, empty};

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
            keyspace: app.links.keyspace_of_reservation(reservation),
            count: reservation.spans.iter().map(|span| span.len()).sum(),
            date_created: reservation.created_at.to_string(),
            date_closed: reservation.closed_at.map(|at| at.to_string()),
            filled: None,
            short_codes: None,
        }
    }
}

/// `POST /rest/v3/reservations`
pub(super) async fn create(app: &App, fields: &Map<String, Value>, by: &Grant) -> Result<Answer, Problem> {
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
    let keyspace = app.links.keyspace_to_reserve_from(name)?;
    Ok(show(app, app.links.reserve(count, keyspace, by).await?))
}

/// `GET /rest/v3/reservations`: those of the key; of all keys, for an operator.
pub(super) async fn list(app: &App, by: &Grant) -> Result<Answer, Problem> {
    let reservations = app.links.reservations(by).await?;
    let shown: Vec<_> = reservations.iter().map(|reservation| Shown::of(app, reservation)).collect();
    Ok(json(&json!({ "reservations": { "data": shown } })))
}

/// `GET /rest/v3/reservations/{id}`
pub(super) async fn get(app: &App, id: &str, by: &Grant) -> Result<Answer, Problem> {
    Ok(show(app, app.links.reservation(id, by).await?))
}

fn show(app: &App, Reserved { reservation, filled, codes }: Reserved) -> Answer {
    let codes = codes.iter().map(ToString::to_string).collect();
    json(&Shown { filled: Some(filled), short_codes: Some(codes), ..Shown::of(app, &reservation) })
}

/// `DELETE /rest/v3/reservations/{id}`: gives up what is not filled. It may be repeated.
pub(super) async fn give_up(app: &App, id: &str, by: &Grant) -> Result<Answer, Problem> {
    app.links.give_up_reservation(id, by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The items of a call that can be stored, and the results so far.
struct Fill {
    /// Null for items that can be stored.
    results: Vec<Value>,
    /// Their places among the results, and their codes.
    places: Vec<(usize, Code)>,
}

/// `POST /rest/v3/reservations/{id}/short-urls`: an array of links, each with its `shortCode`; a result for each.
pub(super) async fn fill(app: &App, id: &str, body: &[u8], by: &Grant) -> Result<Answer, Problem> {
    let read = || {
        let items = read_all(app, body, by)?;
        let (mut results, mut places, mut links) = (vec![Value::Null; items.len()], Vec::new(), Vec::new());
        for (place, item) in items.into_iter().enumerate() {
            match item {
                Ok(item) => {
                    places.push((place, item.0));
                    links.push(item);
                }
                Err(invalid) => results[place] = invalid,
            }
        }
        Ok::<_, Problem>((links, Fill { results, places }))
    };
    let (Fill { mut results, places }, filled) = app.links.fill_reservation(id, by, read).await?;
    for ((place, code), filled) in places.into_iter().zip(filled) {
        results[place] = result(app, &code, filled);
    }
    Ok(json(&json!({ "results": results })))
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
    let invalid = |code: Value, invalid: &[InvalidField]| {
        let expected: Map<_, _> =
            invalid.iter().map(|one| (one.field.clone(), json!(one.expected))).collect();
        json!({ "shortCode": code, "result": "invalid", "expected": expected })
    };
    let given = item.shift_remove("shortCode").unwrap_or_default();
    let Some(code) = given.as_str().and_then(|text| Code::parse(text).ok()) else {
        let expected = "expected one of the reservation's codes".to_owned();
        return Err(invalid(given, &[InvalidField { field: "shortCode".to_owned(), expected }]));
    };
    match draft(app, item, key.id) {
        Ok(draft) => Ok((code, draft)),
        Err(Problem::App(AppError::Invalid(fields))) => Err(invalid(given, &fields)),
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
