//! `PATCH` and `DELETE /rest/v3/short-urls/{code}`

use hyper::{
    HeaderMap, StatusCode,
    header::{HeaderValue, IF_MATCH},
};
use links::{Edit, Link, Meant, Record, api_key::Grant};
use serde_json::{Map, Value};
use store::{Deleted, Edited};

use super::{
    create::hash,
    domains,
    fields::{self, Wrong},
    get::find,
    problem::Problem,
    query::Query,
    short_url,
};
use crate::http::{Answer, App, empty};

/// How often a link is looked for under its name, when the one that was found is gone.
const LOOKS: usize = 2;

/// Which link is meant, and by whom.
pub(in crate::http) struct Target<'a> {
    /// What the path says.
    pub(in crate::http) name: &'a str,
    /// The domain.
    pub(in crate::http) query: &'a Query,
    /// The versions that are meant; none for any.
    pub(in crate::http) versions: Option<Vec<u64>>,
    /// Whose key it is.
    pub(in crate::http) by: &'a Grant,
}

/// Changes a link. As Shlink does, the body is checked before the link is looked up; null takes a time or a title away and leaves
/// everything else as it is. `If-Match` with the `ETag` of an answer keeps what others have changed since from being overwritten.
pub(super) async fn edit(
    app: &App,
    target: Target<'_>,
    given: &Map<String, Value>,
) -> Result<Answer, Problem> {
    short_url::answer(app, &edit_record(app, &target, given).await?).await
}

/// Changes these fields of a link.
pub(in crate::http) async fn edit_record(
    app: &App,
    target: &Target<'_>,
    given: &Map<String, Value>,
) -> Result<Record, Problem> {
    let (mut edit, password) = read(app, given)?;
    if let Some(password) = password {
        edit.password = Some(match password {
            Some(password) => Some(hash(app, target.by, password).await?),
            None => None,
        });
    }
    check_window(app, target, &edit).await?;
    apply(app, target, edit).await
}

/// Refuses times that do not go with those which the link has. Two edits at the same moment may each go with what was there before: then the
/// link leads nowhere, which is shown, until one of them is taken back.
async fn check_window(
    app: &App,
    Target { name, query, by, .. }: &Target<'_>,
    edit: &Edit,
) -> Result<(), Problem> {
    if edit.valid_since.is_none() && edit.valid_until.is_none() {
        return Ok(());
    }
    let link = find(app, name, query, by).await?;
    let has =
        link.details.as_deref().map(|details| (details.valid_since, details.valid_until)).unwrap_or_default();
    let mut wrong = Wrong::default();
    fields::window(edit.valid_since.unwrap_or(has.0), edit.valid_until.unwrap_or(has.1), &mut wrong);
    wrong.check()
}

/// Changes the link that is meant. It is looked for twice: another resolver may have deleted the link
/// that was found, and another link may have its name since.
pub(super) async fn apply(app: &App, target: &Target<'_>, mut edit: Edit) -> Result<Record, Problem> {
    let Target { name, query, versions, by } = target;
    for _ in 0..LOOKS {
        let link = find(app, name, query, by).await?;
        check(app, &link, &edit)?;
        edit.meant = Meant { versions: versions.clone(), ..Meant::of(&link) };
        let turn = app.budgets.brief_turn(by.id).await?;
        let edited = app.store.edit(link.id, &edit, by.id).await?;
        drop(turn);
        app.lookup.changed(link.id);
        match edited {
            Edited::Done(record) => return Ok(*record),
            Edited::Absent => {}
            Edited::Superseded => return Err(Problem::Superseded),
        }
    }
    Err(Problem::no_short_url(app, name, query))
}

