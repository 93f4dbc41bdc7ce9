//! Parses the heads of requests that the fast path can answer.

use std::mem::MaybeUninit;

use httparse::{Header, Status};

use super::prefetch;

/// Headers that give a request a body or affect its connection. A request with one of them goes to
/// hyper.
const DECIDES: [&str; 5] = ["connection", "content-length", "transfer-encoding", "upgrade", "expect"];
/// The maximum number of headers; a request with more goes to hyper.
const HEADERS_MAX: usize = 32;

/// The parts of a request's head that a redirect depends on, or that are recorded of a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// Whether the method is HEAD. Such a request comes from a link checker or a preview, and is
    /// not a visit.
    pub is_head: bool,
    /// The path with the query, as requested.
    pub path_and_query: &'a str,
    /// The path, not percent-decoded, with its leading slash.
    pub path: &'a str,
    /// The query, not percent-decoded, without its question mark.
    pub query: Option<&'a str>,
    /// The host of the request; `None` if the request has none.
    pub host: Option<&'a str>,
    /// The `User-Agent` header.
    pub user_agent: Option<&'a [u8]>,
    /// The `Referer` header.
    pub referer: Option<&'a [u8]>,
    /// The `Accept-Language` header.
    pub accept_language: Option<&'a [u8]>,
    /// Whether a browser fetches ahead, before a person has decided to follow the link. Always
    /// false on the fast path, which hands such a request over.
    pub is_prefetch: bool,
    /// Whether the header `DNT` or `Sec-GPC` is `1`: the visitor asks not to be tracked.
    pub is_opted_out: bool,
}

impl RequestHead<'_> {
    /// Returns the head without `base`, a path without a slash at its end, before its own path;
    /// `None` if the path is not below it.
    #[must_use]
    pub fn below(self, base: &str) -> Option<Self> {
        let path = self.path.strip_prefix(base).filter(|path| path.starts_with('/'))?;
        Some(Self { path, path_and_query: &self.path_and_query[base.len()..], ..self })
    }
}

/// A request without a body, without headers that affect its connection, and without a repeated
/// header among those on which its client or its link depends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// The parts that a redirect and the record of its visit depend on.
    pub head: RequestHead<'a>,
    /// The header [`ProxyHeaders::client`].
    pub client: Option<&'a [u8]>,
    /// The `Forwarded` header.
    pub forwarded: Option<&'a [u8]>,
    /// The header in which a proxy names the country of its client, if one is configured.
    pub country: Option<&'a [u8]>,
    /// Whether there is a `traceparent` header: the request may belong to a trace.
    pub has_traceparent: bool,
}

/// The headers that proxies add to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// The name of the header in which a proxy lists its clients, in lower case.
    pub client: Box<str>,
    /// The name of the header in which a proxy names the country of its client, if there is one.
    pub country: Option<Box<str>>,
}

impl Default for ProxyHeaders {
    fn default() -> Self {
        Self { client: "x-forwarded-for".into(), country: None }
    }
}

impl<'a> Request<'a> {
    /// Reads a header. Returns `None` if hyper has to answer its request.
    #[inline]
    fn read(&mut self, name: &str, value: &'a [u8], from_proxy: &ProxyHeaders) -> Option<()> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let place = match name.len() {
            // Of two hosts or clients, a proxy in front might read another one than this server.
            4 if is("host") => {
                let host = std::str::from_utf8(value).ok()?;
                return self.head.host.replace(host).is_none().then_some(());
            }
            7 if is("referer") => &mut self.head.referer,
            10 if is("user-agent") => &mut self.head.user_agent,
            9 if is("forwarded") => &mut self.forwarded,
            15 if is("accept-language") => return keep_first(&mut self.head.accept_language, value),
            3 if is("dnt") => return self.note_opt_out(value),
            11 if is("traceparent") => {
                self.has_traceparent = true;
                return Some(());
            }
            5 | 7 | 9 | 11 if prefetch::HEADERS.iter().any(|other| is(other.as_str())) => {
                return (!prefetch::is_named_in(value)).then_some(());
            }
            7 if is("sec-gpc") => return self.note_opt_out(value),
            10 if is("connection") && value.eq_ignore_ascii_case(b"keep-alive") => return Some(()),
            _ if DECIDES.iter().any(|other| is(other)) => return None,
            _ if is(&from_proxy.client) => &mut self.client,
            _ if from_proxy.country.as_deref().is_some_and(is) => {
                return keep_first(&mut self.country, value);
            }
            _ => return Some(()),
        };
        place.replace(value).is_none().then_some(())
    }

    fn note_opt_out(&mut self, value: &[u8]) -> Option<()> {
        self.head.is_opted_out |= value == b"1";
        Some(())
    }
}

