//! The target rules: the hosts that links may lead to. For operators.

use app::AppError;
use askama::Template;
use hyper::StatusCode;
use links::targets::TargetRule;
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    offer::{offered, offering},
    paged::{Paged, stored_address},
};
use crate::{answer::redirect, context::Context, error::PageError, form::Form, frame::Frame};

pub(super) const PATH: &str = "/manage/targets";
/// The fields of a rule in a form, and in a query that offers to set it again.
const RULE: [&str; 2] = ["pattern", "allowed"];

#[derive(Template)]
#[template(path = "manage/targets.html")]
struct TargetsPage<'a> {
    frame: Frame<'a>,
    rules: Vec<TargetRule>,
    paged: Paged,
    notices: Notices,
    /// The rule that was removed before this page.
    removed: Option<TargetRule>,
    is_wrong: bool,
    typed: Form,
}

pub(super) async fn change(context: &Context<'_>) -> Result<(), AppError> {
    let (links, by, form) = (context.links, context.by, context.form);
    let (rule, action) = (read_rule(form)?, form.get("do"));
    if matches!(action, Some("remove" | "undo")) {
        // Neither a removal nor its undo is for what others have made of the rule meanwhile.
        let rules = links.target_rules(by).await?;
        if rules.iter().any(|has| has.pattern() == rule.pattern() && *has != rule) {
            return Err(AppError::Superseded);
        }
    }
    match action {
        Some("remove") => links.remove_target_rule(rule.pattern(), by).await,
        _ => links.set_target_rule(&rule, by).await,
    }
}

/// Leads back to the list, which offers to set a rule again that was removed.
pub(super) fn stored(context: &Context<'_>) -> Answer {
    let (form, list) = (context.form, stored_address(PATH, context.query));
    let list = match form.get("do") {
        Some("remove") => offering(context, &list, PATH, form.only(&RULE)),
        _ => list,
    };
    redirect(StatusCode::SEE_OTHER, &list)
}

fn read_rule(form: &Form) -> Result<TargetRule, AppError> {
    let allowed = match form.get("allowed") {
        Some("true") => true,
        Some("false") => false,
        _ => return Err(AppError::invalid("allowed", "expected true or false")),
    };
    let pattern = form.value("pattern");
    TargetRule::parse(pattern, allowed).map_err(|error| AppError::invalid("pattern", error.to_string()))
}

pub(super) async fn answer(context: &Context<'_>, refusal: Option<Refusal>) -> Result<Answer, PageError> {
    let form = context.form;
    let rules = context.links.target_rules(context.by).await?;
    let (paged, rules) = Paged::cut(rules, PATH, context.query);
    let is_wrong = refusal.is_some() && form.get("do") == Some("set");
    let mut notices = Notices::new(context.query, refusal);
    let offer = offered(context, PATH, &RULE);
    notices.is_stored &= offer.is_some();
    let page = TargetsPage {
        frame: context.frame(PATH),
        rules,
        // The typed text stays in the form.
        typed: if is_wrong { form.clone() } else { Form::default() },
        is_wrong,
        paged,
        removed: offer.and_then(|rule| read_rule(&rule).ok()).filter(|_| notices.is_stored),
        notices,
    };
    Ok(context.page(page.notices.status(), &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_needs_a_pattern_and_a_verdict() {
        let read = |form: &str| read_rule(&Form::parse(form.as_bytes()));
        for (form, pattern, allowed) in [
            ("pattern=+*.Example.com+&allowed=false", "*.example.com", false),
            ("pattern=*&allowed=false", "*", false),
            ("pattern=example.com&allowed=true", "example.com", true),
        ] {
            assert_eq!(read(form).unwrap(), TargetRule::parse(pattern, allowed).unwrap());
        }
        for (form, field) in [
            ("pattern=example.com", "allowed"),
            ("pattern=example.com&allowed=on", "allowed"),
            ("pattern=https://example.com/&allowed=true", "pattern"),
            ("allowed=true", "pattern"),
        ] {
            let Err(AppError::Invalid(fields)) = read(form) else { panic!("expected a wrong field: {form}") };
            assert_eq!(fields[0].field, field);
        }
    }
}
