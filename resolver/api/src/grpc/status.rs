//! Converts errors to gRPC statuses. This is the only place that does so.

use app::AppError;
use limits::ExceededShare;
use tonic::{Code, Status};

use crate::authenticate::AuthError;

/// The metadata key for the short name of an error, which is the problem type in the REST API.
const PROBLEM_TYPE: &str = "problem-type";

impl From<AuthError> for Status {
    fn from(error: AuthError) -> Self {
        let (code, kind) = match &error {
            AuthError::App(error) => return of_app(error),
            AuthError::NoKey => (Code::Unauthenticated, Some("missing-authentication")),
            AuthError::WrongKey => (Code::Unauthenticated, Some("invalid-api-key")),
            AuthError::TooManyCalls(_) => (Code::ResourceExhausted, None),
        };
        with_kind(Self::new(code, error.to_string()), kind)
    }
}

/// Returns the status of an application error.
pub(super) fn of_app(error: &AppError) -> Status {
    let code = match error {
        AppError::Invalid(_) | AppError::IdempotencyKeyReused => Code::InvalidArgument,
        AppError::Forbidden { .. }
        | AppError::LimitedKey
        | AppError::TooManyOwnLinks { .. }
        | AppError::OneDomainOnly
        | AppError::MayNotAddDomain { .. }
        | AppError::ForbiddenTags { .. } => Code::PermissionDenied,
        AppError::NoLink { .. }
        | AppError::NoDomain { .. }
        | AppError::NoTarget { .. }
        | AppError::NoTag { .. }
        | AppError::NoReservation { .. }
        | AppError::NoWebhook { .. }
        | AppError::NoDelivery { .. } => Code::NotFound,
        AppError::SlugTaken { .. } | AppError::DomainTaken { .. } | AppError::TagConflict { .. } => {
            Code::AlreadyExists
        }
        AppError::Superseded => Code::Aborted,
        AppError::Blocked
        | AppError::LaterRelease
        | AppError::DomainInUse { .. }
        | AppError::ReservationClosed { .. }
        | AppError::WebhookDisabled { .. }
        | AppError::AddressesNotKept => Code::FailedPrecondition,
        AppError::TooManyDomains { .. }
        | AppError::TooManyReserved { .. }
        | AppError::TooManyReservations { .. }
        | AppError::TooManyWebhooks { .. }
        | AppError::TooManyErasures { .. }
        | AppError::TooMuchAtOnce(ExceededShare::Own)
        | AppError::Exhausted => Code::ResourceExhausted,
        AppError::TooMuchAtOnce(ExceededShare::All) | AppError::Unavailable => Code::Unavailable,
        AppError::Internal => Code::Internal,
    };
    let message = match error {
        // A gRPC message has a version where an HTTP request has an ETag.
        AppError::Superseded => {
            "version: the link was edited since: expected the version that it has now, or none".to_owned()
        }
        error => error.to_string(),
    };
    with_kind(Status::new(code, message), error.kind())
}

fn with_kind(mut status: Status, kind: Option<&'static str>) -> Status {
    if let Some(kind) = kind.and_then(|kind| kind.parse().ok()) {
        status.metadata_mut().insert(PROBLEM_TYPE, kind);
    }
    status
}
