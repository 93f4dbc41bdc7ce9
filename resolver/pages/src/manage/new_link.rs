//! The form above the list that makes a link and leads back to the list. The home page (`home.rs`)
//! has a form with more fields, and the page of a link has the others.

use hyper::StatusCode;
use links::scope::Scope;
use url::form_urlencoded::byte_serialize;
use web::Answer;

use super::{
    choice::{Done, link_field, parse_link_field},
    list,
    notices::Refusal,
    paged::address,
    shown::ShownLink,
};
use crate::{
    addresses::{LINKS, with_parameter},
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    home,
    link_input::{DomainChoices, mark},
};

/// The value of the form's button.
pub(super) const CREATE: &str = "create";
/// The field of a query with the name of the link that was made.
const MADE: &str = "made";

/// The form, and the link that it made before.
#[derive(Default)]
pub(super) struct NewLink {
    /// Whether the key may create links.
    pub(super) may_create: bool,
    pub(super) made: Option<ShownLink>,
    pub(super) mark: String,
    pub(super) domain_choices: DomainChoices,
    /// What was typed, of a form that was refused.
    pub(super) typed: Form,
    pub(super) refusal: Option<Refusal>,
}

impl NewLink {
    pub(super) async fn of(context: &Context<'_>, refusal: Option<Refusal>) -> Self {
        if !context.allows(Scope::Create) {
            return Self::default();
        }
        let name = context.query.get(MADE).and_then(parse_link_field).filter(|_| refusal.is_none());
        let made = match name {
            Some(name) => context.links.get_link(&name, context.by).await.ok(),
            None => None,
        };
        Self {
            may_create: true,
            made: made.map(|record| ShownLink::new(context, &record, 0)),
            mark: mark(),
            domain_choices: DomainChoices::of(context.links, context.by).await,
            typed: if refusal.is_some() { context.form.clone() } else { Form::default() },
            refusal,
        }
    }

    pub(super) fn is_wrong(&self, field: &str) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.fields.iter().any(|wrong| wrong == field))
    }
}

pub(super) async fn create(context: &Context<'_>) -> Result<Answer, PageError> {
    match home::create(context.request, context.by).await {
        Ok(record) => {
            let name = link_field(&context.pages.name_of(&record.link));
            let made: String = byte_serialize(name.as_bytes()).collect();
            let to = with_parameter(&address(LINKS, context.query), &format!("{MADE}={made}"));
            Ok(redirect(StatusCode::SEE_OTHER, &to))
        }
        Err(error) => {
            let refusal = Refusal::new(error, context.t)?;
            list::answer(context, refusal.status, Done::default(), Some(refusal)).await
        }
    }
}
