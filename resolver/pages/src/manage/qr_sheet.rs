//! A sheet of QR codes to print: one for each link on a page of the list. The query is that of the
//! list.

use std::sync::Arc;

use app::{
    FieldErrors,
    list_links::{ListLinks, ListedLinks, pieces},
};
use askama::Template;
use hyper::StatusCode;
use links::Link;
use web::Answer;

use super::{
    list::read_query,
    paged::{Paged, address},
};
use crate::{
    Pages,
    answer::{Forms, page},
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    markup::Markup,
    qr_picture::qr_picture,
    request::PageRequest,
    session::Session,
};

/// The address of the page.
pub(super) const PATH: &str = "/manage/qr-sheet";

/// The sheet.
#[derive(Template)]
#[template(path = "manage/qr_sheet.html")]
struct SheetPage<'a> {
    frame: Frame<'a>,
    codes: Vec<ShownCode>,
    paged: Paged,
    /// The address of the list with the same query.
    list: String,
}

/// A link on the sheet.
struct ShownCode {
    picture: Markup,
    short_url: String,
    title: Option<String>,
}

impl ShownCode {
    /// Draws the QR code of a link.
    fn new(pages: &Pages, link: &Link) -> Self {
        let short_url = pages.short_url(link);
        Self { picture: qr_picture(&short_url), title: link.title.clone(), short_url }
    }
}

/// Shows the sheet of a page of the list.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (service, by) = (&pages.api.links, &session.grant);
    // Nothing is printed for the trash, whose links lead nowhere.
    let query = Form::parse(request.query.without(&["deleted"]).as_bytes());
    let mut wrong = FieldErrors::default();
    // Sheets are numbered, so all links are counted.
    let list = ListLinks { count_max: None, ..read_query(pages, &query, &mut wrong) };
    let listed = service.list_links(list, wrong, by).await?;
    let mut codes = Vec::with_capacity(listed.entries.len());
    for piece in pieces(&listed.entries) {
        let records = service.read_piece(&listed, piece, by).await?;
        codes.extend(records.iter().map(|record| ShownCode::new(pages, &record.link)));
    }
    let shown = SheetPage {
        frame: Frame::new(request, Some(session), Place::Links),
        codes,
        paged: paged(&listed, &query),
        list: address(super::PATH, &query),
    };
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Returns the position of a sheet among those of the whole list.
fn paged(listed: &ListedLinks, query: &Form) -> Paged {
    let (total, page) = (listed.total, listed.page);
    let pages = total.div_ceil(listed.per_page).max(1);
    let to = |page: u64| format!("{PATH}?{}", query.query_with("page", &page.to_string()));
    Paged {
        total,
        page,
        pages,
        before: (page > 1).then(|| to(page - 1)),
        after: (page < pages).then(|| to(page + 1)),
    }
}
