//! The webhooks: the receivers of events, the state of their deliveries, and a form that adds one.
//! For operators, because a webhook sees the links of all keys.
//!
//! A secret is shown once, in the answer to the form that made it.

mod one;
mod shown;

use app::{
    FieldErrors,
    webhooks::{ShownWebhook, WebhookFields},
};
use askama::Template;
use links::webhook::Delivery;
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    paged::Paged,
};
use crate::{context::Context, error::PageError, form::Form, frame::Frame};
use shown::{WebhookState, answer_text, conditions, delivery_class, delivery_text, event_text, kinds};

pub(super) use one::{change, show};

pub(super) const PATH: &str = "/manage/webhooks";
/// The beginning of the address of a webhook's page; its id follows.
pub(super) const ONE: &str = "/manage/webhooks/";

#[derive(Template)]
#[template(path = "manage/webhooks.html")]
struct WebhooksPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    /// The webhooks, each with its last delivery.
    webhooks: Vec<(ShownWebhook, Option<Delivery>)>,
    paged: Paged,
    notices: Notices,
    secret: Option<String>,
    kinds: Vec<(&'static str, String)>,
    domains: Vec<String>,
    /// The values of a form that was refused.
    typed: Form,
}

pub(super) async fn create(context: &Context<'_>) -> Result<Answer, PageError> {
    let fields = read_fields(context.form);
    match context.links.create_webhook(fields, FieldErrors::default(), context.by).await {
        Ok(created) => answer(context, Some(created.webhook.secret.reveal().to_owned()), None).await,
        Err(error) => answer(context, None, Some(Refusal::new(error, context.t)?)).await,
    }
}

fn read_fields(form: &Form) -> WebhookFields {
    WebhookFields {
        url: form.owned("url"),
        events: Some(form.all("events").map(str::to_owned).collect()),
        domain: form.owned("domain"),
        tag: form.owned("tag"),
        short_code: form.owned("shortCode"),
        description: form.owned("description"),
    }
}

/// Answers with the webhooks, the newest first. `secret` is that of a new webhook.
pub(super) async fn answer(
    context: &Context<'_>,
    secret: Option<String>,
    refusal: Option<Refusal>,
) -> Result<Answer, PageError> {
    let (links, by) = (context.links, context.by);
    let mut webhooks = links.webhooks(by).await?;
    webhooks.reverse();
    let (paged, webhooks) = Paged::cut(webhooks, PATH, context.query);
    let mut last = links.last_deliveries(&webhooks, by).await?;
    let with_last = |shown: ShownWebhook| {
        let last = last.remove(&shown.webhook.id);
        (shown, last)
    };
    let page = WebhooksPage {
        frame: context.frame(PATH),
        context: *context,
        webhooks: webhooks.into_iter().map(with_last).collect(),
        paged,
        secret,
        kinds: kinds(context.t),
        domains: links.domains(true, by).await?.into_iter().map(|domain| domain.name).collect(),
        typed: if refusal.is_some() { context.form.clone() } else { Form::default() },
        notices: Notices::new(context.query, refusal),
    };
    Ok(context.page(page.notices.status(), &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_of_the_form_are_no_conditions() {
        let form = "url=+https://hooks.example/+&events=link.created&events=link.deleted&domain=&tag=&\
                    shortCode=&description=";
        let fields = read_fields(&Form::parse(form.as_bytes()));
        assert_eq!(fields.url.as_deref(), Some("https://hooks.example/"));
        assert_eq!(fields.events.unwrap(), ["link.created", "link.deleted"]);
        let others = [fields.domain, fields.tag, fields.short_code, fields.description];
        assert!(others.iter().all(Option::is_none), "{others:?}");
    }
}
