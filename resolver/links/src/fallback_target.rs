//! Fallback targets: where visitors are led whose request no link answers.
//!
//! Shlink's placeholders, `{DOMAIN}` and `{ORIGINAL_PATH}`, are replaced only after the host of a
//! URL that has one, because the visitor chooses the values. In
//! `https://example.com{ORIGINAL_PATH}` the path `/@evil.example/` would name another host, and
//! `{ORIGINAL_PATH}` alone could become any URL.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::{
    Invalid, LongUrl, LongUrlError, STRAY_TARGET_BYTES,
    location::{is_in_path, push_byte},
    long_url::check_host,
    reference::{Reference, is_web},
};

/// The length is [`STRAY_TARGET_BYTES`].
const TOO_LONG: Invalid = Invalid::because("expected at most 2048 bytes");
/// Browsers ignore control characters, or a header cannot have them.
const CHARACTERS: Invalid = Invalid::because("control characters are not allowed");
/// Elsewhere the visitor would choose the host.
const PLACEHOLDER: Invalid =
    Invalid::because("expected placeholders behind the host of an http or https URL only");
const SCHEME: Invalid = Invalid::because("expected an http or https URL");
/// Browsers would take the path for a host.
const HIDDEN_HOST: Invalid =
    Invalid::because("expected https:// or http:// before a host, and no backslash in a path");

impl From<LongUrlError> for Invalid {
    fn from(error: LongUrlError) -> Self {
        error.to_string().into()
    }
}

/// Checks a fallback target: an http or https URL, or a path of the domain itself. As in Shlink, a
/// path may be any other text.
pub fn check_fallback_target(text: &str) -> Result<(), Invalid> {
    if text.len() > STRAY_TARGET_BYTES {
        return Err(TOO_LONG);
    }
    check_form(text)
}

/// Checks a fallback target of the process: an http or https URL as long as a long URL may be.
pub fn check_process_target(text: &str) -> Result<(), Invalid> {
    // A longer target would count as none as soon as its placeholders are filled.
    if text.len() > LongUrl::MAX_LEN {
        return Err(LongUrlError::TooLong.into());
    }
    check_form(text)?;
    if Reference::split(text).scheme.is_none() { Err(SCHEME) } else { Ok(()) }
}

fn check_form(text: &str) -> Result<(), Invalid> {
    if text.chars().any(char::is_control) {
        return Err(CHARACTERS);
    }
    let reference = Reference::split(text);
    match reference.scheme {
        None if reference.authority.is_some() || reference.path.contains('\\') => Err(HIDDEN_HOST),
        Some(scheme) if !is_web(scheme) => Err(SCHEME),
        _ if !has_safe_placeholders(text) => Err(PLACEHOLDER),
        None => Ok(()),
        Some(_) if !reference.has_plausible_authority() => Err(LongUrlError::Host.into()),
        Some(_) => {
            let url = Url::parse(text).map_err(|_| LongUrlError::Malformed)?;
            Ok(check_host(text, &url)?)
        }
    }
}

const DOMAIN: &str = "{DOMAIN}";
const ORIGINAL_PATH: &str = "{ORIGINAL_PATH}";

/// Maximum length of a target with filled placeholders, in bytes: that of a long URL. A target may
/// repeat a placeholder many times, and the visitor chooses the length of the path.
const FILLED_BYTES: usize = LongUrl::MAX_LEN;

/// Returns `true` if all placeholders stand where they are replaced.
pub fn has_safe_placeholders(target: &str) -> bool {
    split(target, &[DOMAIN, ORIGINAL_PATH]).is_some()
}

/// Fills the placeholders of a fallback target. The path is that of the request as it was sent.
///
/// Returns `None` if a placeholder is not after the host, or if the filled target would be longer
/// than a long URL may be. A target without placeholders has no such limit.
pub fn fill_placeholders(target: &str, domain: &str, path: &str) -> Option<String> {
    fill(target, &[(DOMAIN, domain), (ORIGINAL_PATH, path)], escaped_in_path)
}

