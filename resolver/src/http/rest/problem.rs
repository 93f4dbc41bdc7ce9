//! The one place where errors become answers of the API (RFC 9457), with Shlink's types where it has one.

use hyper::{
    Method, StatusCode,
    header::{CONNECTION, HeaderValue, RETRY_AFTER},
};
use links::scope::Scope;
use serde_json::{Map, Value, json};
use store::StoreError;

use super::{query::Query, split::SplitError};
use crate::{
    http::{Answer, App, answer, budgets::Spent, calls::Refused, hold_back, retry_later},
    reservation::ReserveError,
};

/// A field of the body that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) struct Invalid {
    pub(super) field: String,
    pub(super) expected: String,
}

/// What can be wrong with a call.
#[derive(Debug)]
pub(in crate::http) enum Problem {
    MalformedBody,
    BodyTooLarge { limit: usize },
    TooManyValues { most: u64 },
    SlowBody,
    InvalidData(Vec<Invalid>),
    NoKey,
    NoKeyInQuery,
    WrongKey,
    Forbidden { scope: Scope },
    NoShortUrl { code: String, domain: Option<String> },
    SlugTaken { slug: String, domain: Option<String> },
    IdempotencyKeyReused,
    NoDomain { name: String },
    DomainTaken { name: String },
    MayNotAddDomain { name: String },
    TooManyDomains { most: u32 },
    DomainInUse { name: String, by: &'static str },
    LimitedKey,
    NoTarget { pattern: String },
    ForbiddenTags { what: &'static str },
    NoMercure,
    OneDomainOnly,
    TooManyCalls(Refused),
    TooMuchAtOnce(Spent),
    Superseded,
    Blocked,
    NoTag { tag: String },
    TagConflict { old: String, new: String },
    NoReservation { id: String },
    ReservationClosed { id: String },
    TooManyReserved { held: u64, most: u64 },
    NoRoute { method: Method, url: String },
    Exhausted,
    Unavailable,
    Internal,
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

/// For problems that Shlink does not know: RFC 9457's type for "what the status says".
fn plain(status: StatusCode, detail: impl Into<String>) -> Words {
    Words { status, kind: None, title: status.canonical_reason().unwrap_or("Error"), detail: detail.into() }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::warn!(error = &error as &dyn std::error::Error, "answer a call of the API");
        Self::Unavailable
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

impl From<Spent> for Problem {
    fn from(spent: Spent) -> Self {
        Self::TooMuchAtOnce(spent)
    }
}

impl From<ReserveError> for Problem {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::Exhausted => Self::Exhausted,
            ReserveError::Unavailable | ReserveError::Closed => Self::Unavailable,
        }
    }
}

impl Problem {
    /// One field is wrong.
    pub(super) fn invalid(field: &str, expected: impl Into<String>) -> Self {
        Self::InvalidData(vec![Invalid { field: field.to_owned(), expected: expected.into() }])
    }

    /// No link of this name on the domain that the query names.
    pub(super) fn no_short_url(app: &App, name: &str, query: &Query) -> Self {
        let is_other = |name: &&str| *name != "DEFAULT" && *name != app.directory.default_name();
        let domain = query.text("domain").filter(is_other).map(str::to_owned);
        let code = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
        Self::NoShortUrl { code, domain }
    }

    /// What the other API says of it: status, type and what was wrong, in one line.
    pub(in crate::http) fn told(&self) -> (StatusCode, Option<&'static str>, String) {
        let Words { status, kind, detail, .. } = self.words();
        let detail = match self {
            Self::InvalidData(invalid) => {
                let told = invalid.iter().map(|one| format!("{}: {}", one.field, one.expected));
                told.collect::<Vec<_>>().join("; ")
            }
            _ => detail,
        };
        (status, kind, detail)
    }

    pub(super) fn into_answer(self) -> Answer {
        let (status, body) = self.shown();
        let refused = if let Self::TooManyCalls(refused) = &self { Some(*refused) } else { None };
        let mut answer = answer(status, "application/problem+json", Value::Object(body).to_string());
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            // What of the body has not come yet would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(Refused { wait, share }) = refused {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
            match share {
                Some(share) => share.tell(&mut answer),
                // Else whoever guesses as fast as answers come would have a core for them.
                None => answer = hold_back(answer),
            }
        }
        let is_full = matches!(self, Self::TooMuchAtOnce(_));
        if is_full || status == StatusCode::SERVICE_UNAVAILABLE { retry_later(answer) } else { answer }
    }

    /// The status, and all members of the body.
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
            Self::InvalidData(_) => {
                words(StatusCode::BAD_REQUEST, "invalid-data", "Invalid data", "Provided data is not valid")
            }
            Self::NoKey => words(
                StatusCode::UNAUTHORIZED,
                "missing-authentication",
                "Invalid authorization",
                "Expected one of the following authentication headers, [\"X-Api-Key\"], but none were provided",
            ),
            Self::NoKeyInQuery => words(
                StatusCode::UNAUTHORIZED,
                "missing-authentication",
                "Invalid authorization",
                "Expected authentication to be provided in \"apiKey\" query param",
            ),
            Self::WrongKey => words(
                StatusCode::UNAUTHORIZED,
                "invalid-api-key",
                "Invalid API key",
                "Provided API key does not exist or is invalid.",
            ),
            Self::NoShortUrl { code, domain } => {
                let on = domain.as_ref().map_or(String::new(), |domain| format!(" for domain \"{domain}\""));
                let detail = format!("No URL found with short code \"{code}\"{on}");
                words(StatusCode::NOT_FOUND, "short-url-not-found", "Short URL not found", detail)
            }
            Self::SlugTaken { slug, domain } => {
                let on = domain.as_ref().map_or(String::new(), |domain| format!(" for domain \"{domain}\""));
                let detail = format!("Provided slug \"{slug}\" is already in use{on}.");
                words(StatusCode::BAD_REQUEST, "non-unique-slug", "Invalid custom slug", detail)
            }
            Self::Superseded => plain(
                StatusCode::PRECONDITION_FAILED,
                "The link was edited since: expected If-Match with the ETag that it has now.",
            ),
            Self::NoTag { tag } => {
                let detail = format!("Tag with name \"{tag}\" could not be found");
                words(StatusCode::NOT_FOUND, "tag-not-found", "Tag not found", detail)
            }
            Self::TagConflict { old, new } => {
                let detail = format!("You cannot rename tag {old} to {new}, because it already exists");
                words(StatusCode::CONFLICT, "tag-conflict", "Tag conflict", detail)
            }
            Self::NoDomain { .. }
            | Self::DomainTaken { .. }
            | Self::MayNotAddDomain { .. }
            | Self::TooManyDomains { .. }
            | Self::DomainInUse { .. }
            | Self::LimitedKey
            | Self::Blocked
            | Self::TooManyReserved { .. } => self.of_policy(),
            Self::NoTarget { .. }
            | Self::ForbiddenTags { .. }
            | Self::NoMercure
            | Self::OneDomainOnly
            | Self::IdempotencyKeyReused
            | Self::NoReservation { .. }
            | Self::ReservationClosed { .. }
            | Self::TooMuchAtOnce(_)
            | Self::TooManyCalls(_) => self.beside_links(),
            Self::Forbidden { scope } => {
                plain(StatusCode::FORBIDDEN, format!("Expected an API key with the scope \"{scope}\"."))
            }
            Self::NoRoute { method, url } => {
                words(StatusCode::NOT_FOUND, "not-found", "Not Found", format!("Cannot {method} {url}!"))
            }
            Self::Exhausted | Self::Unavailable | Self::Internal => self.own_fault(),
        }
    }

    /// Words for what is wrong beside links and bodies.
    fn beside_links(&self) -> Words {
        match self {
            Self::NoReservation { id } => {
                plain(StatusCode::NOT_FOUND, format!("No reservation found with id \"{id}\""))
            }
            Self::ReservationClosed { id } => {
                plain(StatusCode::CONFLICT, format!("The reservation \"{id}\" was given up."))
            }
            Self::NoTarget { pattern } => {
                plain(StatusCode::NOT_FOUND, format!("No rule found for \"{pattern}\""))
            }
            Self::ForbiddenTags { what } => words(
                StatusCode::FORBIDDEN,
                "forbidden-tag-operation",
                "Forbidden tag operation",
                format!("You are not allowed to {what} tags"),
            ),
            Self::NoMercure => words(
                StatusCode::NOT_IMPLEMENTED,
                "mercure-not-configured",
                "Mercure integration not configured",
                "This Shlink instance is not integrated with a mercure hub.",
            ),
            Self::OneDomainOnly => plain(
                StatusCode::FORBIDDEN,
                "Expected an API key that is not for one domain only, or one call for each link.",
            ),
            Self::TooMuchAtOnce(Spent::Own) => plain(
                StatusCode::TOO_MANY_REQUESTS,
                "Too much is under way with this API key already: expected fewer or smaller calls at a time.",
            ),
            Self::TooMuchAtOnce(Spent::All) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "As much is under way as this server takes on. Nothing was stored: try again.",
            ),
            Self::IdempotencyKeyReused => plain(
                StatusCode::UNPROCESSABLE_ENTITY,
                "This Idempotency-Key came with something else before: expected another key, or the same body.",
            ),
            _ => plain(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many calls were made with this API key or from here. Try again later.",
            ),
        }
    }

    /// Words for what an operator's rules forbid, and for domains.
    fn of_policy(&self) -> Words {
        match self {
            Self::NoDomain { name } => {
                let detail = format!("Domain with authority \"{name}\" could not be found");
                words(StatusCode::NOT_FOUND, "domain-not-found", "Domain not found", detail)
            }
            Self::DomainTaken { name } => {
                plain(StatusCode::CONFLICT, format!("Another domain is called \"{name}\"."))
            }
            Self::MayNotAddDomain { name } => plain(
                StatusCode::FORBIDDEN,
                format!(
                    "Expected an API key with the scope \"domains\", or a domain that exists: none is called \"{name}\"."
                ),
            ),
            Self::TooManyDomains { most } => plain(
                StatusCode::CONFLICT,
                format!(
                    "Expected a domain that exists: there are {most} of them, as many as --domains-max allows."
                ),
            ),
            Self::DomainInUse { name, by } => {
                plain(StatusCode::CONFLICT, format!("The domain \"{name}\" cannot be removed: {by}."))
            }
            Self::Blocked => plain(
                StatusCode::CONFLICT,
                "The link was taken down: expected an operator to lift the block before it is deleted.",
            ),
            Self::TooManyReserved { held, most } => plain(
                StatusCode::CONFLICT,
                format!(
                    "Expected fewer codes, or reservations to be given up: {held} of {most} codes are in open reservations of this key."
                ),
            ),
            _ => plain(
                StatusCode::FORBIDDEN,
                "Expected an API key that is limited neither to one domain nor to links of its own.",
            ),
        }
    }

    /// Words for what no client can mend.
    fn own_fault(&self) -> Words {
        match self {
            Self::Exhausted => plain(
                StatusCode::INSUFFICIENT_STORAGE,
                "Every code of this keyspace is taken: an operator has to add a keyspace.",
            ),
            Self::Unavailable => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "No number or no database is to be had at the moment. Nothing is lost: try again.",
            ),
            _ => words(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal-server-error",
                "Internal Server Error",
                "An unknown error occurred.",
            ),
        }
    }

    /// What stands before the common fields, as Shlink has it. `expected` is ours: what would have been right.
    fn extra(&self) -> Map<String, Value> {
        let fields = match self {
            Self::InvalidData(invalid) => {
                let names: Vec<_> = invalid.iter().map(|one| one.field.as_str()).collect();
                let expected: Map<_, _> =
                    invalid.iter().map(|one| (one.field.clone(), json!(one.expected))).collect();
                vec![("invalidElements", json!(names)), ("expected", Value::Object(expected))]
            }
            Self::NoKey => vec![("expectedHeaders", json!(["X-Api-Key"]))],
            Self::NoKeyInQuery => vec![("param", json!("apiKey"))],
            Self::SlugTaken { slug, domain } => {
                let domain = domain.iter().map(|domain| ("domain", json!(domain)));
                std::iter::once(("customSlug", json!(slug))).chain(domain).collect()
            }
            Self::NoDomain { name } => vec![("authority", json!(name))],
            Self::NoTag { tag } => vec![("tag", json!(tag))],
            Self::TagConflict { old, new } => vec![("oldName", json!(old)), ("newName", json!(new))],
            Self::NoShortUrl { code, domain } => {
                let domain = domain.iter().map(|domain| ("domain", json!(domain)));
                std::iter::once(("shortCode", json!(code))).chain(domain).collect()
            }
            _ => Vec::new(),
        };
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
