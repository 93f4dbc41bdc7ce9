//! The kinds of problems that calls are answered with: one table for the statuses of both APIs and
//! for the descriptions in the OpenAPI document.

use app::AppError;
use hyper::StatusCode;
use limits::ExceededShare;
use schemars::{JsonSchema, SchemaGenerator};
use tonic::Code;

/// A kind of problem. Its name is that of its schema in the document, where its comment says when
/// calls are answered with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub(crate) enum Kind {
    /// The body is not JSON, or not of the kind that is expected (an object; for fills an array of
    /// objects).
    MalformedBody,
    /// The body is longer than is read. The detail says how long it may be.
    BodyTooLarge,
    /// The body came too slowly: nothing for ten seconds, or less than 16 KiB a second after that.
    SlowBody,
    /// Fields or parameters are wrong. Up to 16 of them are named at once; `expected` is an
    /// addition and says for each what would have been right, or why it was refused.
    InvalidData,
    /// There is no `X-Api-Key`, or it is empty.
    NoKey,
    /// The key does not exist, was revoked or has expired.
    WrongKey,
    /// The key exists, but lacks the scope that the call needs; or it is limited to some links, and
    /// the call concerns all of them.
    Forbidden,
    /// No link has this code on this domain, or the key must not know of it. `domain` is left out
    /// for the default one.
    NoShortUrl,
    /// Another link has this slug on this domain, or had this code before. `domain` is left out for
    /// the default one.
    SlugTaken,
    /// The Idempotency-Key came with another body before.
    IdempotencyKeyReused,
    /// No domain has this name, or the key is for another one.
    NoDomain,
    /// Another domain has this name.
    DomainTaken,
    /// There are as many domains as the operator allows.
    TooManyDomains,
    /// Links are on the domain, keys are limited to it, or it is the default one.
    DomainInUse,
    /// No rule has this pattern.
    NoTarget,
    /// Only keys that see all links may change tags, which all links share.
    ForbiddenTags,
    /// There is no Mercure hub: this service sends no updates.
    NoMercure,
    /// Reserved codes are on the default domain, and the key is for another one.
    OneDomainOnly,
    /// Too many calls were made with this key or from this client. `Retry-After` says how long to
    /// wait.
    TooManyCalls,
    /// The link was edited since its `ETag` was read: read it, and decide again.
    Superseded,
    /// An operator took the link down, and has to bring it back before it is deleted or moved.
    Blocked,
    /// The edit cannot be undone: its fields were changed again since, or it is no such edit. The
    /// detail says why, and names the fields.
    NotUndone,
    /// No link has this tag.
    NoTag,
    /// Another tag has the new name.
    TagConflict,
    /// No reservation has this id, or it is another key's.
    NoReservation,
    /// The reservation was given up, so nothing can be filled in any more.
    ReservationClosed,
    /// The key has as many codes in open reservations as the operator allows, or as many open
    /// reservations as a key may have.
    TooManyReserved,
    /// No scheduled edit has this id: it was made or cancelled, or the key must not know of its
    /// link.
    NoScheduledEdit,
    /// The link or the key has as many scheduled edits as it may have, those that failed included.
    TooManyScheduledEdits,
    /// No webhook has this id.
    NoWebhook,
    /// The webhook has no such delivery, or it was removed a week after its end.
    NoDelivery,
    /// There are as many webhooks as there may be.
    TooManyWebhooks,
    /// The webhook is disabled, so that it is not called.
    WebhookDisabled,
    /// The operator keeps no addresses of visitors, so that no visit can be found by one.
    AddressesNotKept,
    /// There are as many erasures as are kept for visits that are not stored yet. Each is forgotten
    /// when single visits of its time are.
    TooManyErasures,
    /// A later release has stored something of the link that this one cannot read, and that the
    /// change would lose.
    LaterRelease,
    /// Nothing is called by this method and path. A wrong method is answered like this too, and not
    /// with 405.
    NoRoute,
    /// Every code of the keyspace is taken. An operator has to add a keyspace.
    Exhausted,
    /// The database or the issuer of numbers does not answer at the moment. Nothing is lost: try
    /// again.
    Unavailable,
    /// A mistake of the server, which its log tells more of.
    Internal,
}

