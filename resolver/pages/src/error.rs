//! Why a page is not shown. `error_page.rs` shows the error.

use api::SignInError;
use app::AppError;
use hyper::StatusCode;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error(transparent)]
    App(#[from] AppError),
    /// The API key of a sign-in was refused.
    #[error(transparent)]
    SignIn(#[from] SignInError),
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
