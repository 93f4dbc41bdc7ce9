//! The cookies of a request, and of an answer.

use hyper::{
    HeaderMap,
    header::{COOKIE, HeaderValue, SET_COOKIE},
};
use web::Answer;

pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A cookie of another program may have other letters. It must not hide those behind it.
    let lines = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    let pairs = pairs.filter_map(|pair| str::from_utf8(pair).ok()?.trim().split_once('='));
    let mut values = pairs.filter(|(has, _)| *has == name).map(|(_, value)| value);
    // Another host below the same domain may have set a second one: neither is believed.
    let value = values.next();
    value.filter(|_| values.next().is_none())
}

/// Purpose of a cookie, which decides who may read it and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A secret that scripts cannot read.
    Secret,
    Preference,
}

/// Sets a cookie for `seconds`; 0 removes it.
pub(crate) fn set(answer: &mut Answer, kind: Kind, name: &str, value: &str, seconds: u64, is_https: bool) {
    // Lax and not Strict: behind a link in a mail a management page would ask for the key again.
    // Forms are protected by their token and their origin.
    let http_only = if kind == Kind::Secret { "; HttpOnly" } else { "" };
    let secure = if is_https { "; Secure" } else { "" };
    let line = format!("{name}={value}; Path=/; Max-Age={seconds}; SameSite=Lax{http_only}{secure}");
    if let Ok(line) = HeaderValue::try_from(line) {
        answer.headers_mut().append(SET_COOKIE, line);
    }
}

/// Returns the line of a cookie that is sent back below a path only, which has no slash at its end.
pub(crate) fn below(path: &str, line: &str) -> String {
    line.replace("; Path=/;", &format!("; Path={path};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_and_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_bytes("a=ü; language=zh; b".as_bytes()).unwrap());
        headers.append(COOKIE, HeaderValue::from_static("my_session=2; session=x=y"));
        assert_eq!(cookie(&headers, "language"), Some("zh"));
        assert_eq!(cookie(&headers, "session"), Some("x=y"));
        assert_eq!(cookie(&headers, "b"), None);
        headers.append(COOKIE, HeaderValue::from_static("session=other"));
        assert_eq!(cookie(&headers, "session"), None);
    }
}
