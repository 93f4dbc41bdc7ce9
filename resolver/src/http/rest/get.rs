//! `GET /rest/v3/short-urls/{code}`

use std::sync::Arc;

use links::{Link, Record, api_key::Grant};

use super::{domains, problem::Problem, query::Query, short_url};
use crate::http::{Answer, App};

/// Shows a link.
pub(super) async fn get(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    short_url::answer(app, &get_record(app, name, query, by).await?).await
}

/// A link with its tags.
pub(in crate::http) async fn get_record(
    app: &App,
    name: &str,
    query: &Query,
    by: &Grant,
) -> Result<Record, Problem> {
    let link = find(app, name, query, by).await?;
    let _turn = app.budgets.brief_turn(by.id).await?;
    Ok(Record { tags: app.store.tags_of(link.id).await?, link: Link::clone(&link) })
}

/// The link that a path names on the domain that the query names, unless it was deleted or is none of the key's business. Whether it
/// redirects at the moment does not matter here.
pub(super) async fn find(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Arc<Link>, Problem> {
    let missing = || Problem::no_short_url(app, name, query);
    let Some(domain) = domains::of_query(app, query).await? else { return Err(missing()) };
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8().map_err(|_| missing())?;
    match app.directory.find_named(domain, &decoded).await {
        Ok(found) => found.filter(|link| !link.is_deleted() && by.sees(link)).ok_or_else(missing),
        Err(_) => Err(Problem::Unavailable),
    }
}
