//! The health of the service.
//!
//! The call needs no key. So its callers share a check of the database, which is repeated once a
//! second at most: a flood of calls takes one connection, and only for a moment.

use std::time::Duration;

use dto::{Health, HealthLinks, HealthStatus};
use hyper::{Method, StatusCode};
use store::StoreError;
use tokio::{sync::Mutex, time::Instant};

use super::{
    call::Call,
    docs::Topic,
    problem::Problem,
    route::{Handler, Route, SchemaOf},
};
use web::{Answer, answer};

/// The level of Shlink's API that clients may expect; they choose by it what they offer.
pub(super) const API_LEVEL: &str = "5.1.0";
const HEALTH_JSON: &str = "application/health+json";
/// The time for which the result of a check is answered.
const BELIEVED: Duration = Duration::from_secs(1);

/// The last check of the database.
#[derive(Default)]
pub struct HealthCheck {
    /// When the check ended, and its result. Locked while the database is asked, so that calls
    /// which arrive meanwhile wait for the result.
    last: Mutex<Option<(Instant, HealthStatus)>>,
}

impl HealthCheck {
    /// Returns the result of the last second, or else that of `check`.
    async fn status(&self, check: impl Future<Output = Result<(), StoreError>>) -> HealthStatus {
        let mut last = self.last.lock().await;
        if let Some((at, status)) = *last
            && at.elapsed() < BELIEVED
        {
            return status;
        }
        let status = match check.await {
            Ok(()) => HealthStatus::Pass,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "health");
                HealthStatus::Fail
            }
        };
        *last = Some((Instant::now(), status));
        status
    }
}

pub(super) fn routes() -> Vec<Route> {
    let health = |path, id| {
        let schema: SchemaOf = schemars::SchemaGenerator::subschema_for::<Health>;
        let content = || vec![(HEALTH_JSON, schema)];
        Route::new(Method::GET, path, Handler::Open(|call| Box::pin(report(call))))
            .document(id, Topic::Service, "Check whether the database answers")
            .text("`version` is the level of Shlink's API that clients may expect; they choose by it what they offer. The answer is 503 with `\"status\": \"fail\"` if the database does not answer.")
            .answers_of(200, "The database answers.", content())
            .answers_of(503, "The database does not answer.", content())
    };
    vec![health("/rest/health", "healthOfAnyVersion"), health("/rest/v3/health", "health")]
}

async fn report(call: &Call) -> Result<Answer, Problem> {
    let status = call.api.health.status(call.api.store.check()).await;
    let code = match status {
        HealthStatus::Pass => StatusCode::OK,
        HealthStatus::Fail => StatusCode::SERVICE_UNAVAILABLE,
    };
    let links = HealthLinks { about: "https://shlink.io", project: "https://github.com/shlinkio/shlink" };
    let health = serde_json::to_vec(&Health { status, version: API_LEVEL, links });
    Ok(answer(code, HEALTH_JSON, health.map_err(|_| Problem::INTERNAL)?))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::{advance, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_within_a_second_share_a_check() {
        let (health, checks) = (HealthCheck::default(), Cell::new(0));
        let check = |result: Result<(), StoreError>| {
            let checks = &checks;
            async move {
                checks.set(checks.get() + 1);
                sleep(Duration::from_secs(3)).await;
                result
            }
        };
        let failed = || check(Err(StoreError::TimedOut));
        let both = tokio::join!(health.status(check(Ok(()))), health.status(failed()));
        assert_eq!(both, (HealthStatus::Pass, HealthStatus::Pass));
        assert_eq!(health.status(failed()).await, HealthStatus::Pass);
        assert_eq!(checks.get(), 1);
        advance(BELIEVED).await;
        let both = tokio::join!(health.status(failed()), health.status(check(Ok(()))));
        assert_eq!(both, (HealthStatus::Fail, HealthStatus::Fail), "a failure is shared too");
        assert_eq!(checks.get(), 2);
        advance(BELIEVED).await;
        assert_eq!(health.status(check(Ok(()))).await, HealthStatus::Pass);
        assert_eq!(checks.get(), 3);
    }
}
