//! The health of the service.

use dto::{Health, HealthLinks, HealthStatus};
use hyper::{Method, StatusCode};

use super::{
    call::Call,
    docs::Topic,
    problem::Problem,
    route::{ContentSchema, Route, open},
};
use web::{Answer, answer};

/// The level of Shlink's API that clients may expect; they choose by it what they offer.
pub(super) const API_LEVEL: &str = "5.1.0";
const HEALTH_JSON: &str = "application/health+json";

pub(super) fn routes() -> Vec<Route> {
    let health = |path, id| {
        let content =
            || vec![(HEALTH_JSON, ContentSchema::Of(schemars::SchemaGenerator::subschema_for::<Health>))];
        Route::new(Method::GET, path, open!(report))
            .document(id, Topic::Service, "Check whether the database answers")
            .text("`version` is the level of Shlink's API that clients may expect; they choose by it what they offer. The answer is 503 with `\"status\": \"fail\"` if the database does not answer.")
            .answers_of(200, "The database answers.", content())
            .answers_of(503, "The database does not answer.", content())
    };
    vec![health("/rest/health", "healthOfAnyVersion"), health("/rest/v3/health", "health")]
}

async fn report(call: &Call) -> Result<Answer, Problem> {
    let (code, status) = match call.api.store.check().await {
        Ok(()) => (StatusCode::OK, HealthStatus::Pass),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "health");
            (StatusCode::SERVICE_UNAVAILABLE, HealthStatus::Fail)
        }
    };
    let links = HealthLinks { about: "https://shlink.io", project: "https://github.com/shlinkio/shlink" };
    let health = serde_json::to_vec(&Health { status, version: API_LEVEL, links });
    Ok(answer(code, HEALTH_JSON, health.map_err(|_| Problem::INTERNAL)?))
}
