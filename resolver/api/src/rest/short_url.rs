//! Answers with a link.

use app::key_names::Names;
use hyper::header::{ETAG, HeaderValue};
use links::{Record, api_key::Grant};
use store::VisitTotals;

use super::{
    json::json,
    link_fields::{link_name, short_url},
    problem::Problem,
};
use crate::Api;
use web::Answer;

/// Answers the call that changed or created a link. A key without the scope `read` gets its name.
pub(super) async fn changed(api: &Api, record: &Record, by: &Grant) -> Result<Answer, Problem> {
    if !by.may_read() {
        let name = link_name(api, record).ok_or(Problem::INTERNAL)?;
        return Ok(with_etag(json(&dto::ChangedShortUrl::Name(name)), record));
    }
    let names = api.links.names_for(record, by).await;
    let visits = api.links.visit_totals_of(record).await;
    answer_with(api, record, &names, visits)
}

pub(super) fn answer_with(
    api: &Api,
    record: &Record,
    names: &Names,
    visits: VisitTotals,
) -> Result<Answer, Problem> {
    let shown = short_url(api, record, names, visits).ok_or(Problem::INTERNAL)?;
    Ok(with_etag(json(&shown), record))
}

fn with_etag(mut answer: Answer, record: &Record) -> Answer {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", record.link.version())) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}
