//! One change of all links of a list, on all of its pages.
//!
//! 1. The response to the list's form is a dry run: a page that says what the change would do, with
//!    a form that makes it.
//! 2. A form is processed for about [`WITHIN`]. If links are left then, its page has a form that
//!    continues.

use std::time::Duration;

use app::{AppError, FieldErrors, LinkFields, change_many::ChangeMany, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use links::BULK_PAGE_MAX;
use tokio::time::Instant;
use web::Answer;

use super::{
    choice::Done,
    chosen::Action,
    list::{self, read_query},
    paged::address,
};
use crate::{
    addresses::{LINKS, link_page},
    context::Context,
    error::PageError,
    frame::Frame,
    messages::message,
};

/// The field that makes a form apply to all links of the list.
pub(super) const EVERY: &str = "every";
/// The fields of the form that makes the change: the confirmation, and the cursor.
const CONFIRMED: &str = "confirmed";
const AFTER: &str = "after";
/// How long one form is processed.
const WITHIN: Duration = Duration::from_secs(20);
/// Maximum number of failed links on a page.
const FAILED_MAX: usize = 100;

#[derive(Template)]
#[template(path = "manage/change_all.html")]
struct ChangeAllPage<'a> {
    frame: Frame<'a>,
    /// Whether links were changed. Otherwise they were only counted.
    is_done: bool,
    is_deletion: bool,
    /// The value of the button that was pressed.
    action: &'a str,
    tag: &'a str,
    changed: u64,
    unchanged: u64,
    /// Whether there are links that the form did not reach.
    has_more: bool,
    sample: Vec<LinkName>,
    failed: Vec<(LinkName, String)>,
    /// The address of the list, which is also the action of the next form.
    list: String,
    /// The fields of the next form.
    fields: Vec<(&'static str, String)>,
}

impl ChangeAllPage<'_> {
    /// Returns whether there is a next form.
    fn may_go_on(&self) -> bool {
        if self.is_done { self.has_more } else { self.changed > 0 || self.has_more }
    }

    /// Returns a text that says what the change does to how many links.
    fn text_of(&self, kind: &str) -> String {
        self.frame.t.count_with(&format!("{kind}-{}", self.action), &self.changed, self.tag)
    }
}

/// Returns the change of all links, or the name of the text that says why there is none.
fn change_of(action: Action<'_>) -> Result<ChangeMany, &'static str> {
    let none = ChangeMany { all: true, limit: Some(BULK_PAGE_MAX), ..ChangeMany::default() };
    Ok(match action {
        Action::Tag(tag, true) => ChangeMany { add_tags: vec![tag.to_owned()], ..none },
        Action::Tag(tag, false) => ChangeMany { remove_tags: vec![tag.to_owned()], ..none },
        Action::Enable(enabled) => {
            let fields = LinkFields { enabled: Some(Some(enabled)), ..LinkFields::default() };
            ChangeMany { fields, ..none }
        }
        Action::Delete => ChangeMany { delete: true, ..none },
        Action::Move(_) | Action::Restore | Action::Undo(_) => return Err("every-expected-action"),
    })
}

pub(super) async fn answer(context: &Context<'_>) -> Result<Answer, PageError> {
    let form = context.form;
    let change = match Action::read(form).and_then(change_of) {
        Ok(change) => change,
        Err(expected) => {
            let done = Done { refused: Some(context.t.text(expected)), ..Done::default() };
            return list::answer(context, StatusCode::BAD_REQUEST, done, None).await;
        }
    };
    let is_done = form.is_on(CONFIRMED);
    let mut page = ChangeAllPage {
        frame: context.frame(LINKS),
        is_done,
        is_deletion: change.delete,
        action: form.value("do"),
        tag: form.filled("newTag").unwrap_or_default(),
        changed: 0,
        unchanged: 0,
        has_more: false,
        sample: Vec::new(),
        failed: Vec::new(),
        list: address(LINKS, &context.query.without(&["page"])),
        fields: ["do", "newTag"].map(|name| (name, form.value(name).to_owned())).to_vec(),
    };
    let after = run(context, &change, &mut page).await?;
    page.has_more = after.is_some();
    page.fields.extend([(EVERY, "on".to_owned()), (CONFIRMED, "on".to_owned())]);
    page.fields.extend(after.filter(|_| is_done).map(|after| (AFTER, after)));
    Ok(context.page(StatusCode::OK, &page))
}

/// Changes the links page by page. Returns the cursor of the next page if it runs out of time.
async fn run(
    context: &Context<'_>,
    change: &ChangeMany,
    page: &mut ChangeAllPage<'_>,
) -> Result<Option<String>, AppError> {
    let query = context.query.without(&["deleted", "page"]);
    let (until, mut after) = (Instant::now() + WITHIN, context.form.owned(AFTER));
    loop {
        let mut wrong = FieldErrors::default();
        let filter = Some(read_query(context, &query, &mut wrong));
        let request = ChangeMany { filter, dry_run: !page.is_done, after, ..change.clone() };
        let done = context.links.change_many(request, wrong, context.by).await?;
        page.changed += done.changed;
        page.unchanged += done.unchanged;
        if page.sample.is_empty() {
            page.sample = done.sample.iter().map(|record| context.pages.name_of(&record.link)).collect();
        }
        let room = FAILED_MAX.saturating_sub(page.failed.len());
        let failed = done.failed.into_iter().take(room);
        page.failed.extend(failed.map(|(name, error)| (name, message(&error, context.t))));
        after = done.next;
        if after.is_none() || Instant::now() > until {
            return Ok(after);
        }
    }
}
