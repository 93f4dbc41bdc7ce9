//! The target rules: the hosts that links may lead to. For operators.

use std::sync::Arc;

use app::AppError;
use askama::Template;
use hyper::StatusCode;
use links::targets::TargetRule;
use web::Answer;

use super::paged::{Paged, address, is_stored, stored_address};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// The address of the page.
pub(super) const PATH: &str = "/manage/targets";

/// The table of rules.
#[derive(Template)]
#[template(path = "manage/targets.html")]
struct TargetsPage<'a> {
    frame: Frame<'a>,
    rules: Vec<TargetRule>,
    paged: Paged,
    /// Where the forms are sent to.
    action: String,
    /// The pattern that was typed for a rule that was refused.
    new_pattern: String,
    /// Whether that rule would have allowed its hosts.
    new_allowed: bool,
    /// Whether the form of a new rule was refused.
    is_wrong: bool,
    is_stored: bool,
    /// Why a form was refused.
    refused: Option<String>,
}

/// Shows a page of the rules.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let shown = shown(pages, request, session).await?;
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Sets or removes a rule, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (service, by, form) = (&pages.api.links, &session.grant, &request.form);
    let is_removal = form.get("do") == Some("remove");
    let changed = if is_removal {
        service.remove_target_rule(form.get("pattern").unwrap_or_default(), by).await
    } else {
        match read_rule(form) {
            Ok(rule) => service.set_target_rule(&rule, by).await,
            Err(error) => Err(error),
        }
    };
    let error = match changed {
        Ok(()) => return Ok(redirect(StatusCode::SEE_OTHER, &stored_address(PATH, &request.query))),
        Err(error @ (AppError::Invalid(_) | AppError::NoTarget { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    let mut shown = shown(pages, request, session).await?;
    shown.refused = Some(reason(&error, shown.frame.t));
    if !is_removal {
        // What was typed stays in the form.
        shown.is_wrong = true;
        form.get("pattern").unwrap_or_default().clone_into(&mut shown.new_pattern);
        shown.new_allowed = form.get("allowed") == Some("true");
    }
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

/// Reads the form of a rule.
fn read_rule(form: &Form) -> Result<TargetRule, AppError> {
    let allowed = match form.get("allowed") {
        Some("true") => true,
        Some("false") => false,
        _ => return Err(AppError::invalid("allowed", "expected true or false")),
    };
    let pattern = form.get("pattern").unwrap_or_default();
    TargetRule::parse(pattern, allowed).map_err(|error| AppError::invalid("pattern", error.to_string()))
}

/// Reads the page of the rules that the query asks for.
async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<TargetsPage<'a>, PageError> {
    let query = &request.query;
    let rules = pages.api.links.target_rules(&session.grant).await?;
    let (paged, rules) = Paged::cut(rules, PATH, query);
    Ok(TargetsPage {
        frame: Frame::new(request, Some(session), Place::Targets),
        rules,
        paged,
        action: address(PATH, query),
        new_pattern: String::new(),
        new_allowed: false,
        is_wrong: false,
        is_stored: is_stored(query),
        refused: None,
    })
}

/// Returns the text of an error that concerns a form.
fn reason(error: &AppError, t: &Locale) -> String {
    match error {
        AppError::Invalid(fields) if fields.iter().any(|field| field.field == "pattern") => {
            t.text("targets-expected")
        }
        AppError::NoTarget { pattern } => t.with("targets-absent", pattern),
        other => error::message(other, t),
    }
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
