//! Answers to visitors in place of a redirect: HTML for browsers, a problem (RFC 9457) for
//! programs.

use askama::Template;
use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, VARY},
};
use serde_json::json;
use web::{
    Answer, answer,
    visitor_page::{LinkPreview, SocialPreview, VisitorPage},
};

use crate::{
    Renderer,
    answer::{leading_away, page},
    frame::Frame,
    locale::Locale,
    preferences::Preferences,
};

const PROBLEM: &str = "application/problem+json";

#[derive(Template)]
#[template(path = "visitor.html")]
struct MessagePage<'a> {
    frame: Frame<'a>,
    title: String,
    text: String,
    /// Whether a form asks for the link's password, and whether a wrong one was entered.
    password: Option<bool>,
    /// Whether a form lets the visitor confirm.
    confirms: bool,
}

#[derive(Template)]
#[template(path = "preview.html")]
struct PreviewPage<'a> {
    frame: Frame<'a>,
    link: LinkPreview,
}

#[derive(Template)]
#[template(path = "social_preview.html")]
struct SocialPreviewPage {
    preview: SocialPreview,
}

impl Renderer {
    /// Writes the page that an answer is marked with. Answers without one stay as they are.
    #[must_use]
    pub fn write(&self, headers: &HeaderMap, path: &str, mut answer: Answer) -> Answer {
        let Some(shown) = answer.extensions_mut().remove::<VisitorPage>() else { return answer };
        let preferences = Preferences::of(self, headers);
        let status = answer.status();
        let is_html = matches!(shown, VisitorPage::Password { .. } | VisitorPage::SocialPreview(_));
        let written = if is_html || accepts_html(headers) {
            self.html(Frame::of_visitor(self, preferences, path), status, shown)
        } else {
            problem(status, &shown, preferences.locale)
        };
        // The headers and marks of the decision stay: how long to wait, and that it is held back.
        for (name, value) in written.headers() {
            answer.headers_mut().insert(name, value.clone());
        }
        *answer.body_mut() = written.into_body();
        answer
    }

    fn html(&self, frame: Frame<'_>, status: StatusCode, shown: VisitorPage) -> Answer {
        let (title, text) = words(&shown, frame.t);
        match shown {
            VisitorPage::Preview(link) => {
                leading_away(page(self, status, &PreviewPage { frame, link: *link }))
            }
            VisitorPage::SocialPreview(preview) => {
                for_crawlers(page(self, status, &SocialPreviewPage { preview: *preview }))
            }
            VisitorPage::Password { is_wrong } => {
                let form = MessagePage { frame, title, text, password: Some(is_wrong), confirms: false };
                leading_away(page(self, status, &form))
            }
            VisitorPage::Confirm => {
                let form = MessagePage { frame, title, text, password: None, confirms: true };
                leading_away(page(self, status, &form))
            }
            _ => page(self, status, &MessagePage { frame, title, text, password: None, confirms: false }),
        }
    }
}

