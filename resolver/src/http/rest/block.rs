//! `POST /rest/v3/short-urls/{code}/block` and `…/unblock`, additions of ours: an operator takes a
//! link down, and brings it back.
//!
//! Both take an admin key without limits. What a block is stands in `links/src/block.rs`.

use codes::LinkId;
use links::{Block, Edit, Link, Meant, Slug, api_key::Grant};
use serde_json::{Map, Value};
use store::Edited;

use super::{fields::Wrong, get::find, problem::Problem, query::Query, restore::find_deleted, short_url};
use crate::http::{Answer, App};

/// Takes a link down.
pub(super) async fn block(
    app: &App,
    name: &str,
    query: &Query,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let mut wrong = Wrong::default();
    let reason = wrong.note("reason", reason(given.get("reason")));
    for field in given.keys().filter(|field| *field != "reason") {
        wrong.note::<()>(field, Err("expected no field of this name".to_owned()));
    }
    wrong.check()?;
    set(app, name, query, Some(reason.ok_or(Problem::Internal)?), by).await
}

/// Brings a link back that was taken down. One that was not stays as it is.
pub(super) async fn unblock(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    set(app, name, query, None, by).await
}

fn reason(value: Option<&Value>) -> Result<String, String> {
    let text = value.and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let fits = (1..=Block::REASON_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    if fits {
        return Ok(text.to_owned());
    }
    Err(format!("expected the reason, in 1 to {} bytes without control characters", Block::REASON_BYTES))
}

/// The link that has the name, or that had it last: somebody may have deleted it, and be about to
/// restore it. If another link takes the name meanwhile, that one is meant.
async fn set(
    app: &App,
    name: &str,
    query: &Query,
    reason: Option<String>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let link = match find(app, name, query, by).await {
        Ok(link) => Link::clone(&link),
        Err(Problem::NoShortUrl { .. }) => find_deleted(app, name, query, by).await?,
        Err(other) => return Err(other),
    };
    let _turn = app.budgets.brief_turn(by.id).await?;
    let edit = Edit { block: Some(reason), meant: Meant::of(&link), ..Edit::default() };
    let record = match app.store.edit(link.id, &edit, by.id).await? {
        Edited::Done(record) => *record,
        Edited::Absent | Edited::Superseded => return Err(Problem::no_short_url(app, name, query)),
    };
    app.lookup.changed(link.id);
    let Some(slug) = record.link.slug().filter(|_| record.link.is_deleted()) else {
        return short_url::answer(app, &record).await;
    };
    let Some(other) = has_its_name(app, &record.link, slug).await? else {
        // A deleted link that is taken down has its slug again, as a new link would.
        app.lookup.taken(record.link.domain(), slug);
        app.creator.wait_until_shown(&record.link).await;
        return short_url::answer(app, &record).await;
    };
    let edit = Edit { meant: Meant::default(), ..edit };
    let edited = app.store.edit(other, &edit, by.id).await?;
    app.lookup.changed(other);
    match edited {
        Edited::Done(record) => short_url::answer(app, &record).await,
        Edited::Absent | Edited::Superseded => Err(Problem::no_short_url(app, name, query)),
    }
}

/// Another link that has the slug of a deleted one.
async fn has_its_name(app: &App, link: &Link, slug: &Slug) -> Result<Option<LinkId>, Problem> {
    let found = app.store.find_slug(link.domain(), slug).await?;
    Ok(found.filter(|id| *id != link.id))
}