/// Keeps the first of repeated headers that decide nothing, as hyper's map of headers returns it.
fn keep_first<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) -> Option<()> {
    place.get_or_insert(value);
    Some(())
}

/// Parses the first request of `bytes`, and returns it with the bytes after it. Returns `None` if
/// the request is incomplete, or hyper has to answer it.
pub(super) fn parse<'a>(bytes: &'a [u8], from_proxy: &ProxyHeaders) -> Option<(Request<'a>, &'a [u8])> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(len)) = request.parse_with_uninit_headers(bytes, &mut headers) else {
        return None;
    };
    let is_head = match request.method? {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let target = request.path.filter(|target| request.version == Some(1) && target.starts_with('/'))?;
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if query.is_some_and(|query| query.bytes().any(|byte| matches!(byte, b'"' | b'<' | b'>' | b'#'))) {
        // hyper rejects a query with one of these characters, or ends the query at it.
        return None;
    }
    let head = RequestHead { is_head, path_and_query: target, path, query, ..RequestHead::default() };
    let mut parsed = Request { head, ..Request::default() };
    for Header { name, value } in &*request.headers {
        parsed.read(name, value, from_proxy)?;
    }
    parsed.head.host?;
    Some((parsed, &bytes[len..]))
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use proptest::prelude::*;

    use super::*;

    fn read(head: &str) -> Option<(Request<'_>, &[u8])> {
        parse(head.as_bytes(), &ProxyHeaders::default())
    }

    proptest! {
        #[test]
        fn what_is_read_here_hyper_reads_alike(query in "[\\x21-\\x7e\\u{e4}\\u{20ac}]{0,12}", cut in prop::bool::ANY) {
            let target = format!("/abc{}{query}", if cut { "" } else { "?" });
            let head = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            if let Some((Request { head: parsed, .. }, _)) = read(&head)
                && parsed.path == "/abc"
            {
                let uri = Uri::try_from(&target).unwrap();
                prop_assert_eq!((uri.path(), uri.query()), (parsed.path, parsed.query));
            }
        }
    }

    #[test]
    fn a_plain_get_or_head_is_read_and_what_stands_behind_it_is_left() {
        let parsed = RequestHead {
            is_head: true,
            path_and_query: "/abc?x=1&y",
            path: "/abc",
            query: Some("x=1&y"),
            host: Some("a.example"),
            ..RequestHead::default()
        };
        let head = "HEAD /abc?x=1&y HTTP/1.1\r\nHOST: a.example\r\nconnection: Keep-Alive\r\n\r\nGET";
        let request = Request { head: parsed, ..Request::default() };
        assert_eq!(read(head), Some((request, &b"GET"[..])));
        let head = "GET /abc HTTP/1.1\r\nHost: a.example\r\nUser-Agent: curl/8\r\nX-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\nAccept: */*\r\n\r\n";
        let parsed = RequestHead {
            is_head: false,
            path_and_query: "/abc",
            query: None,
            user_agent: Some(b"curl/8"),
            ..parsed
        };
        let request = Request {
            head: parsed,
            client: Some(b"192.0.2.1"),
            forwarded: Some(b"for=192.0.2.2"),
            ..Request::default()
        };
        assert_eq!(read(head), Some((request, &b""[..])));
    }

    #[test]
    fn a_path_before_that_of_the_link_is_cut_off_whole_or_not_at_all() {
        let below = |target: &str| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            let below = read(&head)?.0.head.below("/s")?;
            Some((below.path.to_owned(), below.path_and_query.to_owned()))
        };
        for (target, expected) in [
            ("/s/abc", Some(("/abc", "/abc"))),
            ("/s/abc?x=/s/", Some(("/abc", "/abc?x=/s/"))),
            ("/s/s/abc", Some(("/s/abc", "/s/abc"))),
            ("/s/", Some(("/", "/"))),
            ("/s", None),
            ("/s?x", None),
            ("/sabc", None),
            ("/abc", None),
        ] {
            let expected = expected.map(|(path, whole)| (path.to_owned(), whole.to_owned()));
            assert_eq!(below(target), expected, "{target}");
        }
    }

    #[test]
    fn headers_that_are_only_recorded_are_read_and_may_be_repeated() {
        let with = |lines: &str| format!("GET /abc HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n");
        let head = with("accept-language: de\r\nAccept-Language: en\r\n");
        let (Request { head: parsed, country, .. }, _) = read(&head).unwrap();
        assert_eq!((parsed.accept_language, country), (Some(&b"de"[..]), None));
        for (lines, is_opted_out) in [
            ("DNT: 1\r\n", true),
            ("dnt: 0\r\nsec-gpc: 1\r\n", true),
            ("Sec-GPC: 1\r\nSec-GPC: 0\r\n", true),
            ("DNT: 0\r\n", false),
            ("Sec-GPC: yes\r\nDNT:\r\n", false),
        ] {
            let head = with(lines);
            assert_eq!(read(&head).unwrap().0.head.is_opted_out, is_opted_out, "{lines}");
        }
        let head = with("CF-IPCountry: DE\r\ncf-ipcountry: FR\r\n");
        let with_country = ProxyHeaders { country: Some("cf-ipcountry".into()), ..ProxyHeaders::default() };
        let country = |from_proxy| parse(head.as_bytes(), from_proxy).unwrap().0.country;
        assert_eq!(country(&with_country), Some(&b"DE"[..]));
        assert_eq!(country(&ProxyHeaders::default()), None);
        let named = ProxyHeaders { client: "x-real-ip".into(), country: None };
        let head = with("X-Forwarded-For: 192.0.2.1\r\nX-Real-IP: 192.0.2.2\r\n");
        assert_eq!(parse(head.as_bytes(), &named).unwrap().0.client, Some(&b"192.0.2.2"[..]));
    }

    #[test]
    fn whatever_else_a_request_says_is_handed_over() {
        let with = |line: &str| format!("GET /abc HTTP/1.1\r\nHost: a.example\r\n{line}\r\n\r\n");
        assert!(read(&with("Accept: */*")).is_some());
        for line in [
            "Connection: close",
            "Connection: keep-alive, upgrade",
            "Content-Length: 0",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            "transfer-encoding : chunked",
            "Upgrade: h2c",
            "Expect: 100-continue",
            "Host: b.example",
            "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2",
            "Forwarded: for=192.0.2.1\r\nForwarded: for=192.0.2.2",
            "Sec-Purpose: prefetch",
            "PURPOSE: Prefetch",
            "X-Purpose: preview",
            "X-Moz: prefetch",
            "User-Agent: a\r\nUser-Agent: a",
            "Referer: a\r\nReferer: a",
            "no header",
            &"X: y\r\n".repeat(HEADERS_MAX),
        ] {
            assert_eq!(read(&with(line)), None, "{line}");
        }
        for head in [
            "",
            "GET /abc HTTP/1.1\r\n\r\n",
            "GET /abc HTTP/1.1\r\nHost: a.example\r\n",
            "GET /abc HTTP/1.0\r\nHost: a.example\r\n\r\n",
            "GET http://a.example/abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET /abc HTTP/1.1\r\nHost: a\u{0}.example\r\n\r\n",
            "GET /abc?x=<y> HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "POST /abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "get /abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert_eq!(read(head), None, "{head}");
        }
    }
}
