//! `GET /rest/health` and `GET /rest/v3/health`

use hyper::StatusCode;
use serde_json::json;

use crate::http::{Answer, App, answer};

/// The level of Shlink's API that clients may expect; they choose by it what they offer.
pub(super) const API_LEVEL: &str = "5.1.0";

/// Whether the database answers.
pub(super) async fn report(app: &App) -> Answer {
    let (code, status) = match app.store.check().await {
        Ok(()) => (StatusCode::OK, "pass"),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "health");
            (StatusCode::SERVICE_UNAVAILABLE, "fail")
        }
    };
    let links = json!({ "about": "https://shlink.io", "project": "https://github.com/shlinkio/shlink" });
    let body = json!({ "status": status, "version": API_LEVEL, "links": links });
    answer(code, "application/health+json", body.to_string())
}
