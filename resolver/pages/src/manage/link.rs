//! One link: its values, in a form that changes them (`link_form.rs`), and the actions on it.

use app::{
    Field, FieldErrors, edit_link::Target, find_link::LinkName, scheduled_edits::SCHEDULED_FOR,
    values::read_time,
};
use askama::Template;
use hyper::StatusCode;
use links::{ExtraPath, Record, ScheduledEdit, Tag, scope::Scope};
use web::Answer;

use super::{
    audit::{Change, action_text},
    choice::{GONE, link_field},
    history::{History, UNDO, is_edit, version_field, version_made},
    link_form::{Conflict, Input, LinkForm},
    notices::{Notices, Refusal},
    offer::{offered, offering},
    paged::STORED,
    preview_form::{self, PREVIEW, PreviewForm},
    schedule::{self, cancel, schedule_of},
    shown::ShownLink,
};
use crate::{
    addresses::{LINKS, explain_page, link_page, link_statistics, with_parameter},
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    frame::Frame,
    link_input::offered_tags,
    markup::Markup,
};

#[derive(Template)]
#[template(path = "manage/link.html")]
pub(super) struct LinkPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    link: ShownLink,
    form: LinkForm,
    /// The tags that the form offers.
    tags: Vec<Tag>,
    version: u64,
    has_password: bool,
    qr_code: Markup,
    /// The path of the link on this host; `None` if it is on another domain.
    path: Option<String>,
    may_edit: bool,
    may_delete: bool,
    /// The zone of the times that the form shows and reads.
    zone: &'a str,
    pub(super) notices: Notices,
    pub(super) preview: PreviewForm,
    conflicts: Vec<Conflict>,
    schedule: Vec<(ScheduledEdit, Vec<Change>)>,
    /// The moment of the edit that was scheduled before this page.
    scheduled: Option<String>,
    history: History,
}

pub(super) async fn show(context: &Context<'_>, name: &str) -> Result<Answer, PageError> {
    let record = context.links.get_link(&context.link_name(name), context.by).await?;
    Ok(context.page(StatusCode::OK, &page_of(context, &record, None).await))
}

pub(super) async fn change(context: &Context<'_>, name: &str) -> Result<Answer, PageError> {
    let (links, by, name) = (context.links, context.by, context.link_name(name));
    let any_version = || Target { name: name.clone(), versions: None };
    let to = match context.form.get("do") {
        Some("delete") => {
            links.delete_link(&any_version(), by).await?;
            offering(context, LINKS, LINKS, Form(vec![(GONE.to_owned(), link_field(&name))]))
        }
        Some("restore") => {
            let restored = links.restore_link(&any_version(), by).await?;
            link_page(&context.pages.name_of(&restored.link))
        }
        Some("undo") => return undo(context, name).await,
        Some(PREVIEW) => return preview_form::store(context, name).await,
        Some("cancel") => {
            cancel(context).await?;
            with_parameter(&link_page(&name), STORED)
        }
        _ => return edit(context, name).await,
    };
    Ok(redirect(StatusCode::SEE_OTHER, &to))
}

async fn edit(context: &Context<'_>, name: LinkName) -> Result<Answer, PageError> {
    let (links, by, zone) = (context.links, context.by, &context.pages.api.time_zone);
    let version = version_of(context.form);
    let target = Target { name: name.clone(), versions: version.map(|version| vec![version]) };
    let (form, mut wrong) = (LinkForm::read(context.form), FieldErrors::default());
    let fields = form.changes(zone, &mut wrong);
    if form.slug().is_some() && form.moment().is_some() {
        let refusal = Refusal::of_page(context.t.text("schedule-no-ending"));
        let fields = [Field::CustomSlug.name(), SCHEDULED_FOR].map(str::to_owned).to_vec();
        return refused(context, &name, form, Refusal { fields, ..refusal }).await;
    }
    let is_stored = |record: Record| stored(context, &record, version != Some(record.link.version()));
    let edited = match (form.slug(), form.moment()) {
        (_, Some(moment)) => {
            let moment = wrong.note(SCHEDULED_FOR, read_time(moment, zone));
            let scheduled = links.schedule_edit(&name, moment, fields, wrong, by).await;
            scheduled.map(|edit| schedule::listed(&name, &edit))
        }
        (Some(slug), None) => links.rename_link(&target, &slug, fields, wrong, by).await.map(is_stored),
        (None, None) => links.edit_link(&target, fields, wrong, by).await.map(is_stored),
    };
    match edited {
        Ok(answer) => Ok(answer),
        Err(error) => refused(context, &name, form, Refusal::new(error, context.t)?).await,
    }
}

