//! Fallback targets: where visitors are led whose request no link answers.

use url::Url;

use crate::{
    LongUrl, LongUrlError, STRAY_TARGET_BYTES, has_safe_placeholders,
    long_url::check_host,
    reference::{Reference, is_web},
};

/// Why a fallback target was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FallbackTargetError {
    /// Too long to be stored.
    #[error("expected at most {STRAY_TARGET_BYTES} bytes")]
    TooLong,
    /// Control characters, which browsers ignore or a header cannot have.
    #[error("expected no control characters")]
    Characters,
    /// A placeholder through which the visitor would choose the host.
    #[error("expected placeholders behind the host of an http or https URL only")]
    Placeholder,
    /// A scheme that loads no page.
    #[error("expected an http or https URL")]
    Scheme,
    /// A path that browsers take for a host.
    #[error("expected https:// or http:// before a host, and no backslash in a path")]
    HiddenHost,
    /// An address of the web with a wrong host.
    #[error(transparent)]
    Url(#[from] LongUrlError),
}

/// Checks a fallback target: an http or https URL, or a path of the domain itself. As in Shlink, a
/// path may be any other text.
pub fn check_fallback_target(text: &str) -> Result<(), FallbackTargetError> {
    if text.len() > STRAY_TARGET_BYTES {
        return Err(FallbackTargetError::TooLong);
    }
    check_form(text)
}

/// Checks a fallback target of the process: an http or https URL of at most the length of a long
/// URL.
pub fn check_process_target(text: &str) -> Result<(), FallbackTargetError> {
    // A longer target would count as none as soon as its placeholders are filled.
    if text.len() > LongUrl::MAX_LEN {
        return Err(LongUrlError::TooLong.into());
    }
    check_form(text)?;
    if Reference::split(text).scheme.is_none() { Err(FallbackTargetError::Scheme) } else { Ok(()) }
}

fn check_form(text: &str) -> Result<(), FallbackTargetError> {
    if text.chars().any(char::is_control) {
        return Err(FallbackTargetError::Characters);
    }
    let reference = Reference::split(text);
    match reference.scheme {
        None if reference.authority.is_some() || reference.path.contains('\\') => {
            Err(FallbackTargetError::HiddenHost)
        }
        Some(scheme) if !is_web(scheme) => Err(FallbackTargetError::Scheme),
        _ if !has_safe_placeholders(text) => Err(FallbackTargetError::Placeholder),
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
            ("//evil.example", FallbackTargetError::HiddenHost),
            ("/\\evil.example", FallbackTargetError::HiddenHost),
            ("\\evil", FallbackTargetError::HiddenHost),
            ("a\\b", FallbackTargetError::HiddenHost),
            ("///evil.example", FallbackTargetError::HiddenHost),
            ("/\t/evil.example", FallbackTargetError::Characters),
            ("javascript:alert(1)", FallbackTargetError::Scheme),
            ("mailto:a@b.example", FallbackTargetError::Scheme),
            ("/{ORIGINAL_PATH}", FallbackTargetError::Placeholder),
            ("https://a.b{ORIGINAL_PATH}", FallbackTargetError::Placeholder),
            ("https:evil.example", LongUrlError::Authority.into()),
            ("https:///evil.example", LongUrlError::Authority.into()),
            ("https:\\\\evil.example", LongUrlError::Authority.into()),
            ("https://a.b\\@evil.example", LongUrlError::Authority.into()),
            ("https://user@a.b/", LongUrlError::Credentials.into()),
            ("https://@a.b/", LongUrlError::Authority.into()),
            ("https://a b/", LongUrlError::Malformed.into()),
            ("https://a.b:99999/", LongUrlError::Malformed.into()),
            (&long, LongUrlError::Host.into()),
            (&"a".repeat(STRAY_TARGET_BYTES + 1), FallbackTargetError::TooLong),
        ] {
            assert_eq!(check_fallback_target(text), Err(error), "{text}");
        }
        for text in ["https://a.b/x y?{ORIGINAL_PATH}", "/lost", "lost?//x\\y", "HTTP://a.b", "?x", "a/b:c"] {
            assert_eq!(check_fallback_target(text), Ok(()), "{text}");
        }
        assert_eq!(check_process_target("/lost"), Err(FallbackTargetError::Scheme));
        assert_eq!(check_process_target("https://a.b/{DOMAIN}"), Ok(()));
    }
}
