//! A sheet of QR codes to print: one for each link on a page of the list. The query is that of the
//! list.

use app::FieldErrors;
use askama::Template;
use hyper::StatusCode;
use links::Record;
use web::Answer;

use super::{
    list::read_query,
    paged::{Paged, address},
};
use crate::{
    addresses::{LINKS, QR_SHEET},
    context::Context,
    error::PageError,
    frame::Frame,
    markup::Markup,
};

#[derive(Template)]
#[template(path = "manage/qr_sheet.html")]
struct SheetPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    records: Vec<Record>,
    paged: Paged,
    list: String,
}

pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    let (links, by) = (context.links, context.by);
    // Nothing is printed for the trash, whose links lead nowhere.
    let query = context.query.without(&["deleted"]);
    let mut wrong = FieldErrors::default();
    let mut list = read_query(context, &query, &mut wrong);
    // Sheets are numbered, so all links are counted.
    list.filter.count_max = None;
    let listed = links.list_links(list, wrong, by).await?;
    let mut records = Vec::with_capacity(listed.entries.len());
    for piece in links::pieces(&listed.entries) {
        records.extend(links.read_piece(&listed, piece, by).await?);
    }
    let paged = Paged::new(listed.total, listed.page, listed.per_page, QR_SHEET, &query);
    let list = address(LINKS, &query);
    let page = SheetPage { frame: context.frame(LINKS), context: *context, records, paged, list };
    Ok(context.page(StatusCode::OK, &page))
}
