//! Why a short URL is answered as it is: an example of a visit, and the steps of the decision about
//! it. The URL need not be that of a link.

use app::{AppError, FieldErrors, authorize::require, explain_link::ExampleFields, find_link::LinkName};
use askama::Template;
use hyper::header::{ACCEPT_LANGUAGE, USER_AGENT};
use links::{Explanation, scope::Scope};
use web::Answer;

use super::notices::{Notices, Refusal};
use crate::{
    addresses::{EXPLAIN, link_page},
    context::Context,
    error::PageError,
    form::Form,
    frame::Frame,
    locale::Locale,
};

/// The field of the short URL. The use case names it `url`, like the address of a webhook, of which
/// something else is expected.
const SHORT_URL: &str = "shortUrl";

#[derive(Template)]
#[template(path = "manage/explain.html")]
struct ExplainPage<'a> {
    frame: Frame<'a>,
    typed: Form,
    notices: Notices,
    /// The steps and the answer; `None` before a short URL is typed.
    texts: Option<(Vec<String>, String)>,
    /// The link that was found, if it has a page.
    link: Option<LinkName>,
}

pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    require(context.by, Scope::Read)?;
    let typed = typed(context);
    let (mut texts, mut link, mut refusal) = (None, None, None);
    if typed.filled(SHORT_URL).is_some() {
        match explain(context, &typed).await {
            Ok(explained) => {
                texts = Some(texts_of(&explained, context.t));
                let found = explained.link.filter(|link| !link.is_deleted());
                link = found.map(|link| context.pages.name_of(&link));
            }
            Err(error) => refusal = Some(Refusal::new(error, context.t)?),
        }
    }
    let notices = Notices::new(context.query, refusal);
    let page = ExplainPage { frame: context.frame(EXPLAIN), typed, notices, texts, link };
    Ok(context.page(page.notices.status(), &page))
}

/// Returns the fields of the form. As long as the query does not have them, they describe the
/// browser of the page's reader.
fn typed(context: &Context<'_>) -> Form {
    let mut typed = context.query.clone();
    for (field, header) in [("userAgent", USER_AGENT), ("language", ACCEPT_LANGUAGE)] {
        if !typed.is_on(field) {
            let value = context.request.head.headers.get(header).and_then(|value| value.to_str().ok());
            typed.0.push((field.to_owned(), value.unwrap_or_default().to_owned()));
        }
    }
    typed
}

async fn explain(context: &Context<'_>, typed: &Form) -> Result<Explanation, AppError> {
    let fields = ExampleFields {
        url: typed.owned(SHORT_URL),
        user_agent: typed.owned("userAgent"),
        accept_language: typed.owned("language"),
        ip: typed.owned("ip"),
        country: typed.owned("country"),
        at: typed.owned("at"),
    };
    let of_reader = (context.request.client, &context.pages.api.time_zone);
    let explained = context.links.explain(&fields, FieldErrors::default(), of_reader, context.by).await;
    explained.map_err(with_own_name)
}

/// Names the field of the short URL as the form does.
fn with_own_name(mut error: AppError) -> AppError {
    if let AppError::Invalid(fields) = &mut error {
        for field in fields.iter_mut().filter(|field| field.field == "url") {
            SHORT_URL.clone_into(&mut field.field);
        }
    }
    error
}

/// Returns the texts of the steps and of the answer.
fn texts_of(explained: &Explanation, t: &Locale) -> (Vec<String>, String) {
    let steps = explained.steps.iter();
    let steps = steps.map(|step| t.with(&format!("explain-{}", step.finding.as_str()), &step.detail));
    let status = explained.status.to_string();
    let answer = match (&explained.location, explained.page) {
        (Some(location), _) => t.with_two("explain-leads", status, location),
        (None, page) => {
            let page = page.unwrap_or_default();
            let title = t.try_text(&format!("{page}-title")).unwrap_or_else(|| page.to_owned());
            t.with_two("explain-page", status, title)
        }
    };
    (steps.collect(), answer)
}

#[cfg(test)]
mod tests {
    use app::InvalidField;
    use links::{Finding, Step};

    use super::*;
    use crate::{locale::english, messages::message};

    #[test]
    fn a_wrong_short_url_is_no_wrong_address_of_a_webhook() {
        let wrong = |field: &str| InvalidField { field: field.to_owned(), expected: String::new() };
        let wrong = AppError::Invalid(["url", "ip"].map(wrong).into());
        let told = message(&with_own_name(wrong), english());
        assert!(told.contains("a short URL") && told.contains("192.0.2.7"), "{told}");
    }

    #[test]
    fn steps_and_answers_are_told_with_what_they_are_about() {
        let steps = vec![Step { finding: Finding::RuleDiffers, detail: "2: language de".to_owned() }];
        let page = Explanation { steps, link: None, status: 410, location: None, page: Some("expired") };
        let (steps, answer) = texts_of(&page, english());
        assert!(steps[0].contains("2: language de"), "{}", steps[0]);
        assert!(answer.contains("410") && answer.contains("This link has expired"), "{answer}");
        let location = Some("https://example.com/".to_owned());
        let (_, answer) = texts_of(&Explanation { status: 302, location, ..page }, english());
        assert!(answer.contains("302") && answer.contains("https://example.com/"), "{answer}");
    }
}
