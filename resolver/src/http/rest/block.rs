//! `POST /rest/v3/short-urls/{code}/block` and `…/unblock`, additions to Shlink's API.

use app::{FieldErrors, find_link::LinkName};
use links::api_key::Grant;
use serde_json::{Map, Value};

use super::{problem::Problem, short_url};
use crate::http::{Answer, App};

/// Takes a link down.
pub(super) async fn block(
    app: &App,
    name: &LinkName,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let mut wrong = FieldErrors::default();
    for field in given.keys().filter(|field| *field != "reason") {
        wrong.note::<()>(field, Err("expected no field of this name".to_owned()));
    }
    let reason = given.get("reason").and_then(Value::as_str);
    short_url::answer(app, &app.links.block_link(name, reason, wrong, by).await?).await
}

/// Lifts a block.
pub(super) async fn unblock(app: &App, name: &LinkName, by: &Grant) -> Result<Answer, Problem> {
    short_url::answer(app, &app.links.unblock_link(name, by).await?).await
}
