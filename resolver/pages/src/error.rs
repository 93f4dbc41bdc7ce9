//! Why a page is not shown, and the pages that say so: the only place that maps errors to pages.

use api::AuthError;
use app::AppError;
use askama::Template;
use hyper::{
    StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use url::form_urlencoded::byte_serialize;
use web::{Answer, retry_later};

use crate::{
    addresses::SIGN_IN,
    answer::{page, redirect},
    frame::Frame,
    locale::Locale,
    messages::message,
    request::PageRequest,
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error(transparent)]
    App(#[from] AppError),
    /// The API key of a sign-in was refused.
    #[error(transparent)]
    SignIn(#[from] AuthError),
    #[error("not signed in")]
    NoSession,
    /// The form does not come from a page of this service.
    #[error("form of another site")]
    OtherOrigin,
    /// The body is not a form, too long, or did not arrive in time: 415, 413 or 408.
    #[error("form refused: {0}")]
    Form(StatusCode),
    #[error("no such page")]
    NoPage,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    frame: Frame<'a>,
    title: String,
    text: String,
}

pub(crate) fn show(error: &PageError, request: &PageRequest<'_>) -> Answer {
    if matches!(error, PageError::NoSession) {
        let back: String = byte_serialize(request.back().as_bytes()).collect();
        return redirect(StatusCode::SEE_OTHER, &format!("{SIGN_IN}?to={back}"));
    }
    let frame = Frame::new(request, "");
    let (status, title, text) = words(error, frame.t);
    let mut answer = page(&request.pages.renderer, status, &ErrorPage { frame, title, text });
    if let PageError::SignIn(AuthError::TooManyCalls(refused)) = error {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(refused.wait.as_secs() + 1));
    }
    match status {
        StatusCode::SERVICE_UNAVAILABLE => retry_later(answer),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            // The rest of the body would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            answer
        }
        _ => answer,
    }
}

fn words(error: &PageError, t: &Locale) -> (StatusCode, String, String) {
    match error {
        PageError::App(error) | PageError::SignIn(AuthError::App(error)) => {
            (api::rest::status_of(error), t.text("error-title"), message(error, t))
        }
        PageError::SignIn(AuthError::NoKey | AuthError::WrongKey) => {
            (StatusCode::FORBIDDEN, t.text("sign-in"), t.text("sign-in-wrong"))
        }
        PageError::SignIn(AuthError::TooManyCalls(_)) => {
            (StatusCode::TOO_MANY_REQUESTS, t.text("too-much-title"), t.text("too-much-text"))
        }
        PageError::NoSession => (StatusCode::UNAUTHORIZED, t.text("sign-in"), t.text("sign-in-text")),
        PageError::OtherOrigin => {
            (StatusCode::FORBIDDEN, t.text("error-title"), t.text("error-other-origin"))
        }
        PageError::Form(status) => (*status, t.text("error-title"), t.text("error-form")),
        PageError::NoPage => (StatusCode::NOT_FOUND, t.text("no-page-title"), t.text("no-page-text")),
    }
}
