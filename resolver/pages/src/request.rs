//! One request for a page: its head, its form, and the checks of forms.
//!
//! 1. Browsers say where a request comes from (`Sec-Fetch-Site`, and `Origin` with every POST). A
//!    form of another site is refused before its body is read (CSRF; OWASP's "Fetch Metadata" and
//!    "Verifying Origin"). A program that sends neither has no session of a person.
//! 2. With a session, a form also has to repeat the session's form token. Another site could not
//!    read it.

use std::{net::IpAddr, time::Duration};

use http_body_util::{BodyExt as _, Limited};
use hyper::{
    HeaderMap, StatusCode, Uri,
    body::Incoming,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, ORIGIN},
    http::{request::Parts, uri::Authority},
};
use limits::{Account, Held, from_client};
use tokio::time::timeout;

use crate::{Pages, error::PageError, form::Form, preferences::Preferences, session::Session};

/// Maximum length of a form without a session, in bytes: half of what one client may hold, because
/// the fields are copies of the body.
const FORM_BYTES: usize = 8 * 1024;
/// The same with a session: a thousand pasted links.
const LONG_FORM_BYTES: usize = 2 * 1024 * 1024;
/// How long a form may take to arrive, without and with a session. A slow one keeps others of the
/// same client waiting.
const BODY_TIME: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
const FORM_TOKEN: &str = "formToken";

pub(crate) struct PageRequest<'a> {
    pub(crate) pages: &'a Pages,
    pub(crate) head: &'a Parts,
    pub(crate) client: IpAddr,
    pub(crate) preferences: Preferences<'a>,
    pub(crate) query: Form,
    pub(crate) form: Form,
    pub(crate) session: Option<Session>,
    _held: Option<Held>,
}

impl<'a> PageRequest<'a> {
    pub(crate) fn new(pages: &'a Pages, head: &'a Parts, client: IpAddr) -> Self {
        Self {
            pages,
            head,
            client,
            preferences: Preferences::of(&pages.renderer, &head.headers),
            query: Form::parse(head.uri.query().unwrap_or("").as_bytes()),
            form: Form::default(),
            session: None,
            _held: None,
        }
    }

    pub(crate) fn host(&self) -> Option<&'a str> {
        host_of(&self.head.uri, &self.head.headers)
    }

    pub(crate) fn path(&self) -> &'a str {
        self.head.uri.path()
    }

    /// Returns the path and query to come back to. A form is sent to its own page.
    pub(crate) fn back(&self) -> &'a str {
        self.head.uri.path_and_query().map_or("/", |to| to.as_str())
    }

    /// Checks that a POST comes from a page of this service.
    pub(crate) fn check_origin(&self) -> Result<(), PageError> {
        let own = [self.host().unwrap_or(""), self.pages.api.domain_cache.default_name()];
        if is_same_origin(&self.head.headers, &own) { Ok(()) } else { Err(PageError::OtherOrigin) }
    }

    /// Reads the form of a POST, and checks that it has the token of the session.
    pub(crate) async fn read_form(&mut self, body: Incoming) -> Result<(), PageError> {
        let headers = &self.head.headers;
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if !kind.starts_with(b"application/x-www-form-urlencoded") {
            return Err(PageError::Form(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let (account, most, time) = match &self.session {
            Some(session) => (Account::Key(session.grant.id.0), LONG_FORM_BYTES, BODY_TIME.1),
            None => (Account::client(self.client), FORM_BYTES, BODY_TIME.0),
        };
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let expected = length.unwrap_or(most);
        if expected > most {
            return Err(PageError::Form(StatusCode::PAYLOAD_TOO_LARGE));
        }
        let held = self.pages.api.budgets.bodies.take(account, 2 * expected as u64);
        self._held = Some(held.map_err(app::AppError::from)?);
        let body = timeout(time, from_client(Limited::new(body, expected).collect()));
        let body = body.await.map_err(|_| PageError::Form(StatusCode::REQUEST_TIMEOUT))?;
        let body = body.map_err(|_| PageError::Form(StatusCode::PAYLOAD_TOO_LARGE))?;
        self.form = Form::parse(&body.to_bytes());
        match &self.session {
            Some(session) if self.form.get(FORM_TOKEN) != Some(&session.form_token) => {
                Err(PageError::OtherOrigin)
            }
            // The session of the form has ended: it must not be taken for one of the public.
            None if self.form.filled(FORM_TOKEN).is_some() => Err(PageError::NoSession),
            _ => Ok(()),
        }
    }
}

/// Returns the host of a request: that of its target, as in HTTP/2, or else the header.
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = || headers.get(HOST).and_then(|host| host.to_str().ok());
    uri.authority().map(Authority::as_str).or_else(header)
}

/// Returns whether a POST comes from a page on one of these hosts, or from a program that is no
/// browser. A proxy may have rewritten the host of the request, so that of the public URL counts
/// too.
fn is_same_origin(headers: &HeaderMap, hosts: &[&str]) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let from = origin.split_once("://").map_or("", |(_, from)| from);
            !from.is_empty() && hosts.iter().any(|host| from.eq_ignore_ascii_case(host))
        }
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_host_is_that_of_the_target_if_it_has_one() {
        let headers = headers(&[("host", "s.example")]);
        for (target, host) in [
            ("/manage", "s.example"),
            // As HTTP/2 has it, and requests through a forward proxy.
            ("https://rebind.example:8080/manage", "rebind.example:8080"),
        ] {
            assert_eq!(host_of(&Uri::from_static(target), &headers), Some(host));
        }
        assert_eq!(host_of(&Uri::from_static("/manage"), &HeaderMap::new()), None);
    }

    #[test]
    fn forms_of_other_sites_are_told_apart() {
        for (pairs, expected) in [
            (&[][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "https://s.example:8443"), ("host", "s.example:8443")], true),
            (&[("origin", "https://s.example"), ("host", "s.example:8443")], false),
            (&[("origin", "https://evil.example"), ("host", "s.example")], false),
            (&[("origin", "https://public.example"), ("host", "inner")], true),
            (&[("origin", "null"), ("host", "s.example")], false),
            (&[("origin", "https://"), ("host", "")], false),
        ] {
            let headers = headers(pairs);
            let uri = Uri::from_static("/");
            let host = host_of(&uri, &headers).unwrap_or("");
            assert_eq!(is_same_origin(&headers, &[host, "public.example"]), expected, "{pairs:?}");
        }
    }
}
