//! Answers of a service below a path, such as `https://example.com/s/`.
//!
//! Pages are written as if they were at the root of their host, and [`below`] alone puts the path
//! before their addresses. It finds all of them, because templates write them in one form
//! (`href="/…`), which no value can take: its quotes are escaped.
//!
//! Rejected: a variable in each address of the templates, because one is easily forgotten; and
//! relative addresses, which depend on the depth of their page.

use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use web::{Answer, HTML};

use crate::{addresses::is_page, cookies};

/// The attributes of templates that have addresses.
const ATTRIBUTES: [&str; 4] = ["href", "src", "action", "data-live"];

/// Puts `base`, a path without a slash at its end, before the addresses in the answer to a request
/// for `path`: those of a page, that which a form leads to, and the path of cookies. Other
/// redirects are those of links and domains, and stay.
#[must_use]
pub fn below(base: &str, path: &str, mut answer: Answer) -> Answer {
    if base.is_empty() {
        return answer;
    }
    if answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == HTML) {
        answer.body_mut().replace(|page| place(base, &String::from_utf8_lossy(page)).into());
    }
    for (name, value) in answer.headers_mut().iter_mut() {
        let Ok(text) = value.to_str() else { continue };
        let placed = if *name == SET_COOKIE {
            cookies::below(base, text)
        } else if *name == LOCATION && is_page(path) && text.starts_with('/') {
            format!("{base}{text}")
        } else {
            continue;
        };
        if let Ok(placed) = HeaderValue::try_from(placed) {
            *value = placed;
        }
    }
    answer
}

fn place(base: &str, page: &str) -> String {
    ATTRIBUTES.iter().fold(page.to_owned(), |page, name| {
        page.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{base}/"))
    })
}

#[cfg(test)]
mod tests {
    use hyper::{StatusCode, header::HeaderName};

    use super::*;
    use crate::{answer::redirect, cookies::Kind};

    #[test]
    fn addresses_of_this_service_get_the_path_and_nothing_else_does() {
        for (written, placed) in [
            (r#"<a href="/manage?x=/y">"#, r#"<a href="/s/manage?x=/y">"#),
            (r#"<img src="/_pages/x">"#, r#"<img src="/s/_pages/x">"#),
            (r#"<form method="post" action="/x">"#, r#"<form method="post" action="/s/x">"#),
            (r#"<i data-live="/x?a=b">"#, r#"<i data-live="/s/x?a=b">"#),
        ] {
            assert_eq!(place("/s", written), placed);
        }
        let others =
            ["<a href=\"#main\">", "<a href=\"https://e.test/\">", "<input value=\"/x\">", "a href=&#34;/x"];
        for other in others {
            assert_eq!(place("/s", other), other);
        }
    }

    #[test]
    fn pages_lead_to_pages_and_their_cookies_stay_below_the_path() {
        let led = |base: &str, path: &str, to: &str| {
            let mut answer = redirect(StatusCode::SEE_OTHER, to);
            cookies::set(&mut answer, Kind::Preference, "language", "zh", 9, true);
            let answer = below(base, path, answer);
            let text = |name: HeaderName| answer.headers()[name].to_str().unwrap().to_owned();
            (text(LOCATION), text(SET_COOKIE))
        };
        let cookie = |path: &str| format!("language=zh; Path={path}; Max-Age=9; SameSite=Lax; Secure");
        for (path, to, expected) in [
            ("/manage/tags", "/manage/tags?stored", "/s/manage/tags?stored"),
            ("/_pages/sign-out", "/", "/s/"),
            ("/manage", "https://e.test/s/manage", "https://e.test/s/manage"),
            ("/unknown", "/lost", "/lost"),
        ] {
            assert_eq!(led("/s", path, to), (expected.to_owned(), cookie("/s")), "{path}");
            assert_eq!(led("", path, to), (to.to_owned(), cookie("/")), "{path}");
        }
    }
}
