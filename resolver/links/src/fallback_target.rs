//! Fallback targets: where visitors are led whose request no link answers.

use url::Url;

use crate::{
    Invalid, LongUrl, LongUrlError, STRAY_TARGET_BYTES, has_safe_placeholders,
    long_url::check_host,
    reference::{Reference, is_web},
};

/// The length is [`STRAY_TARGET_BYTES`].
const TOO_LONG: Invalid = Invalid::because("expected at most 2048 bytes");
/// Browsers ignore control characters, or a header cannot have them.
const CHARACTERS: Invalid = Invalid::because("expected no control characters");
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

/// Checks a fallback target of the process: an http or https URL of at most the length of a long
/// URL.
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
}
