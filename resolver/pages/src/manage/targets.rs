//! The target rules: the hosts that links may lead to. For operators.

use app::AppError;
use askama::Template;
use links::targets::TargetRule;
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    paged::Paged,
};
use crate::{context::Context, error::PageError, form::Form, frame::Frame};

pub(super) const PATH: &str = "/manage/targets";

#[derive(Template)]
#[template(path = "manage/targets.html")]
struct TargetsPage<'a> {
    frame: Frame<'a>,
    rules: Vec<TargetRule>,
    paged: Paged,
    notices: Notices,
    is_wrong: bool,
    typed: Form,
}

pub(super) async fn change(context: &Context<'_>) -> Result<(), AppError> {
    let (links, by, form) = (context.links, context.by, context.form);
    match form.get("do") {
        Some("remove") => links.remove_target_rule(form.value("pattern"), by).await,
        _ => links.set_target_rule(&read_rule(form)?, by).await,
    }
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
    let is_wrong = refusal.is_some() && form.get("do") != Some("remove");
    let page = TargetsPage {
        frame: context.frame(PATH),
        rules,
        // The typed text stays in the form.
        typed: if is_wrong { form.clone() } else { Form::default() },
        is_wrong,
        paged,
        notices: Notices::new(context.query, refusal),
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
