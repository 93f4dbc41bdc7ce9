//! Converts errors to problems (RFC 9457), with Shlink's types where it has one. This is the only
//! place that does.

use hyper::{
    Method, StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use serde_json::{Map, Value, json};
use store::StoreError;

use super::split::SplitError;
use app::{AppError, Field};
use limits::{ExceededShare, PermitTimeout};

use crate::{authenticate::AuthError, calls::Refused};
use web::{Answer, answer, hold_back, retry_later};

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A use case refused the call, or failed.
    App(AppError),
    MalformedBody,
    BodyTooLarge {
        limit: usize,
    },
    TooManyValues {
        most: u64,
    },
    SlowBody,
    /// The call is not authenticated.
    Auth(AuthError),
    NoKeyInQuery,
    NoMercure,
    NoRoute {
        method: Method,
        url: String,
    },
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

/// Status, type, title and detail.
struct Words {
    status: StatusCode,
    kind: Option<&'static str>,
    title: &'static str,
    detail: String,
}

fn words(status: StatusCode, kind: &'static str, title: &'static str, detail: impl Into<String>) -> Words {
    Words { status, kind: Some(kind), title, detail: detail.into() }
}

/// Describes a problem that Shlink lacks, with the type `about:blank`: the status says what it is.
fn plain(status: StatusCode, detail: impl Into<String>) -> Words {
    Words { status, kind: None, title: status.canonical_reason().unwrap_or("Error"), detail: detail.into() }
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

impl From<SplitError> for Problem {
    fn from(error: SplitError) -> Self {
        match error {
            SplitError::TooLong => Self::invalid("(the array)", error.to_string()),
            SplitError::Malformed | SplitError::Unfinished => Self::MalformedBody,
        }
    }
}

impl From<ExceededShare> for Problem {
    fn from(spent: ExceededShare) -> Self {
        Self::App(spent.into())
    }
}

impl From<PermitTimeout> for Problem {
    fn from(none: PermitTimeout) -> Self {
        Self::App(none.into())
    }
}

impl Problem {
    /// A defect of this program.
    pub(super) const INTERNAL: Self = Self::App(AppError::Internal);

    /// Returns the problem of one wrong field.
    pub(super) fn invalid(field: &str, expected: impl Into<String>) -> Self {
        Self::App(AppError::invalid(field, expected))
    }

    pub(super) fn into_answer(self) -> Answer {
        let (status, body) = self.shown();
        let refused =
            if let Self::Auth(AuthError::TooManyCalls(refused)) = &self { Some(*refused) } else { None };
        let mut answer = answer(status, "application/problem+json", Value::Object(body).to_string());
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            // The rest of the body would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(Refused { wait, share }) = refused {
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

    /// Returns the status, and all members of the body.
    pub(super) fn shown(&self) -> (StatusCode, Map<String, Value>) {
        let Words { status, kind, title, detail } = self.words();
        let kind =
            kind.map_or("about:blank".to_owned(), |kind| format!("https://shlink.io/api/error/{kind}"));
        let mut body = self.extra();
        for (name, value) in [
            ("title", json!(title)),
            ("type", json!(kind)),
            ("status", json!(status.as_u16())),
            ("detail", json!(detail)),
        ] {
            body.insert(name.to_owned(), value);
        }
        (status, body)
    }

    fn words(&self) -> Words {
        match self {
            Self::MalformedBody => words(
                StatusCode::BAD_REQUEST,
                "malformed-request-body",
                "Malformed request body",
                "Provided request does not contain a valid JSON body.",
            ),
            Self::BodyTooLarge { limit } => {
                plain(StatusCode::PAYLOAD_TOO_LARGE, format!("Expected a body of at most {limit} bytes."))
            }
            Self::TooManyValues { most } => {
                plain(StatusCode::PAYLOAD_TOO_LARGE, format!("Expected a body of at most {most} values."))
            }
            Self::SlowBody => plain(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time."),
            Self::App(error) | Self::Auth(AuthError::App(error)) => of_app(error),
            Self::Auth(error @ AuthError::NoKey) => words(
                StatusCode::UNAUTHORIZED,
                "missing-authentication",
                "Invalid authorization",
                error.to_string(),
            ),
            Self::Auth(error @ AuthError::WrongKey) => {
                words(StatusCode::UNAUTHORIZED, "invalid-api-key", "Invalid API key", error.to_string())
            }
            Self::Auth(error @ AuthError::TooManyCalls(_)) => {
                plain(StatusCode::TOO_MANY_REQUESTS, error.to_string())
            }
            Self::NoKeyInQuery => words(
                StatusCode::UNAUTHORIZED,
                "missing-authentication",
                "Invalid authorization",
                "Expected authentication to be provided in \"apiKey\" query param",
            ),
            Self::NoMercure => words(
                StatusCode::NOT_IMPLEMENTED,
                "mercure-not-configured",
                "Mercure integration not configured",
                "This Shlink instance is not integrated with a mercure hub.",
            ),
            Self::NoRoute { method, url } => {
                words(StatusCode::NOT_FOUND, "not-found", "Not Found", format!("Cannot {method} {url}!"))
            }
        }
    }

    /// Returns members in front of the common ones, as in Shlink. `expected` is an addition.
    fn extra(&self) -> Map<String, Value> {
        let fields = match self {
            Self::Auth(AuthError::NoKey) => vec![("expectedHeaders", json!(["X-Api-Key"]))],
            Self::NoKeyInQuery => vec![("param", json!("apiKey"))],
            Self::App(error) => extra_of_app(error),
            _ => Vec::new(),
        };
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns the HTTP status of an error of the application.
#[must_use]
pub fn status_of(error: &AppError) -> StatusCode {
    of_app(error).status
}

/// Returns status, type, title and detail of an error of the application.
fn of_app(error: &AppError) -> Words {
    let (status, title) = match error {
        AppError::Invalid(_) => (StatusCode::BAD_REQUEST, Some("Invalid data")),
        AppError::SlugTaken { .. } => (StatusCode::BAD_REQUEST, Some("Invalid custom slug")),
        AppError::NoLink { .. } => (StatusCode::NOT_FOUND, Some("Short URL not found")),
        AppError::NoTag { .. } => (StatusCode::NOT_FOUND, Some("Tag not found")),
        AppError::NoDomain { .. } => (StatusCode::NOT_FOUND, Some("Domain not found")),
        AppError::NoTarget { .. }
        | AppError::NoReservation { .. }
        | AppError::NoWebhook { .. }
        | AppError::NoDelivery { .. } => (StatusCode::NOT_FOUND, None),
        AppError::ForbiddenTags { .. } => (StatusCode::FORBIDDEN, Some("Forbidden tag operation")),
        AppError::Forbidden { .. }
        | AppError::LimitedKey
        | AppError::TooManyOwnLinks { .. }
        | AppError::OneDomainOnly
        | AppError::MayNotAddDomain { .. } => (StatusCode::FORBIDDEN, None),
        AppError::TagConflict { .. } => (StatusCode::CONFLICT, Some("Tag conflict")),
        AppError::Blocked
        | AppError::DomainTaken { .. }
        | AppError::TooManyDomains { .. }
        | AppError::DomainInUse { .. }
        | AppError::ReservationClosed { .. }
        | AppError::TooManyReserved { .. }
        | AppError::TooManyReservations { .. }
        | AppError::TooManyWebhooks { .. }
        | AppError::WebhookDisabled { .. }
        | AppError::AddressesNotKept
        | AppError::LaterRelease
        | AppError::TooManyErasures { .. } => (StatusCode::CONFLICT, None),
        AppError::Superseded => (StatusCode::PRECONDITION_FAILED, None),
        AppError::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, None),
        AppError::TooMuchAtOnce(ExceededShare::Own) => (StatusCode::TOO_MANY_REQUESTS, None),
        AppError::TooMuchAtOnce(ExceededShare::All) | AppError::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, None)
        }
        AppError::Exhausted => (StatusCode::INSUFFICIENT_STORAGE, None),
        AppError::Internal => (StatusCode::INTERNAL_SERVER_ERROR, Some("Internal Server Error")),
    };
    let detail = match error {
        // Wrong fields have members of their own.
        AppError::Invalid(_) => "Provided data is not valid".to_owned(),
        AppError::Superseded => {
            "The link was edited since: expected If-Match with the ETag that it has now.".to_owned()
        }
        error => error.to_string(),
    };
    let title = title.or(status.canonical_reason()).unwrap_or("Error");
    Words { status, kind: error.kind(), title, detail }
}

/// Returns members of Shlink's problems beside the common ones.
fn extra_of_app(error: &AppError) -> Vec<(&'static str, Value)> {
    let named = |name, value: &str, domain: &Option<String>| {
        let domain = domain.iter().map(|domain| ("domain", json!(domain)));
        std::iter::once((name, json!(value))).chain(domain).collect()
    };
    match error {
        AppError::Invalid(invalid) => {
            let names: Vec<_> = invalid.iter().map(|one| one.field.as_str()).collect();
            let expected: Map<_, _> =
                invalid.iter().map(|one| (one.field.clone(), json!(one.expected))).collect();
            vec![("invalidElements", json!(names)), ("expected", Value::Object(expected))]
        }
        AppError::SlugTaken { slug, domain } => named(Field::CustomSlug.name(), slug, domain),
        AppError::NoLink { code, domain } => named("shortCode", code, domain),
        AppError::NoDomain { name } => vec![("authority", json!(name))],
        AppError::NoTag { tag } => vec![("tag", json!(tag))],
        AppError::TagConflict { old, new } => vec![("oldName", json!(old)), ("newName", json!(new))],
        _ => Vec::new(),
    }
}
