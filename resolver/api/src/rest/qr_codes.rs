//! `GET /rest/v3/qr-codes`: a pack of QR codes for print. An addition to Shlink's API.

use app::{
    AppError,
    find_link::LinkName,
    qr_pack::{LINKS_MAX, Page, Selection},
};
use schemars::json_schema;
use url::form_urlencoded;

use super::{list, prelude::*, route::SchemaOf};
use crate::qr_pack::{download, read_options};

pub(super) fn routes() -> Vec<Route> {
    let bytes: SchemaOf = |_| json_schema!({ "type": "string", "format": "binary" });
    vec![
        Route::new(Method::GET, "/rest/v3/qr-codes", keyed!(Scope::Read, pack))
            .document("packQrCodes", Topic::Links, "Make a pack of QR codes for print")
            .addition()
            .text(format!(
                "A ZIP archive with an image for each link and a table of them, `links.csv`; or A4 \
                 sheets of labels, each with a code, the short URL, and the title if it has Latin letters \
                 only. The links are those of a list, those of `shortCodes[]`, or the codes of a \
                 reservation. A pack has up to {LINKS_MAX}, and `X-Total-Count` says how many; if there are \
                 more, `page` is required. Deleted links are refused."
            ))
            .query::<dto::LinkListQuery>()
            .query::<dto::QrCodesQuery>()
            .answers_of(200, "The pack.", vec![("application/zip", bytes), ("application/pdf", bytes)])
            .fails(&[Kind::NoShortUrl, Kind::NoReservation]),
    ]
}

impl Fields for dto::QrCodesQuery {}

async fn pack(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let pairs = form_urlencoded::parse(call.uri.query().unwrap_or_default().as_bytes());
    let options = read_options(pairs.filter(|(_, value)| !value.trim().is_empty()))?;
    let (query, wrong) = call.query::<dto::QrCodesQuery>();
    wrong.finish()?;
    let (listed, mut wrong) = call.query::<dto::LinkListQuery>();
    let has_page = listed.page.is_some() || listed.items_per_page.is_some();
    let list = list::request(api, listed, &mut wrong);
    let (number, per_page) = (list.filter.page, list.filter.per_page.unwrap_or(LINKS_MAX));
    let page = has_page.then_some(Page { number, per_page });
    let selection = match (query.reservation, query.short_codes) {
        (None, codes) if codes.is_empty() => Selection::Listed(Box::new(list), wrong),
        (reservation, codes) => {
            wrong.finish()?;
            match reservation {
                Some(_) if !codes.is_empty() => {
                    let expected = "expected no reservation together with shortCodes[]";
                    return Err(AppError::invalid("reservation", expected).into());
                }
                Some(id) => Selection::Reserved(id),
                None => {
                    let name = |code| LinkName { code, domain: list.domain.clone() };
                    Selection::Named(codes.into_iter().map(name).collect())
                }
            }
        }
    };
    Ok(download(api, selection, page, options, by).await?)
}