/// All kinds, in their order: each with its HTTP status, its gRPC status, and Shlink's short name
/// and title where it has them. Otherwise the status says what it is. The gRPC status of a kind
/// that only HTTP has is not used.
static KINDS: [(Kind, u16, Code, &str, &str); 40] = [
    (Kind::MalformedBody, 400, Code::InvalidArgument, "malformed-request-body", "Malformed request body"),
    (Kind::BodyTooLarge, 413, Code::ResourceExhausted, "", ""),
    (Kind::SlowBody, 408, Code::DeadlineExceeded, "", ""),
    (Kind::InvalidData, 400, Code::InvalidArgument, "invalid-data", "Invalid data"),
    (Kind::NoKey, 401, Code::Unauthenticated, "missing-authentication", "Invalid authorization"),
    (Kind::WrongKey, 401, Code::Unauthenticated, "invalid-api-key", "Invalid API key"),
    (Kind::Forbidden, 403, Code::PermissionDenied, "", ""),
    (Kind::NoShortUrl, 404, Code::NotFound, "short-url-not-found", "Short URL not found"),
    (Kind::SlugTaken, 400, Code::AlreadyExists, "non-unique-slug", "Invalid custom slug"),
    (Kind::IdempotencyKeyReused, 422, Code::InvalidArgument, "", ""),
    (Kind::NoDomain, 404, Code::NotFound, "domain-not-found", "Domain not found"),
    (Kind::DomainTaken, 409, Code::AlreadyExists, "", ""),
    (Kind::TooManyDomains, 409, Code::ResourceExhausted, "", ""),
    (Kind::DomainInUse, 409, Code::FailedPrecondition, "", ""),
    (Kind::NoTarget, 404, Code::NotFound, "", ""),
    (Kind::ForbiddenTags, 403, Code::PermissionDenied, "forbidden-tag-operation", "Forbidden tag operation"),
    (
        Kind::NoMercure,
        501,
        Code::Unimplemented,
        "mercure-not-configured",
        "Mercure integration not configured",
    ),
    (Kind::OneDomainOnly, 403, Code::PermissionDenied, "", ""),
    (Kind::TooManyCalls, 429, Code::ResourceExhausted, "", ""),
    (Kind::Superseded, 412, Code::Aborted, "", ""),
    (Kind::Blocked, 409, Code::FailedPrecondition, "", ""),
    (Kind::NotUndone, 409, Code::FailedPrecondition, "", ""),
    (Kind::NoTag, 404, Code::NotFound, "tag-not-found", "Tag not found"),
    (Kind::TagConflict, 409, Code::AlreadyExists, "tag-conflict", "Tag conflict"),
    (Kind::NoReservation, 404, Code::NotFound, "", ""),
    (Kind::ReservationClosed, 409, Code::FailedPrecondition, "", ""),
    (Kind::TooManyReserved, 409, Code::ResourceExhausted, "", ""),
    (Kind::NoScheduledEdit, 404, Code::NotFound, "", ""),
    (Kind::TooManyScheduledEdits, 409, Code::ResourceExhausted, "", ""),
    (Kind::NoWebhook, 404, Code::NotFound, "", ""),
    (Kind::NoDelivery, 404, Code::NotFound, "", ""),
    (Kind::TooManyWebhooks, 409, Code::ResourceExhausted, "", ""),
    (Kind::WebhookDisabled, 409, Code::FailedPrecondition, "", ""),
    (Kind::AddressesNotKept, 409, Code::FailedPrecondition, "", ""),
    (Kind::TooManyErasures, 409, Code::ResourceExhausted, "", ""),
    (Kind::LaterRelease, 409, Code::FailedPrecondition, "", ""),
    (Kind::NoRoute, 404, Code::NotFound, "not-found", "Not Found"),
    (Kind::Exhausted, 507, Code::ResourceExhausted, "", ""),
    (Kind::Unavailable, 503, Code::Unavailable, "", ""),
    (Kind::Internal, 500, Code::Internal, "internal-server-error", "Internal Server Error"),
];

