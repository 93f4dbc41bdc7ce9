//! `GET /rest/v3/short-urls/shorten?apiKey=…&longUrl=…&format=txt`: Shlink's create for bookmarks and scripts that can do nothing but open an
//! address.
//!
//! Off unless the operator wants it (`--single-step-create`): the key is part of the address, and addresses are written into the logs of proxies
//! and into the histories of browsers. It takes a key that may only create, and is revoked when it leaks.

use app::{Field, FieldErrors, create_link::CreateLink};
use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT, HeaderValue},
};
use links::api_key::Grant;

use super::{problem::Problem, query::Query, short_url};
use crate::http::{Answer, App, answer};

/// Creates a link, and answers with it or with its short URL alone.
pub(super) async fn create(
    app: &App,
    query: &Query,
    headers: &HeaderMap,
    by: &Grant,
) -> Result<Answer, Problem> {
    let long_url = query.text(Field::LongUrl.name()).map(str::to_owned);
    let request = CreateLink { long_url, ..CreateLink::default() };
    let record = app.links.create_link(request, None, FieldErrors::default(), by).await?;
    if !wants_text(query, headers) {
        return short_url::answer(app, &record).await;
    }
    let name = app.lookup.name_of(&record.link).ok_or(Problem::INTERNAL)?;
    let short_url = format!("{}/{name}", short_url::base(app, record.link.domain()));
    // Shlink's media type, letter for letter. Codes that are not picked are ASCII.
    Ok(answer(StatusCode::OK, "text/plain", short_url))
}

/// As with Shlink, the query decides, and without a word there the first media type that is accepted.
fn wants_text(query: &Query, headers: &HeaderMap) -> bool {
    let first = |accepted: &HeaderValue| {
        let accepted = String::from_utf8_lossy(accepted.as_bytes()).to_ascii_lowercase();
        accepted.split(',').next().is_some_and(|first| first.contains("text/plain"))
    };
    match query.text("format") {
        Some(format) => format.eq_ignore_ascii_case("txt"),
        None => headers.get(ACCEPT).is_some_and(first),
    }
}
