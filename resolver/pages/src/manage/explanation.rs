//! Why a link answers as it does: an example of a visit, and the steps of the decision about it.

use app::{AppError, FieldErrors, explain_link::ExampleFields};
use hyper::header::{ACCEPT_LANGUAGE, HeaderName, HeaderValue, USER_AGENT};
use links::Explanation;

use crate::{context::Context, form::Form, locale::Locale};

/// The parameter of the query that asks for an explanation.
const ASKED: &str = "explain";

/// The form of the example, and what came of it.
pub(super) struct ShownExplanation {
    typed: Form,
    /// The steps and the answer; `None` before the form is sent.
    pub(super) texts: Option<(Vec<String>, String)>,
}

impl ShownExplanation {
    /// Makes the form. Before it is sent, it describes the visit of the page's reader.
    pub(super) fn new(context: &Context<'_>) -> Self {
        if is_asked(context) {
            return Self { typed: context.query.clone(), texts: None };
        }
        let header = |name: HeaderName| {
            let value = context.request.head.headers.get(name).map(HeaderValue::to_str);
            value.and_then(Result::ok).unwrap_or_default().to_owned()
        };
        let fields = [("userAgent", header(USER_AGENT)), ("language", header(ACCEPT_LANGUAGE))];
        Self { typed: Form(fields.map(|(name, value)| (name.to_owned(), value)).to_vec()), texts: None }
    }

    pub(super) fn value(&self, field: &str) -> &str {
        self.typed.value(field)
    }
}

pub(super) fn is_asked(context: &Context<'_>) -> bool {
    context.query.is_on(ASKED)
}

/// Explains the answer of a link to the example in the query.
pub(super) async fn explain(
    context: &Context<'_>,
    short_url: String,
) -> Result<(Vec<String>, String), AppError> {
    let query = context.query;
    let fields = ExampleFields {
        url: Some(short_url),
        user_agent: query.owned("userAgent"),
        accept_language: query.owned("language"),
        ip: None,
        country: query.owned("country"),
        at: query.owned("at"),
    };
    let of_reader = (context.request.client, &context.pages.api.time_zone);
    let explained = context.links.explain(&fields, FieldErrors::default(), of_reader, context.by).await?;
    Ok(texts_of(&explained, context.t))
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
    use links::{Finding, Step};

    use super::*;
    use crate::locale::english;

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