/// Refuses an edit that would lead in a circle, or switch a link on that leads where links must not.
fn check(app: &App, link: &Link, edit: &Edit) -> Result<(), Problem> {
    let rules = edit.rules.iter().flatten().map(|rule| &rule.long_url);
    if edit.disabled == Some(false) {
        // The new targets were checked when they were read; those that the link keeps may be denied
        // by now.
        let long_url = Some(&link.long_url).filter(|_| edit.long_url.is_none());
        let kept_rules = if edit.rules.is_none() { link.rules() } else { &[] };
        let kept = long_url.into_iter().chain(kept_rules.iter().map(|rule| &rule.long_url));
        fields::check_targets(app, "enabled", kept)?;
    }
    match app.lookup.name_of(link) {
        Some(own) => domains::refuse_circle(app, edit.long_url.iter().chain(rules), link.domain(), &own),
        None => Ok(()),
    }
}

/// The versions of `If-Match` (RFC 9110); none without it, or when any will do. A tag that is not ours matches no link.
pub(super) fn versions(headers: &HeaderMap) -> Option<Vec<u64>> {
    let lines: Vec<&[u8]> = headers.get_all(IF_MATCH).iter().map(HeaderValue::as_bytes).collect();
    let tags = lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    if lines.is_empty() || tags.clone().any(|tag| tag == b"*") {
        return None;
    }
    Some(tags.filter_map(short_url::version).collect())
}

/// What Shlink's clients send with an edit too, since they know one form for both. The code and the domain of a link never change.
pub(super) const OF_CREATES: [&str; 6] =
    ["shortCode", "customSlug", "pathPrefix", "shortCodeLength", "domain", "findIfExists"];

type Password = Option<Option<String>>;

fn read(app: &App, given: &Map<String, Value>) -> Result<(Edit, Password), Problem> {
    let (mut wrong, mut edit, mut password) = (Wrong::default(), Edit::default(), None);
    fields::each(given, &mut wrong, |name, value| {
        match name {
            "longUrl" if value.is_null() => {}
            "longUrl" => edit.long_url = Some(fields::long_url(app, Some(value))?),
            "title" => edit.title = Some(fields::title(value)?),
            "crawlable" => edit.crawlable = fields::flag(value)?,
            "forwardQuery" => edit.forward_query = fields::flag(value)?,
            "tags" => edit.tags = fields::tags(value)?,
            "maxVisits" => edit.max_visits = Some(fields::count(value)?),
            "validSince" => edit.valid_since = Some(fields::time(app, value)?),
            "validUntil" => edit.valid_until = Some(fields::time(app, value)?),
            "description" => edit.description = Some(fields::description(value)?),
            "enabled" => edit.disabled = fields::flag(value)?.map(|enabled| !enabled),
            "redirectStatus" => edit.status = Some(fields::status(value)?),
            "password" => password = Some(fields::password(value)?),
            name if OF_CREATES.contains(&name) => {}
            _ => fields::without_effect(name)?,
        }
        Ok(())
    });
    wrong.check().map(|()| (edit, password))
}

/// Deletes a link. Its code stays with it, and is never minted again; a slug that a person picked can be picked again.
pub(super) async fn delete(app: &App, target: Target<'_>) -> Result<Answer, Problem> {
    delete_record(app, &target).await.map(|()| empty(StatusCode::NO_CONTENT))
}

/// Deletes the link that is meant, which is looked for as [`apply`] does.
pub(in crate::http) async fn delete_record(app: &App, target: &Target<'_>) -> Result<(), Problem> {
    let Target { name, query, versions, by } = target;
    for _ in 0..LOOKS {
        let link = find(app, name, query, by).await?;
        let meant = Meant { versions: versions.clone(), ..Meant::of(&link) };
        let turn = app.budgets.brief_turn(by.id).await?;
        let deleted = app.store.delete(link.id, &meant, by.id).await?;
        drop(turn);
        app.lookup.changed(link.id);
        match deleted {
            Deleted::Done => return Ok(()),
            Deleted::Absent => {}
            Deleted::Superseded => return Err(Problem::Superseded),
            Deleted::Blocked => return Err(Problem::Blocked),
        }
    }
    Err(Problem::no_short_url(app, name, query))
}
