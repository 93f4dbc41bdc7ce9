//! `GET|HEAD /{code}`

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, LOCATION},
};

use super::{Answer, App, answer, empty, pages, retry_later};
use crate::{
    codes::Code,
    links::{Link, forward_query, location},
};

/// Redirects to where a code leads.
pub(super) async fn follow(app: &App, segment: &str, query: Option<&str>) -> Answer {
    let Ok(code) = Code::parse(segment) else { return not_found(app) };
    match app.lookup.find(code).await {
        Ok(Some(link)) => redirect(app, &link, query),
        Ok(None) => not_found(app),
        Err(_) => {
            app.metrics.unavailable.increment(1);
            retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, pages::HTML, pages::UNAVAILABLE))
        }
    }
}

fn redirect(app: &App, link: &Link, query: Option<&str>) -> Answer {
    let target = match query.filter(|query| link.forward_query && !query.is_empty()) {
        Some(query) => {
            HeaderValue::try_from(location(&forward_query(link.long_url.as_str(), query)).as_ref())
        }
        None => HeaderValue::try_from(location(link.long_url.as_str()).as_ref()),
    };
    let Ok(target) = target else {
        // A stored URL was checked and a query came through the HTTP parser, so this is a row that nobody checked.
        tracing::error!(id = ?link.id, "the long URL does not fit a header");
        return not_found(app);
    };
    app.metrics.redirects.increment(1);
    let mut redirect = empty(app.redirect_status);
    redirect.headers_mut().insert(LOCATION, target);
    if matches!(app.redirect_status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT) {
        // A permanent redirect that browsers kept for ever could never be edited.
        redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private,max-age=30"));
    }
    redirect
}

fn not_found(app: &App) -> Answer {
    app.metrics.not_found.increment(1);
    answer(StatusCode::NOT_FOUND, pages::HTML, pages::NOT_FOUND)
}