impl Kind {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    pub(crate) fn status(self) -> StatusCode {
        StatusCode::from_u16(KINDS[self as usize].1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn code(self) -> Code {
        KINDS[self as usize].2
    }

    /// Returns Shlink's short name and title of the problem, where it has one.
    pub(crate) fn of_shlink(self) -> Option<(&'static str, &'static str)> {
        let (_, _, _, name, title) = KINDS[self as usize];
        Some((name, title)).filter(|_| !name.is_empty())
    }

    /// Returns title, type and status of the problem (RFC 9457).
    pub(crate) fn facts(self) -> (&'static str, String, StatusCode) {
        let status = self.status();
        match self.of_shlink() {
            Some((name, title)) => (title, format!("https://shlink.io/api/error/{name}"), status),
            None => (status.canonical_reason().unwrap_or("Error"), "about:blank".to_owned(), status),
        }
    }

    /// Describes when calls are answered with this problem, in the words of its comment.
    pub(crate) fn when(self) -> String {
        let schema = Self::json_schema(&mut SchemaGenerator::default()).to_value();
        schema["oneOf"][self as usize]["description"].as_str().unwrap_or_default().replace('\n', " ")
    }

    pub(crate) fn of(error: &AppError) -> Self {
        match error {
            AppError::Invalid(_) => Self::InvalidData,
            AppError::Forbidden { .. }
            | AppError::MayNotAddDomain { .. }
            | AppError::LimitedKey
            | AppError::TooManyOwnLinks { .. } => Self::Forbidden,
            AppError::NoLink { .. } => Self::NoShortUrl,
            AppError::SlugTaken { .. } => Self::SlugTaken,
            AppError::IdempotencyKeyReused => Self::IdempotencyKeyReused,
            AppError::NoDomain { .. } => Self::NoDomain,
            AppError::DomainTaken { .. } => Self::DomainTaken,
            AppError::TooManyDomains { .. } => Self::TooManyDomains,
            AppError::DomainInUse { .. } => Self::DomainInUse,
            AppError::NoTarget { .. } => Self::NoTarget,
            AppError::ForbiddenTags { .. } => Self::ForbiddenTags,
            AppError::OneDomainOnly => Self::OneDomainOnly,
            AppError::TooMuchAtOnce(ExceededShare::Own) => Self::TooManyCalls,
            AppError::TooMuchAtOnce(ExceededShare::All) | AppError::SlowList | AppError::Unavailable => {
                Self::Unavailable
            }
            AppError::Superseded => Self::Superseded,
            AppError::Blocked => Self::Blocked,
            AppError::NotUndone(_) => Self::NotUndone,
            AppError::NoTag { .. } => Self::NoTag,
            AppError::TagConflict { .. } => Self::TagConflict,
            AppError::NoReservation { .. } => Self::NoReservation,
            AppError::ReservationClosed { .. } => Self::ReservationClosed,
            AppError::TooManyReserved { .. } | AppError::TooManyReservations { .. } => Self::TooManyReserved,
            AppError::NoScheduledEdit { .. } => Self::NoScheduledEdit,
            AppError::TooManyScheduledEdits { .. } => Self::TooManyScheduledEdits,
            AppError::NoWebhook { .. } => Self::NoWebhook,
            AppError::NoDelivery { .. } => Self::NoDelivery,
            AppError::TooManyWebhooks { .. } => Self::TooManyWebhooks,
            AppError::WebhookDisabled { .. } => Self::WebhookDisabled,
            AppError::AddressesNotKept => Self::AddressesNotKept,
            AppError::TooManyErasures { .. } => Self::TooManyErasures,
            AppError::LaterRelease => Self::LaterRelease,
            AppError::Exhausted => Self::Exhausted,
            AppError::Internal => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (place, kind) in Kind::all().enumerate() {
            assert_eq!(kind as usize, place);
            assert!(!kind.when().is_empty(), "{kind:?}");
        }
    }
}
