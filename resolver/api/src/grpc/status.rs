//! Converts errors to gRPC statuses. This is the only place that does so.

use app::AppError;
use tonic::Status;

use crate::{authenticate::AuthError, kind::Kind};

/// The metadata key for the short name of an error, which is the problem type in the REST API.
const PROBLEM_TYPE: &str = "problem-type";

impl From<AuthError> for Status {
    fn from(error: AuthError) -> Self {
        let kind = match &error {
            AuthError::App(error) => return of_app(error),
            AuthError::NoKey => Kind::NoKey,
            AuthError::WrongKey => Kind::WrongKey,
            AuthError::TooManyCalls(_) => Kind::TooManyCalls,
        };
        status(kind, error.to_string())
    }
}

pub(super) fn of_app(error: &AppError) -> Status {
    let message = match error {
        // A gRPC message has a version where an HTTP request has an ETag.
        AppError::Superseded => {
            "version: the link was edited meanwhile. Read it again, and send its current version, or none."
                .to_owned()
        }
        error => error.to_string(),
    };
    status(Kind::of(error), message)
}

fn status(kind: Kind, message: String) -> Status {
    let mut status = Status::new(kind.code(), message);
    if let Some(name) = kind.of_shlink().and_then(|(name, _)| name.parse().ok()) {
        status.metadata_mut().insert(PROBLEM_TYPE, name);
    }
    status
}
