//! `GET /rest/v3/short-urls/{code}`

use std::sync::Arc;

use super::{problem::Problem, query::Query, short_url};
use crate::{
    http::{Answer, App},
    links::{Link, Record},
};

/// Shows a link.
pub(super) async fn get(app: &App, name: &str, query: Option<&str>) -> Result<Answer, Problem> {
    let link = find(app, name, query).await?;
    let tags = app.store.tags_of(link.id).await?;
    short_url::answer(app, &Record { link: Link::clone(&link), tags })
}

/// The link that a path names, unless it was deleted. Whether it redirects at the moment does not matter here.
pub(super) async fn find(app: &App, name: &str, query: Option<&str>) -> Result<Arc<Link>, Problem> {
    // Every link lives on the default domain; one asked for on another does not exist.
    let missing = || Problem::no_short_url(name, query);
    if Query::new(query).text("domain").is_some() {
        return Err(missing());
    }
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8().map_err(|_| missing())?;
    match app.lookup.find_named(&decoded).await {
        Ok(found) => found.filter(|link| !link.is_deleted()).ok_or_else(missing),
        Err(_) => Err(Problem::Unavailable),
    }
}
