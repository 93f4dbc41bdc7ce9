//! Converts errors to problems (RFC 9457), with Shlink's types where it has one. This is the only
//! place that does. The APIs of other shorteners tell them in their own words (`compat`).

use hyper::{
    Method, StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use serde_json::{Map, Value, json};
use store::StoreError;

use app::{AppError, Field, find_link::LinkName};
use limits::ExceededShare;

use crate::{authenticate::AuthError, calls::Refused, kind::Kind};
use web::{Answer, answer, hold_back, retry_later};

/// The reason why a call failed.
#[derive(Debug)]
pub enum Problem {
    /// The application refused it.
    App(AppError),
    /// The body is not of the form that is expected.
    MalformedBody,
    /// The body is longer than is read.
    BodyTooLarge {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The body has too many values.
    TooManyValues {
        /// Maximum number of values.
        most: u64,
    },
    /// The body did not arrive in time.
    SlowBody,
    /// The call is not authenticated.
    Auth(AuthError),
    /// The query has no key, where it belongs there.
    NoKeyInQuery,
    /// There is no Mercure hub.
    NoMercure,
    /// There is no such call.
    NoRoute {
        /// Method of the call.
        method: Method,
        /// Its URL.
        url: String,
    },
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::App(error) => Self::App(error),
            error => Self::Auth(error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::App(error.into())
    }
}

impl From<ExceededShare> for Problem {
    fn from(spent: ExceededShare) -> Self {
        Self::App(spent.into())
    }
}

impl Problem {
    /// A defect of this program.
    pub const INTERNAL: Self = Self::App(AppError::Internal);

    pub(super) fn invalid(field: &str, expected: impl Into<String>) -> Self {
        Self::App(AppError::invalid(field, expected))
    }

    pub(super) fn into_answer(self) -> Answer {
        let (status, body) = self.shown();
        self.finish(answer(status, "application/problem+json", body.to_string()))
    }

    /// Adds the headers that say when to try again to an answer that tells of the problem, and
    /// holds back the refusals of clients that guess keys.
    pub fn finish(&self, mut answer: Answer) -> Answer {
        let status = self.status();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            // The rest of the body would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Self::Auth(AuthError::TooManyCalls(Refused { wait, share })) = self {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
            match share {
                Some(share) => share.tell(&mut answer),
                // Otherwise a client that guesses as fast as it is answered would use a whole core.
                None => answer = hold_back(answer),
            }
        }
        let is_full = matches!(self, Self::App(AppError::TooMuchAtOnce(_)));
        if is_full || status == StatusCode::SERVICE_UNAVAILABLE { retry_later(answer) } else { answer }
    }

    /// Returns the HTTP status of the answer.
    pub fn status(&self) -> StatusCode {
        self.kind().status()
    }

    pub(super) fn shown(&self) -> (StatusCode, Value) {
        let (title, kind, status) = self.kind().facts();
        // Members of their own are in front of the common ones, as in Shlink. `expected` is an
        // addition.
        let mut body = match self {
            Self::Auth(AuthError::NoKey) => json!({ "expectedHeaders": ["X-Api-Key"] }),
            Self::NoKeyInQuery => json!({ "param": "apiKey" }),
            Self::App(error) => members_of(error),
            _ => json!({}),
        };
        body["title"] = json!(title);
        body["type"] = json!(kind);
        body["status"] = json!(status.as_u16());
        body["detail"] = json!(self.detail());
        (status, body)
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::App(error) | Self::Auth(AuthError::App(error)) => Kind::of(error),
            Self::MalformedBody => Kind::MalformedBody,
            Self::BodyTooLarge { .. } | Self::TooManyValues { .. } => Kind::BodyTooLarge,
            Self::SlowBody => Kind::SlowBody,
            Self::Auth(AuthError::NoKey) | Self::NoKeyInQuery => Kind::NoKey,
            Self::Auth(AuthError::WrongKey) => Kind::WrongKey,
            Self::Auth(AuthError::TooManyCalls(_)) => Kind::TooManyCalls,
            Self::NoMercure => Kind::NoMercure,
            Self::NoRoute { .. } => Kind::NoRoute,
        }
    }

    /// Says what is wrong, without naming fields.
    pub fn detail(&self) -> String {
        match self {
            // Wrong fields have members of their own.
            Self::App(AppError::Invalid(_)) => "Provided data is not valid".to_owned(),
            Self::App(AppError::Superseded) => {
                "The link was edited since: expected If-Match with the ETag that it has now.".to_owned()
            }
            Self::App(error) => error.to_string(),
            Self::Auth(error) => error.to_string(),
            Self::MalformedBody => "Provided request does not contain a valid JSON body.".to_owned(),
            Self::BodyTooLarge { limit } => format!("Expected a body of at most {limit} bytes."),
            Self::TooManyValues { most } => format!("Expected a body of at most {most} values."),
            Self::SlowBody => "The body did not arrive in time.".to_owned(),
            Self::NoKeyInQuery => {
                "Expected authentication to be provided in \"apiKey\" query param".to_owned()
            }
            Self::NoMercure => "This Shlink instance is not integrated with a mercure hub.".to_owned(),
            Self::NoRoute { method, url } => format!("Cannot {method} {url}!"),
        }
    }
}

/// Returns the HTTP status of an error of the application.
pub fn status_of(error: &AppError) -> StatusCode {
    Kind::of(error).status()
}

/// Returns the members of Shlink's problems beside the common ones.
fn members_of(error: &AppError) -> Value {
    let named = |field: &str, LinkName { code, domain }: &LinkName| match domain {
        Some(domain) => json!({ field: code, "domain": domain }),
        None => json!({ field: code }),
    };
    match error {
        AppError::Invalid(invalid) => {
            let names: Vec<_> = invalid.iter().map(|one| one.field.as_str()).collect();
            let expected: Map<_, _> =
                invalid.iter().map(|one| (one.field.clone(), json!(one.expected))).collect();
            json!({ "invalidElements": names, "expected": expected })
        }
        AppError::SlugTaken(name) => named(Field::CustomSlug.name(), name),
        AppError::NoLink(name) => named("shortCode", name),
        AppError::NoDomain(name) => json!({ "authority": name }),
        AppError::NoTag(tag) => json!({ "tag": tag }),
        AppError::TagConflict { old, new } => json!({ "oldName": old, "newName": new }),
        _ => json!({}),
    }
}
