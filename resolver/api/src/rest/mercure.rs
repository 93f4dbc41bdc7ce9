//! The Mercure hub of Shlink, which this service does not have.

use hyper::Method;
use links::{api_key::Grant, scope::Scope};

use super::{
    call::Call,
    docs::{Kind, Topic},
    problem::Problem,
    route::{Route, keyed},
};
use web::Answer;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/rest/v3/mercure-info", keyed!(Scope::Read, mercure_info))
            .document("mercureInfo", Topic::Service, "Find the Mercure hub")
            .text("Shlink returns its Mercure hub here. This service has none, and answers as Shlink without one.")
            .fails(&[Kind::NoMercure]),
    ]
}

async fn mercure_info(_: &Call, _: &Grant) -> Result<Answer, Problem> {
    Err(Problem::NoMercure)
}