/// Shows the page again, with what was typed.
async fn refused(
    context: &Context<'_>,
    name: &LinkName,
    form: LinkForm,
    refusal: Refusal,
) -> Result<Answer, PageError> {
    let is_superseded = refusal.status == StatusCode::PRECONDITION_FAILED;
    let record = context.links.get_link(name, context.by).await?;
    let mut page = page_of(context, &record, Some(refusal)).await;
    if is_superseded {
        (page.form, page.conflicts) = form.rebased(page.form);
    } else {
        // The form still compares with what it was filled with, so that a change of another person
        // shows at the next attempt.
        page.form = form;
        page.version = version_of(context.form).unwrap_or(page.version);
    }
    Ok(context.page(page.notices.status(), &page))
}

/// Returns the version of the link that a form was made from.
fn version_of(form: &Form) -> Option<u64> {
    form.filled("version").and_then(|text| text.parse().ok())
}

async fn undo(context: &Context<'_>, name: LinkName) -> Result<Answer, PageError> {
    let (links, by, mut wrong) = (context.links, context.by, FieldErrors::default());
    let entry = context.form.read("entry", "no number of an entry", &mut wrong, |text| text.parse().ok());
    let target = Target { name: name.clone(), versions: None };
    let refusal = match links.undo_edit(&target, entry, wrong, by).await {
        Ok(record) => return Ok(stored(context, &record, true)),
        Err(error) => Refusal::new(error, context.t)?,
    };
    let record = links.get_link(&name, by).await?;
    let page = page_of(context, &record, Some(refusal)).await;
    Ok(context.page(page.notices.status(), &page))
}

/// Leads to the page of a link that was stored, which offers to undo a change.
pub(super) fn stored(context: &Context<'_>, record: &Record, is_changed: bool) -> Answer {
    let page = link_page(&context.pages.name_of(&record.link));
    let mut to = with_parameter(&page, STORED);
    if is_changed {
        to = offering(context, &to, &page, version_field(record.link.version()));
    }
    redirect(StatusCode::SEE_OTHER, &to)
}

/// Makes the page of a link, its form filled with what is stored.
pub(super) async fn page_of<'a>(
    context: &Context<'a>,
    record: &Record,
    refusal: Option<Refusal>,
) -> LinkPage<'a> {
    let visits = context.links.visit_totals_of(record).await;
    let link = ShownLink::new(context, record, visits.total);
    let offer = offered(context, &link_page(&link.name), &[UNDO]);
    let history = History::of(context, &link.name, offer.as_ref().and_then(version_made)).await;
    let mut notices = Notices::new(context.query, refusal);
    notices.is_stored &= offer.is_some();
    let schedule = schedule_of(context, &link.name).await;
    let scheduled = schedule::moment_made(context, &schedule).filter(|_| notices.refusal.is_none());
    LinkPage {
        frame: context.frame(LINKS),
        context: *context,
        tags: offered_tags(context.links, context.by).await,
        form: LinkForm::of(record, &context.pages.api.time_zone),
        version: record.link.version(),
        has_password: record.link.password().is_some(),
        qr_code: Markup::qr_code(&link.short_url),
        path: link.name.domain.is_none().then(|| format!("/{}", link.name.code)),
        may_edit: context.allows(Scope::Edit),
        may_delete: context.allows(Scope::Delete),
        zone: context.pages.api.time_zone.iana_name().unwrap_or("UTC"),
        notices,
        preview: PreviewForm::of(record),
        conflicts: Vec::new(),
        schedule,
        scheduled,
        history,
        link,
    }
}
