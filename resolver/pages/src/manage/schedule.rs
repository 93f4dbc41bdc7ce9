//! The scheduled changes of a link on its page, and the form that cancels one.

use app::{AppError, find_link::LinkName};
use hyper::StatusCode;
use links::ScheduledEdit;
use serde_json::Value;
use web::Answer;

use super::audit::{Change, text};
use crate::{
    addresses::{link_page, with_parameter},
    answer::redirect,
    context::Context,
    messages::logged_field,
};

/// The field of a query with the number of the edit that was scheduled before the page.
const MADE: &str = "scheduled";

/// Reads the schedule of a link that the key sees, each edit with what it changes. If that fails,
/// the page is shown without it: the reason is in the server's log.
pub(super) async fn schedule_of(context: &Context<'_>, name: &LinkName) -> Vec<(ScheduledEdit, Vec<Change>)> {
    let (edits, t) = (context.links.scheduled_edits(name, context.by).await.unwrap_or_default(), context.t);
    let change = |(name, value): (String, Value)| {
        let (field, after) = (logged_field(&name, t), text(&value, t));
        Change { field, before: None, after }
    };
    let with_changes = |edit: ScheduledEdit| {
        let changes: Vec<Change> = edit.fields.shown().into_iter().map(change).collect();
        (edit, changes)
    };
    edits.into_iter().map(with_changes).collect()
}

/// Leads to the page of a link, which says when this edit is made.
pub(super) fn listed(name: &LinkName, edit: &ScheduledEdit) -> Answer {
    let made = format!("{MADE}={}", edit.id.get());
    redirect(StatusCode::SEE_OTHER, &with_parameter(&link_page(name), &made))
}

/// Returns the moment of the edit that was scheduled before this page, if it is on the schedule.
pub(super) fn moment_made(
    context: &Context<'_>,
    schedule: &[(ScheduledEdit, Vec<Change>)],
) -> Option<String> {
    let made = context.query.get(MADE)?;
    let (edit, _) = schedule.iter().find(|(edit, _)| edit.id.get().to_string() == made)?;
    Some(context.pages.shown_time(&edit.due_at))
}

/// Cancels the scheduled edit of the form.
pub(super) async fn cancel(context: &Context<'_>) -> Result<(), AppError> {
    context.links.cancel_scheduled_edit(context.form.value("scheduled"), context.by).await
}
