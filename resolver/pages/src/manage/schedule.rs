//! The scheduled changes of a link on its page, and the form that cancels one.

use app::{AppError, FieldErrors, find_link::LinkName, scheduled_edits::SCHEDULED_FOR, values::read_time};
use jiff::{Timestamp, tz::TimeZone};
use links::ScheduledEdit;
use serde_json::Value;

use super::audit::{Change, text};
use crate::{context::Context, messages::logged_field};

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

/// Reads the time of an edit. A change of the name cannot be scheduled.
pub(super) fn read_moment(
    moment: &str,
    slug: Option<&String>,
    zone: &TimeZone,
    wrong: &mut FieldErrors,
) -> Option<Timestamp> {
    let moment = match slug {
        Some(_) => Err("expected no time: a change of the name cannot be scheduled".to_owned()),
        None => read_time(moment, zone),
    };
    wrong.note(SCHEDULED_FOR, moment)
}

/// Cancels the scheduled edit of the form.
pub(super) async fn cancel(context: &Context<'_>) -> Result<(), AppError> {
    context.links.cancel_scheduled_edit(context.form.value("scheduled"), context.by).await
}
