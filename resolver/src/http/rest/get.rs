//! `GET /rest/v3/short-urls/{code}`

use url::form_urlencoded;

use super::{json, problem::Problem, short_url::ShortUrl};
use crate::{
    codes::Code,
    http::{Answer, App},
};

/// Shows a link.
pub(super) async fn get(app: &App, segment: &str, query: Option<&str>) -> Result<Answer, Problem> {
    // Every link lives on the default domain; one asked for on another does not exist.
    let domain = form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .find(|(key, value)| key == "domain" && !value.is_empty())
        .map(|(_, value)| value.into_owned());
    let not_found = || Problem::NoShortUrl { code: segment.to_owned(), domain: domain.clone() };
    if domain.is_some() {
        return Err(not_found());
    }
    let code = Code::parse(segment).map_err(|_| not_found())?;
    match app.lookup.find(code).await {
        Ok(Some(link)) => Ok(json(&ShortUrl::of(app, &code, &link))),
        Ok(None) => Err(not_found()),
        Err(_) => Err(Problem::Unavailable),
    }
}