/// Replaces placeholders by values of a visitor's choice. A value is decoded, and escaped once for
/// the place where it stands: in a query as a whole, because its characters may have a meaning
/// there, and elsewhere segment by segment, by `in_path`.
///
/// Returns `None` as [`fill_placeholders`] does.
pub(crate) fn fill(
    target: &str,
    values: &[(&str, &str)],
    in_path: impl Fn(&str) -> String,
) -> Option<String> {
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    let (fixed, rest) = split(target, &names)?;
    if rest.is_empty() {
        return Some(fixed.to_owned());
    }
    let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    let mut filled = fixed.to_owned() + &fill_part(before, values, in_path)?;
    if let Some(query) = query {
        filled.push('?');
        filled.push_str(&fill_part(query, values, |text| {
            escaped_once(text, |byte| byte.is_ascii_alphanumeric())
        })?);
    }
    (filled.len() <= FILLED_BYTES).then_some(filled)
}

/// Returns a path as a part of another one, without slashes before it. An escaped slash stays part
/// of a segment.
pub(crate) fn escaped_in_path(path: &str) -> String {
    escaped_segments(path.trim_start_matches('/'))
}

/// Returns a part of a path with all its slashes. An escaped slash stays part of a segment.
pub(crate) fn escaped_segments(part: &str) -> String {
    let escape = |segment| escaped_once(segment, |byte| byte != b'/' && is_in_path(byte));
    part.split('/').map(escape).collect::<Vec<_>>().join("/")
}

fn escaped_once(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    percent_decode_str(text).for_each(|byte| push_byte(&mut escaped, byte, is_plain(byte)));
    escaped
}

/// Returns a part of a target with its placeholders filled; `None` if that alone is too long.
/// Escaped values have no braces, so none is taken for a placeholder.
fn fill_part(part: &str, values: &[(&str, &str)], escape: impl Fn(&str) -> String) -> Option<String> {
    let mut filled = part.to_owned();
    for (name, value) in values {
        let count = filled.matches(name).count();
        if count == 0 {
            continue;
        }
        let value = escape(value);
        if count * value.len() > FILLED_BYTES {
            return None;
        }
        filled = filled.replace(name, &value);
    }
    Some(filled)
}

