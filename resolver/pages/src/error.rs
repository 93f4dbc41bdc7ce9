//! Why a page is not shown, with its status and text. This is the only place that maps errors to
//! pages.

use api::SignInError;
use app::{AppError, InvalidField};
use askama::Template;
use hyper::{
    StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use url::form_urlencoded::byte_serialize;
use web::{Answer, retry_later};

use crate::{
    answer::{Forms, page, redirect},
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
    sign_in,
};

/// Why a page is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// A use case refused, or failed.
    #[error(transparent)]
    App(#[from] AppError),
    /// The API key of a sign-in was refused.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// The page needs a session.
    #[error("expected a session")]
    NoSession,
    /// The form does not come from a page of this service.
    #[error("expected a form of this service")]
    OtherOrigin,
    /// The body is not a form.
    #[error("expected a form")]
    NoForm,
    /// The form is too long.
    #[error("form too long")]
    LongForm,
    /// The form did not arrive in time.
    #[error("form upload timed out")]
    SlowForm,
    /// There is no such page.
    #[error("expected another address")]
    NoPage,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    frame: Frame<'a>,
    title: String,
    text: String,
}

impl PageError {
    /// Answers with the error's page, or leads to the sign-in.
    pub(crate) fn into_answer(self, request: &PageRequest<'_>, session: Option<&Session>) -> Answer {
        if matches!(self, Self::NoSession) {
            let back: String = byte_serialize(request.back().as_bytes()).collect();
            return redirect(StatusCode::SEE_OTHER, &format!("{}?to={back}", sign_in::PATH));
        }
        let status = self.status();
        let frame = Frame::new(request, session, Place::Elsewhere);
        let (title, text) = self.words(frame.t);
        let mut answer = page(request.renderer, status, Forms::Stay, &ErrorPage { frame, title, text });
        if let Self::SignIn(SignInError::TooManyCalls(wait)) = &self {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
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

    fn status(&self) -> StatusCode {
        match self {
            Self::App(error) => api::rest::status_of(error),
            Self::SignIn(SignInError::App(error)) => api::rest::status_of(error),
            Self::SignIn(SignInError::WrongKey) => StatusCode::FORBIDDEN,
            Self::SignIn(SignInError::TooManyCalls(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::NoSession => StatusCode::UNAUTHORIZED,
            Self::OtherOrigin => StatusCode::FORBIDDEN,
            Self::NoForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::LongForm => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowForm => StatusCode::REQUEST_TIMEOUT,
            Self::NoPage => StatusCode::NOT_FOUND,
        }
    }

    /// Returns the title and the text of the error.
    fn words(&self, t: &Locale) -> (String, String) {
        match self {
            Self::App(error) | Self::SignIn(SignInError::App(error)) => {
                (t.text("error-title"), message(error, t))
            }
            Self::SignIn(SignInError::WrongKey) => (t.text("sign-in-title"), t.text("sign-in-wrong")),
            Self::SignIn(SignInError::TooManyCalls(_)) => (t.text("too-much-title"), t.text("too-much-text")),
            Self::NoSession => (t.text("sign-in-title"), t.text("sign-in-text")),
            Self::OtherOrigin => (t.text("error-title"), t.text("error-other-origin")),
            Self::NoForm | Self::LongForm | Self::SlowForm => (t.text("error-title"), t.text("error-form")),
            Self::NoPage => (t.text("no-page-title"), t.text("no-page-text")),
        }
    }
}

/// Returns the text of an error of the application. What no page can cause is in English.
pub(crate) fn message(error: &AppError, t: &Locale) -> String {
    match error {
        AppError::NoDomain { name } | AppError::MayNotAddDomain { name } => t.with("error-no-domain", name),
        AppError::NoTag { tag } => t.with("error-no-tag", tag),
        AppError::DomainInUse { name, .. } => t.with("error-domain-in-use", name),
        AppError::Invalid(fields) => {
            let told: Vec<String> = fields.iter().map(|field| expected(field, t)).collect();
            told.join(" ")
        }
        AppError::Forbidden { scope } => t.with("error-forbidden", scope.as_str()),
        AppError::LimitedKey => t.text("error-limited-key"),
        AppError::NoLink { code, .. } => t.with("error-no-link", code),
        AppError::SlugTaken { slug, .. } => t.with("error-slug-taken", slug),
        AppError::IdempotencyKeyReused => t.text("error-form-reused"),
        AppError::Superseded => t.text("error-superseded"),
        AppError::Blocked => t.text("error-blocked"),
        AppError::Exhausted => t.text("error-exhausted"),
        AppError::TooMuchAtOnce(_) => t.text("too-much-text"),
        AppError::Unavailable => t.text("error-unavailable"),
        AppError::Internal => t.text("error-internal"),
        other => other.to_string(),
    }
}

/// Returns what a field expects: the text of the language, or else that of the application.
pub(crate) fn expected(field: &InvalidField, t: &Locale) -> String {
    let name = field.field.split(['.', '[']).next().unwrap_or_default();
    let text = t.try_text(&format!("expected-{name}"));
    text.unwrap_or_else(|| format!("{}: {}", field.field, field.expected))
}
