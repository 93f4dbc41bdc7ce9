//! One webhook: its values in a form that changes them, the actions on it, and its deliveries.

use app::{
    FieldErrors,
    webhooks::{PER_PAGE, ShownWebhook},
};
use askama::Template;
use hyper::StatusCode;
use links::webhook::{Delivery, DeliveryState, Webhook, WebhookEdit};
use web::Answer;

use super::{
    ONE, PATH,
    shown::{WebhookState, answer_text, conditions, delivery_class, delivery_text, event_text, kinds},
};
use crate::{
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    frame::Frame,
    manage::{
        notices::{Notices, Refusal},
        paged::STORED,
    },
};

/// The field of a query that says that an event was queued.
const SENT: &str = "sent";

#[derive(Template)]
#[template(path = "manage/webhook.html")]
struct WebhookPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    webhook: Webhook,
    conditions: Vec<String>,
    state: WebhookState,
    created: String,
    /// The time until which the former secret signs as well.
    former_until: Option<String>,
    notices: Notices,
    is_sent: bool,
    secret: Option<String>,
    kinds: Vec<(&'static str, String)>,
    /// What the form holds: the values, or what was typed and refused.
    typed: Form,
    deliveries: Vec<Delivery>,
    /// The cursor of the next page: the id of the last delivery on this one.
    older: Option<i64>,
}

pub(in crate::manage) async fn show(context: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let webhook = context.links.webhook(id, context.by).await?;
    answer(context, webhook, None, None).await
}

pub(in crate::manage) async fn change(context: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let (links, by, form) = (context.links, context.by, context.form);
    let changed = match form.get("do") {
        Some("rotate") => return rotate(context, id).await,
        Some("delete") => {
            links.remove_webhook(id, by).await?;
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{PATH}?{STORED}")));
        }
        Some("test") => links.test_webhook(id, by).await.map(|_| SENT),
        Some("redeliver") => links.redeliver(id, form.value("delivery"), by).await.map(|_| SENT),
        _ => links.edit_webhook(id, read_edit(form), FieldErrors::default(), by).await.map(|_| STORED),
    };
    match changed {
        // The use case has accepted the id, so it is a number.
        Ok(notice) => Ok(redirect(StatusCode::SEE_OTHER, &format!("{ONE}{id}?{notice}"))),
        Err(error) => {
            let refusal = Refusal::new(error, context.t)?;
            answer(context, links.webhook(id, by).await?, None, Some(refusal)).await
        }
    }
}

/// Replaces the secret that the form's page was for: a form that is sent twice replaces it once.
async fn rotate(context: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let (links, by) = (context.links, context.by);
    let shown = links.webhook(id, by).await?;
    if context.form.value("version") != shown.webhook.version.to_string() {
        let refusal = Refusal::of_page(context.t.text("webhooks-changed"));
        return answer(context, shown, None, Some(refusal)).await;
    }
    let rotated = links.rotate_webhook(id, by).await?;
    let secret = rotated.webhook.secret.reveal().to_owned();
    answer(context, rotated, Some(secret), None).await
}

/// Reads an edit: one of the state, or of all other fields.
fn read_edit(form: &Form) -> WebhookEdit {
    let state = |enabled| WebhookEdit { enabled: Some(enabled), ..WebhookEdit::default() };
    match form.get("do") {
        Some("enable") => state(true),
        Some("disable") => state(false),
        _ => WebhookEdit {
            url: Some(form.value("url").trim().to_owned()),
            kinds: Some(form.all("events").map(str::to_owned).collect()),
            description: Some(form.owned("description")),
            enabled: None,
        },
    }
}

/// Returns the fields of the form as they are stored.
fn values(webhook: &Webhook) -> Form {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let description = webhook.description.as_deref().unwrap_or_default();
    let kinds = webhook.subscription.kinds.iter().map(|kind| field("events", kind));
    let others = [field("url", &webhook.url), field("description", description)];
    Form(others.into_iter().chain(kinds).collect())
}

/// Answers with a webhook; `secret` is its new secret.
async fn answer(
    context: &Context<'_>,
    shown: ShownWebhook,
    secret: Option<String>,
    refusal: Option<Refusal>,
) -> Result<Answer, PageError> {
    let (pages, query, t) = (context.pages, context.query, context.t);
    let before = query.filled("before").and_then(|before| before.parse().ok());
    let id = shown.webhook.id.to_string();
    let found = context.links.webhook_deliveries(&id, before, context.by).await?;
    let is_refused_edit = refusal.is_some() && context.form.get("do") == Some("edit");
    let page = WebhookPage {
        frame: context.frame(PATH),
        context: *context,
        conditions: conditions(&shown, t),
        state: WebhookState::of(context, &shown.webhook),
        created: pages.shown_time(&shown.webhook.created_at),
        former_until: shown.webhook.former.as_ref().map(|(_, until)| pages.shown_time(until)),
        is_sent: refusal.is_none() && query.is_on(SENT),
        notices: Notices::new(query, refusal),
        secret,
        kinds: kinds(t),
        typed: if is_refused_edit { context.form.clone() } else { values(&shown.webhook) },
        older: found.last().filter(|_| found.len() == PER_PAGE).map(|last| last.id.get()),
        deliveries: found,
        webhook: shown.webhook,
    };
    Ok(context.page(page.notices.status(), &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_changes_the_state_alone_and_the_form_everything_else() {
        let read = |form: &str| read_edit(&Form::parse(form.as_bytes()));
        let disabled = WebhookEdit { enabled: Some(false), ..WebhookEdit::default() };
        assert_eq!(read("do=disable&url=https://other.example/"), disabled);
        let edit = read("do=edit&url=https://hooks.example/&events=link.created&description=");
        assert_eq!(edit.url.as_deref(), Some("https://hooks.example/"));
        assert_eq!(edit.kinds.unwrap(), ["link.created"]);
        assert_eq!((edit.description, edit.enabled), (Some(None), None));
        // The use case refuses a form without events. It must not read as one without changes.
        assert_eq!(read("do=edit&url=x").kinds, Some(Vec::new()));
    }
}