/// Sets the headers of the page for crawlers, which loads nothing. Shared caches must not serve it
/// to other clients. A crawler may keep it for as long as a redirect.
fn for_crawlers(mut answer: Answer) -> Answer {
    for (name, value) in [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (CACHE_CONTROL, "private,max-age=30"),
        (VARY, "user-agent"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn words(shown: &VisitorPage, t: &Locale) -> (String, String) {
    match shown {
        VisitorPage::Home => (t.text("visitor-home-title"), t.text("visitor-home-text")),
        VisitorPage::NotFound => (t.text("not-found-title"), t.text("not-found-text")),
        VisitorPage::Expired => (t.text("expired-title"), t.text("expired-text")),
        VisitorPage::Spent => (t.text("spent-title"), t.text("spent-text")),
        VisitorPage::Gone => (t.text("gone-title"), t.text("gone-text")),
        VisitorPage::TakenDown => (t.text("taken-down-title"), t.text("taken-down-text")),
        VisitorPage::Password { is_wrong: false } => (t.text("password-title"), t.text("password-text")),
        VisitorPage::Password { is_wrong: true } => (t.text("password-title"), t.text("password-wrong")),
        VisitorPage::TooManyTries => (t.text("slow-down-title"), t.text("too-many-tries-text")),
        VisitorPage::Limited => (t.text("limited-title"), t.text("limited-text")),
        VisitorPage::Confirm => (t.text("confirm-title"), t.text("confirm-text")),
        VisitorPage::Unavailable => (t.text("unavailable-title"), t.text("unavailable-text")),
        VisitorPage::TooMuch => (t.text("slow-down-title"), t.text("too-much-text")),
        VisitorPage::SlowDown => (t.text("slow-down-title"), t.text("slow-down-text")),
        VisitorPage::Preview(link) => (t.text("preview-title"), link.target.clone().unwrap_or_default()),
        VisitorPage::SocialPreview(preview) => {
            (preview.title.clone(), preview.description.clone().unwrap_or_default())
        }
    }
}

/// Writes a problem, or of a page that is none its title and text.
fn problem(status: StatusCode, shown: &VisitorPage, t: &Locale) -> Answer {
    let (title, detail) = words(shown, t);
    let body = match shown {
        VisitorPage::Preview(link) => json!({
            "shortUrl": link.short_url, "longUrl": link.target, "hasPassword": link.has_password,
            "title": link.title, "created": link.created,
        }),
        _ => json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail }),
    };
    let kind = if status.is_success() { "application/json" } else { PROBLEM };
    let mut answer = answer(status, kind, body.to_string());
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept-language, cookie, accept"));
    answer
}

/// Returns whether a client wants HTML: it names it, as browsers do, or names nothing.
fn accepts_html(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(ACCEPT).iter().peekable();
    lines.peek().is_none() || lines.any(|line| line.to_str().is_ok_and(|line| line.contains("text/html")))
}

#[cfg(test)]
mod tests {
    use hyper::{
        body::Bytes,
        header::{ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE, RETRY_AFTER},
    };

    use super::*;
    use crate::Theme;

    fn written(
        shown: VisitorPage,
        status: u16,
        headers: &[(hyper::header::HeaderName, &'static str)],
    ) -> Answer {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let renderer = Renderer::new(Theme::default(), false);
        renderer.write(&headers, "/aB3x9Q", shown.answer(StatusCode::from_u16(status).unwrap()))
    }

    #[test]
    fn browsers_get_html_and_programs_a_problem() {
        let page = written(VisitorPage::NotFound, 404, &[(ACCEPT, "text/html,*/*;q=0.8")]);
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(page.body().len() > 500 && page.status() == StatusCode::NOT_FOUND);
        let page = written(VisitorPage::NotFound, 404, &[(ACCEPT, "application/json")]);
        assert_eq!(page.headers()[CONTENT_TYPE], PROBLEM);
        let page = written(VisitorPage::NotFound, 404, &[]);
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    }

    #[test]
    fn a_social_preview_is_html_for_everyone_and_its_texts_are_escaped() {
        let attack = "\"><script>alert('1')</script>&amp;";
        let shown = SocialPreview {
            short_url: "https://s.example/x".to_owned(),
            title: attack.to_owned(),
            description: Some(attack.to_owned()),
            image: Some("https://e.example/a.png?\"><b>".to_owned()),
        };
        let mut page = written(VisitorPage::SocialPreview(Box::new(shown)), 200, &[(ACCEPT, "*/*")]);
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(page.headers()[CACHE_CONTROL], "private,max-age=30");
        assert_eq!(page.headers()[VARY], "user-agent");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("self"), "{policy}");
        let mut text = String::new();
        page.body_mut().replace(|bytes| {
            text = String::from_utf8_lossy(bytes).into_owned();
            Bytes::new()
        });
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert_eq!(text.matches("&#34;&#62;&#60;script&#62;").count(), 5, "{text}");
        assert!(text.contains("summary_large_image"), "{text}");
    }

    #[test]
    fn headers_of_the_decision_stay() {
        let renderer = Renderer::new(Theme::default(), true);
        let mut decided = VisitorPage::SlowDown.answer(StatusCode::TOO_MANY_REQUESTS);
        decided.headers_mut().insert(RETRY_AFTER, HeaderValue::from(7));
        let answer = renderer.write(&HeaderMap::new(), "/x", web::hold_back(decided));
        assert_eq!(answer.headers()[RETRY_AFTER], "7");
        assert!(web::is_held_back(&answer));
        assert!(answer.headers().contains_key("strict-transport-security"));
    }

    #[test]
    fn the_password_form_may_lead_elsewhere_and_others_not() {
        let policy = |shown, status| {
            let page = written(shown, status, &[(ACCEPT_LANGUAGE, "zh"), (COOKIE, "colours=dark")]);
            page.headers()["content-security-policy"].to_str().unwrap().to_owned()
        };
        assert!(!policy(VisitorPage::Password { is_wrong: false }, 200).contains("form-action"));
        assert!(!policy(VisitorPage::Confirm, 200).contains("form-action"));
        assert!(policy(VisitorPage::Gone, 410).contains("form-action 'self'"));
    }
}
