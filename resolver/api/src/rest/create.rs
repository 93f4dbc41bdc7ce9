//! Creates of single links: `POST /rest/v3/short-urls`, and Shlink's create in one step.
//!
//! The create in one step, `GET …/shorten?apiKey=…&longUrl=…&format=txt`, is for bookmarks and
//! scripts that can only open an address. It is off unless the operator turns it on
//! (`--single-step-create`), because the key is part of the address, which proxies log and browsers
//! remember. A key for it should have the scope `create` only, and be revoked when it leaks.

use app::{
    LinkFields,
    create_link::{CreateLink, IdempotencyKey},
};
use hyper::{
    HeaderMap,
    header::{ACCEPT, HeaderValue},
};

use super::{
    link_fields::{answer_changed, canonical, link_name, read_create},
    prelude::*,
    query::Query,
    read::in_order,
    route::{Handler, LINKS},
};
use web::answer;

/// The header of draft-ietf-httpapi-idempotency-key-header.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const LONG_URL: &str = app::Field::LongUrl.name();

pub(super) fn routes(has_single_step: bool) -> Vec<Route> {
    let create = Route::new(Method::POST, LINKS, keyed!(Scope::Create, create_short_url))
        .document("createShortUrl", Topic::Links, "Create a link")
        .text(
            "Without a field for its code the link gets the next code of the default keyspace. As in Shlink the status is 200, \
             not 201. If an answer is lost, the same call with the same `Idempotency-Key`, or with `findIfExists`, returns the same link. \
             A key without the scope `read` gets the link's code and short URL.",
        )
        .header(Header::IdempotencyKey)
        .body::<dto::NewShortUrl>()
        .answers_with_etag::<dto::ChangedShortUrl>("The link: a new one, or the one that an earlier equal request made.")
        .fails(&[Kind::SlugTaken, Kind::TooManyDomains, Kind::Exhausted]);
    let in_one_step = Handler::KeyInQuery(Scope::Create, |call, by| Box::pin(create_in_one_step(call, by)));
    let in_one_step = Route::new(Method::GET, "/rest/v3/short-urls/shorten", in_one_step)
        .accepts(&["apiKey", LONG_URL, "format"]);
    [create].into_iter().chain(has_single_step.then_some(in_one_step)).collect()
}

async fn create_short_url(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &*call.api;
    let key = call.headers.get(IDEMPOTENCY_KEY).map(HeaderValue::as_bytes);
    let new_key = |key| Ok::<_, Problem>(IdempotencyKey::new(key, canonical(&call.body)?)?);
    let idempotency = key.map(new_key).transpose()?;
    let (request, wrong) = read_create(api, &call.body)?;
    let created = api.links.create_link(request, idempotency, wrong, by).await;
    let record = created.map_err(|error| in_order(error, &call.body))?;
    answer_changed(api, &record, by).await
}

/// Creates a link, and answers with it or with its short URL alone.
async fn create_in_one_step(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (api, query) = (&*call.api, &Query::of(&call.uri));
    let long_url = query.text(LONG_URL).map(|url| Some(url.to_owned()));
    let fields = LinkFields { long_url, ..LinkFields::default() };
    let request = CreateLink { fields, ..CreateLink::default() };
    let record = api.links.create_link(request, None, FieldErrors::default(), by).await?;
    if !wants_text(query, &call.headers) {
        return answer_changed(api, &record, by).await;
    }
    let name = link_name(api, &record).ok_or(Problem::INTERNAL)?;
    // Shlink's media type, to the letter. Minted codes are ASCII.
    Ok(answer(StatusCode::OK, "text/plain", name.short_url))
}

/// Returns whether the answer is to be text. As in Shlink, the query decides, or else the first
/// media type that is accepted.
fn wants_text(query: &Query, headers: &HeaderMap) -> bool {
    let first = |accepted: &HeaderValue| {
        let accepted = String::from_utf8_lossy(accepted.as_bytes()).to_ascii_lowercase();
        accepted.split(',').next().is_some_and(|first| first.contains("text/plain"))
    };
    match query.text("format") {
        Some(format) => format.eq_ignore_ascii_case("txt"),
        None => headers.get(ACCEPT).is_some_and(first),
    }
}
