//! `/rest/v3/schedule`: scheduled edits of a link. An addition to Shlink's API.
//!
//! The path is not below that of the link, because slugs may end in `schedule`.

use app::{Field, scheduled_edits::SCHEDULED_FOR, values::read_time};
use dto::Time;
use jiff::{Timestamp, tz::TimeZone};
use links::{SCHEDULED_PER_KEY, SCHEDULED_PER_LINK, ScheduledEdit};
use serde_json::Value;

use super::{
    json::atom,
    link_fields::read_edit_fields,
    prelude::*,
    read::{in_order, object},
};

const SCHEDULE: &str = "/rest/v3/schedule";

pub(super) fn routes() -> Vec<Route> {
    let of = |method, path, handler, id, summary| {
        Route::new(method, path, handler).document(id, Topic::Links, summary).addition()
    };
    vec![
        of(
            Method::GET,
            SCHEDULE,
            keyed!(Scope::Read, list),
            "listScheduledEdits",
            "List the scheduled edits of a link",
        )
        .text("Ordered by their scheduled times. Failed edits are included.")
        .query::<dto::LinkQuery>()
        .answers::<dto::ScheduledEditList>("The scheduled edits.")
        .fails(&[Kind::NoShortUrl]),
        of(
            Method::POST,
            SCHEDULE,
            keyed!(Scope::Edit, schedule),
            "scheduleShortUrlEdit",
            "Schedule an edit of a link",
        )
        .text(format!(
            "The fields are those of `PATCH`, except for a new name. They are checked now, and again at the \
             scheduled time. The edit is then made with this key, and applies on every resolver within a \
             second; if no process is running at that time, it is made when one starts. If the key has been \
             revoked, has expired or no longer sees the link, or a target rule denies the long URL, the edit \
             fails: it is listed with the reason, and is not retried. A link has at most \
             {SCHEDULED_PER_LINK} scheduled edits and a key {SCHEDULED_PER_KEY}, including failed ones. \
             Deleting the link removes them."
        ))
        .query::<dto::LinkQuery>()
        .body::<dto::NewScheduledEdit>()
        .answers::<dto::ScheduledEdit>("The scheduled edit.")
        .fails(&[Kind::NoShortUrl, Kind::TooManyScheduledEdits, Kind::LaterRelease]),
        of(
            Method::DELETE,
            "/rest/v3/schedule/{scheduled}",
            keyed!(Scope::Edit, cancel),
            "cancelScheduledEdit",
            "Cancel a scheduled edit",
        )
        .text("Any key that may edit the link can cancel it. A failed edit is removed from the list.")
        .done("The edit was cancelled."),
    ]
}

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let edits = call.api.links.scheduled_edits(&call.queried_link()?, by).await?;
    let data = edits.iter().map(shown).collect();
    Ok(json(&dto::ScheduledEditList { scheduled_edits: dto::Data { data } }))
}

async fn schedule(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (name, mut fields) = (call.queried_link()?, object(&call.body)?);
    let moment = fields.shift_remove(SCHEDULED_FOR);
    let (fields, slug, mut wrong) = read_edit_fields(&call.api, fields);
    if slug.is_some() {
        wrong.add(Field::CustomSlug.name(), "expected none: a change of the name cannot be scheduled");
    }
    let moment = moment.map(|moment| read_moment(moment, &call.api.time_zone)).transpose();
    let moment = wrong.note(SCHEDULED_FOR, moment).flatten();
    let scheduled = call.api.links.schedule_edit(&name, moment, fields, wrong, by).await;
    Ok(json(&shown(&scheduled.map_err(|error| in_order(error, &call.body))?)))
}

async fn cancel(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.cancel_scheduled_edit(&call.parameter(), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn read_moment(value: Value, zone: &TimeZone) -> Result<Timestamp, String> {
    let Time(text) = serde_json::from_value(value).map_err(|_| Field::ValidSince.expected())?;
    read_time(&text, zone)
}

fn shown(edit: &ScheduledEdit) -> dto::ScheduledEdit<'_> {
    dto::ScheduledEdit {
        id: edit.id.get(),
        scheduled_for: atom(edit.due_at),
        fields: edit.fields.shown(),
        api_key: edit.by_name.as_deref(),
        failure: edit.failure.as_deref(),
    }
}
