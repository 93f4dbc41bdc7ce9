//! A sheet of QR codes to print: one for each link on a page of the list; and packs of them to
//! download, of all pages. The query is that of the list.

use std::borrow::Cow;

use api::qr_pack::{self, read_options};
use app::{
    FieldErrors,
    qr_pack::{LINKS_MAX, Page, Selection},
};
use askama::Template;
use hyper::StatusCode;
use links::Record;
use web::Answer;

use super::{
    list::read_query,
    paged::{Paged, address},
};
use crate::{
    addresses::{LINKS, QR_PACK, QR_SHEET, with_parameter},
    answer::unkept,
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
    /// The addresses of the packs.
    sheets: String,
    images: String,
}

impl SheetPage<'_> {
    /// Returns whether there are more links than a pack has.
    fn is_cut(&self) -> bool {
        self.paged.total > LINKS_MAX
    }
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
    let paged = Paged::new(listed.total_of_pages(), listed.page, listed.per_page, QR_SHEET, &query);
    let list = address(LINKS, &query);
    let pack = |format: &str| with_parameter(&address(QR_PACK, &query.without(&["page"])), format);
    let [sheets, images] = ["format=pdf", "format=svg"].map(pack);
    let page =
        SheetPage { frame: context.frame(LINKS), context: *context, records, paged, list, sheets, images };
    Ok(context.page(StatusCode::OK, &page))
}

/// Answers with a pack of the first links of a list, or of the codes of a reservation.
pub(super) async fn download(context: &Context<'_>) -> Result<Answer, PageError> {
    let format = context.query.value("format");
    let options = read_options([(Cow::Borrowed("format"), Cow::Borrowed(format))].into_iter())?;
    let (selection, page) = if let Some(id) = context.query.owned("id") {
        (Selection::Reserved(id), None)
    } else {
        let query = context.query.without(&["deleted", "page"]);
        let mut wrong = FieldErrors::default();
        let list = read_query(context, &query, &mut wrong);
        (Selection::Listed(Box::new(list), wrong), Some(Page { number: 1, per_page: LINKS_MAX }))
    };
    let pack = qr_pack::download(&context.pages.api, selection, page, options, context.by).await?;
    Ok(unkept(pack))
}
