//! `GET /rest/v3/explain`: why a short URL is answered as it is, for an example of a visitor. An
//! addition to Shlink's API.

use app::explain_link::ExampleFields;

use super::prelude::*;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/rest/v3/explain", keyed!(Scope::Read, explain))
            .document("explainShortUrl", Topic::Links, "Explain the answer to a visitor")
            .addition()
            .text("Decides as a redirect does, and tells each step. It is no visit, and takes none from a limit. Keys that do not see all links get explanations of their own links only; for any other URL the answer is the one for a link that does not exist.")
            .query::<dto::ExplanationQuery>()
            .answers::<dto::Explanation<'_>>("The steps, and the answer that they lead to.")
            .fails(&[Kind::NoShortUrl]),
    ]
}

impl Fields for dto::ExplanationQuery {}

async fn explain(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (query, wrong) = call.query();
    let dto::ExplanationQuery { url, user_agent, accept_language, ip, country, at } = query;
    let fields = ExampleFields { url, user_agent, accept_language, ip, country, at };
    let api = &call.api;
    let explained = api.links.explain(&fields, wrong, (call.client, &api.time_zone), by).await?;
    let steps = explained.steps.iter().map(|step| {
        let (name, outcome) = step.finding.parts();
        dto::ExplanationStep { step: name, outcome, detail: &step.detail }
    });
    let (status, location, page) = (explained.status, explained.location.as_deref(), explained.page);
    let answer = dto::ExplainedAnswer { status, location, page };
    Ok(json(&dto::Explanation { steps: steps.collect(), answer }))
}
