//! The built-in HTML pages.

use std::time::Duration;

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use web::{Answer, HTML, answer};

pub(crate) const HOME: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Shortmint</title>\n\
    <h1>Shortmint</h1>\n<p>This is a short-link service.</p>\n</html>\n";

pub(crate) const NOT_FOUND: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>No such link</title>\n\
    <h1>No such link</h1>\n<p>This short link does not exist. Was it copied whole, and nothing added?</p>\n</html>\n";

pub(crate) const GONE: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>This link has ended</title>\n\
    <h1>This link has ended</h1>\n<p>This short link does not lead anywhere at the moment: it has expired, or was taken back.</p>\n</html>\n";

pub(crate) const TAKEN_DOWN: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\"><title>This link was taken down</title>\n\
    <h1>This link was taken down</h1>\n<p>The operator of this service has disabled this short link or the page that it leads to.</p>\n</html>\n";

const ASK_PASSWORD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\"><title>Password</title>\n\
    <h1>This link has a password</h1>\n<form method=\"post\"><p><label>Password <input type=\"password\" name=\"password\" required autofocus></label>\n\
    <button>Go on</button></p></form>\n</html>\n";

const WRONG_PASSWORD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\"><title>Password</title>\n\
    <h1>This link has a password</h1>\n<p>That was not it.</p>\n<form method=\"post\"><p><label>Password <input type=\"password\" name=\"password\" required autofocus></label>\n\
    <button>Go on</button></p></form>\n</html>\n";

/// Builds the password form of a link. After a wrong password the status is 403, so that programs
/// can tell that it was wrong.
pub(crate) fn ask_password(is_wrong: bool) -> Answer {
    let (status, page) =
        if is_wrong { (StatusCode::FORBIDDEN, WRONG_PASSWORD) } else { (StatusCode::OK, ASK_PASSWORD) };
    let mut page = answer(status, HTML, page);
    page.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    page
}

const TOO_MANY_TRIES: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\"><title>Slow down</title>\n\
    <h1>Slow down</h1>\n<p>Too many passwords were tried for this link. Please try again later.</p>\n</html>\n";

/// Answers 429 to a visitor who has tried too many passwords for a link.
pub(crate) fn too_many_tries(wait: Duration) -> Answer {
    let mut page = answer(StatusCode::TOO_MANY_REQUESTS, HTML, TOO_MANY_TRIES);
    page.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    page
}

/// The page for previews of a link with a visit limit. It shows neither the target nor the link's
/// title and description.
pub(crate) const LIMITED: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\"><title>Short link</title>\n\
    <h1>Short link</h1>\n<p>This link leads on only a limited number of times. Open it in a browser to follow it.</p>\n</html>\n";

pub(crate) const UNAVAILABLE: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>One moment</title>\n\
    <h1>One moment</h1>\n<p>This link cannot be looked up right now. Please try again in a second.</p>\n</html>\n";

pub(crate) const TOO_MUCH: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Slow down</title>\n\
    <h1>Slow down</h1>\n<p>Too much was asked for from here in a short time. Please try again later.</p>\n</html>\n";

pub(crate) const SLOW_DOWN: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Slow down</title>\n\
    <h1>Slow down</h1>\n<p>Too many short links that do not exist were asked for from here. Please try again later.</p>\n</html>\n";
