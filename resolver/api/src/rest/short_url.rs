//! Answers with a link, and parts of them that other answers have too.

use app::key_names::Names;
use hyper::header::{ETAG, HeaderValue};
use links::Record;
use store::VisitTotals;

use super::{json::json, link_fields::short_url, problem::Problem};
use crate::Api;
use web::Answer;

/// Answers with a link, and its version as `ETag`.
pub(super) async fn answer(api: &Api, record: &Record) -> Result<Answer, Problem> {
    let names = api.links.names(std::slice::from_ref(record)).await;
    let visits = api.links.visit_totals_of(record).await;
    answer_with(api, record, &names, visits)
}

/// Answers with a link, these names of API keys and these totals of its visits.
pub(super) fn answer_with(
    api: &Api,
    record: &Record,
    names: &Names,
    visits: VisitTotals,
) -> Result<Answer, Problem> {
    let mut answer = json(&short_url(api, record, names, visits).ok_or(Problem::INTERNAL)?);
    let version = record.link.details.as_ref().map_or(0, |details| details.version);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        answer.headers_mut().insert(ETAG, tag);
    }
    Ok(answer)
}

/// Returns the version that an entity tag stands for.
pub(super) fn version(tag: &[u8]) -> Option<u64> {
    std::str::from_utf8(tag).ok()?.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
