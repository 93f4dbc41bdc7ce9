//! Why a call failed, and what all APIs answer with it.

use api::{AuthError, rest::status_of};
use app::{AppError, InvalidField};
use hyper::{
    StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use limits::ExceededShare;
use web::{Answer, hold_back, retry_later};

#[derive(Debug)]
pub(crate) enum Failure {
    App(AppError),
    Auth(AuthError),
    /// The body is malformed, too long, late or multipart: 400, 413, 408 or 415.
    Body(StatusCode),
    /// The key is in the address, and may do more than belongs there.
    KeyInAddress,
    /// The signature is one that expires.
    TimedSignature,
    NoRoute,
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::App(error) => Self::App(error),
            error => Self::Auth(error),
        }
    }
}

impl From<ExceededShare> for Failure {
    fn from(spent: ExceededShare) -> Self {
        Self::App(spent.into())
    }
}

impl Failure {
    /// A defect of this program.
    pub(crate) const INTERNAL: Self = Self::App(AppError::Internal);

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::App(error) | Self::Auth(AuthError::App(error)) => status_of(error),
            Self::Auth(AuthError::TooManyCalls(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::Auth(AuthError::NoKey | AuthError::WrongKey) | Self::TimedSignature => {
                StatusCode::UNAUTHORIZED
            }
            Self::Body(status) => *status,
            Self::KeyInAddress => StatusCode::FORBIDDEN,
            Self::NoRoute => StatusCode::NOT_FOUND,
        }
    }

    /// Returns the fields with wrong values.
    pub(crate) fn invalid(&self) -> &[InvalidField] {
        match self {
            Self::App(AppError::Invalid(fields)) => fields,
            _ => &[],
        }
    }

    /// Describes the failure. Fields have the names of the API.
    pub(crate) fn text(&self, names: &[(&str, &str)]) -> String {
        match self {
            Self::App(AppError::Invalid(fields)) => {
                let of = |one: &InvalidField| format!("{}: {}", renamed(&one.field, names), one.expected);
                fields.iter().map(of).collect::<Vec<_>>().join("; ")
            }
            Self::App(error) => error.to_string(),
            Self::Auth(AuthError::NoKey) => "The call has no API key.".to_owned(),
            Self::Auth(error) => error.to_string(),
            Self::Body(StatusCode::BAD_REQUEST) => "The body is not a JSON object.".to_owned(),
            Self::Body(StatusCode::PAYLOAD_TOO_LARGE) => "The body has more than 8 KiB.".to_owned(),
            Self::Body(StatusCode::UNSUPPORTED_MEDIA_TYPE) => {
                "Multipart bodies are not read. Send application/x-www-form-urlencoded.".to_owned()
            }
            Self::Body(status) => status.canonical_reason().unwrap_or_default().to_owned(),
            Self::KeyInAddress => {
                "This API key may do too much to be part of an address. Send it in the body of a POST, or \
                 use one with the scope create only, or one for its own links with create, read and visits."
                    .to_owned()
            }
            Self::TimedSignature => {
                "Signatures with a timestamp are not supported. Send the API key as signature, and no \
                 timestamp."
                    .to_owned()
            }
            Self::NoRoute => "There is no such call.".to_owned(),
        }
    }

    /// Adds the headers that say when to try again, and closes a connection whose body is unread.
    pub(crate) fn finish(&self, mut answer: Answer) -> Answer {
        if let Self::Auth(AuthError::TooManyCalls(refused)) = self {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(refused.wait.as_secs() + 1));
            return if refused.is_for_wrong_keys() { hold_back(answer) } else { answer };
        }
        if matches!(self, Self::Body(StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT)) {
            // The rest of the body would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let is_full = matches!(self, Self::App(AppError::TooMuchAtOnce(_)));
        if is_full || self.status() == StatusCode::SERVICE_UNAVAILABLE { retry_later(answer) } else { answer }
    }
}

/// Returns the name that an API has for a field.
pub(crate) fn renamed<'a>(field: &'a str, names: &[(&str, &'a str)]) -> &'a str {
    names.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, theirs)| theirs)
}