/// Splits a target after its host. Returns `None` if a placeholder is not after a host.
pub(crate) fn split<'a>(target: &'a str, names: &[&str]) -> Option<(&'a str, &'a str)> {
    let is_placeholder = |text: &str| names.iter().any(|name| text.contains(name));
    if !is_placeholder(target) {
        return Some((target, ""));
    }
    let (scheme, behind) = target.split_once("://")?;
    let end = behind.find(['/', '\\', '?', '#']).filter(|end| is_web(scheme) && *end > 0)?;
    let (fixed, rest) = target.split_at(scheme.len() + "://".len() + end);
    (!is_placeholder(fixed)).then_some((fixed, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_shows_the_host_that_it_leads_to() {
        let long = format!("https://{}/", "a".repeat(1_025));
        for (text, error) in [
            ("//evil.example", HIDDEN_HOST),
            ("/\\evil.example", HIDDEN_HOST),
            ("\\evil", HIDDEN_HOST),
            ("a\\b", HIDDEN_HOST),
            ("///evil.example", HIDDEN_HOST),
            ("/\t/evil.example", CHARACTERS),
            ("javascript:alert(1)", SCHEME),
            ("mailto:a@b.example", SCHEME),
            ("/{ORIGINAL_PATH}", PLACEHOLDER),
            ("https://a.b{ORIGINAL_PATH}", PLACEHOLDER),
            ("https:evil.example", LongUrlError::Authority.into()),
            ("https:///evil.example", LongUrlError::Authority.into()),
            ("https:\\\\evil.example", LongUrlError::Authority.into()),
            ("https://a.b\\@evil.example", LongUrlError::Authority.into()),
            ("https://user@a.b/", LongUrlError::Credentials.into()),
            ("https://@a.b/", LongUrlError::Authority.into()),
            ("https://a b/", LongUrlError::Malformed.into()),
            ("https://a.b:99999/", LongUrlError::Malformed.into()),
            (&long, LongUrlError::Host.into()),
            (&"a".repeat(STRAY_TARGET_BYTES + 1), TOO_LONG),
        ] {
            assert_eq!(check_fallback_target(text), Err(error), "{text}");
        }
        for text in ["https://a.b/x y?{ORIGINAL_PATH}", "/lost", "lost?//x\\y", "HTTP://a.b", "?x", "a/b:c"] {
            assert_eq!(check_fallback_target(text), Ok(()), "{text}");
        }
        assert_eq!(check_process_target("/lost"), Err(SCHEME));
        assert_eq!(check_process_target("https://a.b/{DOMAIN}"), Ok(()));
    }

    #[test]
    fn placeholders_are_filled_behind_the_host_and_escaped_in_the_query() {
        for (target, expected) in [
            ("https://a.b/", "https://a.b/"),
            ("https://a.b/{ORIGINAL_PATH}", "https://a.b/x/y&z%5C"),
            ("https://a.b/?d={DOMAIN}&p={ORIGINAL_PATH}", "https://a.b/?d=s%2Ert&p=%2Fx%2Fy%26z%5C"),
            ("https://a.b/{DOMAIN}#{ORIGINAL_PATH}", "https://a.b/s.rt#x/y&z%5C"),
            ("HTTP://a.b?{DOMAIN}", "HTTP://a.b?s%2Ert"),
            ("https://a.b/{{DOMAIN}}{x?{", "https://a.b/{s.rt}{x?{"),
            ("/lost", "/lost"),
        ] {
            assert_eq!(fill_placeholders(target, "s.rt", "/x/y&z\\").as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_path_that_is_escaped_is_not_escaped_again() {
        for (path, in_path, in_query) in [
            ("/%C3%BCber", "%C3%BCber", "%2F%C3%BCber"),
            ("//a%2fb%5Cc", "a%2Fb%5Cc", "%2F%2Fa%2Fb%5Cc"),
            ("/%3F%23%25%2541", "%3F%23%25%2541", "%2F%3F%23%25%2541"),
            ("/%zz|%FF//\u{e4}", "%25zz%7C%FF//%C3%A4", "%2F%25zz%7C%FF%2F%2F%C3%A4"),
        ] {
            let filled = fill_placeholders("https://a.b/{ORIGINAL_PATH}?{ORIGINAL_PATH}", "s.rt", path);
            assert_eq!(filled, Some(format!("https://a.b/{in_path}?{in_query}")), "{path}");
        }
    }

    #[test]
    fn a_filled_target_is_at_most_as_long_as_a_long_url() {
        let fixed = "https://a.b/";
        let path = |bytes: usize| format!("/{}", "x".repeat(bytes));
        let filled = |target: &str, path: &str| fill_placeholders(target, "s.rt", path);
        let room = FILLED_BYTES - fixed.len();
        let one = format!("{fixed}{{ORIGINAL_PATH}}");
        assert_eq!(filled(&one, &path(room)).map(|url| url.len()), Some(FILLED_BYTES));
        assert_eq!(filled(&one, &path(room + 1)), None);
        let many = ORIGINAL_PATH.repeat(100);
        for target in [format!("{fixed}{many}"), format!("{fixed}?{many}"), format!("{fixed}#{many}")] {
            assert!(filled(&target, "/x").is_some(), "{target}");
            assert_eq!(filled(&target, &path(16 * 1024)), None, "{target}");
        }
        let plain = format!("{fixed}{}", "x".repeat(FILLED_BYTES));
        assert_eq!(filled(&plain, "/x").as_ref(), Some(&plain), "it has no placeholder");
    }

    #[test]
    fn a_visitor_never_chooses_the_host() {
        let before_host = "https://a.b{ORIGINAL_PATH} https://{DOMAIN}.b/ https://a.b:{ORIGINAL_PATH}/ \
                           https://{ORIGINAL_PATH} {ORIGINAL_PATH} /{ORIGINAL_PATH} //{ORIGINAL_PATH} \
                           https:{ORIGINAL_PATH} https:///{ORIGINAL_PATH} x://a.b/{ORIGINAL_PATH}";
        for target in before_host.split(' ') {
            assert!(!has_safe_placeholders(target), "{target}");
            assert_eq!(fill_placeholders(target, "s.rt", "/@evil.example/"), None, "{target}");
        }
    }
}
