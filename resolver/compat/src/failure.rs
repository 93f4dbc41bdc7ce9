//! Why a call failed, and what all APIs answer with it.

use api::rest::Problem;
use app::{AppError, InvalidField};
use hyper::StatusCode;
use links::LongUrlError;
use web::Answer;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The REST API would refuse the call too.
    Api(Problem),
    /// A key that the REST API accepts is refused, with this text.
    Key(&'static str),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Api(problem)
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self::Api(error.into())
    }
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Api(problem) => problem.status(),
            Self::Key(_) => StatusCode::FORBIDDEN,
        }
    }

    /// Returns the fields with wrong values.
    pub(crate) fn invalid(&self) -> &[InvalidField] {
        match self {
            Self::Api(Problem::App(AppError::Invalid(fields))) => fields,
            _ => &[],
        }
    }

    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Api(Problem::App(AppError::SlugTaken(_))))
    }

    /// Returns whether a long URL is one of this service.
    pub(crate) fn is_own_url(&self) -> bool {
        self.invalid().iter().any(|one| one.expected == LongUrlError::OwnDomain.to_string())
    }

    /// Describes the failure. Fields have the names of the API.
    pub(crate) fn text(&self, names: &[(&str, &str)]) -> String {
        match self {
            Self::Api(Problem::App(AppError::Invalid(fields))) => {
                let of = |one: &InvalidField| format!("{}: {}", renamed(&one.field, names), one.expected);
                fields.iter().map(of).collect::<Vec<_>>().join("; ")
            }
            Self::Api(problem) => problem.detail(),
            Self::Key(text) => (*text).to_owned(),
        }
    }

    /// Adds the headers of the REST API's answer to the same failure.
    pub(crate) fn finish(&self, answer: Answer) -> Answer {
        match self {
            Self::Api(problem) => problem.finish(answer),
            Self::Key(_) => answer,
        }
    }
}

/// Returns the name that an API has for a field.
pub(crate) fn renamed<'a>(field: &'a str, names: &[(&str, &'a str)]) -> &'a str {
    names.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, theirs)| theirs)
}
